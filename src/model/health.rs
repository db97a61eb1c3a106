//! Judgements: how sure, how bad, why.

use serde::{Deserialize, Serialize};

use super::time::Mono;
use super::vocab::{ActionId, Phase, VerdictId};

/// How sure and how bad. The verdict says *what*; this says *how far along*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// Launching; no milestone yet.
    Starting,
    /// Advancing, or rightly idle.
    Healthy,
    /// Alive but late.
    Slow,
    /// Signs of a hang; not sure yet.
    Suspect,
    /// Every channel silent or contradictory for the whole limit.
    Hung,
    /// Errors seen, the process lives.
    Failing,
    /// Over, without a result.
    Failed,
    /// Over, with a result.
    Finished,
    /// Too little evidence to judge. Never escalated to a kill.
    Blind,
}

impl Health {
    /// The word on screen.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Starting => "STARTING",
            Self::Healthy => "HEALTHY",
            Self::Slow => "SLOW",
            Self::Suspect => "SUSPECT",
            Self::Hung => "HUNG",
            Self::Failing => "FAILING",
            Self::Failed => "FAILED",
            Self::Finished => "FINISHED",
            Self::Blind => "BLIND",
        }
    }
}

/// One statement with the events it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The verdict it speaks for.
    pub verdict: VerdictId,
    /// A sentence with its numbers.
    pub text: String,
    /// `seq` of the envelopes behind it (first and last of a stretch, or lines).
    pub seqs: Vec<u64>,
    /// How often it was seen.
    pub count: u64,
}

/// What will happen, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextStep {
    /// `evidence`, `verdict silent_hang`, `restart on rung fast_find`, …
    pub what: String,
    /// When.
    pub at: Mono,
}

/// The judgement in force from the moment of its envelope on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What.
    pub id: VerdictId,
    /// How far along.
    pub health: Health,
    /// Where.
    pub phase: Phase,
    /// Section, where known.
    pub section: Option<u32>,
    /// 0 to 1.
    pub confidence: f64,
    /// When the trouble began: the last activity of any kind.
    pub onset: Mono,
    /// A sentence that a non-expert understands.
    pub sentence: String,
    /// The numbers behind it.
    pub findings: Vec<Finding>,
    /// Look-alikes and why they are not it.
    pub ruled_out: Vec<String>,
    /// What would follow.
    pub action: ActionId,
    /// The next limit, if one is running.
    pub next: Option<NextStep>,
}
