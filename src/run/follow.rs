//! The fold of a reader: a stream that another process decides about.
//!
//! It may be another version of this program, with other rules and limits. What is
//! shown is what *was* decided: verdicts, decisions, attempts, signals and the end are
//! taken from the record. Only what a record does not tell (how long the pause before
//! an attempt takes, when the wait for memory is given up) is worked out here.

use crate::model::attempt::Artefact;
use crate::model::event::{Choice, Decision};
use crate::model::{
    AttemptSpec, Command, Envelope, Event, Mono, Outcome, RungId, Signal, Verdict, VerdictId,
};

use super::ending::STRAGGLERS;
use super::state::{Followed, Next, Purpose, RunState, Shown, Stage, Step};

/// Folds one envelope of another process's run into the state; nothing follows from
/// it. Works on the record as well as on a headless stream, which has no ticks.
pub fn follow(state: &mut RunState, env: &Envelope) {
    state.now = state.now.max(env.at);
    if state.is_over() {
        return;
    }
    let Some(env) = state.detector.heed(env) else {
        return;
    };
    let env = &*env;
    state.remember(env);
    state.detector.ignore_tracer(state.evidence_touches());
    state.observe(env);
    // what was due before the event came has happened
    state.pass_time();
    state.facts(&env.event);
    state.take_over(&env.event);
    state.pass_time();
}

impl RunState {
    fn take_over(&mut self, event: &Event) {
        match event {
            Event::AttemptStarted(spec) => self.recorded_attempt(spec),
            Event::Verdict(verdict) => self.recorded_verdict(verdict),
            Event::Decision(decision) => self.recorded_decision(decision),
            Event::Command(command) => self.recorded_command(command),
            Event::SignalSent { signal, .. } => self.recorded_signal(*signal),
            Event::VramWaiting { before, .. } => self.vram_before = Some(*before),
            Event::VramReclaimed { used, complete, .. } => {
                if let (Stage::Reclaiming { next, .. }, true) =
                    (&self.stage, *complete || used.is_none())
                {
                    self.begin_delay(next.clone());
                }
            }
            Event::RunFinished {
                outcome,
                exit_code,
                result,
                summary,
            } => self.recorded_end(outcome, *exit_code, result.as_ref(), summary),
            _ => {}
        }
    }

    fn recorded_attempt(&mut self, spec: &AttemptSpec) {
        // a decision that the recorder had to drop was made all the same
        while self.budget.total() + self.followed.by_user + 1 < spec.number {
            self.budget.spend(self.now);
        }
        if spec.rung.0 != RungId::AS_GIVEN && !self.position.has_taken(&spec.rung) {
            self.position.take(&spec.rung);
        }
        self.followed = Followed {
            released: false,
            ended_by_user: None,
            ..self.followed
        };
        self.begin_attempt(spec);
    }

    fn recorded_verdict(&mut self, verdict: &Verdict) {
        self.shown = Some(Shown {
            id: verdict.id,
            health: verdict.health,
            at: self.now,
        });
        self.verdict = verdict.clone();
    }

    fn recorded_decision(&mut self, decision: &Decision) {
        self.decision = Some(decision.why.clone());
        // between two attempts it is spent already
        let between = matches!(
            self.stage,
            Stage::Reclaiming { .. } | Stage::Delaying { .. }
        );
        let restarts =
            matches!(decision.choice, Choice::Restart { by_user: false, .. }) && !between;
        let own = self.budget.left(&self.plan.budget, self.now);
        self.followed.restarts_more =
            i64::from(decision.restarts_left) - i64::from(own.saturating_sub(restarts.into()));
        match &decision.choice {
            Choice::Restart {
                rung,
                kill_at,
                by_user,
            } => self.recorded_restart(rung, *kill_at, *by_user),
            Choice::GiveUp if self.flags.gone => self.note_once(),
            Choice::GiveUp => self.announce(Purpose::GiveUp, self.now + self.plan.countdown),
            Choice::Hold => {
                self.hold_countdown(true);
            }
            Choice::Resume if std::mem::take(&mut self.followed.released) => {
                self.hold_countdown(false);
            }
            Choice::Resume => {
                if let Stage::Ending {
                    step: Step::Countdown { .. } | Step::AwaitEvidence { .. },
                    ..
                } = self.stage
                {
                    self.stage = Stage::Watching;
                }
            }
            Choice::Advise => {}
        }
    }

    fn recorded_restart(&mut self, rung: &RungId, kill_at: Mono, by_user: bool) {
        let next = Next {
            rung: (rung.0 != RungId::AS_GIVEN).then(|| rung.clone()),
            by_user,
        };
        match &mut self.stage {
            // what follows an announced, begun or finished end was changed
            Stage::Ending {
                purpose: purpose @ (Purpose::Restart(_) | Purpose::GiveUp),
                step,
            } => {
                *purpose = Purpose::Restart(next);
                if let Step::Countdown { kill_at: at, held } = step {
                    *at = kill_at;
                    *held &= kill_at > self.now;
                }
            }
            Stage::Reclaiming { next: old, .. } | Stage::Delaying { next: old, .. } => *old = next,
            _ if self.flags.gone => {
                self.note_once();
                self.leave_for(next);
            }
            _ => self.announce(Purpose::Restart(next), kill_at),
        }
    }

