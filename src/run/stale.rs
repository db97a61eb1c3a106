//! Requests that answer what is no longer so.

use crate::model::{Command, Request, Seen};

use super::snapshot::Snapshot;
use super::state::{RunState, Stage, Step};

impl Snapshot {
    /// What a command answers that is given while this is drawn.
    pub fn seen(&self) -> Seen {
        Seen {
            attempt: self.attempt.as_ref().map_or(0, |a| a.number),
            verdict: Some(self.verdict.id),
            chosen: self.chosen.clone(),
        }
    }
}

impl RunState {
    /// Why a request is not obeyed: what its giver saw has changed, by itself or by the word
    /// of another screen. A command that ends the run is always obeyed; so is one that means
    /// the same whatever happened meanwhile. `own_choice`: the last choice was made on the
    /// screen of the request, which may not have drawn its answer yet.
    pub fn stale(&self, request: &Request, own_choice: bool) -> Option<String> {
        let Request { command, seen } = request;
        let of_attempt = matches!(
            command,
            Command::Hold
                | Command::Release
                | Command::Wait
                | Command::FalseAlarm
                | Command::Resend
                | Command::StopAfterStep
                | Command::ApplyNow
                | Command::TakeRung { .. }
        );
        if of_attempt && seen.attempt != self.attempt_number() {
            return Some(format!(
                "not done: you saw attempt {}, and attempt {} has begun meanwhile",
                seen.attempt,
                self.attempt_number()
            ));
        }
        let announced = matches!(
            self.stage,
            Stage::Ending {
                step: Step::Countdown { .. },
                ..
            }
        );
        match command {
            Command::Hold | Command::Release if !announced => {
                Some("not done: no kill is announced any more".to_owned())
            }
            Command::FalseAlarm if seen.verdict != Some(self.verdict.id) => Some(format!(
                "not done: the verdict has become {} meanwhile",
                self.verdict.id
            )),
            Command::ApplyNow | Command::SaveProfile { .. }
                if seen.chosen != self.plan.chosen && !own_choice =>
            {
                Some("not done: what is chosen was changed meanwhile".to_owned())
            }
            _ => None,
        }
    }
}
