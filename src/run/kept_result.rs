//! A process that stays after its result was written (`--end-after-result`).

use std::time::Duration;

use crate::model::event::Level;
use crate::model::{Effect, Event, Outcome, Signal, VerdictId};

use super::reduce::emit;
use super::state::{Purpose, RunState, Stage, Step};

/// Time for which the verdict `not_ended` has to hold.
const HOLDS: Duration = Duration::from_mins(2);

impl RunState {
    /// Ends the process once `not_ended` has held, where the user asked for that.
    pub(super) fn end_after_result(&mut self, out: &mut Vec<Effect>) {
        let stays = self.verdict.id == VerdictId::NotEnded;
        if !self.plan.end_after_result || self.is_attached() || !stays {
            self.not_ended_since = None;
            return;
        }
        if self.stage != Stage::Watching {
            return;
        }
        let Some(since) = self.not_ended_since else {
            self.not_ended_since = Some(self.now);
            out.push(emit(Event::Notice {
                level: Level::Info,
                text: format!(
                    "the result is written and the process stays: it is ended in {} min if nothing moves (--end-after-result)",
                    HOLDS.as_secs() / 60
                ),
            }));
            return;
        };
        if self.ago(since) < HOLDS {
            return;
        }
        self.signal(Signal::Term, self.scope(), out);
        self.stage = Stage::Ending {
            purpose: Purpose::KeepResult,
            step: Step::Terminating {
                kill_at: self.now + self.plan.kill.grace,
            },
        };
    }

    /// The process is gone, and its result is there.
    pub(super) fn result_kept(&mut self, out: &mut Vec<Effect>) {
        self.note_end("result kept");
        let summary = self.result.as_ref().map_or_else(
            || "the result is written; the process that stayed was ended".to_owned(),
            |r| format!("the process that stayed was ended; its result: {}", r.path),
        );
        self.finish(Outcome::ResultKept, summary, out);
    }
}
