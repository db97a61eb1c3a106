//! ComfyUI's console, from 0.3 to the releases of 2026 with `[INFO]` before each line.

use std::sync::LazyLock;

use regex::Regex;

use super::narrator::Narrator;
use super::tqdm::Bar;
use super::wording::{ModelRole, role};
use crate::model::Phase;
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

/// Whether a line can only be ComfyUI's.
pub(super) fn is_unmistakable(text: &str) -> bool {
    text.starts_with("To see the GUI go to:")
        || text.starts_with("Import times for custom nodes:")
        || text.starts_with("Set vram state to: ")
        || text.starts_with("ComfyUI version: ")
        || text.starts_with("Checkpoint files will always be loaded safely")
}

#[derive(Debug, Default)]
pub(super) struct Comfyui {
    /// Denoising has begun in this prompt: a VAE that is loaded now is there to decode.
    sampled: bool,
    /// The prompt has failed or was stopped; its `Prompt executed` is still to come.
    ended: bool,
}

impl Comfyui {
    pub(super) fn line(&mut self, text: &str, n: &mut Narrator) -> bool {
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

    /// A bar of denoising steps.
    pub(super) fn bar(&mut self, bar: &Bar, n: &mut Narrator) {
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

    fn got_prompt(&mut self, n: &mut Narrator) {
        if n.in_flight() || self.ended {
            n.queued = n.queued.saturating_add(1);
        } else {
            self.begin(n);
        }
    }

    fn begin(&mut self, n: &mut Narrator) {
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

    fn failed(&mut self, why: &str, n: &mut Narrator) {
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
