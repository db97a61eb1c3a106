//! Words that are no error but matter to a judgement: where a model stays, on what the
//! whole program runs.

use std::sync::LazyLock;

use regex::Regex;

/// What a line hints at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hint {
    /// The program runs on the CPU as a whole: its torch has no GPU code, or it says so.
    CpuOnly,
    /// A part of the program runs on the CPU: the library that it uses could not load its code for
    /// the card.
    PartOnCpu,
    /// A model was moved off the card only so far that some memory is free.
    KeptOnCard,
    /// A model was taken off the card completely.
    TakenOff,
}

/// (pattern, hint): FramePack and its forks; ComfyUI, `sd-webui`, `InvokeAI`.
const ROWS: &[(&str, Hint)] = &[
    (
        r"(?i)\boffloading \S+ from \S+ to preserve memory\b",
        Hint::KeptOnCard,
    ),
    (
        r"(?i)\b(?:unloading|unloaded) \S*transformer\S*(?: from \S+)? (?:completely|as complete)\b|\btransformer (?:was )?(?:completely |fully )?unloaded\b|\bfull(?:y)? (?:offload|unload)\w*\b.{0,30}\btransformer",
        Hint::TakenOff,
    ),
    (
        r"(?i)\b(?:py)?torch(?: version)?\W{0,3}\d+\.\d+\.\d+\S*\+cpu\b",
        Hint::CpuOnly,
    ),
    (
        r"(?i)(?:^|[\]:] |\busing |\bselected |\btorch )device(?:_type)?\W{0,3}(?:is |type )?\W?cpu\W?\s*$",
        Hint::CpuOnly,
    ),
    (
        r"(?i)\b(?:no gpu (?:found|detected|available)|cuda (?:is )?not available|gpu (?:is )?not available|no (?:cuda|rocm|hip) (?:device|gpu)s? (?:found|detected))\b.{0,60}\bcpu\b|\b(?:running|generating|inference) (?:entirely |everything )?on (?:the )?cpu\b.{0,30}\b(?:slow|only|because)",
        Hint::CpuOnly,
    ),
    (r"(?i)\bSet vram state to: DISABLED\b", Hint::CpuOnly),
    // SD.Next and the web UIs that share its installer
    (r"(?i)\bUsing CPU-only torch\b", Hint::CpuOnly),
    // onnxruntime
    (
        r"\bFailed to create (?:ROCM|MIGraphX|CUDA|Tensorrt|Dml|OpenVINO)ExecutionProvider\b|^Falling back to \['CPUExecutionProvider'\]",
        Hint::PartOnCpu,
    ),
];

static HINTS: LazyLock<Vec<(Regex, Hint)>> = LazyLock::new(|| {
    ROWS.iter()
        .filter_map(|(p, h)| Some((Regex::new(p).ok()?, *h)))
        .collect()
});

/// What a line hints at, if anything.
pub(crate) fn hint(text: &str) -> Option<Hint> {
    // words of which each of the patterns has one
    let may = ["load", "cpu", "CPU", "Cpu", "DISABLED", "ExecutionProvider"];
    if !may.iter().any(|w| text.contains(w)) {
        return None;
    }
    HINTS
        .iter()
        .find_map(|(r, h)| r.is_match(text).then_some(*h))
}

/// Whether a line says that a model is being moved to the card or off it: FramePack
/// (`Moving X to cuda:0 with preserved memory`; what it wraps in `DynamicSwap_` is copied
/// layer by layer while it runs), scripts (`Moving transformer to GPU...`).
pub(crate) fn announces_a_move(text: &str) -> bool {
    static MOVES: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)\b(?:mov(?:e|ing)|offload(?:ing)?|transferr?(?:ing)?|cop(?:y|ying)|upload(?:ing)?|plac(?:e|ing)|send(?:ing)?|swap(?:ping)?)\b.{1,80}\b(?:to|from|onto|off|between|into)\b.{0,12}\b(?:cuda|hip|gpu|cpu|device|vram|card|host)\b|\bloaded DynamicSwap_\w+ to (?:cuda|hip)\b",
        )
        .ok()
    });
    MOVES.as_ref().is_some_and(|r| r.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_told_from_moves_that_are_over() {
        for text in [
            "Moving DynamicSwap_HunyuanVideoTransformer3DModelPacked to cuda:0 with preserved memory: 6 GB",
            "Offloading DynamicSwap_HunyuanVideoTransformer3DModelPacked from cuda:0 to preserve memory: 8 GB",
            "[INFO] Moving transformer to GPU...",
        ] {
            assert!(announces_a_move(text), "{text}");
        }
        for text in [
            "Loading checkpoint shards:  50%|#####     | 2/4 [00:10<00:10, 5.0s/it]",
            "loaded completely 14003.2 6419.48 True",
            "Loaded AutoencoderKLHunyuanVideo to cuda:0 as complete.",
            "Requested to load WAN21",
        ] {
            assert!(!announces_a_move(text), "{text}");
        }
    }

    #[test]
    fn words_of_several_programs() {
        assert_eq!(HINTS.len(), ROWS.len());
        for (text, want) in [
            (
                "Offloading DynamicSwap_HunyuanVideoTransformer3DModelPacked from cuda:0 to preserve memory: 8 GB",
                Some(Hint::KeptOnCard),
            ),
            (
                "Unloading DynamicSwap_HunyuanVideoTransformer3DModelPacked completely",
                Some(Hint::TakenOff),
            ),
            (
                "Unloaded DynamicSwap_HunyuanVideoTransformer3DModelPacked as complete.",
                Some(Hint::TakenOff),
            ),
            ("pytorch version: 2.7.1+cpu", Some(Hint::CpuOnly)),
            ("PyTorch 2.6.0+cpu", Some(Hint::CpuOnly)),
            ("Device: cpu", Some(Hint::CpuOnly)),
            (
                "Falling back to ['CPUExecutionProvider'] and retrying.",
                Some(Hint::PartOnCpu),
            ),
            (
                "RegisterExecutionProviders Failed to create CUDAExecutionProvider. Require cuDNN 9.*",
                Some(Hint::PartOnCpu),
            ),
            (
                "Applied providers: ['CPUExecutionProvider'], with options: {}",
                None,
            ),
            ("[INFO] Using device: cpu", Some(Hint::CpuOnly)),
            (">> Using device_type cpu", Some(Hint::CpuOnly)),
            (
                "No GPU found, running on CPU will be slow",
                Some(Hint::CpuOnly),
            ),
            ("pytorch version: 2.8.0+rocm6.4", None),
            ("Device: cuda:0 AMD Radeon RX 6800 : native", None),
            (
                "VAE load device: cuda:0, offload device: cpu, dtype: torch.bfloat16",
                None,
            ),
            (
                "[VAE Decode] Starting - latents shape: torch.Size([1]), device: cpu",
                None,
            ),
            (
                "Hy3D: enable_model_cpu_offload active, pipeline execution device: cpu",
                None,
            ),
            ("Decoding on CPU", None),
        ] {
            assert_eq!(hint(text), want, "{text}");
        }
    }
}
