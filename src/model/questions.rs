//! The three questions behind every judgement, with their answers and sources.
//!
//! Is a job in flight? Does *the job* move? What does its thread wait for? See
//! `docs/judgement.md`.

use serde::{Deserialize, Serialize};

/// The answers at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Questions {
    /// Whether a job is in flight.
    pub job: Answered,
    /// Whether the job moves.
    pub moves: Answered,
    /// What the holder, the thread of the job, waits for.
    pub waits: Waits,
}

/// An answer with its source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// The answer.
    pub answer: Answer,
    /// What says so, in words.
    pub source: String,
    /// Since when, in seconds of the stream; absent: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_s: Option<f64>,
}

impl Answered {
    /// An answer with what says so and, where known, since when.
    pub fn new(answer: Answer, source: impl Into<String>, since_s: Option<f64>) -> Self {
        Self {
            answer,
            source: source.into(),
            since_s,
        }
    }
}

/// An answer to the first two questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Yes.
    Yes,
    /// No.
    No,
    /// Nothing says so, neither way.
    Unknown,
    /// Of a job only: its result is written.
    Done,
}

impl Answer {
    /// The word in JSON and on screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unknown => "unknown",
            Self::Done => "done",
        }
    }
}

/// What the holder waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// What.
    pub answer: WaitsFor,
    /// Its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The holder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// The system call or kernel function: `futex`, `ioctl`.
    #[serde(default, rename = "in", skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// On what: a path, an address, a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// For how long, in seconds, as far as it was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_s: Option<f64>,
}

impl Waits {
    /// Nothing is known of the holder.
    pub const UNKNOWN: Self = Self {
        answer: WaitsFor::Unknown,
        pid: None,
        tid: None,
        within: None,
        detail: None,
        for_s: None,
    };
}

/// An answer to the third question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitsFor {
    /// The card, a lock of its library, or nothing that ends by itself (`pause`).
    Card,
    /// A lock on a file.
    Lock,
    /// Another process or thread of the tree.
    Process,
    /// A peer that it has called.
    Peer,
    /// A client that calls it.
    Client,
    /// A short sleep that repeats, or a sleep that ends by itself.
    Time,
    /// A person at a terminal.
    Person,
    /// The kernel (uninterruptible sleep).
    Kernel,
    /// Itself: it runs, or sleeps within an operation.
    Itself,
    /// Nothing: it moves.
    None,
    /// It could not be read.
    Unknown,
}

impl WaitsFor {
    /// The word in JSON and on screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Card => "card",
            Self::Lock => "lock",
            Self::Process => "process",
            Self::Peer => "peer",
            Self::Client => "client",
            Self::Time => "time",
            Self::Person => "person",
            Self::Kernel => "kernel",
            Self::Itself => "itself",
            Self::None => "none",
            Self::Unknown => "unknown",
        }
    }
}
