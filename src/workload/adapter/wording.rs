//! Wording that many programs share: bars by their description, announced steps.

use std::sync::LazyLock;

use regex::Regex;

use super::narrator::Narrator;
use super::tqdm::Bar;
use crate::model::Phase;
use crate::workload::{artefacts, pattern};

/// What a bar counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BarKind {
    /// Denoising steps; the flag: the description says so.
    Sampling { said: bool },
    /// Anything with a phase of its own.
    Of(Phase),
    /// Tensors of weights that are read.
    Weights,
    /// Cannot be told.
    Other,
}

static DOWNLOAD: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)\b(?:fetch(?:ing)?|download(?:ing|s)?)\b"));
/// A bar that is named after a file reads it, unless it counts bytes.
static FILE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\.(?:safetensors|bin|json|pth?|ckpt|gguf|model|txt|msgpack|onnx|sft|index)(?:\W.{0,40})?$",
    )
});
static LOAD: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)\bload(?:ing|ed)?\b|\bquantiz|\bmaterializ|\bweights\b"));
static SAMPLING: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)sampl|denois|diffus|\bsteps?\b|inference|generat|\bsection\b"));
static DECODE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)decod|\bvae\b"));
static SAVE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)^t$|frame_index|\b(?:writing|saving|encoding|export|muxing)"));
static TEXTURE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)\bbak(?:e|ing)\b|render|multi-?view|textur|inpaint"));
static MESH: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)\bmesh\b|vertices|\bfaces\b|unwrap|xatlas|\bUVs?\b|remesh|marching")
});

static LATENTS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)\b(?:cach|encod|prepar)\w* (?:vae )?latents?\b"));
static TEXTS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:cach|encod)\w* (?:text.?encoder outputs?|text embeddings?|captions?|prompts?)\b",
    )
});

pub(super) fn classify(bar: &Bar) -> BarKind {
    let desc = bar.desc.as_deref().unwrap_or_default();
    let file = names_file(bar);
    // the hub counts the percent of a file
    if bar.counts_bytes() || DOWNLOAD.is_match(desc) || (file && bar.unit == "%") {
        return BarKind::Of(Phase::Download);
    }
    if file {
        return BarKind::Of(Phase::ModelLoad);
    }
    if desc.is_empty() {
        return BarKind::Sampling { said: false };
    }
    for (words, phase) in [
        (&*LATENTS, Phase::VaeEncode),
        (&*TEXTS, Phase::TextEncode),
        (&*DECODE, Phase::VaeDecode),
        (&*LOAD, Phase::ModelLoad),
    ] {
        if words.is_match(desc) {
            return BarKind::Of(phase);
        }
    }
    if SAMPLING.is_match(desc) {
        return BarKind::Sampling { said: true };
    }
    for (words, phase) in [
        (&*SAVE, Phase::Save),
        (&*TEXTURE, Phase::Texture),
        (&*MESH, Phase::MeshPost),
    ] {
        if words.is_match(desc) {
            return BarKind::Of(phase);
        }
    }
    BarKind::Other
}

static CHORE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:upload|copy|sync|install|extract|unpack|unzip|scan|check|verif|hash|import|clean|delet|remov|collect|compil|convert|tokeniz|archiv|mapping|map\b|resolv|index)",
    )
});

/// Whether the name of a bar says that it counts work beside a generation.
pub(super) fn counts_a_chore(bar: &Bar) -> bool {
    bar.desc.as_deref().is_some_and(|d| CHORE.is_match(d))
}

/// Whether the bar is named after a file.
pub(super) fn names_file(bar: &Bar) -> bool {
    bar.desc.as_deref().is_some_and(|d| FILE.is_match(d))
}

static VOLUME: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)\bvolume\b|\bflashvdm\b"));

/// The phase that a bar leaves behind: once a 3-D shape's volume is decoded, its mesh
/// is made on the CPU, without a word and for minutes.
pub(super) fn follows(bar: &Bar, phase: Phase) -> Phase {
    let desc = bar.desc.as_deref().unwrap_or_default();
    if phase == Phase::VaeDecode && bar.complete() && VOLUME.is_match(desc) {
        Phase::MeshPost
    } else {
        phase
    }
}

