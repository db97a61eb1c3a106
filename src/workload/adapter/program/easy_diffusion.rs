//! Easy Diffusion: a server of its own make over sdkit.
//!
//! Words as in easydiffusion/easydiffusion at 0378d75: `ui/easydiffusion/task_manager.py`
//! (jobs), `scripts/check_modules.py` and `scripts/on_env_start.sh` (start).

use std::sync::LazyLock;

use regex::Regex;

use super::{AfterRestart, Bar, Command, Dialect, Exception, Narrator, Program};
use crate::model::Phase;
use crate::workload::pattern;

/// See the module.
pub(super) struct EasyDiffusionProgram;

impl Program for EasyDiffusionProgram {
    fn name(&self) -> &'static str {
        "easy-diffusion"
    }

    fn title(&self) -> &'static str {
        "Easy Diffusion"
    }

    fn is_run_by(&self, command: &Command<'_>) -> bool {
        command.file() == "check_modules.py" && command.has_argument("--launch-uvicorn")
    }

    fn serves(&self, _command: &Command<'_>) -> bool {
        true
    }

    fn banner(&self) -> Option<&'static str> {
        Some(
            r"^(?:Easy Diffusion(?: - v\d|'s git repository | installation complete)|sdkit(?:==| version: |: )\d)|\bINFO \S+(?: \(thread_render\))? (?:Session \S+ starting task |Setting \S+ as active, with precision: )",
        )
    }

    fn home(&self) -> (&'static str, &'static [&'static str]) {
        ("easy-diffusion", &["start.sh"])
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(EasyDiffusion)
    }

    fn after_restart(&self) -> AfterRestart {
        AfterRestart::lost(Some(
            "Easy Diffusion's task cannot be sent again: press Make Image after the restart",
        ))
    }
}

/// A line of its log behind the time: level, thread, words.
static LOGGED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:DEBUG|INFO|WARNING|ERROR) (?:MainThread|cuda:\d+|cuda|cpu|mps|Thread-\d+)(?: \(\w+\))? (?P<words>.+)$",
    )
});
static BEGINS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^(?:Session \S+ starting task |Rendering \d+ steps|Global CUDA random seed)")
});
static ENDS: LazyLock<Regex> = LazyLock::new(|| pattern(r"^Session \S+ task \S+ completed"));

#[derive(Debug)]
struct EasyDiffusion;

impl Dialect for EasyDiffusion {
    fn line(&mut self, text: &str, n: &mut Narrator) -> bool {
        let logged = LOGGED.captures(text);
        let words = logged
            .as_ref()
            .and_then(|c| c.name("words"))
            .map_or(text, |m| m.as_str());
        if BEGINS.is_match(words) {
            n.start_job();
            n.enter(Phase::Unknown);
        } else if ENDS.is_match(words) {
            n.done();
        } else if words.starts_with("loading ") && words.contains(" model") {
            n.enter(Phase::ModelLoad);
        } else if words.starts_with("loaded ") {
            n.enter(Phase::Unknown);
        } else {
            return false;
        }
        true
    }

    fn bar(&mut self, bar: &Bar, _sampling: bool, n: &mut Narrator) {
        super::scripts::steps_then_decode(bar, n);
    }

    fn exception(&mut self, e: &Exception, n: &mut Narrator) {
        super::scripts::end_request(e, n);
    }
}
