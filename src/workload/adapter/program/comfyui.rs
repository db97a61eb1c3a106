//! ComfyUI's console, from 0.3 to the releases of 2026 with `[INFO]` before each line.

use std::sync::LazyLock;

use regex::Regex;

use super::super::wording::{ModelRole, role};
use super::{AfterRestart, Bar, Command, Dialect, Narrator, Program};
use crate::model::{Bytes, Phase};
use crate::workload::pattern;

static REQUESTED: LazyLock<Regex> = LazyLock::new(|| pattern(r"^Requested to load (?P<class>\S+)"));
static EXECUTED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^Prompt executed in (?:[\d.]+ seconds|\d+:\d\d:\d\d)"));
static EXCEPTION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^!!! Exception during processing\s*!!!\s*(?P<why>.*)$"));
static OOM_RETRY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"Ran out of memory when regular VAE (?P<what>encod|decod)ing, retrying")
});
static VAE_DEVICE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^VAE load device: (?P<device>\w+)"));

/// Files that lie in ComfyUI's folder.
const MARKERS: &[&str] = &["comfy", "comfy_execution", "custom_nodes", "nodes.py"];

/// Words of lines that ComfyUI prints, and hardly anybody else. `got prompt` begins each of
/// its jobs.
const TYPICAL: &[&str] = &[
    "got prompt",
    "Requested to load ",
    "Prompt executed in ",
    "!!! Exception during processing",
    "custom_nodes",
    "comfy/model_management.py",
    "ComfyUI-Zluda",
    "[comfyui-rocm]",
    "ComfyUI Error Report",
    "comfy\\ldm\\",
];

/// Flags of `comfy/cli_args.py` of which a command may have one: argparse ends the program
/// when it meets two.
const RIVALS: &[&[&str]] = &[
    &["--fp16-vae", "--fp32-vae", "--bf16-vae"],
    &[
        "--gpu-only",
        "--highvram",
        "--normalvram",
        "--lowvram",
        "--novram",
        "--cpu",
    ],
];

/// See the module.
pub(super) struct ComfyuiProgram;

impl Program for ComfyuiProgram {
    fn name(&self) -> &'static str {
        "comfyui"
    }

    fn title(&self) -> &'static str {
        "ComfyUI"
    }

    fn is_run_by(&self, command: &Command<'_>) -> bool {
        let beside = MARKERS.iter().filter(|m| command.has_beside(m)).count();
        let in_comfyui = beside >= 2 || command.folder().to_lowercase().starts_with("comfyui");
        let name = command.name();
        name.to_lowercase().contains("comfyui") || (name == "main.py" && in_comfyui)
    }

    fn serves(&self, command: &Command<'_>) -> bool {
        !command.has_argument("--quick-test-for-ci")
    }

    fn unmistakable(&self) -> Option<&'static str> {
        Some(
            r"^(?:To see the GUI go to:|Import times for custom nodes:|Set vram state to: |ComfyUI version: |Checkpoint files will always be loaded safely)",
        )
    }

    fn is_typical(&self, text: &str) -> bool {
        TYPICAL.iter().any(|w| text.contains(w))
    }

    fn banner(&self) -> Option<&'static str> {
        Some(
            r"^\*\* ComfyUI startup time|^Total VRAM \d+ MB, total RAM \d+ MB|^To see the GUI go to: |^Checkpoint files will always be loaded safely",
        )
    }

    fn home(&self) -> (&'static str, &'static [&'static str]) {
        ("ComfyUI", &[])
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(Comfyui::default())
    }

    fn after_restart(&self) -> AfterRestart {
        AfterRestart {
            job: "its queue is sent again on your word",
            kept: "latents before each decode that the agent knows",
            warning: None,
        }
    }

    /// Those of `comfy/cli_args.py`; `--disable-pinned-memory` exists since pull request
    /// 10656 of November 2025 (0.3.68).
    fn arguments(&self, name: &str, value: &str) -> Result<Option<Vec<String>>, String> {
        arguments(name, value)
    }

    fn rival_flags(&self) -> &'static [&'static [&'static str]] {
        RIVALS
    }

    fn queue_waits_for_user(&self) -> bool {
        true
    }

    fn miopen_switch(&self) -> Option<&'static str> {
        Some("COMFYUI_ENABLE_MIOPEN")
    }

    fn autotunes(&self, command: &Command<'_>) -> bool {
        let options = command.values_of("--fast");
        options.is_some_and(|words| words.is_empty() || words.iter().any(|w| w == "autotune"))
    }
}

/// Reads ComfyUI's lines, also those that a program prints which runs ComfyUI.
#[derive(Debug, Default)]
pub(super) struct Comfyui {
    /// Denoising has begun in this prompt: a VAE that is loaded now is there to decode.
    sampled: bool,
    /// The prompt has failed or was stopped; its `Prompt executed` is still to come.
    ended: bool,
}

