//! Judgements: how sure, how bad, why.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::questions::Questions;
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
    /// Nothing shows that a job is in flight: neither well nor ill.
    Quiet,
    /// Stopped or traced; nothing is judged meanwhile.
    Paused,
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
            Self::Quiet => "QUIET",
            Self::Paused => "PAUSED",
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
    /// The same with their words, for readers without the stream at hand.
    #[serde(default)]
    pub cites: Vec<Cite>,
    /// How often it was seen.
    pub count: u64,
}

impl Finding {
    /// A statement that rests on one line.
    pub fn of_line(verdict: VerdictId, text: &str, cite: &Cite) -> Self {
        Self {
            verdict,
            text: text.to_owned(),
            seqs: vec![cite.seq],
            cites: vec![cite.clone()],
            count: 1,
        }
    }
}

/// Where a piece of evidence stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CiteKind {
    /// A line of the workload's console.
    Console,
    /// A line of the kernel log.
    Kernel,
    /// Something that the supervisor saw itself: an exit, a stop.
    Event,
    /// A reading of the machine.
    Telemetry,
}

/// One event that a finding rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cite {
    /// `seq` of its envelope.
    pub seq: u64,
    /// When it came.
    pub at: Mono,
    /// What it is.
    pub kind: CiteKind,
    /// Number of the line where the console has one, see [`super::Line::row`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Its words, at most 300 characters; for readings the numbers.
    pub text: String,
}

impl Cite {
    /// Most characters of [`Cite::text`].
    pub const MOST: usize = 300;

    /// A reading of the machine, in words.
    pub const fn reading(seq: u64, at: Mono, text: String) -> Self {
        Self {
            seq,
            at,
            kind: CiteKind::Telemetry,
            line: None,
            text,
        }
    }
}

/// What a rule said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleState {
    /// Nothing of the kind.
    Clear,
    /// Signs, the limit is not reached.
    NotYet,
    /// It holds.
    Match,
}

/// A rule that was asked, and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Considered {
    /// What it speaks for.
    pub verdict: VerdictId,
    /// What it said.
    pub state: RuleState,
    /// Why, in a few words: the number that decided, or why it was not asked.
    pub why: String,
}

impl Considered {
    /// The beginning of `why` where the rule was not asked at all.
    pub const NOT_ASKED: &'static str = "not asked: ";

    /// Whether the rule was not asked.
    pub fn is_not_asked(&self) -> bool {
        self.why.starts_with(Self::NOT_ASKED)
    }
}

/// Why a failure happened: an entry of `docs/causes.md`. Its words are the verdict's sentence
/// and its remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// Its name.
    pub id: String,
    /// The public thread or page that tells of it.
    pub source: String,
}

/// What follows from a verdict by itself, before any ladder is asked: the default table
/// of the vocabulary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedy {
    /// What to do.
    pub action: ActionId,
    /// 0: no change. 1: change without loss. 2: smaller or slower on the GPU. 3: part of
    /// the work on the CPU. 4: needs the user or the host.
    pub tier: u8,
    /// Whether a restart by itself is right here.
    pub auto_restart: bool,
    /// Environment that a restart needs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// What to do, in a sentence for people, with the numbers that follow from the evidence.
    pub why: String,
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
    /// Every rule that was asked and its answer, the matching one first.
    #[serde(default)]
    pub considered: Vec<Considered>,
    /// What would follow.
    pub action: ActionId,
    /// The same with tier, whether a restart by itself is right, and a sentence. Absent:
    /// a record before 1.3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
    /// Why it happened, where that is known. Absent: it is not, or a record before 1.6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Box<Cause>>,
    /// The next limit, if one is running.
    pub next: Option<NextStep>,
    /// The three questions and their answers. Absent: a record before 1.5, or nothing is judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub questions: Option<Box<Questions>>,
}