static PREFIX: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?x)^
        (?: \[? (?:\d{4}-\d\d-\d\d[\ T])? \d\d:\d\d:\d\d [\d.,Z]* (?:-\d+)? \]? \s* (?:[-|]\s*)? )?
        (?: ::\[[\w.]+\]::\w+\ -->\ )?
        (?: \[\s* (?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \s*\] \s?
          | (?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \s* (?: :[\w.]+: | \s[-|:] | :\s | \s{2} ) \s* )?",
    )
});

/// The line without a logger's time and level.
pub(super) fn without_prefix(text: &str) -> &str {
    PREFIX.find(text).map_or(text, |m| &text[m.end()..])
}

static READY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\brunning on (?:local )?(?:url:)?\s*https?://|^To see the GUI go to:|uvicorn running on https?://|(?:\blocal url:|\b(?:serving|listening|started|running|available) (?:on|at):?)\s*https?://(?:localhost\b|127\.|0\.0\.0\.0|\[::)",
    )
});
static DOWNLOADING: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)^\W*(?:downloading\b|fetching \d+ files)"));
static LOADING: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)^\W*loading (?:the )?(?:\w+ )?(?:models?|checkpoints?|pipelines?|weights|transformer|vae|text.?encoders?|unet|tokenizer|diffusion)\b|^\W*(?:load(?:ing)?|reading)\b.{1,160}\.(?:safetensors|gguf|ckpt|pth?|sft|onnx)\b",
    )
});
/// A step of the program's own, counted from zero: `[0/30] encoding the prompt`. Loading is
/// over, and which phase comes is not known.
static COUNTED_STEP: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^\W*\[\s*\d{1,5}\s*/\s*\d{1,5}\s*\]\s+\p{L}"));
static PROMPT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)^\W*encoding (?:the )?(?:prompts?|text|captions?)|\btext encoding\b")
});
static SAVING: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:saving|writing|exporting|encoding|muxing)\b.{0,40}\b(?:videos?|mp4|webm|gif|frames|mesh|glb|outputs?|images?|results?|files?)\b|\bbuilding video\b",
    )
});
static DECODING: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:vae|latents?|video|tiled)\b.{0,40}\bdecod|\bdecod\w*\b.{0,40}\b(?:vae|latents?|video|frames|tiles)\b|^\W*Processing video: \d+ frames",
    )
});
static ENCODING: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)\bvae\b.{0,40}\bencod|\bencod\w*\b.{0,40}\b(?:vae|start image|input image)\b")
});
/// Words of a step that is over, or of a setting rather than a step.
static NOT_A_BEGIN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:success\w*|complet\w*|finished|done|took|will|would|if|enabled|disabled|available|using|patch|loaded?|device:)\b|\bdecoded\b",
    )
});

static FAILURE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:failed|fails|failure|unable|cannot|can't|could not|couldn't|\w*error|\w*exception)\b",
    )
});
/// What is done about it: the step goes on in another way.
static ANSWERED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)\b(?:retry\w*|retries|again|instead|fallback|fall(?:s|ing)? ?back)\b")
});

/// Whether a line tells that a step failed, and of nothing that begins.
fn tells_of_failure(text: &str) -> bool {
    FAILURE.is_match(text) && !ANSWERED.is_match(text)
}

/// Whether a line tells that a decode begins.
pub(super) fn begins_decode(text: &str) -> bool {
    DECODING.is_match(text) && !NOT_A_BEGIN.is_match(text) && !tells_of_failure(text)
}

