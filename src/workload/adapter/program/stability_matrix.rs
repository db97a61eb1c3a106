//! Stability Matrix: it installs and starts other programs, whose lines are their own.
//!
//! Words as in LykosAI/StabilityMatrix at 0929308: names of its exceptions and classes.

use super::scripts::Scripts;
use super::{AfterRestart, Command, Dialect, Program};

/// See the module.
pub(super) struct StabilityMatrixProgram;

impl Program for StabilityMatrixProgram {
    fn name(&self) -> &'static str {
        "stability-matrix"
    }

    fn title(&self) -> &'static str {
        "Stability Matrix"
    }

    fn is_run_by(&self, command: &Command<'_>) -> bool {
        command.name().starts_with("StabilityMatrix")
    }

    fn serves(&self, _command: &Command<'_>) -> bool {
        false
    }

    fn is_launcher(&self) -> bool {
        true
    }

    /// Its README: Searchable launch options.
    fn place_of_arguments(&self) -> Option<&'static str> {
        Some("In Stability Matrix such arguments belong into the package's launch options.")
    }

    fn banner(&self) -> Option<&'static str> {
        Some(
            r"^\s*(?:at )?StabilityMatrix\.(?:Core|Avalonia)\.|^Cloning into '.{1,160}[\\/]Data[\\/]Packages[\\/][^\\/']+'\.\.\.",
        )
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(Scripts { knows_steps: true })
    }

    fn after_restart(&self) -> AfterRestart {
        AfterRestart::lost(None)
    }
}
