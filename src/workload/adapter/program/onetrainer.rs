//! OneTrainer: a window, or a script, that trains. Steps of a training are read as steps of a
//! generation: no phase of its own stands for them.
//!
//! Words as in Nerogar/OneTrainer at 23df383: `modules/trainer/GenericTrainer.py` (bars, files),
//! `lib.include.sh`, `start-ui.bat` (start), `modules/ui/TrainUIController.py` (errors).

use super::scripts::{end_request, unknown_bar};
use super::{AfterRestart, Bar, BarKind, Command, Dialect, Exception, Narrator, Program};
use crate::model::Phase;

/// See the module.
pub(super) struct OneTrainerProgram;

impl Program for OneTrainerProgram {
    fn name(&self) -> &'static str {
        "onetrainer"
    }

    fn title(&self) -> &'static str {
        "OneTrainer"
    }

    fn is_run_by(&self, command: &Command<'_>) -> bool {
        match command.file() {
            "train_ui.py" | "train_ui_ctk.py" | "train_ui_qt.py" => true,
            "train.py" => command.has_beside("train_ui.py"),
            _ => false,
        }
    }

    /// Its window waits for its user.
    fn serves(&self, command: &Command<'_>) -> bool {
        command.file() != "train.py"
    }

    fn banner(&self) -> Option<&'static str> {
        Some(
            r"^\[OneTrainer\] |^Clearing cache directory .{1,300}! You can disable this if you want to continue using the same cache\.|\bmodules[\\/]trainer[\\/]GenericTrainer\.py\b|\bscripts[\\/]train_ui(?:_qt|_ctk)?\.py\b",
        )
    }

    fn home(&self) -> (&'static str, &'static [&'static str]) {
        ("scripts", &["train_ui.py"])
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(OneTrainer)
    }

    fn after_restart(&self) -> AfterRestart {
        AfterRestart {
            job: "it begins again, from a backup only with Continue from last backup",
            kept: "nothing: a training is no generation",
            warning: Some(
                "OneTrainer's training cannot be sent again: tick Continue from last backup and press Start Training after the restart",
            ),
        }
    }
}

#[derive(Debug)]
struct OneTrainer;

impl Dialect for OneTrainer {
    fn line(&mut self, text: &str, n: &mut Narrator) -> bool {
        if text.starts_with("Clearing cache directory ") {
            n.start_job();
            n.enter(Phase::ModelLoad);
        } else if n.in_flight()
            && (text.starts_with("Creating Backup ") || text.starts_with("Saving "))
        {
            n.enter(Phase::Save);
        } else {
            return false;
        }
        true
    }

    fn bar(&mut self, bar: &Bar, _sampling: bool, n: &mut Narrator) {
        match bar.desc.as_deref() {
            Some("step") if !bar.complete() => {
                n.start_job();
                n.enter(Phase::Sampling);
            }
            // all epochs are over: of the file that is written now only its beginning is told
            Some("epoch") if bar.complete() => n.done(),
            _ => unknown_bar(bar, n),
        }
    }

    /// The bar over all epochs is read where it is full: it ends the training.
    fn kind_of(&self, bar: &Bar, _n: &Narrator) -> Option<BarKind> {
        let is_over = bar.desc.as_deref() == Some("epoch") && bar.complete();
        is_over.then_some(BarKind::Sampling { said: true })
    }

    fn exception(&mut self, e: &Exception, n: &mut Narrator) {
        // its window stays after a training that failed
        end_request(e, n);
    }

    fn knows_steps(&self) -> bool {
        false
    }
}
