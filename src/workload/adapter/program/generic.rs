//! Any program of which nothing is known.

use super::scripts::Scripts;
use super::{AfterRestart, Command, Dialect, Program, Rank, is_named_as_server};

/// See the module.
pub(super) struct GenericProgram;

impl Program for GenericProgram {
    fn name(&self) -> &'static str {
        "generic"
    }

    fn title(&self) -> &'static str {
        "generic"
    }

    fn rank(&self) -> Rank {
        Rank::Anything
    }

    fn is_run_by(&self, _command: &Command<'_>) -> bool {
        true
    }

    fn serves(&self, command: &Command<'_>) -> bool {
        is_named_as_server(command)
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(Scripts { knows_steps: false })
    }

    fn after_restart(&self) -> AfterRestart {
        AfterRestart {
            job: "the command begins again",
            kept: "latents before each decode that the agent knows",
            warning: None,
        }
    }
}
