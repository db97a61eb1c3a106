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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::event::RunStarted;
    use crate::model::{AttemptSpec, Mono, Plan, RungId, Scope};

    fn state(end_after_result: bool) -> RunState {
        let started = RunStarted {
            schema: crate::model::event::SCHEMA.to_owned(),
            program: "test".to_owned(),
            run: "r".to_owned(),
            wall_clock: "2026-01-01T00:00:00Z".to_owned(),
            argv: vec!["python".to_owned()],
            cwd: "/".to_owned(),
            profile: "p".to_owned(),
            profile_why: "asked for".to_owned(),
            adapter: "generic".to_owned(),
            gpu: None,
            vram_cap: None,
            interactive: false,
            plan: Plan {
                end_after_result,
                ..Plan::default()
            },
            attached: None,
        };
        let mut state = RunState::new(&started);
        state.begin_attempt(&AttemptSpec {
            number: 1,
            rung: RungId::as_given(),
            action: crate::model::ActionId::None,
            tier: crate::model::Tier::T0,
            argv: started.argv.clone(),
            env: Vec::new(),
            settings: std::collections::BTreeMap::new(),
            on_cpu: false,
        });
        state.stage = Stage::Watching;
        state
    }

    /// Judges each second for so long; gives when a signal was sent.
    fn judge(state: &mut RunState, id: VerdictId, seconds: u64) -> Option<u64> {
        for _ in 0..seconds {
            state.now += Duration::from_secs(1);
            state.verdict.id = id;
            let mut out = Vec::new();
            state.end_after_result(&mut out);
            let sent = out.iter().any(|e| {
                matches!(
                    e,
                    Effect::Signal {
                        signal: Signal::Term,
                        scope: Scope::Group,
                        ..
                    }
                )
            });
            if sent {
                return Some(state.now.0 / 1000);
            }
        }
        None
    }

    #[test]
    fn a_process_that_stays_is_ended_after_two_minutes() {
        let mut state = state(true);
        assert_eq!(judge(&mut state, VerdictId::NotEnded, 200), Some(121));
        assert!(matches!(
            state.stage,
            Stage::Ending {
                purpose: Purpose::KeepResult,
                ..
            }
        ));
        let mut out = Vec::new();
        state.result_kept(&mut out);
        let (outcome, code, _) = state.outcome.expect("over");
        assert_eq!((outcome, code), (Outcome::ResultKept, 0));
    }

    #[test]
    fn what_moves_again_begins_the_time_anew() {
        let mut state = state(true);
        assert_eq!(judge(&mut state, VerdictId::NotEnded, 119), None);
        assert_eq!(judge(&mut state, VerdictId::Healthy, 1), None);
        assert_eq!(judge(&mut state, VerdictId::NotEnded, 119), None);
        assert_eq!(state.now, Mono::from_secs(239));
    }

    #[test]
    fn nothing_is_ended_unasked() {
        let mut state = state(false);
        assert_eq!(judge(&mut state, VerdictId::NotEnded, 600), None);
        assert_eq!(state.stage, Stage::Watching);
    }
}
