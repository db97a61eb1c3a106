//! Whether a restart completes the user's job, and whether there was a job at all.

use std::time::Duration;

use crate::detect::{Job, Presence};
use crate::model::event::{Choice, Level};
use crate::model::{AgentWay, AgentWord, Backend, Effect, Event, JobChange, Vendor};
use crate::policy::{Answer, InFlight};

use super::reduce::emit;
use super::state::RunState;

/// What is added to the countdown of a restart that does not complete the job.
const LONGER: Duration = Duration::from_secs(10);
/// What is said of such a restart.
const CANNOT_SEND: &str =
    "the server's job cannot be sent again: press Start again after the restart";

impl RunState {
    /// Remembers that a job was shown, and what the program computes with.
    pub(super) fn note_job_shown(&mut self, event: &Event) {
        // a command that fails before any job has an end too
        let told = matches!(event, Event::Job(JobChange::Started));
        if told || matches!(self.detector.job(), Job::InFlight(_)) {
            self.job_shown.in_attempt = true;
            self.job_shown.in_run = true;
        }
        if let Event::Agent(note) = event {
            self.tiers.note(note);
        }
        if let Event::Agent(note) = event
            && let AgentWord::Torch {
                find_dbs: Some(told),
                ..
            } = &note.word
        {
            self.find_dbs = Some(told.clone());
        }
        let backend = match event {
            Event::Line(line) => Backend::of_line(&line.text),
            Event::Agent(note) => match &note.word {
                AgentWord::Torch { hip, cuda, .. } => {
                    Some(Backend::of_torch(hip.is_some(), cuda.is_some()))
                }
                _ => None,
            },
            _ => None,
        };
        self.backend = backend.unwrap_or(self.backend);
    }

    /// What runs at this moment.
    pub(super) fn in_flight(&self) -> InFlight {
        InFlight {
            op: self.detector.op(self.now).map(|(op, _)| op.clone()),
            backend: self.backend(),
            release: self.detector.release(),
            arch: self.card().and_then(|card| card.arch.clone()),
            find_dbs: self.find_dbs.clone(),
        }
    }

    /// What the program computes with: by its own words, else by the maker of the card.
    pub(super) fn backend(&self) -> Backend {
        let nvidia = || self.card().is_some_and(|c| c.vendor == Vendor::Nvidia);
        match self.backend {
            Backend::Unknown if nvidia() => Backend::Cuda,
            known => known,
        }
    }

    /// A command is never started a second time where no job was shown: there the answer of
    /// the policy becomes advice. `alive`: the process lives, and is not ended for that either.
    pub(super) fn restart_only_a_job(&self, mut answer: Answer, alive: bool) -> Answer {
        let (Some(rung), false) = (&answer.rung, self.job_shown.in_attempt) else {
            return answer;
        };
        let decision = &mut answer.decision;
        decision.why = format!(
            "{} in {}: rung {rung} would answer it, but this attempt has shown no job, so the command is not started a second time",
            decision.verdict, self.verdict.phase
        );
        decision.choice = if alive {
            Choice::Advise
        } else {
            Choice::GiveUp
        };
        decision.restarts_left += 1;
        answer.rung = None;
        answer
    }

    /// Says at the first job of the run that no latent of it is kept, where no agent is in the
    /// program. An agent that knows no decoder of the program says so itself.
    pub(super) fn warn_of_nothing_kept(&self, out: &mut Vec<Effect>) {
        let silent = self.detector.presence() == Presence::Silent;
        let why = match &self.plan.agent {
            AgentWay::Off { why } => why.as_str(),
            AgentWay::On if silent => "the agent is not connected",
            AgentWay::On | AgentWay::Unknown => return,
        };
        if self.is_attached() {
            return;
        }
        out.push(emit(Event::Notice {
            level: Level::Info,
            text: format!(
                "nothing of this run can be kept: {why}; a restart begins from the start"
            ),
        }));
    }

    /// Says before a restart that it does not complete the job, and leaves more time to hold it.
    pub(super) fn warn_of_lost_job(&self, answer: &mut Answer, out: &mut Vec<Effect>) {
        let Choice::Restart { kill_at, .. } = &mut answer.decision.choice else {
            return;
        };
        if !self.loses_job() {
            return;
        }
        *kill_at = self.now + self.restart_countdown();
        let warning = self.plan.lost_job.as_deref().unwrap_or(CANNOT_SEND);
        answer.decision.why = format!("{}; {warning}", answer.decision.why);
        let offer = if self.plan.countdown.is_zero() {
            ""
        } else {
            " (h holds the restart, w waits a minute)"
        };
        out.push(emit(Event::Notice {
            level: Level::Warn,
            text: format!("{warning}{offer}"),
        }));
    }

    /// Time between the announcement of a restart and the end of the attempt.
    pub(super) fn restart_countdown(&self) -> Duration {
        let countdown = self.plan.countdown;
        // nobody is there who could hold it
        let longer = !countdown.is_zero() && self.loses_job();
        countdown + if longer { LONGER } else { Duration::ZERO }
    }

    /// Whether a restart loses the job of a server.
    fn loses_job(&self) -> bool {
        self.serves() && self.job_shown.in_attempt && !self.job_is_kept()
    }
}
