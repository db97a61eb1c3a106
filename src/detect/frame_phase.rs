//! The phase that a frame of a traceback names: where an error was raised counts for more than
//! what the program said last.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::Phase;

/// A frame of Python's, or of rich's: its file and its function.
static FRAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"^[\s|│>]*(?:File "(?P<path>[^"]{1,300})", line \d+,? in (?P<name>[\w.<>]+)|(?P<path2>(?:/|[A-Z]:\\)[^:│]{1,250}\.py):\d+ in (?P<name2>[\w.<>]+))"#,
    )
    .ok()
});

/// Files whose functions only share a name with those of the programs: Python's own, tokenizers,
/// torch's, pictures'.
static ELSEWHERE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)[\\/]lib[\\/]python3[^\\/]*[\\/][^\\/]+\.py$|[\\/]python3?\d*[\\/]lib[\\/][^\\/]+\.py$|[\\/](?:torch|tokenizers|PIL|json|codecs|requests|urllib3|numpy|gradio|av|imageio\w*|cv2)[\\/]|tokeniz|audio").ok()
});

/// Files of a VAE, in which a plain `encode` or `_encode` is the VAE's.
static OF_VAE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)vae|autoencoder|[\\/]comfy[\\/]sd\.py$").ok());

/// Functions within which the VAE decodes.
const DECODE: &[&str] = &[
    "decode",
    "_decode",
    "tiled_decode",
    "decode_latents",
    "decode_tiled",
    "decode_tiled_",
    "vae_decode",
    "decode_first_stage",
    "_tiled_decode",
    "temporal_tiled_decode",
    "spatial_tiled_decode",
    "vae_decode_fake",
    "full_vae_decode",
    "taesd_vae_decode",
];
/// Functions within which it encodes.
const ENCODE: &[&str] = &[
    "vae_encode",
    "encode_first_stage",
    "encode_tiled",
    "encode_tiled_",
    "tiled_encode",
    "temporal_tiled_encode",
    "full_vae_encode",
    "encode_pixels",
];
/// The same, in a file of a VAE alone.
const ENCODE_OF_VAE: &[&str] = &["encode", "_encode"];
/// Functions within which the prompt is encoded.
const TEXT: &[&str] = &[
    "encode_from_tokens",
    "encode_from_tokens_scheduled",
    "encode_token_weights",
    "encode_prompt",
    "encode_prompt_conds",
    "encode_prompts",
    "get_learned_conditioning",
    "_get_t5_prompt_embeds",
    "_get_clip_prompt_embeds",
    "_get_llama_prompt_embeds",
];
/// Functions within which it samples.
const SAMPLE: &[&str] = &[
    "sample",
    "common_ksampler",
    "inner_sample",
    "outer_sample",
    "sample_hunyuan",
    "sample_unipc",
    "sample_custom",
    "p_sample_loop",
    "denoise",
    "apply_model",
    "do_unet_step",
    "latents_from_embeddings",
];

/// The phase of a frame of a traceback; absent: its function names none.
pub(crate) fn of_line(text: &str) -> Option<Phase> {
    if !text.contains(" in ") {
        return None;
    }
    let found = FRAME.as_ref()?.captures(text)?;
    let part = |a: &str, b: &str| found.name(a).or_else(|| found.name(b)).map(|m| m.as_str());
    let path = part("path", "path2")?;
    let name = part("name", "name2")?;
    if ELSEWHERE.as_ref().is_some_and(|r| r.is_match(path)) {
        return None;
    }
    let of_vae = OF_VAE.as_ref().is_some_and(|r| r.is_match(path));
    if DECODE.contains(&name) {
        Some(Phase::VaeDecode)
    } else if ENCODE.contains(&name) || of_vae && ENCODE_OF_VAE.contains(&name) {
        Some(Phase::VaeEncode)
    } else if TEXT.contains(&name) {
        Some(Phase::TextEncode)
    } else if SAMPLE.contains(&name) || name.starts_with("sample_") {
        Some(Phase::Sampling)
    } else {
        None
    }
}

/// Phases of the last tracebacks, by the numbers of their lines.
#[derive(Debug, Clone, Default)]
pub(super) struct FramePhases {
    /// First and last line, and the phase of the innermost frame that names one.
    last: Vec<(u64, u64, Option<Phase>)>,
    open: bool,
    of_job: bool,
}

/// How servers tell of the failure of a job or of a request: what failed is not their start.
static OF_JOB: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\bgradio call: |\bProcessing: |\bProcessing modes: |\bError while invoking session\b|\bException during processing\b|\berror completing request\b|\bBase: pipeline=|\bin process_images(?:_inner)?\b|^Error occurred when executing |\bin generate_video\b|^- \*\*Node Type:").ok()
});

