//! The plan of a run: what the core needs of a profile, already resolved against
//! the workload, the user's environment and the command line.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::agent::AgentWay;
use super::attempt::RungId;
use super::baselines::Baselines;
use super::effect::Signal;
use super::gpu::GpuId;
use super::setting::{Chosens, Effective, Follow, Setting};
use super::time::duration_ms;
use super::time_scale::TimeScale;
use super::units::Bytes;
use super::vocab::{ActionId, Phase, Tier, VerdictId};

/// Lower bound of every learned or configured silence limit (R5).
pub const SILENCE_FLOOR: Duration = Duration::from_secs(45);

/// Limits of one phase; absent: the built-in prior.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseLimits {
    /// Silence on every channel before `silent_hang`.
    #[serde(with = "duration_ms::option", rename = "silence_ms")]
    pub silence: Option<Duration>,
    /// Longest time that the phase may take before it is called slow.
    #[serde(with = "duration_ms::option", rename = "ceiling_ms")]
    pub ceiling: Option<Duration>,
}

/// Limits of the detector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Our Find time limit: an open Find without an advance for this long is
    /// `find_stall` (R1). The user may set less than [`SILENCE_FLOOR`].
    #[serde(with = "duration_ms", rename = "find_limit_ms")]
    pub find_limit: Duration,
    /// Whether a person chose `find_limit` (the screen then says *limit you set*).
    pub find_limit_is_users: bool,
    /// A core busy without output before `spin_hang`.
    #[serde(with = "duration_ms", rename = "spin_limit_ms")]
    pub spin_limit: Duration,
    /// Limits a phase.
    pub phases: BTreeMap<Phase, PhaseLimits>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            find_limit: Duration::from_mins(2),
            find_limit_is_users: false,
            spin_limit: Duration::from_mins(2),
            phases: BTreeMap::new(),
        }
    }
}

/// How an attempt is ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KillPlan {
    /// First signal: SIGTERM, or SIGINT where the program prefers it.
    pub first: Signal,
    /// Time between it and SIGKILL.
    #[serde(with = "duration_ms", rename = "grace_ms")]
    pub grace: Duration,
}

impl Default for KillPlan {
    fn default() -> Self {
        Self {
            first: Signal::Term,
            grace: Duration::from_secs(10),
        }
    }
}

/// The one restart budget (R13).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Restarts within `period`.
    pub restarts: u32,
    /// The period.
    #[serde(with = "duration_ms", rename = "period_ms")]
    pub period: Duration,
    /// Restarts in a run.
    pub total: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            restarts: 3,
            period: Duration::from_mins(30),
            total: 6,
        }
    }
}

/// Which verdicts a rung answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answers {
    /// Every fault.
    Any,
    /// These.
    These(Vec<VerdictId>),
}

impl Answers {
    /// Whether `verdict` is among them.
    pub fn covers(&self, verdict: VerdictId) -> bool {
        match self {
            Self::Any => !verdict.is_no_fault(),
            Self::These(list) => list.contains(&verdict),
        }
    }
}

/// A step of the ladder, in order of cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rung {
    /// Unique in the ladder.
    pub id: RungId,
    /// What it does.
    pub action: ActionId,
    /// What it gives up.
    pub tier: Tier,
    /// What it answers.
    pub answers: Answers,
    /// Phases in which it answers; empty: any.
    pub phases: Vec<Phase>,
    /// Environment that it sets; `None` removes the variable.
    pub env: BTreeMap<String, Option<String>>,
    /// Arguments that it appends, besides those of its settings.
    pub args: Vec<String>,
    /// Settings that the workload must be able to follow (`vae_tile` = `256`).
    pub settings: BTreeMap<String, String>,
    /// What it is expected to cost, in words.
    pub cost: Option<String>,
    /// Where that expectation comes from: `measured`, `note`, `vendor`, `guess`.
    pub source: Option<String>,
    /// How the result differs, if it does.
    pub alters_result: Option<String>,
    /// Why this workload cannot take it; absent: it can.
    pub unavailable: Option<String>,
    /// Where its change acts.
    #[serde(default, skip_serializing_if = "Acts::is_anywhere")]
    pub acts: Acts,
}

/// Where the change of a rung acts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acts {
    /// First ROCm: `[7, 11]`; absent: every one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rocm: Option<[u32; 2]>,
    /// Architectures, or beginnings of them (`gfx11`); empty: every one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gfx: Vec<String>,
}

impl Acts {
    /// Whether it acts on every version and card.
    pub fn is_anywhere(&self) -> bool {
        *self == Self::default()
    }
}

impl Rung {
    /// Whether it decodes on the CPU (GPU 0 % is then right).
    pub fn on_cpu(&self) -> bool {
        self.action == ActionId::VaeCpu
    }

    /// Whether it answers this verdict in this phase.
    pub fn answers(&self, verdict: VerdictId, phase: Phase) -> bool {
        self.answers.covers(verdict) && (self.phases.is_empty() || self.phases.contains(&phase))
    }
}

/// Everything that the core must know before the first attempt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The user's command with the profile's arguments, without those of settings.
    pub argv: Vec<String>,
    /// Environment of rung 0 against what we were given: supervisor and profile,
    /// with the user's own values already left in place.
    pub env: Vec<super::attempt::EnvChange>,
    /// Values of every variable that some rung touches, as rung 0 has them; so
    /// that a rung can say what it overrides.
    pub env_before: BTreeMap<String, String>,
    /// Settings of rung 0 for an agent or adapter.
    pub settings: BTreeMap<String, String>,
    /// Arguments that make the workload follow a setting: key ▸ value ▸ arguments, for
    /// every value that rung 0 or a rung has.
    #[serde(default)]
    pub setting_args: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    /// Whether and how the workload follows each setting that can be switched.
    #[serde(default)]
    pub follow: BTreeMap<Setting, Follow>,
    /// Whether an agent is put into the program.
    #[serde(default, skip_serializing_if = "AgentWay::is_unknown")]
    pub agent: AgentWay,
    /// What the user chose while watching; it is in `env`, `settings` and `vram_cap` already.
    #[serde(default)]
    pub chosen: Chosens,
    /// Every setting of rung 0 with its origin.
    #[serde(default)]
    pub effective: Vec<Effective>,
    /// Rungs 1, 2, … (rung 0 is the profile as given).
    pub ladder: Vec<Rung>,
    /// Detector limits.
    pub limits: Limits,
    /// What earlier runs of the same kind have learned.
    #[serde(default, skip_serializing_if = "Baselines::is_empty")]
    pub baselines: Baselines,
    /// How to end an attempt.
    pub kill: KillPlan,
    /// Restarts.
    pub budget: Budget,
    /// The supervised card.
    pub gpu: Option<GpuId>,
    /// Warn line, and what `free` means to the user.
    pub vram_cap: Option<Bytes>,
    /// A server (Gradio, ComfyUI): judged only while a job runs, and a restart
    /// waits for its user.
    pub server: bool,
    /// What is said before a restart that loses the job of this server; absent: what is said
    /// for any server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_job: Option<String>,
    /// A process that stays after its result was written is ended (`--end-after-result`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub end_after_result: bool,
    /// Countdown before a kill; zero when headless.
    #[serde(with = "duration_ms", rename = "countdown_ms")]
    pub countdown: Duration,
    /// How fast the run's clock goes; only end-to-end tests have another than the real one.
    #[serde(default, skip_serializing_if = "TimeScale::is_real")]
    pub time_scale: TimeScale,
}
