//! `WanGP` (`Wan2GP`): `wgp.py`, a Gradio page, or with `--process` a queue from a file.
//!
//! Words as in deepbeepmeep/Wan2GP at 8681e9f (2026-08): `wgp.py`,
//! `shared/utils/media_recording.py` (results), `models/*` (bars).

use std::sync::LazyLock;

use regex::Regex;

use super::scripts::end_request;
use super::{AfterRestart, Bar, Command, Dialect, Exception, Job, Narrator, Program};
use crate::model::Phase;
use crate::workload::pattern;

/// See the module.
pub(super) struct WangpProgram;

impl Program for WangpProgram {
    fn name(&self) -> &'static str {
        "wangp"
    }

    fn title(&self) -> &'static str {
        "WanGP"
    }

    fn is_run_by(&self, command: &Command<'_>) -> bool {
        command.file() == "wgp.py" || command.module() == "wgp"
    }

    fn serves(&self, command: &Command<'_>) -> bool {
        !command.has_argument("--process")
    }

    fn unmistakable(&self) -> Option<&'static str> {
        Some(
            r"^WanGP |^(?:New (?:video|image|audio file)|Postprocessed (?:video|image|audio)|Remuxed Video) saved to Path: ",
        )
    }

    fn is_typical(&self, text: &str) -> bool {
        // mmgp, its memory manager, is that of other programs of its kind as well
        ["wgp.py", "Wan2GP", "WanGP", "(mmgp "]
            .iter()
            .any(|w| text.contains(w))
            || LOADS.is_match(text)
    }

    fn home(&self) -> (&'static str, &'static [&'static str]) {
        ("Wan2GP", &["wgp.py"])
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(Wangp)
    }

    /// `autosave_queue` of `wgp.py` is called at its exit alone.
    fn after_restart(&self) -> AfterRestart {
        AfterRestart {
            job: "it is not sent again: WanGP writes its queue only where it ends by itself; a command with `--process` begins again",
            kept: "latents before each decode that the agent knows",
            warning: Some(
                "WanGP's task cannot be sent again, and a forced end loses its queue (Save Queue keeps it): add the tasks after the restart",
            ),
        }
    }
}

static LOADS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^Loading (?:Model|Module|Text Encoder) '.+' \.\.\.$"));
static SAVED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:New (?:video|image|audio file)|Postprocessed (?:video|image|audio)|Remuxed Video) saved to Path: ",
    )
});
/// A task of a queue from a file, and its end.
static TASK: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\[Task \d+/\d+\] "));
/// The state of a task, painted over itself: `[3/20] Prompt 1/2 | Denoising`, or by older versions
/// `Encoding Prompt: 0.0%`.
static STATE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^\s*(?:\[\d+/\d+\] (?:.{0,80}\| )?(?P<phase>VAE Decoding|Denoising\b|Encoding Prompt)|(?P<old>VAE Decoding|Denoising|Encoding Prompt): +\d)",
    )
});

#[derive(Debug)]
struct Wangp;

impl Dialect for Wangp {
    fn line(&mut self, text: &str, n: &mut Narrator) -> bool {
        if LOADS.is_match(text) {
            // a page that was up reads a model for the job that was just begun
            if n.server && n.job != Job::NotYet {
                n.start_job();
            }
            n.enter(Phase::ModelLoad);
        } else if SAVED.is_match(text) {
            // a file is written at the end of each window; the next one begins with its bar
            if n.server {
                n.done();
            } else {
                n.enter(Phase::Done);
            }
        } else if TASK.is_match(text) {
            n.start_job();
            n.enter(Phase::Unknown);
        } else if let Some(c) = STATE.captures(text) {
            if n.server && n.job != Job::NotYet {
                n.start_job();
            }
            let state = c.name("phase").or_else(|| c.name("old"));
            n.enter(match state.map(|m| m.as_str()) {
                Some("VAE Decoding") => Phase::VaeDecode,
                Some("Encoding Prompt") => Phase::TextEncode,
                _ => Phase::Sampling,
            });
        } else {
            return false;
        }
        true
    }

    fn bar(&mut self, bar: &Bar, _sampling: bool, n: &mut Narrator) {
        if bar.complete() {
            n.enter_after_steps();
        } else {
            n.start_job();
            n.enter(Phase::Sampling);
        }
    }

    fn bar_closed(&mut self, n: &mut Narrator) {
        // `_interrupt` makes the loop over the steps return, without a word
        if n.server && n.in_flight() {
            n.wait();
        }
    }

    fn exception(&mut self, e: &Exception, n: &mut Narrator) {
        // it prints the exception of a generation, and waits for the next
        end_request(e, n);
    }
}