impl Dialect for Comfyui {
    fn line(&mut self, text: &str, n: &mut Narrator) -> bool {
        if text == "got prompt" {
            self.got_prompt(n);
        } else if let Some(c) = REQUESTED.captures(text) {
            self.requested(&c["class"], n);
        } else if let Some(c) = EXCEPTION.captures(text) {
            self.failed(&c["why"], n);
        } else if text.starts_with("Processing interrupted") {
            self.interrupted(n);
        } else if text.starts_with("invalid prompt:") {
            // Refused before it began; what is queued goes on.
            self.next(n);
        } else if EXECUTED.is_match(text) {
            self.executed(n);
        } else if let Some(c) = OOM_RETRY.captures(text) {
            n.enter(if &c["what"] == "decod" {
                Phase::VaeDecode
            } else {
                Phase::VaeEncode
            });
        } else if let Some(c) = VAE_DEVICE.captures(text) {
            n.on_cpu.vae = &c["device"] == "cpu";
        } else {
            return false;
        }
        true
    }

    fn bar(&mut self, bar: &Bar, _sampling: bool, n: &mut Narrator) {
        if !bar.complete() && !n.in_flight() && !self.ended {
            n.start_job();
        }
        self.sampled = true;
        n.enter(if bar.complete() {
            Phase::VaeDecode
        } else {
            Phase::Sampling
        });
    }
}

impl Comfyui {
    fn got_prompt(&mut self, n: &mut Narrator) {
        if n.in_flight() || self.ended {
            n.queued = n.queued.saturating_add(1);
        } else {
            self.begin(n);
        }
    }

    /// Takes up a prompt.
    pub(super) fn begin(&mut self, n: &mut Narrator) {
        (self.sampled, self.ended) = (false, false);
        n.start_job();
        n.enter(Phase::ModelLoad);
    }

    fn requested(&self, class: &str, n: &mut Narrator) {
        n.begin_script_job();
        n.enter(match role(class) {
            ModelRole::Vae if self.sampled => Phase::VaeDecode,
            ModelRole::Vae => Phase::VaeEncode,
            ModelRole::Encoder => Phase::TextEncode,
            ModelRole::Diffusion => Phase::ModelLoad,
        });
    }

    /// The prompt failed.
    pub(super) fn failed(&mut self, why: &str, n: &mut Narrator) {
        if n.in_flight() {
            self.ended = true;
            n.fail(Some(why.trim()));
        }
    }

    fn interrupted(&mut self, n: &mut Narrator) {
        if n.in_flight() {
            self.ended = true;
            n.wait();
        }
    }

    fn executed(&mut self, n: &mut Narrator) {
        if self.ended {
            self.ended = false;
        } else {
            n.done();
        }
        self.next(n);
    }

    /// Goes on with a queued prompt, or waits.
    fn next(&mut self, n: &mut Narrator) {
        if n.queued > 0 {
            n.queued -= 1;
            self.begin(n);
        } else {
            n.wait();
        }
    }
}

/// Words for one setting of ComfyUI, none if it cannot follow, or what is wrong with the value.
fn arguments(name: &str, value: &str) -> Result<Option<Vec<String>>, String> {
    let flag = |f: &str| Ok(Some(vec![f.to_owned()]));
    let bad = |want: &str| Err(format!("`{name} = {value}`: write {want}"));
    match (name, value) {
        ("vae_device", "cpu") => flag("--cpu-vae"),
        // What ComfyUI does anyway.
        ("vae_device", "gpu" | "cuda")
        | ("block_swap" | "lowvram", "0" | "off" | "false")
        | ("pinned_memory", "on" | "true") => Ok(Some(Vec::new())),
        ("vae_dtype", "float32") => flag("--fp32-vae"),
        ("vae_dtype", "float16") => flag("--fp16-vae"),
        ("vae_dtype", "bfloat16") => flag("--bf16-vae"),
        ("preserved_memory", _) => match gib(value) {
            Some(n) => Ok(Some(vec!["--reserve-vram".to_owned(), n])),
            None => bad("a size, such as `6 GiB`"),
        },
        ("block_swap" | "lowvram", _) => flag("--lowvram"),
        ("pinned_memory", "off" | "false") => flag("--disable-pinned-memory"),
        ("vae_device", _) => bad("`cpu` or `gpu`"),
        ("vae_dtype", _) => bad("`float32`, `float16` or `bfloat16`"),
        ("pinned_memory", _) => bad("`on` or `off`"),
        _ => Ok(None),
    }
}

/// A size as a number of GiB, which is what `--reserve-vram` takes; a bare number is GiB.
fn gib(value: &str) -> Option<String> {
    let bytes = value.parse::<Bytes>().ok();
    #[expect(
        clippy::cast_precision_loss,
        reason = "sizes of memory are far below 2^53 bytes"
    )]
    let from_bytes = bytes.map(|b| b.0 as f64 / Bytes::gib(1).0 as f64);
    let n = from_bytes.or_else(|| value.trim().parse::<f64>().ok())?;
    if !n.is_finite() || !(0.0..10_000.0).contains(&n) {
        return None;
    }
    let text = format!("{n:.2}");
    Some(text.trim_end_matches('0').trim_end_matches('.').to_owned())
}
