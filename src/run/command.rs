//! What users, signals and the screen ask for.

use std::time::Duration;

use crate::detect::span;
use crate::model::event::{Choice, Decision};
use crate::model::{Command, Effect, Event};

use super::reduce::emit;
use super::state::{Purpose, RunState, Stage, Step};

/// What the user grants by asking to wait.
const GRANTED: Duration = Duration::from_mins(1);
/// Time between the announcement of a kill and the kill, where a person sees it.
pub const COUNTDOWN: Duration = Duration::from_secs(10);

impl RunState {
    /// One command.
    pub(super) fn command(&mut self, command: &Command, out: &mut Vec<Effect>) {
        match command {
            Command::Hold => self.set_held(true, out),
            Command::Release => self.set_held(false, out),
            Command::Wait => {
                if !self.extend_countdown() {
                    self.detector.grant(self.now, GRANTED);
                    self.judge_again(out);
                }
            }
            Command::FalseAlarm => self.false_alarm(out),
            Command::Evidence => {
                self.capture(out);
            }
            Command::Stop => self.user_stop(false, out),
            Command::Terminate => self.user_stop(true, out),
            Command::Kill => self.user_kill(out),
            Command::TerminalLost => {
                // nobody can answer a countdown any more
                self.plan.countdown = Duration::ZERO;
            }
            Command::ScreenAttached => self.screen_attached(),
            Command::Leave => self.leave(out),
            Command::Set { .. }
            | Command::UseProfile { .. }
            | Command::ApplyNow
            | Command::TakeRung { .. }
                if self.not_ours(out) => {}
            Command::Set { setting, value } => self.set(*setting, value.as_deref(), out),
            Command::UseProfile { id } => self.use_profile(id, out),
            Command::ApplyNow => self.apply_now(out),
            Command::TakeRung { rung } => self.take_rung(rung, out),
            Command::Resend => self.user_resends(out),
            Command::StopAfterStep => self.stop_after_step(out),
            Command::SaveProfile { id } => out.push(Effect::SaveProfile {
                id: id.clone(),
                chosen: self.plan.chosen.clone(),
            }),
        }
    }

    /// From now on a person can answer a countdown.
    pub(super) fn screen_attached(&mut self) {
        self.plan.countdown = self.plan.countdown.max(COUNTDOWN);
    }

    /// The alarm is called off and stays so: what was declared is judged again before
    /// anything can be decided about it.
    fn false_alarm(&mut self, out: &mut Vec<Effect>) {
        let why = match self.detector.false_alarm(self.now) {
            Some((from, to)) => format!(
                "you called it a false alarm; the limit of {} is raised from {} to {}, from now on",
                self.verdict.id,
                span(from),
                span(to)
            ),
            None => "you called it a false alarm; the limit is raised".to_owned(),
        };
        self.spare(&why, out);
        self.judge_again(out);
    }

    /// A minute more before an announced kill; `false`: none is announced.
    pub(super) fn extend_countdown(&mut self) -> bool {
        let Stage::Ending {
            step: Step::Countdown { kill_at, .. },
            ..
        } = &mut self.stage
        else {
            return false;
        };
        *kill_at = (*kill_at).max(self.now) + GRANTED;
        true
    }

    /// Holds an announced kill, or lets it count down anew, with what was granted
    /// meanwhile; `false`: none is announced.
    pub(super) fn hold_countdown(&mut self, hold: bool) -> bool {
        let again = self.now + self.plan.countdown;
        let Stage::Ending {
            step: Step::Countdown { kill_at, held },
            ..
        } = &mut self.stage
        else {
            return false;
        };
        *held = hold;
        if !hold {
            *kill_at = again.max(*kill_at);
        }
        true
    }

    fn set_held(&mut self, hold: bool, out: &mut Vec<Effect>) {
        if !self.hold_countdown(hold) {
            return;
        }
        let choice = if hold { Choice::Hold } else { Choice::Resume };
        let why = if hold {
            "held: nothing happens until it is released"
        } else {
            "released: the announced action goes ahead"
        };
        self.tell(choice, why, out);
    }

    /// Leaves a countdown without acting.
    pub(super) fn spare(&mut self, why: &str, out: &mut Vec<Effect>) {
        if matches!(
            self.stage,
            Stage::Ending {
                step: Step::Countdown { .. } | Step::AwaitEvidence { .. },
                purpose: Purpose::Restart(_) | Purpose::GiveUp,
            }
        ) {
            self.stage = Stage::Watching;
            self.fault_answered = None;
            self.tell(Choice::Resume, why, out);
        }
    }

    fn tell(&mut self, choice: Choice, why: &str, out: &mut Vec<Effect>) {
        let decision = Decision {
            attempt: self.attempt_number(),
            verdict: self.verdict.id,
            choice,
            why: why.to_owned(),
            skipped: Vec::new(),
            restarts_left: self.budget.left(&self.plan.budget, self.now),
        };
        self.decision = Some(decision.why.clone());
        out.push(emit(Event::Decision(Box::new(decision))));
    }
}
