//! A process that was there before us: watched and judged, never ended by itself.

use crate::model::event::Level;
use crate::model::{
    AttemptSpec, Effect, Effective, Event, ExitStatus, Health, Origin, Outcome, Scope, Verdict,
    VerdictId,
};

use super::live::refuse;
use super::reduce::emit;
use super::snapshot::JobState;
use super::state::{RunState, Stage};

/// Why what the user switches has no effect.
const NOT_OURS: &str = "the process was not started from here: nothing can be set in it, and it is not started again; stop it and use `framepack-tui run`";
/// What holds while nobody tells whether a job is in flight.
const JOB_UNKNOWN: &str = "whether a job is in flight is not known, so silence is not judged (watch --job says that one is)";

impl RunState {
    /// Whether the process was there before us.
    pub(super) fn is_attached(&self) -> bool {
        self.started.attached.is_some()
    }

    /// What the log says of the beginning in the place of an attempt.
    pub(super) fn attached_words(&self, event: &Event) -> Option<String> {
        let attached = self.started.attached?;
        let begins = matches!(event, Event::AttemptStarted(_));
        begins.then(|| format!("==== watching process {} ====", attached.pid))
    }

    /// Whom a signal reaches: the process group of a stranger may hold its shell, or us; what a
    /// launcher left may have left its group.
    pub(super) fn scope(&self) -> Scope {
        if self.is_attached() || self.launcher_returned() {
            Scope::Tree
        } else {
            Scope::Group
        }
    }

    /// How the first attempt begins. Of a process that is not ours nothing was set by us.
    pub(super) fn begin_with(&self, spec: &mut AttemptSpec) -> Effect {
        if !self.is_attached() {
            return Effect::Launch(Box::new(spec.clone()));
        }
        spec.argv.clone_from(&self.started.argv);
        spec.env.clear();
        spec.settings.clear();
        Effect::Attach(Box::new(spec.clone()))
    }

    /// The settings in force, as far as they are not what we would have set.
    pub(super) fn really_in_force(&self, all: Vec<Effective>) -> Vec<Effective> {
        let of_itself = |e: &Effective| matches!(e.origin, Origin::Environment | Origin::Detected);
        let ours = !self.is_attached();
        all.into_iter().filter(|e| ours || of_itself(e)).collect()
    }

    /// A hang of a process that is not ours: told once, with evidence.
    pub(super) fn advise_hang(&mut self, out: &mut Vec<Effect>) {
        let verdict = self.verdict.clone();
        if self.flags.advised.replace(verdict.id) == Some(verdict.id) {
            return;
        }
        self.settle(&verdict, false, out);
        self.capture(out);
    }

    /// Nothing is said of a job that nobody told of.
    pub(super) fn without_job(&self, verdict: &mut crate::model::Verdict) {
        let unknown = self.job_state() == JobState::Unknown;
        let says_nothing = matches!(verdict.health, Health::Starting | Health::Quiet);
        if self.is_attached() && unknown && says_nothing {
            verdict.health = Health::Blind;
            JOB_UNKNOWN.clone_into(&mut verdict.sentence);
            let own = verdict.considered.first_mut();
            if let Some(own) = own.filter(|c| c.verdict == verdict.id) {
                JOB_UNKNOWN.clone_into(&mut own.why);
            }
        }
    }

    /// Says why a command has no effect on a process that is not ours; `false`: it may
    /// have one.
    pub(super) fn not_ours(&self, out: &mut Vec<Effect>) -> bool {
        if self.is_attached() {
            refuse(NOT_OURS, out);
        }
        self.is_attached()
    }

    /// A signal that reached nobody: of another user's process that means that it may not
    /// be ended by us, and it is watched on.
    pub(super) fn reached_nobody(&mut self, out: &mut Vec<Effect>) {
        let ends = matches!(self.stage, Stage::Ending { .. });
        if self.is_attached() && ends && self.exited.is_none() {
            self.stage = Stage::Watching;
            refuse(
                "the signal reached nobody: the process has just ended, or we may not end it (another user's)",
                out,
            );
        }
    }

    /// The user leaves; a run of ours is not left like that.
    pub(super) fn leave(&mut self, out: &mut Vec<Effect>) {
        let Some(attached) = self.started.attached else {
            return;
        };
        let summary = if self.pid.is_some() {
            format!("left; process {} was not touched and goes on", attached.pid)
        } else {
            format!("left; process {} has ended", attached.pid)
        };
        self.finish(Outcome::Left, summary, out);
    }

    /// The end of a process that is not ours of which nothing but the end is known: how it
    /// ended is told to its parent only.
    pub(super) fn is_untold(&self, status: ExitStatus, end: &Verdict) -> bool {
        self.is_attached() && status == ExitStatus::Unknown && end.id == VerdictId::Killed
    }

    /// The process ended by itself, and neither console nor kernel says why: its exit
    /// code is told to its parent alone. `true`: that is the end of the watching.
    pub(super) fn ended_untold(&mut self, status: ExitStatus, out: &mut Vec<Effect>) -> bool {
        let Some(attached) = self.started.attached else {
            return false;
        };
        let told = self.detector.end(Some(status), self.now);
        if !self.is_untold(status, &told) {
            return false;
        }
        let pid = attached.pid;
        let summary = match self.job_state() {
            JobState::Ended => format!("process {pid} has ended after its job"),
            JobState::InFlight(_) => format!(
                "process {pid} has ended while a job was in flight; its exit code is not ours to know, and nothing says why"
            ),
            JobState::Waiting(_) | JobState::Unknown => format!(
                "process {pid} has ended; its exit code is not ours to know, and nothing says why"
            ),
        };
        out.push(emit(Event::Notice {
            level: Level::Info,
            text: summary.clone(),
        }));
        self.finish(Outcome::Ended, summary, out);
        true
    }
}
