//! kohya's sd-scripts, also as kohya_ss runs them: they train, and generate only samples.
//! Steps of a training are read as steps of a generation: no phase of its own stands for them.
//!
//! Words as in kohya-ss/sd-scripts at 063ef10: `train_network.py`, `library/train_util.py`.

use super::scripts::Scripts;
use super::{AfterRestart, Command, Dialect, Program};

/// The scripts that train.
const SCRIPTS: &[&str] = &[
    "fine_tune.py",
    "flux_train.py",
    "flux_train_network.py",
    "lumina_train_network.py",
    "sd3_train.py",
    "sd3_train_network.py",
    "sdxl_train.py",
    "sdxl_train_network.py",
    "sdxl_train_textual_inversion.py",
    "train_db.py",
    "train_network.py",
    "train_textual_inversion.py",
];

/// See the module.
pub(super) struct SdScriptsProgram;

impl Program for SdScriptsProgram {
    fn name(&self) -> &'static str {
        "sd-scripts"
    }

    fn title(&self) -> &'static str {
        "kohya's sd-scripts"
    }

    fn short_title(&self) -> &'static str {
        "sd-scripts"
    }

    fn is_run_by(&self, command: &Command<'_>) -> bool {
        SCRIPTS.contains(&command.file())
    }

    fn serves(&self, _command: &Command<'_>) -> bool {
        false
    }

    fn banner(&self) -> Option<&'static str> {
        Some(
            r"\b(?:sdxl_train_util|train_util|train_network|sdxl_model_util|sdxl_train|flux_train_network|sd3_train_network)\.py:\d+$|^running training / |^\s*num train images \* repeats / ",
        )
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(Scripts { knows_steps: false })
    }

    fn after_restart(&self) -> AfterRestart {
        AfterRestart {
            job: "the command begins again, from a saved state only with --resume",
            kept: "nothing: a training is no generation",
            warning: None,
        }
    }
}