/// What a line says in words that any program may use. Gives whether it said something.
/// `steps_are_known`: the program is of a family whose textures and meshes are a
/// generation's.
pub(super) fn line(text: &str, steps_are_known: bool, n: &mut Narrator) -> bool {
    if READY.is_match(text) {
        n.wait();
        return true;
    }
    cpu(text, n);
    if hunyuan3d(text, steps_are_known, n) {
        return true;
    }
    if DOWNLOADING.is_match(text) {
        n.enter(Phase::Download);
        return true;
    }
    if LOADING.is_match(text) {
        n.enter(Phase::ModelLoad);
        return true;
    }
    if COUNTED_STEP.is_match(text) && matches!(n.phase(), Phase::ModelLoad | Phase::Download) {
        n.enter(Phase::Unknown);
        return true;
    }
    if !n.reads_steps() || tells_of_failure(text) {
        return false;
    }
    if artefacts::path_in_line(text).is_some() {
        n.enter(if n.server { Phase::Save } else { Phase::Done });
        return true;
    }
    if NOT_A_BEGIN.is_match(text) {
        return false;
    }
    for (words, phase) in [
        (&*PROMPT, Phase::TextEncode),
        (&*DECODING, Phase::VaeDecode),
        (&*ENCODING, Phase::VaeEncode),
        (&*SAVING, Phase::Save),
    ] {
        if words.is_match(text) {
            let vae = matches!(phase, Phase::VaeDecode | Phase::VaeEncode);
            if vae && LATENT_WORK.is_match(text) {
                n.begin_script_job();
            }
            if vae && !n.in_flight() {
                // another program's video
                return false;
            }
            n.enter(phase);
            return true;
        }
    }
    false
}

/// A step that only a generation has: any program may decode a video, and a model's decoder
/// is no step.
static LATENT_WORK: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:vae|latents?)\b.{0,60}\b(?:de|en)cod(?:es?|ing)\b|\b(?:de|en)cod(?:es?|ing)\b.{0,60}\b(?:vae|latents?)\b",
    )
});

static ON_CPU: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:on|to|with|via|using) (?:the )?cpu\b|\bcpu (?:vae )?(?:decod|encod|fallback|tier)|\bcpu\b.{0,12}\binstead\b",
    )
});
static CPU_STEP: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:decod\w*|encod\w*|retry\w*|fall(?:ing|s)? ?back|fallback|run(?:ning|s)?|comput\w*|process\w*|vae|convolution|conv\dd)\b",
    )
});
/// The CPU is spoken of, but no step is announced: conditions, settings, places of tensors.
static CPU_TALK: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:if|will|would|enabled|disabled|available|generator|tensors?|inputs?|weights|latents? (?:is|are|on)|images? on|offload\w*|unload\w*|moving|moved|not|cannot|expected|initiali[sz]ed)\b|\bon (?:cuda|gpu|hip)\b",
    )
});
static ON_GPU: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:decod\w*|attempt\w*|retry\w*|running)\b.{0,40}\b(?:on|using) (?:the )?(?:gpu|cuda|hip)\b",
    )
});

fn cpu(text: &str, n: &mut Narrator) {
    // how long it will take, or what may be done about it, is a remark
    let said = text.split_once(" (").map_or(text, |(said, _)| said);
    if ON_CPU.is_match(said) && CPU_STEP.is_match(said) && !CPU_TALK.is_match(said) {
        n.announce_cpu(true);
    } else if ON_GPU.is_match(text) {
        n.announce_cpu(false);
    }
}

static DELIGHT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)\bdelight|^\W*image in shape:? torch"));
static TEXTURE_STEP: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\bmulti-?view\b|\bbaking\b|\brendering (?:\w+ )?(?:views?|normals?|positions?)|\binpainting (?:the )?textur|\btexture (?:gen|paint|bak)",
    )
});
static MESH_STEP: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)^\W*decoded mesh with|\bxatlas\b|\bunwrapping\b|\bremeshing\b|\b(?:reduc|decimat|simplif)\w* (?:the )?(?:mesh|faces)|\bremoved \d+ (?:degenerate|floater|vertices|faces)",
    )
});

