//! Krita AI Diffusion: a plugin of Krita that installs ComfyUI and starts it. Its `client.log` has
//! the plugin's lines, its `server.log` those of ComfyUI, each behind a time and a level.
//!
//! Words as in Acly/krita-ai-diffusion at 0217cd2: `ai_diffusion/backend/server.py` (the server),
//! `ai_diffusion/backend/comfy_client.py` (jobs), `ai_diffusion/extension.py` (start).

use std::sync::LazyLock;

use regex::Regex;

use super::comfyui::Comfyui;
use super::{AdapterKind, AfterRestart, Bar, Command, Dialect, Narrator, Program};
use crate::workload::pattern;

/// See the module.
pub(super) struct KritaProgram;

impl Program for KritaProgram {
    fn name(&self) -> &'static str {
        "krita-ai-diffusion"
    }

    fn title(&self) -> &'static str {
        "Krita AI Diffusion"
    }

    fn short_title(&self) -> &'static str {
        "Krita"
    }

    fn is_run_by(&self, command: &Command<'_>) -> bool {
        matches!(command.name(), "krita" | "krita.exe")
    }

    fn serves(&self, _command: &Command<'_>) -> bool {
        true
    }

    fn starts(&self) -> Option<AdapterKind> {
        Some(AdapterKind::Comfyui)
    }

    fn place_of_arguments(&self) -> Option<&'static str> {
        Some(
            "In Krita such arguments belong into Server Arguments (Configure AI Image Generation, Connection).",
        )
    }

    /// The folder of its own server, and the lines of the plugin.
    fn banner(&self) -> Option<&'static str> {
        Some(
            r"\bkrita[\\/]ai_diffusion[\\/]|\bExtension initialized, Version: \d[\d.]*, Python: |\bFound server installation v\d|\bStarting server with python -\w*u\w* main\.py\b|\bError during server startup: ",
        )
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(Krita::default())
    }

    fn after_restart(&self) -> AfterRestart {
        AfterRestart::lost(Some(
            "Krita's job cannot be sent again: press Generate after the restart",
        ))
    }
}

/// What both logs have before a line.
static LOGGED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} )?(?:DEBUG|INFO|WARNING|ERROR) (?:\[\w+\] )?",
    )
});
/// A job that failed, in the plugin's own log.
static FAILED: LazyLock<Regex> = LazyLock::new(|| pattern(r"^Job .{1,200}? failed: (?P<why>.*)$"));

#[derive(Debug, Default)]
struct Krita {
    backend: Comfyui,
}

impl Dialect for Krita {
    fn line(&mut self, text: &str, n: &mut Narrator) -> bool {
        let text = LOGGED.find(text).map_or(text, |m| &text[m.end()..]);
        if let Some(c) = FAILED.captures(text) {
            self.backend.failed(&c["why"], n);
        } else if text.starts_with("To see the GUI go to: ") && !n.in_flight() {
            n.wait();
        } else {
            return self.backend.line(text, n);
        }
        true
    }

    fn bar(&mut self, bar: &Bar, sampling: bool, n: &mut Narrator) {
        self.backend.bar(bar, sampling, n);
    }
}
