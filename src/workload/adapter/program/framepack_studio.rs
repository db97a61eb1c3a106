//! FramePack-Studio: FramePack's console, and a queue that tells when a job begins and ends.
//!
//! Words as in colinurbs/FramePack-Studio at f4369da (2025-07): `modules/video_queue.py`,
//! `modules/pipelines/worker.py`.

use std::sync::LazyLock;

use regex::Regex;

use super::framepack::Framepack;
use super::{AfterRestart, Bar, Command, Dialect, Exception, Narrator, Program};
use crate::model::Phase;
use crate::workload::pattern;

/// See the module.
pub(super) struct StudioProgram;

impl Program for StudioProgram {
    fn name(&self) -> &'static str {
        "framepack-studio"
    }

    fn title(&self) -> &'static str {
        "FramePack-Studio"
    }

    fn is_run_by(&self, command: &Command<'_>) -> bool {
        let folder = command.folder().to_lowercase().replace('_', "-");
        let in_folder = command.has_beside("diffusers_helper")
            || (!command.lists_folder() && folder.contains("framepack"));
        command.file() == "studio.py" && in_folder
    }

    fn serves(&self, _command: &Command<'_>) -> bool {
        true
    }

    fn unmistakable(&self) -> Option<&'static str> {
        Some(r"^Starting worker function for job \S|^Finishing job \S+ with status ")
    }

    fn is_typical(&self, text: &str) -> bool {
        text.contains("modules/video_queue.py") || text.contains("FramePack-Studio")
    }

    fn home(&self) -> (&'static str, &'static [&'static str]) {
        ("FramePack-Studio", &["diffusers_helper", "studio.py"])
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(Studio::default())
    }

    fn after_restart(&self) -> AfterRestart {
        AfterRestart {
            job: "it is not sent again: its own `queue.json` has it, which `Load Queue` reads",
            kept: "latents before each decode, finished sections",
            warning: Some(
                "FramePack-Studio's job cannot be sent again: after the restart press Load Queue before you add a job",
            ),
        }
    }

    fn needs_torchvision(&self) -> bool {
        true
    }
}

static BEGINS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^Starting worker function for job \S+"));
static ENDS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^Finishing job \S+ with status (?:JobStatus\.)?(?P<status>\w+)"));

#[derive(Debug, Default)]
struct Studio {
    framepack: Framepack,
}

impl Dialect for Studio {
    fn line(&mut self, text: &str, n: &mut Narrator) -> bool {
        if BEGINS.is_match(text) {
            self.framepack.begin_job(n);
            // the queue tells the end as well, behind what is done with the last section
            n.announced = true;
            n.enter(Phase::Unknown);
        } else if let Some(c) = ENDS.captures(text) {
            match &c["status"] {
                "COMPLETED" => n.done(),
                "FAILED" => n.fail(None),
                _ if n.in_flight() => n.wait(),
                _ => {}
            }
        } else {
            return self.framepack.line(text, n);
        }
        true
    }

    fn bar(&mut self, bar: &Bar, sampling: bool, n: &mut Narrator) {
        self.framepack.bar(bar, sampling, n);
    }

    fn exception(&mut self, e: &Exception, n: &mut Narrator) {
        self.framepack.exception(e, n);
    }
}
