//! SD.Next: its log has a time and a level before each line.

use std::sync::LazyLock;

use regex::Regex;

use super::scripts::{Scripts, end_request};
use super::{AfterRestart, Bar, Command, Dialect, Exception, Job, Narrator, Program};
use crate::model::Phase;
use crate::workload::pattern;

/// See the module.
pub(super) struct SdnextProgram;

impl Program for SdnextProgram {
    fn name(&self) -> &'static str {
        "sdnext"
    }

    fn title(&self) -> &'static str {
        "SD.Next"
    }

    fn is_run_by(&self, command: &Command<'_>) -> bool {
        // vladmandic/sdnext: `launch.py` beside its `sdnext.py`-less folder of extensions
        let folder = command.folder().to_lowercase();
        command.file() == "launch.py" && (folder == "sdnext" || folder == "sd.next")
    }

    fn serves(&self, _command: &Command<'_>) -> bool {
        true
    }

    fn banner(&self) -> Option<&'static str> {
        Some(r"\bStarting SD\.?Next\b|^\d\d:\d\d:\d\d-\d{6} (?:INFO|DEBUG|WARNING|ERROR) ")
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(Sdnext(Scripts { knows_steps: true }))
    }

    fn after_restart(&self) -> AfterRestart {
        AfterRestart::lost(Some(
            "SD.Next's job cannot be sent again: press Generate after the restart",
        ))
    }
}

/// What its log file has before a message: `| host | sd | INFO | module | `.
static FILED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^\|? ?[\w.-]+ \| sd \| \w+ +\| \w+ +\| "));
/// Its bar: `Progress  2.91it/s ████ 36% 10/28 00:03 00:06 Base`.
static PROGRESS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^Progress +[\d.?]+(?:it/s|s/it) .{0,200}?(?P<percent>\d{1,3})% \d+/\d+ .{0,40}(?:Base|Hires|Refiner|Detail\w*)?$",
    )
});

#[derive(Debug)]
struct Sdnext(Scripts);

impl Dialect for Sdnext {
    fn line(&mut self, text: &str, n: &mut Narrator) -> bool {
        let text = FILED.find(text).map_or(text, |m| &text[m.end()..]);
        if n.job == Job::NotYet && text.starts_with("Base: pipeline=") {
            // a part of a log: its start was not pasted
            n.wait();
        }
        if let Some(c) = PROGRESS.captures(text) {
            n.start_job();
            n.announced = true;
            if &c["percent"] == "100" {
                n.enter_after_steps();
            } else {
                n.enter(Phase::Sampling);
            }
            return true;
        }
        self.0.line(text, n)
    }

    fn bar(&mut self, bar: &Bar, sampling: bool, n: &mut Narrator) {
        self.0.bar(bar, sampling, n);
    }

    fn after_common_words(&mut self, before: Job, n: &mut Narrator) {
        self.0.after_common_words(before, n);
    }

    fn exception(&mut self, e: &Exception, n: &mut Narrator) {
        end_request(e, n);
    }

    fn step(&mut self, bar: &Bar, phase: Phase, n: &mut Narrator) {
        self.0.step(bar, phase, n);
    }
}
