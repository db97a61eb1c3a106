//! What the agent inside a Python process tells (`docs/agent.md`), as far as it goes into
//! the event stream.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::units::Bytes;
use super::vocab::{Phase, VerdictId};

mod rank;
mod words;

pub use rank::AgentRank;

/// Name in `/proc` of the threads that the agent starts; `fpt_agent/threads.py` sets it.
pub const THREAD_NAME: &str = "fpt-agent";

/// One word of the agent, or about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentNote {
    /// The process that it sits in; 0: none in particular.
    pub pid: u32,
    /// What.
    #[serde(flatten)]
    pub word: AgentWord,
}

impl AgentNote {
    /// In a sentence, with whose words they are; `None`: it is only for the record.
    pub fn words(&self) -> Option<String> {
        words::words(self)
    }
}

/// What was said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "word", rename_all = "snake_case")]
pub enum AgentWord {
    /// It is there.
    Hello(AgentHello),
    /// Phase, progress and job of this process count from here on.
    Main,
    /// Its process ended, by itself or not.
    Ended,
    /// Its process lives, and the connection is gone.
    Lost,
    /// Python runs and nobody has said hello.
    Silent {
        /// Since the launch.
        for_ms: u64,
    },
    /// It speaks another version of the messages, and is not heard.
    Refused {
        /// That version.
        protocol: u64,
        /// Version of the agent.
        agent: String,
    },
    /// The interpreter runs; the work need not advance.
    Beat(Box<AgentBeat>),
    /// A tier of the convolution fallback failed, or another than the first was chosen.
    Conv(Box<AgentConv>),
    /// Something that the agent is sure of.
    Finding(Box<AgentFinding>),
    /// A setting was carried out.
    Fix {
        /// What was changed.
        what: String,
        /// How: `name=value`, separated by commas; may be empty.
        detail: String,
    },
    /// The rescue vault.
    Vault(Box<AgentVault>),
    /// What was checked before the first work of the GPU.
    Preflight {
        /// Each check.
        checks: Vec<AgentCheck>,
    },
    /// A setting that cannot be understood, or another trouble of the agent's.
    Problem {
        /// In a sentence.
        text: String,
    },
    /// A module of the program could not be hooked: that part is not seen.
    HookFailed {
        /// Which module.
        module: String,
        /// Which hook.
        hook: String,
        /// The program's own words.
        message: String,
    },
    /// An exception left a phase.
    Error {
        /// Which phase; absent: none of the closed list.
        phase: Option<Phase>,
        /// Class of the exception.
        exception: String,
        /// Its words.
        message: String,
    },
    /// torch was imported.
    Torch {
        /// Its version.
        version: String,
        /// HIP that it was built for.
        hip: Option<String>,
        /// CUDA that it was built for.
        cuda: Option<String>,
        /// Architectures of which the MIOpen that is loaded has a shipped find database;
        /// absent: not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        find_dbs: Option<Vec<String>>,
    },
    /// Messages that were lost on the way.
    Dropped {
        /// How many.
        n: u64,
    },
}

/// The agent's first word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentHello {
    /// Version of its messages.
    pub protocol: u64,
    /// Its own version.
    pub agent: String,
    /// Version of Python.
    pub python: String,
    /// SIGUSR2 makes the process write its stacks.
    pub stacks_by_signal: bool,
    /// Rank in a group of equal processes (`RANK`, as torchrun and accelerate set it);
    /// absent: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
}

/// The heartbeat.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentBeat {
    /// Where the program is.
    pub phase: Option<Phase>,
    /// The oldest operation in flight.
    pub op: Option<AgentOp>,
    /// Operations in flight, over all threads.
    pub ops: u32,
    /// Operations that were watched so far.
    pub calls: u64,
    /// How often which tier of which operation worked or failed (`conv3d.split.ok`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tiers: BTreeMap<String, u64>,
    /// The current device's memory by torch's own count; absent: no device is in use.
    pub memory: Option<AgentMemory>,
    /// CPU time of the process.
    pub cpu_ms: u64,
    /// Whether a job runs in this process; absent: none has begun here yet, or an earlier
    /// version does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<bool>,
    /// Native id of the holder: the thread of the oldest operation that stays, else of the
    /// job, else of the innermost phase; absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<u32>,
    /// Digest of the outer part of the holder's Python stack that stayed over the last
    /// seconds; absent: the holder has not been watched for that long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// The steps that a bar of this process counts and that are not all done; absent: none are,
    /// or an earlier version does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<AgentSteps>,
}

/// Steps that a progress bar counts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AgentSteps {
    /// Native id of the thread that counted last.
    pub tid: Option<u32>,
    /// Steps in all, as the bar has them.
    pub total: f64,
    /// The call that they belong to (a request, a task) has returned, or has not; absent: not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<bool>,
}

