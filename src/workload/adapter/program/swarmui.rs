//! SwarmUI: a server in C# that starts ComfyUI and prints its lines with a mark before them.
//!
//! Words as in mcmonkeyprojects/SwarmUI at 0a398b7: `src/Utils/Logs.cs` (time and level),
//! `src/Backends/NetworkBackendUtils.cs` (the backend's start and its lines).

use std::sync::LazyLock;

use regex::Regex;

use super::comfyui::Comfyui;
use super::{AdapterKind, AfterRestart, Bar, Command, Dialect, Narrator, Program};
use crate::model::Phase;
use crate::workload::pattern;

/// See the module.
pub(super) struct SwarmuiProgram;

impl Program for SwarmuiProgram {
    fn name(&self) -> &'static str {
        "swarmui"
    }

    fn title(&self) -> &'static str {
        "SwarmUI"
    }

    fn is_run_by(&self, command: &Command<'_>) -> bool {
        let name = command.name();
        matches!(name, "SwarmUI" | "SwarmUI.dll" | "SwarmUI.exe")
            || (name == "launch-linux.sh" && command.folder().to_lowercase().contains("swarm"))
    }

    fn serves(&self, _command: &Command<'_>) -> bool {
        true
    }

    fn starts(&self) -> Option<AdapterKind> {
        Some(AdapterKind::Comfyui)
    }

    /// mcmonkeyprojects/SwarmUI, issue 1114.
    fn place_of_arguments(&self) -> Option<&'static str> {
        Some(
            "In SwarmUI such arguments belong into ExtraArgs of the ComfyUI backend (Server, Backends).",
        )
    }

    fn banner(&self) -> Option<&'static str> {
        Some(
            r"^(?:(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d\.\d{3} \[\w+\] (?:\[ComfyUI|\(ComfyUI-\d|Self-Start ComfyUI-\d|=== (?:Stable)?SwarmUI )|Self-Start ComfyUI-\d+ on port \d|\[ComfyUI-\d+/STD(?:OUT|ERR)\] )",
        )
    }

    fn home(&self) -> (&'static str, &'static [&'static str]) {
        ("SwarmUI", &["launch-linux.sh"])
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(Swarmui::default())
    }

    fn after_restart(&self) -> AfterRestart {
        AfterRestart::lost(Some(
            "SwarmUI's job cannot be sent again: press Generate after the restart",
        ))
    }
}

static BEGINS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^User \S+ (?:\S+ )?requested \d+ (?:image|video)s?\b"));
static ENDS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^Generated (?:an? )?(?:image|video)s? in [\d.]+ (?:sec|min)"));

#[derive(Debug, Default)]
struct Swarmui {
    backend: Comfyui,
    /// A job was asked for, and ComfyUI has not taken it up yet: its `got prompt` is no other job.
    requested: bool,
}

impl Dialect for Swarmui {
    fn line(&mut self, text: &str, n: &mut Narrator) -> bool {
        if BEGINS.is_match(text) {
            self.requested = !n.in_flight();
            n.start_job();
            n.enter(Phase::Unknown);
        } else if ENDS.is_match(text) {
            n.done();
        } else if text == "got prompt" && std::mem::take(&mut self.requested) {
            self.backend.begin(n);
        } else {
            return self.backend.line(text, n);
        }
        true
    }

    fn bar(&mut self, bar: &Bar, sampling: bool, n: &mut Narrator) {
        self.backend.bar(bar, sampling, n);
    }
}
