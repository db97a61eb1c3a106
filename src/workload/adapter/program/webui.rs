//! Stable Diffusion web UI of AUTOMATIC1111, and Forge.

use super::scripts::Scripts;
use super::{AfterRestart, Command, Dialect, Program};

/// See the module.
pub(super) struct WebuiProgram;

impl Program for WebuiProgram {
    fn name(&self) -> &'static str {
        "webui"
    }

    fn title(&self) -> &'static str {
        "Stable Diffusion web UI"
    }

    fn short_title(&self) -> &'static str {
        "web UI"
    }

    fn is_run_by(&self, command: &Command<'_>) -> bool {
        let folder = command.folder().to_lowercase();
        matches!(command.file(), "launch.py" | "webui.py")
            && folder.starts_with("stable-diffusion-webui")
    }

    fn serves(&self, _command: &Command<'_>) -> bool {
        true
    }

    fn unmistakable(&self) -> Option<&'static str> {
        self.banner()
    }

    /// `modules/launch_utils.py`, `modules/sd_models.py`; Forge: `backend/memory_management.py`.
    fn banner(&self) -> Option<&'static str> {
        Some(
            r"^(?:Launching Web UI with arguments:|Commit hash: (?:[0-9a-f]{40}|<none>)$|Loading weights \[[0-9a-f]{10}\] from |\[Memory Management\] Target: )",
        )
    }

    fn prints_too(&self) -> &'static [&'static str] {
        super::COMFYUI_MEMORY
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(Scripts { knows_steps: true })
    }

    fn after_restart(&self) -> AfterRestart {
        AfterRestart::lost(Some(
            "the web UI's job cannot be sent again: press Generate after the restart",
        ))
    }
}