impl AgentBeat {
    /// Whether it speaks for a job in its process: a job, a phase of one, or an operation.
    pub fn shows_work(&self) -> bool {
        self.job == Some(true) || self.op.is_some() || self.phase.is_some_and(Phase::is_of_a_job)
    }
}

/// An operation in flight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentOp {
    /// `conv3d`.
    pub name: String,
    /// Shape of its input.
    pub shape: Vec<u64>,
    /// Shape of its weight.
    pub weight: Vec<u64>,
    /// `float16`, …
    pub dtype: String,
    /// `cuda:0`, `cpu`.
    pub device: String,
    /// Tier of the fallback that runs.
    pub tier: String,
    /// How long it had been in flight when this was told.
    pub age_ms: u64,
    /// Native id of its thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
}

impl AgentOp {
    /// Whether it is the same call: all but the age.
    pub fn is_same(&self, other: &Self) -> bool {
        let age_ms = self.age_ms;
        *self
            == Self {
                age_ms,
                ..other.clone()
            }
    }

    /// Whether it is a convolution.
    pub fn is_convolution(&self) -> bool {
        self.name.starts_with("conv")
    }

    /// Whether it runs on a card.
    pub fn is_on_card(&self) -> bool {
        self.tier != "cpu" && (self.device.starts_with("cuda") || self.device.starts_with("hip"))
    }

    /// `conv3d 1x16x9x64x64, weight 128x16x3x3x3, float16 on cuda:0`, the tier where it is
    /// not the native one.
    pub fn words(&self) -> String {
        let mut words = self.short();
        if !self.weight.is_empty() {
            words = format!("{words}, weight {}", dims(&self.weight));
        }
        words = format!("{words}, {} on {}", self.dtype, self.device);
        if !matches!(self.tier.as_str(), "" | "native") {
            words = format!("{words}, tier {}", self.tier);
        }
        words
    }

    /// `conv3d 1x16x9x64x64`.
    pub fn short(&self) -> String {
        format!("{} {}", self.name, dims(&self.shape))
    }
}

fn dims(sizes: &[u64]) -> String {
    let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
    sizes.join("x")
}

/// Memory by torch's own count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentMemory {
    /// Number of the device in the process.
    pub device: u32,
    /// In tensors.
    pub allocated: Bytes,
    /// Held by the allocator.
    pub reserved: Bytes,
    /// Most that was in tensors.
    pub peak: Bytes,
}

/// A word of the convolution fallback.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentConv {
    /// `failed` or `chosen`.
    pub what: String,
    /// `conv3d`.
    pub op: String,
    /// The tier.
    pub tier: String,
    /// Shape of the input.
    pub shape: Vec<u64>,
    /// Shape of the weight.
    pub weight: Vec<u64>,
    /// `float16`, …
    pub dtype: String,
    /// `cuda:0`, `cpu`.
    pub device: String,
    /// How long it took.
    pub took_ms: Option<u64>,
    /// Why it failed, in torch's words.
    pub message: Option<String>,
}

/// Something that the agent is sure of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentFinding {
    /// What.
    pub verdict: VerdictId,
    /// In a sentence.
    pub text: String,
    /// What to do about it.
    pub cure: String,
    /// It was put right.
    pub fixed: bool,
}

/// A word of the rescue vault.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentVault {
    /// `saved`, `replayed`, `failed`, `pruned`.
    pub what: String,
    /// `latents`, `section`, `step`, `job`, `queue`.
    pub of: String,
    /// Name of the file in the vault.
    pub file: Option<String>,
    /// Its size.
    pub bytes: Option<u64>,
    /// How long it took.
    pub took_ms: Option<u64>,
    /// Why it failed.
    pub message: Option<String>,
}

/// One check before the first work of the GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCheck {
    /// What was checked.
    pub name: String,
    /// Whether it is in order; absent: could not be told.
    pub ok: Option<bool>,
    /// What was found.
    pub value: Option<String>,
    /// In a sentence.
    pub text: String,
    /// What to do about it.
    pub cure: Option<String>,
}

/// Whether an agent is put into the program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum AgentWay {
    /// Not told: the process is not ours, or the record is of an earlier version.
    #[default]
    Unknown,
    /// It is, and the command is Python or starts Python.
    On,
    /// It is not, or nothing is expected of it.
    Off {
        /// Why, in words for the user.
        why: String,
    },
}

impl AgentWay {
    /// Whether nothing is told.
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }

    /// Why the settings that only an agent can carry out are not; absent: they are.
    pub fn lack(&self) -> Option<&str> {
        match self {
            Self::On => None,
            Self::Off { why } => Some(why),
            Self::Unknown => Some("there is no agent inside the program"),
        }
    }
}
