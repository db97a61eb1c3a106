//! `InvokeAI`: a server whose log names the service before each line.
//!
//! Words as in invoke-ai/InvokeAI at 8e71a8a (2026-08):
//! `app/services/session_processor/session_processor_default.py` (jobs),
//! `app/services/invocation_stats` (the end of each),
//! `backend/model_manager/load/model_cache/model_cache.py` (models, by their class).

use std::sync::LazyLock;

use regex::Regex;

use super::super::wording::{ModelRole, role};
use super::{AfterRestart, Bar, Command, Dialect, Narrator, Program};
use crate::model::Phase;
use crate::workload::pattern;

/// See the module.
pub(super) struct InvokeaiProgram;

impl Program for InvokeaiProgram {
    fn name(&self) -> &'static str {
        "invokeai"
    }

    fn title(&self) -> &'static str {
        "InvokeAI"
    }

    fn is_run_by(&self, command: &Command<'_>) -> bool {
        command.name() == "invokeai-web" || command.module().starts_with("invokeai.app")
    }

    fn serves(&self, _command: &Command<'_>) -> bool {
        true
    }

    fn unmistakable(&self) -> Option<&'static str> {
        Some(r"^Executing queue item \d+, session \S|^\[MODEL CACHE\] |^>> InvokeAI, version \d")
    }

    fn is_typical(&self, text: &str) -> bool {
        text.contains("]::[InvokeAI]::") || text.contains("/invokeai/")
    }

    fn banner(&self) -> Option<&'static str> {
        Some(r"(?:^|\])::\[(?:InvokeAI|ModelManagerService|ModelInstallService)\]::")
    }

    fn home(&self) -> (&'static str, &'static [&'static str]) {
        ("invokeai", &["invokeai.yaml"])
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(Invokeai::default())
    }

    /// `app/services/session_queue/session_queue_sqlite.py`, at its start.
    fn after_restart(&self) -> AfterRestart {
        AfterRestart {
            job: "it is not sent again: InvokeAI marks it as cancelled at its start, and goes on with the items that wait",
            kept: "latents before each decode that the agent knows",
            warning: Some(
                "InvokeAI's running item cannot be sent again: it is marked as cancelled at the start, press Invoke again; items that wait go on by themselves",
            ),
        }
    }
}

static BEGINS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^Executing queue item \d+, session \S+"));
static LOADED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:\[MODEL CACHE\] )?Loaded model '.+' \((?P<class>\w+)\) onto (?P<device>\w+) device",
    )
});
static FAILED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:Error while invoking session [^:]+|(?:Non-fatal error|Fatal Error) in session processor \w+): (?P<why>.*)$",
    )
});

#[derive(Debug, Default)]
struct Invokeai {
    /// Denoising has begun in this job, or its model was loaded: a VAE that is loaded now
    /// decodes. Before that it may encode a picture, or decode what another job has left.
    samples: bool,
    /// Jobs are announced: a model that is loaded begins none. Not so where the log has only
    /// a part of the levels.
    announced: bool,
}

impl Dialect for Invokeai {
    fn line(&mut self, text: &str, n: &mut Narrator) -> bool {
        if BEGINS.is_match(text) {
            (self.samples, self.announced) = (false, true);
            n.start_job();
            n.enter(Phase::Unknown);
        } else if let Some(c) = LOADED.captures(text) {
            self.loaded(&c["class"], n);
        } else if let Some(c) = FAILED.captures(text) {
            n.fail(Some(c["why"].trim()));
        } else if text.starts_with("Graph stats: ") {
            // told for every session that ends, also for one that its user has stopped
            n.done();
        } else {
            return false;
        }
        true
    }

    fn bar(&mut self, bar: &Bar, _sampling: bool, n: &mut Narrator) {
        if !n.in_flight() {
            // models are installed and hashed beside the jobs
            return;
        }
        self.samples = true;
        if bar.complete() {
            n.enter_after_steps();
        } else {
            n.enter(Phase::Sampling);
        }
    }
}

impl Invokeai {
    /// A model lies on its device, and the node that wanted it goes on.
    fn loaded(&mut self, class: &str, n: &mut Narrator) {
        let role = role(class);
        if !self.announced && !n.in_flight() {
            self.samples = false;
            n.start_job();
        }
        self.samples |= role == ModelRole::Diffusion;
        if n.in_flight() {
            n.enter(match role {
                ModelRole::Vae if self.samples => Phase::VaeDecode,
                ModelRole::Encoder => Phase::TextEncode,
                ModelRole::Vae | ModelRole::Diffusion => Phase::Unknown,
            });
        }
    }
}
