//! SD.Next: its log has a time and a level before each line.

use super::scripts::Scripts;
use super::{AfterRestart, Command, Dialect, Program};

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
        Box::new(Scripts { knows_steps: true })
    }

    fn after_restart(&self) -> AfterRestart {
        AfterRestart {
            job: "it is not sent again",
            kept: "latents before each decode that the agent knows",
            warning: Some("SD.Next's job cannot be sent again: press Generate after the restart"),
        }
    }
}