/// Tracebacks that are kept.
const MOST: usize = 8;
/// Lines before a traceback whose words are its error: ComfyUI quotes the error first.
const BEFORE: u64 = 3;
/// Lines behind the last frame among which the error stands.
const BEHIND: u64 = 12;

impl FramePhases {
    /// Takes a line; `ends`: it is the end of a traceback.
    pub(super) fn observe(&mut self, seq: u64, text: &str, ends: bool) {
        self.of_job |= OF_JOB.as_ref().is_some_and(|r| r.is_match(text));
        let begins = text.contains("Traceback (most recent call last)");
        let phase = of_line(text);
        if begins || (phase.is_some() && !self.open) {
            if self.last.len() == MOST {
                self.last.remove(0);
            }
            self.last.push((seq, seq, None));
            self.open = true;
        }
        let Some(last) = self.last.last_mut().filter(|_| self.open) else {
            return;
        };
        if phase.is_some() {
            last.2 = phase;
        }
        if phase.is_some() || ends || text.contains("File \"") {
            last.1 = seq;
        }
        self.open &= !ends;
    }

    /// The phase of the traceback whose error one of these lines reports.
    pub(super) fn of_lines(&self, lines: impl Iterator<Item = u64>) -> Option<Phase> {
        let latest = lines.max()?;
        let holds = |(from, to, _): &&(u64, u64, Option<Phase>)| {
            (from.saturating_sub(BEFORE)..=to.saturating_add(BEHIND)).contains(&latest)
        };
        self.last.iter().rev().find(holds)?.2
    }

    /// Whether a server spoke of the failure of a job or of a request.
    pub(super) const fn spoke_of_a_job(&self) -> bool {
        self.of_job
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_names_its_phase() {
        for (frame, phase) in [
            (
                "  File \"/o/FramePack/demo_gradio.py\", line 285, in vae_decode",
                Some(Phase::VaeDecode),
            ),
            (
                "  File \"C:\\ComfyUI\\nodes.py\", line 299, in decode",
                Some(Phase::VaeDecode),
            ),
            (
                "  File \"/o/comfy/sd.py\", line 604, in encode",
                Some(Phase::VaeEncode),
            ),
            (
                "  File \"/o/v/diffusers/models/autoencoders/autoencoder_kl.py\", line 1, in _encode",
                Some(Phase::VaeEncode),
            ),
            (
                "  File \"/o/comfy/sd.py\", line 1, in encode_from_tokens",
                Some(Phase::TextEncode),
            ),
            ("  File \"/o/nodes.py\", line 65, in encode", None),
            (
                "  File \"/o/comfy/samplers.py\", line 9, in outer_sample",
                Some(Phase::Sampling),
            ),
            (
                "│/mnt/sdnext/modules/processing_vae.py:120 in full_vae_decode   │",
                Some(Phase::VaeDecode),
            ),
            (
                "  File \"/usr/lib/python3.12/json/decoder.py\", line 340, in decode",
                None,
            ),
            (
                "  File \"/usr/lib/python3.12/random.py\", line 4, in sample",
                None,
            ),
            (
                "  File \"/v/site-packages/transformers/tokenization_utils.py\", line 4, in decode",
                None,
            ),
            (
                "  File \"/v/site-packages/torch/distributions/normal.py\", line 4, in sample",
                None,
            ),
            ("decode", None),
        ] {
            assert_eq!(of_line(frame), phase, "{frame}");
        }
    }

    #[test]
    fn the_innermost_frame_of_the_right_traceback_counts() {
        let mut phases = FramePhases::default();
        let mut seq = 0;
        let mut take = |text: &str, ends: bool| {
            seq += 1;
            phases.observe(seq, text, ends);
        };
        take("Traceback (most recent call last):", false);
        take("  File \"/o/comfy/samplers.py\", line 9, in sample", false);
        take("  File \"/o/comfy/sd.py\", line 9, in decode", false);
        take("torch.OutOfMemoryError: HIP out of memory.", true);
        for _ in 0..30 {
            take("x", false);
        }
        take("Traceback (most recent call last):", false);
        take(
            "  File \"/o/comfy/sd.py\", line 1, in encode_from_tokens",
            false,
        );
        take("RuntimeError: x", true);
        assert_eq!(phases.of_lines([4].into_iter()), Some(Phase::VaeDecode));
        assert_eq!(phases.of_lines([37].into_iter()), Some(Phase::TextEncode));
        assert_eq!(phases.of_lines([25].into_iter()), None);
        assert!(!phases.spoke_of_a_job());
        phases.observe(40, "12:01:40-1 ERROR    gradio call: RuntimeError", false);
        assert!(phases.spoke_of_a_job());
    }
}