/// Lines of Hunyuan3D, as a script or as nodes of ComfyUI.
fn hunyuan3d(text: &str, steps_are_known: bool, n: &mut Narrator) -> bool {
    for (words, phase) in [
        (&*DELIGHT, Phase::Delight),
        (&*MESH_STEP, Phase::MeshPost),
        (&*TEXTURE_STEP, Phase::Texture),
    ] {
        if n.reads_steps() && words.is_match(text) {
            if steps_are_known {
                n.begin_script_job();
            }
            if !n.in_flight() {
                return false;
            }
            n.enter(phase);
            return true;
        }
    }
    false
}

/// What a model class is for, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelRole {
    Vae,
    Encoder,
    Diffusion,
}

static VAE_CLASS: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)vae|autoenc|taesd|taehv"));
static ENCODER_CLASS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)clip|t5|llama|siglip|dino|gemma|qwen2|qwen25|mistral|bert|text.?model|textenc|TEModel|visionmodel|imageenc",
    )
});

pub(super) fn role(class: &str) -> ModelRole {
    if VAE_CLASS.is_match(class) {
        ModelRole::Vae
    } else if ENCODER_CLASS.is_match(class) {
        ModelRole::Encoder
    } else {
        ModelRole::Diffusion
    }
}

#[cfg(test)]
mod tests {
    use super::super::narrator::OnCpu;
    use super::super::tqdm;
    use super::*;

    fn said(lines: &[&str]) -> (Phase, bool) {
        let mut n = Narrator::new(false, OnCpu::default());
        n.start_job();
        n.enter(Phase::VaeDecode);
        let mut on_cpu = false;
        for l in lines {
            line(l, true, &mut n);
            for e in n.take() {
                if let crate::model::Event::Phase(p) = e {
                    on_cpu = p.on_cpu;
                }
            }
        }
        (n.phase(), on_cpu)
    }

    #[test]
    fn announced_cpu_steps() {
        for l in [
            "GPU decode failed: HIP out of memory, falling back to CPU decode",
            "[VAE Decode] Decoding on CPU (float32)",
            "Retrying in fp32 on cpu...",
            "[MIOpen Fallback] conv3d: running on CPU",
            "VAE decode: using CPU instead of the GPU",
            "[VAE] Falling back to CPU decode (this will take several minutes)",
        ] {
            assert_eq!(said(&[l]), (Phase::VaeDecode, true), "{l}");
        }
        let gpu = "[VAE Decode] Attempting GPU decode on cuda:0";
        assert_eq!(said(&["Decoding on CPU", gpu]), (Phase::VaeDecode, false));
    }

    #[test]
    fn talk_of_the_cpu_is_no_announcement() {
        for l in [
            "[VAE Decode] Starting - latents shape: torch.Size([1]), device: cpu",
            "Hy3D: enable_model_cpu_offload active, pipeline execution device: cpu",
            "RuntimeError: Expected all tensors to be on the same device, cuda:0 and cpu!",
            "VAE load device: cuda:0, offload device: cpu, dtype: torch.bfloat16",
            "CPU fallback enabled, will be used if the decode fails",
            "`X` requires torchvision (not installed); falling back to `XPil`",
        ] {
            assert!(!said(&[l]).1, "{l}");
        }
    }

    #[test]
    fn a_step_that_failed_is_none_that_begins() {
        for (words, begins) in [
            ("failed to decode: r.gif: latents: number 0", false),
            ("RuntimeError: decoding the latents is not possible", false),
            ("could not save the video /tmp/out.mp4", false),
            ("Error encoding the prompt", false),
            (
                "Tiled VAE decoding failed, retrying with smaller tiles",
                true,
            ),
            ("Decoding latents", true),
            ("saved /tmp/out.mp4", true),
        ] {
            let mut n = Narrator::new(false, OnCpu::default());
            n.start_job();
            n.enter(Phase::ModelLoad);
            n.take();
            line(words, true, &mut n);
            assert_eq!(n.phase() != Phase::ModelLoad, begins, "{words}");
        }
    }