    fn recorded_command(&mut self, command: &Command) {
        match command {
            Command::Release => {
                self.followed.released = matches!(
                    self.stage,
                    Stage::Ending {
                        step: Step::Countdown { .. },
                        ..
                    }
                );
            }
            Command::Wait => {
                self.extend_countdown();
            }
            Command::Stop | Command::Kill => {
                self.followed.ended_by_user.get_or_insert(false);
            }
            Command::Terminate => {
                self.followed.ended_by_user.get_or_insert(true);
            }
            Command::TerminalLost => self.plan.countdown = std::time::Duration::ZERO,
            Command::ScreenAttached => self.screen_attached(),
            _ => {}
        }
    }

    fn recorded_signal(&mut self, signal: Signal) {
        let purpose = match (&self.stage, self.followed.ended_by_user) {
            (_, Some(terminated)) => Purpose::User { terminated },
            (Stage::Ending { purpose, .. }, None) => purpose.clone(),
            (Stage::Draining { status, .. }, None) => Purpose::Conclude(*status),
            (Stage::Watching, None)
                if self.plan.end_after_result && self.verdict.id == VerdictId::NotEnded =>
            {
                Purpose::KeepResult
            }
            (Stage::Watching, None) if self.launcher_returned() => {
                Purpose::EndLeftovers { pids: Vec::new() }
            }
            // why it was sent is not told
            _ => return,
        };
        let before = match &self.stage {
            Stage::Ending { step, .. } => Some(*step),
            _ => None,
        };
        let step = match (before, signal) {
            // SIGKILL goes to the group and to the tree
            (Some(killing @ Step::Killing { .. }), _) => killing,
            (_, Signal::Kill) => Step::Killing {
                since: self.now,
                asked: false,
            },
            _ => Step::Terminating {
                kill_at: self.now
                    + match &purpose {
                        Purpose::Conclude(_) => STRAGGLERS,
                        _ => self.plan.kill.grace,
                    },
            },
        };
        self.stage = Stage::Ending { purpose, step };
    }

    /// What follows from time alone, and is not told by an event of its own.
    fn pass_time(&mut self) {
        let now = self.now;
        // a limit that has passed without a new verdict was moved by whoever judges
        // and so was one that belongs to another phase
        let elsewhere = self.verdict.phase != self.phase;
        if elsewhere || self.verdict.next.as_ref().is_some_and(|n| n.at < now) {
            self.verdict.next = None;
        }
        match self.stage.clone() {
            Stage::Ending {
                purpose,
                step: Step::Countdown { kill_at, held },
            } if !held && now >= kill_at => {
                self.stage = Stage::Ending {
                    purpose,
                    step: Step::AwaitEvidence { since: kill_at },
                };
            }
            Stage::Ending {
                purpose: Purpose::Restart(next),
                ..
            } if self.flags.gone && self.drained() => {
                if next.by_user {
                    self.followed.noted = self.attempt_number();
                    self.note_end("ended for your changes");
                } else {
                    self.note_once();
                }
                self.leave_for(next);
            }
            Stage::Draining { .. }
            | Stage::Ending {
                purpose: Purpose::Conclude(_),
                ..
            } if self.flags.gone && self.drained() => {
                self.stage = Stage::PostMortem {
                    verdict: Box::new(self.verdict.clone()),
                    since: now,
                };
            }
            // without a level from before there is no wait, and no word of it
            Stage::Reclaiming { next, since, .. } if self.vram_before.is_none() && now > since => {
                self.begin_delay(next);
            }
            _ => {}
        }
    }

    fn leave_for(&mut self, next: Next) {
        self.followed.by_user += u32::from(next.by_user);
        self.leave_attempt(next);
    }

    fn note_once(&mut self) {
        if self.followed.noted < self.attempt_number() {
            self.followed.noted = self.attempt_number();
            self.note_tried();
        }
    }

    fn recorded_end(
        &mut self,
        outcome: &Outcome,
        exit_code: u8,
        result: Option<&Artefact>,
        summary: &str,
    ) {
        match outcome {
            Outcome::Finished { .. } | Outcome::GaveUp | Outcome::Failed => self.note_once(),
            Outcome::Interrupted { .. } if self.followed.noted < self.attempt_number() => {
                self.note_end("ended by the user");
            }
            Outcome::Interrupted { .. }
            | Outcome::Left
            | Outcome::Ended
            | Outcome::LeftoversEnded { .. }
            | Outcome::CardHeld { .. }
            | Outcome::ResultKept
            | Outcome::Unkillable { .. }
            | Outcome::NotLaunched { .. } => {}
        }
        self.stage = Stage::Over;
        self.detector.end_attempt();
        self.result = result.cloned();
        self.outcome = Some((outcome.clone(), exit_code, summary.to_owned()));
    }
}
