//! stable-diffusion.cpp: `sd-cli` (`sd` before 2026) and `sd-server`, native binaries.
//!
//! Words as in leejet/stable-diffusion.cpp at 97d2990 (2026-08): `src/stable-diffusion.cpp`,
//! `src/core/util.cpp` (bars), `examples/cli/main.cpp` (results), `examples/server/main.cpp`;
//! and at f6b9aa1 (2025-07), where they differ. With which of Vulkan, ROCm, CUDA and the CPU
//! it computes is read from ggml's lines by `model::Backend`.

use std::sync::LazyLock;

use regex::Regex;

use super::super::wording::BarKind;
use super::{AfterRestart, Bar, Command, Dialect, Narrator, Program};
use crate::model::Phase;
use crate::workload::pattern;

/// See the module.
pub(super) struct SdcppProgram;

impl Program for SdcppProgram {
    fn name(&self) -> &'static str {
        "stable-diffusion.cpp"
    }

    fn title(&self) -> &'static str {
        "stable-diffusion.cpp"
    }

    fn is_run_by(&self, command: &Command<'_>) -> bool {
        // there is another program called `sd`, which knows no model
        const MODEL: [&str; 5] = ["-m", "--model", "--diffusion-model", "-M", "--mode"];
        match command.name() {
            "sd-cli" | "sd-server" => true,
            "sd" => MODEL.iter().any(|word| command.has_argument(word)),
            _ => false,
        }
    }

    fn serves(&self, command: &Command<'_>) -> bool {
        command.name() == "sd-server"
    }

    fn is_native(&self) -> bool {
        true
    }

    fn decodes_on_cpu(&self, command: &Command<'_>) -> bool {
        // `--vae-on-cpu` is the older word for `--backend vae=cpu`
        let words = command.values_of("--backend").unwrap_or_default();
        let mut devices = words.iter().flat_map(|word| word.split(','));
        command.has_argument("--vae-on-cpu") || devices.any(|d| d == "vae=cpu" || d == "cpu")
    }

    fn unmistakable(&self) -> Option<&'static str> {
        Some(
            r"^(?:stable-diffusion\.cpp|model_loader\.cpp):|^sd-(?:cli|server)(?:\.exe)?(?: - |: )",
        )
    }

    fn is_typical(&self, text: &str) -> bool {
        SOURCE.is_match(text) || text.starts_with("ggml_")
    }

    fn banner(&self) -> Option<&'static str> {
        Some(
            r"^ggml_vulkan: Found \d+ Vulkan|^ggml_cuda_init: found \d+ (?:ROCm|CUDA)|^\[\w+ *\] (?:stable-diffusion\.cpp|model_loader\.cpp|ggml_extend\.hpp):\d+",
        )
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(Sdcpp::default())
    }

    fn after_restart(&self) -> AfterRestart {
        AfterRestart {
            job: "the command begins again; a request to its server is not sent again",
            kept: "nothing: it is no Python program, so no agent is in it",
            warning: Some(
                "the request to stable-diffusion.cpp's server cannot be sent again: whoever sent it must send it after the restart",
            ),
        }
    }

    /// Those of `examples/common/common.cpp`; the newer `--backend vae=cpu` has both in one.
    fn arguments(&self, name: &str, value: &str) -> Result<Option<Vec<String>>, String> {
        let flag = |f: &str| Ok(Some(vec![f.to_owned()]));
        match (name, value) {
            ("vae_device", "cpu") => flag("--vae-on-cpu"),
            ("vae_device", "gpu" | "cuda") | ("lowvram", "0" | "off" | "false") => {
                Ok(Some(Vec::new()))
            }
            ("vae_device", _) => Err(format!("`{name} = {value}`: write `cpu` or `gpu`")),
            ("lowvram", _) => flag("--offload-to-cpu"),
            _ => Ok(None),
        }
    }
}

/// The place in the source that stands before each line; a level that loggers elsewhere do
/// not have (`WARN`) is still before it.
static SOURCE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(?:\[[A-Z?]{4,5} *\] )?[\w.-]+\.(?:cpp|hpp|cuh?|h|c):\d+ *- "));
static BEGINS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:generate_image \d+x\d+|generate_video \d+x\d+x\d+|(?:TXT|IMG)2IMG$|img2vid \d+x\d+|generating image: \d+/\d+)",
    )
});
static SAMPLED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(?:hires )?sampling(?:\([^)]*\))?(?: \d+/\d+)? completed\b"));
static DECODES: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^(?:decoding \d+(?:/\d+)? latents|generating latent video completed)\b")
});
static GENERATED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^(?:generate_(?:image|video)|txt2img|img2img|txt2vid|img2vid) completed\b")
});
static SAVED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^save result (?:(?:JPEG |PNG )?image(?: \d+)?|video) to '.+'(?: \(success\))?$")
});
/// The generation has come to its end without a result.
static FAILED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:(?:hires )?sampling\b.{0,40}\bfailed after|no (?:latent (?:images|video)|decoded images)\b|no latent images generated|decode_first_stage failed|failed to encode |generate failed|new_sd_ctx_t failed|(?:unable to|failed to) (?:alloc|load))",
    )
});
static CANCELLED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^(?:cancelling generation|cancelled before|cancelling (?:latent|video) decod)")
});
/// What may be the reason of an end that is not told by a line of its own.
static ERROR: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\bfailed\b|\berror\b|out of memory|^\s*what\(\): |\bdevice lost\b|\bGGML_ASSERT\b",
    )
});

