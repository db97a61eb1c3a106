//! Fooocus: a Gradio page over a copy of ComfyUI's memory management.
//!
//! Words as in lllyasviel/Fooocus at 0ab7dd0: `modules/async_worker.py` (jobs),
//! `modules/launch_util.py` and `launch.py` (start).

use std::sync::LazyLock;

use regex::Regex;

use super::super::wording::{ModelRole, role};
use super::{AfterRestart, Bar, Command, Dialect, Exception, Narrator, Program};
use crate::model::Phase;
use crate::workload::pattern;

/// See the module.
pub(super) struct FooocusProgram;

impl Program for FooocusProgram {
    fn name(&self) -> &'static str {
        "fooocus"
    }

    fn title(&self) -> &'static str {
        "Fooocus"
    }

    fn is_run_by(&self, command: &Command<'_>) -> bool {
        let folder = command.folder().to_lowercase();
        match command.file() {
            "entry_with_update.py" => true,
            "launch.py" => folder.starts_with("fooocus"),
            _ => false,
        }
    }

    fn serves(&self, _command: &Command<'_>) -> bool {
        true
    }

    fn unmistakable(&self) -> Option<&'static str> {
        self.banner()
    }

    fn banner(&self) -> Option<&'static str> {
        Some(r"^(?:Fooocus version: \d|\[Fooocus(?: Model Management)?\] |Fooocus V2 Expansion: )")
    }

    fn prints_too(&self) -> &'static [&'static str] {
        super::COMFYUI_MEMORY
    }

    fn home(&self) -> (&'static str, &'static [&'static str]) {
        ("Fooocus", &["entry_with_update.py"])
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(Fooocus)
    }

    fn after_restart(&self) -> AfterRestart {
        AfterRestart::lost(Some(
            "Fooocus's job cannot be sent again: press Generate after the restart",
        ))
    }
}

static REQUESTED: LazyLock<Regex> = LazyLock::new(|| pattern(r"^Requested to load (?P<class>\S+)"));
/// The end of one picture, and of the whole job.
static ENDS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(?:Processing time \(total\)|Total time): [\d.]+ seconds"));

#[derive(Debug)]
struct Fooocus;

impl Dialect for Fooocus {
    fn line(&mut self, text: &str, n: &mut Narrator) -> bool {
        if text.starts_with("Running on local URL:") {
            // the page is up before the worker has loaded its models
            return true;
        }
        if text.starts_with("App started successful") {
            n.wait();
        } else if text.starts_with("[Parameters] ") {
            n.start_job();
            if n.phase() == Phase::Idle {
                n.enter(Phase::Unknown);
            }
        } else if let Some(step) = text.strip_prefix("[Fooocus] ") {
            step_of(step, n);
        } else if ENDS.is_match(text) {
            n.done();
        } else if let Some(c) = REQUESTED.captures(text) {
            n.enter(match role(&c["class"]) {
                ModelRole::Encoder => Phase::TextEncode,
                ModelRole::Vae | ModelRole::Diffusion => Phase::ModelLoad,
            });
        } else {
            return false;
        }
        true
    }

    fn bar(&mut self, bar: &Bar, _sampling: bool, n: &mut Narrator) {
        super::scripts::steps_then_decode(bar, n);
    }

    fn exception(&mut self, e: &Exception, n: &mut Narrator) {
        // its worker prints the exception of a job, and waits for the next
        super::scripts::end_request(e, n);
    }
}

/// A step that the worker announces on its page.
fn step_of(step: &str, n: &mut Narrator) {
    n.start_job();
    n.enter(if step.starts_with("Downloading") {
        Phase::Download
    } else if step.starts_with("Loading") {
        Phase::ModelLoad
    } else if step.starts_with("VAE ") {
        Phase::VaeEncode
    } else if step.starts_with("Encoding") || step.starts_with("Preparing Fooocus text") {
        Phase::TextEncode
    } else {
        Phase::Unknown
    });
}
