//! Attempts: one process group on one rung.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::exit;
use super::units::Bytes;
use super::vocab::{ActionId, Tier};

/// Id of a rung in a ladder: an action id, or a profile's own word. Rung 0 is
/// always [`RungId::AS_GIVEN`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RungId(pub String);

impl RungId {
    /// The rung of the first attempt: the profile as given.
    pub const AS_GIVEN: &'static str = "as_given";

    /// [`RungId::AS_GIVEN`] as an id.
    pub fn as_given() -> Self {
        Self(Self::AS_GIVEN.to_owned())
    }

    /// What stands in the place of a rung where none follows: the run is given up.
    pub fn give_up() -> Self {
        Self("give_up".to_owned())
    }
}

impl fmt::Display for RungId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Who set an environment variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvOrigin {
    /// The supervisor itself (`PYTHONUNBUFFERED`, MIOpen's log level).
    Supervisor,
    /// The profile.
    Profile,
    /// The user's exported environment, which wins over the profile.
    User,
    /// The rung, which wins over both.
    Rung,
    /// The user while watching, who wins over all rungs taken before.
    Live,
}

/// One change to the child's environment, with who made it and whom it overrides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvChange {
    /// Variable.
    pub name: String,
    /// Its value for the child; absent: removed.
    pub value: Option<String>,
    /// Who set it.
    pub origin: EnvOrigin,
    /// What was there before and is overridden, where it differs.
    pub overrides: Option<String>,
}

/// A rung that would have answered but cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedRung {
    /// Which.
    pub rung: RungId,
    /// Why, in words for the user.
    pub why: String,
}

/// All that an attempt needs to be launched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptSpec {
    /// 1, 2, …
    pub number: u32,
    /// Rung it runs on.
    pub rung: RungId,
    /// What the rung does.
    pub action: ActionId,
    /// What it gives up.
    pub tier: Tier,
    /// Command and arguments, those of the rung included.
    pub argv: Vec<String>,
    /// Changes against the environment that the supervisor itself was given.
    pub env: Vec<EnvChange>,
    /// Settings of the rung for an agent or adapter (`vae_tile` = 256).
    pub settings: BTreeMap<String, String>,
    /// The rung decodes on the CPU: GPU 0 % is then right.
    pub on_cpu: bool,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitStatus {
    /// By itself with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It ended, but how could not be learned.
    Unknown,
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(c) if super::windows::is_failure(*c) => {
                write!(f, "exit code 0x{c:08X}")
            }
            Self::Code(c) => write!(f, "exit code {c}"),
            Self::Signal(s) => write!(f, "signal {s}{}", signal_name(*s)),
            Self::Unknown => f.write_str("an unknown end"),
        }
    }
}

/// ` (SIGKILL)` and so on; empty for rarer ones. Numbers as on x86-64 and AArch64 Linux.
const fn signal_name(s: i32) -> &'static str {
    match s {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

/// The child of an attempt has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitReport {
    /// Which attempt.
    pub attempt: u32,
    /// How.
    pub status: ExitStatus,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum Outcome {
    /// The workload ended well. `restarts` = 0: exit code 0, else 10.
    Finished {
        /// Restarts that it took.
        restarts: u32,
    },
    /// The workload failed and no rung answers. Exit code 20.
    Failed,
    /// Hung on the last rung. Exit code 21.
    GaveUp,
    /// Processes survive SIGKILL. Exit code 22.
    Unkillable {
        /// Those processes.
        pids: Vec<u32>,
    },
    /// The command could not be started. Exit code 66 if it was not found, else 20.
    NotLaunched {
        /// Whether the program was not found.
        not_found: bool,
    },
    /// The user ended it. Exit code 130 (Ctrl-C, key) or 143 (SIGTERM).
    Interrupted {
        /// SIGTERM to us, not a key.
        terminated: bool,
    },
    /// The user left a process that is not ours; it goes on. Exit code 0.
    Left,
    /// A process that is not ours ended, and how is not ours to know. Exit code 0.
    Ended,
    /// The command returned, and processes that it left behind were ended because they showed
    /// no sign of a job. Exit code 23.
    LeftoversEnded {
        /// Those processes.
        pids: Vec<u32>,
    },
    /// The result was written, and the process that stayed was ended as asked for
    /// (`--end-after-result`). Exit code 0.
    ResultKept,
    /// Nothing was launched: processes of an earlier run, or another run, had the card for the
    /// whole wait. Exit code 69.
    CardHeld {
        /// Those processes.
        pids: Vec<u32>,
    },
}

impl Outcome {
    /// The word of `end` in the stream.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Finished { .. } => "finished",
            Self::Failed => "failed",
            Self::GaveUp => "gave_up",
            Self::Unkillable { .. } => "unkillable",
            Self::NotLaunched { .. } => "not_launched",
            Self::Interrupted { .. } => "interrupted",
            Self::Left => "left",
            Self::Ended => "ended",
            Self::LeftoversEnded { .. } => "leftovers_ended",
            Self::ResultKept => "result_kept",
            Self::CardHeld { .. } => "card_held",
        }
    }

    /// How a list of runs says it to people.
    pub const fn short(&self) -> &'static str {
        match self {
            Self::GaveUp => "gave up",
            Self::NotLaunched { .. } => "not started",
            Self::Interrupted { .. } => "stopped",
            Self::LeftoversEnded { .. } => "left-overs ended",
            Self::ResultKept => "result kept",
            Self::CardHeld { .. } => "card held",
            Self::Finished { .. }
            | Self::Failed
            | Self::Unkillable { .. }
            | Self::Left
            | Self::Ended => self.word(),
        }
    }

    /// The process exit code, part of the contract.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Finished { restarts: 0 } | Self::Left | Self::Ended | Self::ResultKept => {
                exit::DONE
            }
            Self::Finished { .. } => exit::RESTARTED,
            Self::Failed | Self::NotLaunched { not_found: false } => exit::FAILED,
            Self::GaveUp => exit::GAVE_UP,
            Self::Unkillable { .. } => exit::UNKILLABLE,
            Self::LeftoversEnded { .. } => exit::LEFTOVERS,
            Self::NotLaunched { not_found: true } => exit::MISSING,
            Self::CardHeld { .. } => exit::UNAVAILABLE,
            Self::Interrupted { terminated: false } => exit::INTERRUPTED,
            Self::Interrupted { terminated: true } => exit::TERMINATED,
        }
    }
}

/// A file that the workload wrote, or a folder of the numbered pictures of a video.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artefact {
    /// Absolute path.
    pub path: String,
    /// Its size when it was seen.
    pub size: Bytes,
    /// Pictures of a folder; absent: it is a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<u32>,
    /// Which attempt made it.
    pub attempt: u32,
    /// Rung of that attempt.
    pub rung: RungId,
}

impl Artefact {
    /// How much it is: of a folder its pictures too.
    pub fn extent(&self) -> String {
        match self.frames {
            Some(1) => format!("1 frame, {}", self.size),
            Some(frames) => format!("{frames} frames, {}", self.size),
            None => self.size.to_string(),
        }
    }
}