/// What a bar counts: the program draws the same one for all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    /// Pictures are encoded, before the text is.
    #[default]
    Prepares,
    /// The text is encoded: steps come.
    Samples,
    /// Between two passes pictures are decoded, enlarged and encoded; behind the last they
    /// may be enlarged as well.
    Enlarges,
    Decodes,
}

#[derive(Debug, Default)]
struct Sdcpp {
    stage: Stage,
    /// The phase that weights read in the middle of a job interrupt.
    before_weights: Option<Phase>,
    /// The first error since the job began.
    why: Option<String>,
}

impl Dialect for Sdcpp {
    fn line(&mut self, text: &str, n: &mut Narrator) -> bool {
        let is_warning = text.starts_with("[WARN");
        let text = SOURCE.find(text).map_or(text, |m| &text[m.end()..]);
        if !is_warning && self.why.is_none() && ERROR.is_match(text) {
            self.why = Some(text.trim().to_owned());
        }
        if text.starts_with("listening on: http") {
            n.wait();
        } else if BEGINS.is_match(text) {
            self.begins(text, n);
        } else if text.starts_with("loading ") && text.contains(" from '") {
            n.enter(Phase::ModelLoad);
        } else if text.starts_with("loading tensors completed") {
            n.enter(self.before_weights.take().unwrap_or(Phase::Unknown));
        } else if text.starts_with("Using CPU backend") || text.starts_with("loading CPU backend") {
            n.on_cpu.all = true;
        } else if text.starts_with("VAE Autoencoder: Using CPU backend") {
            n.on_cpu.vae = true;
        } else {
            return self.step(text, n) || self.end(text, n) || is_warning;
        }
        true
    }

    fn bar(&mut self, bar: &Bar, _sampling: bool, n: &mut Narrator) {
        n.begin_script_job();
        if bar.complete() {
            n.enter(Phase::Unknown);
        } else {
            n.enter(Phase::Sampling);
        }
    }

    fn kind_of(&self, bar: &Bar, n: &Narrator) -> Option<BarKind> {
        Some(match self.stage {
            // weights are counted by tensor, at so many bytes a second
            _ if bar.counts_bytes() => BarKind::Weights,
            // older versions count them as they count steps
            _ if !n.in_flight() && n.phase() == Phase::ModelLoad => BarKind::Weights,
            _ if !n.in_flight() => BarKind::Other,
            Stage::Prepares => BarKind::Of(Phase::VaeEncode),
            Stage::Samples => BarKind::Sampling { said: true },
            Stage::Enlarges => BarKind::Other,
            Stage::Decodes => BarKind::Of(Phase::VaeDecode),
        })
    }

    fn weights(&mut self, bar: &Bar, n: &mut Narrator) {
        if !bar.complete() {
            if n.in_flight() && n.phase() != Phase::ModelLoad {
                self.before_weights = Some(n.phase());
            }
            n.enter(Phase::ModelLoad);
        }
    }

    fn last_error(&self) -> Option<&str> {
        self.why.as_deref()
    }
}

impl Sdcpp {
    fn begins(&mut self, text: &str, n: &mut Narrator) {
        if !n.in_flight() {
            *self = Self::default();
            n.start_job();
            n.enter(Phase::Unknown);
        }
        if text.starts_with("generating image") {
            self.stage = Stage::Samples;
            n.enter(Phase::Sampling);
        }
    }

    /// A step of a job is over, or begins.
    fn step(&mut self, text: &str, n: &mut Narrator) -> bool {
        let phase = if text.starts_with("get_learned_condition completed") {
            self.stage = Stage::Samples;
            Phase::Unknown
        } else if text.starts_with("sampling using ") {
            self.stage = Stage::Samples;
            Phase::Sampling
        } else if SAMPLED.is_match(text) || text.starts_with("encode_first_stage completed") {
            Phase::Unknown
        } else if text.starts_with("hires fix: upscaling") {
            self.stage = Stage::Enlarges;
            Phase::Unknown
        } else if text.starts_with("hires fix: scheduler_steps") {
            self.stage = Stage::Samples;
            Phase::Sampling
        } else if DECODES.is_match(text) {
            self.stage = Stage::Decodes;
            Phase::VaeDecode
        } else if text.starts_with("decode_first_stage completed") {
            Phase::Unknown
        } else {
            return false;
        };
        n.begin_script_job();
        n.enter(phase);
        true
    }

    fn end(&mut self, text: &str, n: &mut Narrator) -> bool {
        if GENERATED.is_match(text) {
            self.stage = Stage::Enlarges;
            if n.server {
                n.done();
            } else {
                n.enter(Phase::Save);
            }
        } else if SAVED.is_match(text) {
            n.enter(Phase::Done);
        } else if CANCELLED.is_match(text) {
            if n.server {
                n.wait();
            }
        } else if FAILED.is_match(text) {
            // a script tells its end by its exit code
            if n.server {
                let why = self.why.take();
                n.fail(Some(why.as_deref().unwrap_or(text)));
            }
        } else {
            return false;
        }
        true
    }
}
