//! What the core asks the shell to do. Every outcome comes back as an event.

use serde::{Deserialize, Serialize};

use super::attempt::{AttemptSpec, Outcome};
use super::event::Event;
use super::resend::LostJob;
use super::setting::Chosens;

/// A signal that we send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Signal {
    /// SIGINT: what Ctrl-C would send.
    #[serde(rename = "SIGINT")]
    Int,
    /// SIGTERM.
    #[serde(rename = "SIGTERM")]
    Term,
    /// SIGKILL.
    #[serde(rename = "SIGKILL")]
    Kill,
}

impl Signal {
    /// `SIGTERM`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int => "SIGINT",
            Self::Term => "SIGTERM",
            Self::Kill => "SIGKILL",
        }
    }
}

/// Whom a signal reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The process group of the attempt.
    Group,
    /// Every descendant, also those that left the group.
    Tree,
}

/// One thing to do. Carried out in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Append this event to the log.
    Emit(Box<Event>),
    /// Start a process group.
    Launch(Box<AttemptSpec>),
    /// Watch the process that is there already.
    Attach(Box<AttemptSpec>),
    /// Read every thread with each sample and take an [`Event::Probe`] every few seconds
    /// (`true`), or read threads only in the slow round.
    Probe(bool),
    /// Take evidence; [`Event::EvidenceTaken`] answers.
    Capture {
        /// Number of the bundle in this run, from 1.
        number: u32,
        /// Which attempt.
        attempt: u32,
    },
    /// Send a signal; [`Event::SignalSent`] answers.
    Signal {
        /// Which attempt.
        attempt: u32,
        /// Which signal.
        signal: Signal,
        /// Whom.
        scope: Scope,
    },
    /// Ask which processes are still there; [`Event::Survivors`] answers.
    ListSurvivors {
        /// Which attempt.
        attempt: u32,
    },
    /// Ask what the vault holds of this run; [`Event::LostJobs`] answers.
    FindLost {
        /// The attempt that begins.
        attempt: u32,
    },
    /// Send a job again; [`Event::Resend`] answers, more than once.
    SendAgain {
        /// The attempt whose server it is for.
        attempt: u32,
        /// Which.
        job: LostJob,
        /// Where it serves, as announced on its console.
        server: String,
    },
    /// Ask the agent of the process that generates to end its job after this step; a
    /// notice answers.
    StopAfterStep {
        /// Which attempt.
        attempt: u32,
    },
    /// Make the plan anew with these choices; [`Event::Replanned`] answers, or a
    /// notice that says why not.
    Resolve {
        /// What the user chose.
        chosen: Chosens,
        /// What is new, for people.
        what: String,
    },
    /// Write a profile of the user's own; [`Event::ProfileSaved`] answers, or a
    /// notice that says why not.
    SaveProfile {
        /// Its id.
        id: String,
        /// The profile in force and the settings that were chosen.
        chosen: Chosens,
    },
    /// The run is over: let sinks finish and leave.
    Finish(Outcome),
}