    #[test]
    fn steps_in_anyones_words() {
        for (l, want) in [
            ("Decoding latents with the VAE...", Phase::VaeDecode),
            ("Saving video to out", Phase::Save),
            ("MoviePy - Writing video out.mp4", Phase::Save),
            ("Encoding prompt", Phase::TextEncode),
            ("Downloading model to: /x", Phase::Download),
            ("Loading pipeline", Phase::ModelLoad),
            ("Hy3D: loading delight pipeline x", Phase::Delight),
            (
                "Image in shape: torch.Size([1]), device: cuda:0",
                Phase::Delight,
            ),
            ("Decoded mesh with 12 vertices and 3 faces", Phase::MeshPost),
            ("Baking texture", Phase::Texture),
            ("Wrote o/x.mp4 in 3 s", Phase::Done),
            ("Video decode completed in 3s", Phase::VaeDecode),
            ("hello", Phase::VaeDecode),
        ] {
            assert_eq!(said(&[l]).0, want, "{l}");
        }
    }

    #[test]
    fn bars_by_description() {
        let kind = |t: &str| {
            classify(&tqdm::parse(&format!("{t} 5%|#| 1/20 [00:01<00:19, 1.0it/s]")).unwrap())
        };
        assert_eq!(kind(""), BarKind::Sampling { said: false });
        assert_eq!(kind("Denoising:"), BarKind::Sampling { said: true });
        assert_eq!(
            kind("Loading checkpoint shards:"),
            BarKind::Of(Phase::ModelLoad)
        );
        assert_eq!(
            kind("Loading pipeline components...:"),
            BarKind::Of(Phase::ModelLoad)
        );
        assert_eq!(kind("Fetching 12 files:"), BarKind::Of(Phase::Download));
        assert_eq!(kind("Downloading shards:"), BarKind::Of(Phase::Download));
        // it counts parts, not bytes: the file is read
        assert_eq!(
            kind("model-1-of-4.safetensors:"),
            BarKind::Of(Phase::ModelLoad)
        );
        assert_eq!(kind("Volume Decoding:"), BarKind::Of(Phase::VaeDecode));
        assert_eq!(kind("caching latents:"), BarKind::Of(Phase::VaeEncode));
        assert_eq!(kind("t:"), BarKind::Of(Phase::Save));
        assert_eq!(kind("Whatever:"), BarKind::Other);
    }

    #[test]
    fn roles_of_model_classes() {
        for (class, want) in [
            ("AutoencoderKLHunyuanVideo", ModelRole::Vae),
            ("WanVAE", ModelRole::Vae),
            ("AutoencodingEngine", ModelRole::Vae),
            ("DynamicSwap_LlamaModel", ModelRole::Encoder),
            ("WanTEModel", ModelRole::Encoder),
            ("FluxClipModel_", ModelRole::Encoder),
            ("SiglipVisionModel", ModelRole::Encoder),
            ("WAN21", ModelRole::Diffusion),
            (
                "DynamicSwap_HunyuanVideoTransformer3DModelPacked",
                ModelRole::Diffusion,
            ),
        ] {
            assert_eq!(role(class), want, "{class}");
        }
    }

    #[test]
    fn logger_prefixes_go() {
        assert_eq!(without_prefix("[INFO] got prompt"), "got prompt");
        assert_eq!(without_prefix("2026-01-02 03:04:05,678 - [INFO] x"), "x");
        assert_eq!(
            without_prefix("[2026-01-02 03:04:05.678] got prompt"),
            "got prompt"
        );
        for text in [
            "[2026-01-02 03:04:05.678] [INFO] got prompt",
            "INFO:root:got prompt",
            "INFO: got prompt",
            "03:04:05 INFO | got prompt",
            "2026-01-02T03:04:05.678Z [WARNING] got prompt",
            "10:14:01-120331 INFO     got prompt",
            "[2026-02-01 10:00:30,000]::[InvokeAI]::INFO --> got prompt",
        ] {
            assert_eq!(without_prefix(text), "got prompt", "{text}");
        }
        assert_eq!(without_prefix("INFORMATION x"), "INFORMATION x");
        assert_eq!(without_prefix("plain [INFO] x"), "plain [INFO] x");
    }
}
