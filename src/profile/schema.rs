//! What a profile says: one type for a file as written and for a file merged
//! with its parents, with the place of every value that a message may point at.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::model::Vendor;
use crate::model::{ActionId, Bytes, Phase, Signal, Tier, VerdictId};

use super::place::{At, Owner, Place, Source};

/// Version of the file format that this program reads and writes.
pub const SCHEMA: u64 = 1;

/// In the value of a variable: the private folder of the attempt, which the
/// supervisor makes and puts in. Written as `{attempt_dir}`.
pub const ATTEMPT_DIR: &str = "{attempt_dir}";

/// In `[workload.arguments]`: the setting's value as the profile has it.
pub const VALUE: &str = "{value}";
/// In `[workload.arguments]`: a size as a number of GiB.
pub const GIB: &str = "{gib}";
/// In `[workload.arguments]`: a size as a whole number of MiB.
pub const MIB: &str = "{mib}";

/// `value` with [`ATTEMPT_DIR`] replaced by the folder of the attempt.
pub fn expand_placeholders(value: &str, attempt_dir: &str) -> String {
    value.replace(ATTEMPT_DIR, attempt_dir)
}

/// A profile. Absent parts leave the built-in default in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Unique key, `[a-z0-9-]{3,48}`.
    pub id: At<String>,
    /// Version of the content, three numbers.
    pub version: At<String>,
    /// One line for lists. Says *untested* where nothing was measured.
    pub title: At<String>,
    /// A sentence or two.
    pub description: Option<String>,
    /// Parent.
    pub extends: Option<At<String>>,
    /// SPDX id.
    pub license: Option<String>,
    /// What it is meant to be good at.
    pub goal: Option<At<Goal>>,
    /// Hard conditions.
    pub matches: Match,
    /// The machine it was measured on.
    pub tested: Tested,
    /// What it does to the command.
    pub workload: Workload,
    /// Environment of rung 0.
    pub env: Env,
    /// Limits of memory and temperature.
    pub limits: MachineLimits,
    /// Limits of the detector.
    pub detect: Detect,
    /// How an attempt is ended.
    pub kill: Kill,
    /// Restarts.
    pub budget: BudgetSpec,
    /// Rungs 1, 2, … in order.
    pub ladder: Vec<RungSpec>,
    /// The file (of the child, where parents were merged in).
    pub source: Arc<Source>,
}

impl Profile {
    /// Whether it came with the program.
    pub fn is_shipped(&self) -> bool {
        self.source.owner == Owner::Shipped
    }
}

/// What a profile is meant to be good at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// Completes first, speed second.
    Reliable,
    /// Neither extreme.
    Balanced,
    /// Speed first.
    Fast,
    /// Fits a small card.
    LowVram,
}

impl Goal {
    /// Words of the file.
    pub(super) const WORDS: &[(&'static str, Self)] = &[
        ("reliable", Self::Reliable),
        ("balanced", Self::Balanced),
        ("fast", Self::Fast),
        ("low-vram", Self::LowVram),
    ];
}

/// The card that a profile is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchVendor {
    /// A card of this maker.
    Card(Vendor),
    /// A machine without a GPU.
    NoGpu,
}

impl MatchVendor {
    /// Words of the file.
    pub(super) const WORDS: &[(&'static str, Self)] = &[
        ("amd", Self::Card(Vendor::Amd)),
        ("nvidia", Self::Card(Vendor::Nvidia)),
        ("none", Self::NoGpu),
    ];
}

/// `[match]`: all that is given must hold, else the profile is not offered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Match {
    /// Maker, or no GPU at all.
    pub vendor: Option<At<MatchVendor>>,
    /// AMD architectures; one of them.
    pub gfx: Option<Vec<At<String>>>,
    /// NVIDIA architectures (`sm_90`); one of them.
    pub sm: Option<Vec<At<String>>>,
    /// Least VRAM as the driver reports it.
    pub vram_min: Option<At<Bytes>>,
    /// Most VRAM as the driver reports it.
    pub vram_max: Option<At<Bytes>>,
    /// Whether VRAM is a part of the host's memory.
    pub unified: Option<At<bool>>,
    /// Adapter ids; one of them.
    pub workload: Option<Vec<At<String>>>,
    /// Operating systems; one of them. Only `linux` exists.
    pub os: Option<Vec<At<String>>>,
}

/// `[tested]`: where it was measured. Empty: nowhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tested {
    /// Text fields by key (`gpu`, `gfx`, `driver`, `rocm`, `torch`, …).
    pub facts: BTreeMap<String, At<String>>,
    /// Compute units or multiprocessors.
    pub compute_units: Option<At<u64>>,
    /// VRAM as the driver reported it.
    pub vram: Option<At<Bytes>>,
}

impl Tested {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self.facts.is_empty() && self.compute_units.is_none() && self.vram.is_none()
    }
}

/// How much a restart can keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// Nothing.
    None,
    /// Finished sections.
    Section,
    /// Finished steps.
    Step,
}

impl Resume {
    /// Words of the file.
    pub(super) const WORDS: &[(&'static str, Self)] = &[
        ("none", Self::None),
        ("section", Self::Section),
        ("step", Self::Step),
    ];
}

/// Whether the agent is put into the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentUse {
    /// Where the command is Python, or starts it.
    Auto,
    /// Nowhere.
    Off,
}

impl AgentUse {
    /// Words of the file and of the command line.
    pub const WORDS: &[(&'static str, Self)] = &[("auto", Self::Auto), ("off", Self::Off)];

    /// The word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Off => "off",
        }
    }
}

/// `[workload]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workload {
    /// Adapter id that `args` and `settings` are meant for; absent: any.
    pub adapter: Option<At<String>>,
    /// Arguments appended to the command.
    pub args: Option<Vec<At<String>>>,
    /// A server: judged only while a job runs.
    pub server: Option<At<bool>>,
    /// What a restart can keep.
    pub resume: Option<At<Resume>>,
    /// Whether the agent is put into the program; `--agent` wins.
    pub agent: Option<At<AgentUse>>,
    /// Settings for an agent or adapter, as text.
    pub settings: BTreeMap<String, At<String>>,
    /// `[workload.arguments]`: the program's own arguments for a setting, with
    /// [`VALUE`], [`GIB`] or [`MIB`] where its value belongs.
    pub arguments: BTreeMap<String, Vec<At<String>>>,
}

/// A value of `[env.set]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvValue {
    /// The value.
    pub value: At<String>,
    /// Why it is set.
    pub why: Option<String>,
    /// Place of the variable's name.
    pub key: Place,
}

/// `[env]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Env {
    /// Variables that should not be set.
    pub unset: Option<Vec<At<String>>>,
    /// Variables to set.
    pub set: BTreeMap<String, EnvValue>,
}

/// `[limits]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineLimits {
    /// Warn line of VRAM use.
    pub vram_cap: Option<At<Bytes>>,
    /// Temperatures in °C by sensor (`edge`, `junction`, `memory`) at which no restart begins.
    pub temp_pause: BTreeMap<String, At<u64>>,
    /// Host memory that must be free at the start.
    pub host_ram_min: Option<At<Bytes>>,
}

/// A limit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The built-in prior, shortened by what was learned.
    Auto,
    /// This long.
    Is(Duration),
}

impl Limit {
    /// The time, unless it is automatic.
    pub const fn fixed(self) -> Option<Duration> {
        match self {
            Self::Auto => None,
            Self::Is(d) => Some(d),
        }
    }
}

/// `[detect.phase.X]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PhaseDetect {
    /// Silence on every channel before `silent_hang`.
    pub silence: Option<At<Limit>>,
    /// Longest time that the phase may take.
    pub ceiling: Option<At<Limit>>,
}

/// `[detect]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detect {
    /// Our clock on an open MIOpen Find.
    pub find_limit: Option<At<Limit>>,
    /// A core busy without output.
    pub spin_limit: Option<At<Limit>>,
    /// Limits a phase.
    pub phases: BTreeMap<Phase, PhaseDetect>,
}

/// `[kill]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kill {
    /// First signal: `TERM` or `INT`.
    pub first: Option<At<Signal>>,
    /// Time between it and SIGKILL, at most two minutes.
    pub grace: Option<At<Duration>>,
}

/// `[budget]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BudgetSpec {
    /// Restarts within `period`.
    pub restarts: Option<At<u64>>,
    /// The period.
    pub period: Option<At<Duration>>,
    /// Restarts in a run.
    pub total: Option<At<u64>>,
}

/// A word of a rung's `answers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Every fault, those included after which no restart is right.
    Any,
    /// This fault.
    Verdict(VerdictId),
}

/// Where a rung's expectation comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RungSource {
    /// Measured on the machine of `[tested]`.
    Measured,
    /// A user's note.
    Note,
    /// The maker of card or library says so.
    Vendor,
    /// Nobody has tried.
    Guess,
}

impl RungSource {
    /// Words of the file.
    pub(super) const WORDS: &[(&'static str, Self)] = &[
        ("measured", Self::Measured),
        ("note", Self::Note),
        ("vendor", Self::Vendor),
        ("guess", Self::Guess),
    ];

    /// The word of the file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Note => "note",
            Self::Vendor => "vendor",
            Self::Guess => "guess",
        }
    }
}

/// A `[[ladder]]` table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RungSpec {
    /// Unique in the ladder.
    pub id: At<String>,
    /// What it does; absent: the action of the same name as `id`, else `env_toggle`.
    pub action: Option<At<ActionId>>,
    /// What it gives up; absent: what the action usually does.
    pub tier: Option<At<Tier>>,
    /// Faults that it answers.
    pub answers: Option<Vec<At<Answer>>>,
    /// Phases in which it answers; absent or empty: any.
    pub phases: Option<Vec<At<Phase>>>,
    /// Variables that it sets.
    pub env: BTreeMap<String, EnvValue>,
    /// Variables that it removes.
    pub unset: Option<Vec<At<String>>>,
    /// Arguments that it appends.
    pub args: Option<Vec<At<String>>>,
    /// Settings that the workload must be able to follow.
    pub settings: BTreeMap<String, At<String>>,
    /// What it is expected to cost, in words.
    pub cost: Option<String>,
    /// Where that comes from.
    pub source: Option<At<RungSource>>,
    /// How the result differs.
    pub alters_result: Option<String>,
    /// First ROCm on which its change acts.
    pub rocm_min: Option<At<[u32; 2]>>,
    /// Architectures on which it acts; absent: every one.
    pub gfx: Option<Vec<At<String>>>,
    /// Takes the parent's rung of this id out of the ladder.
    pub remove: bool,
    /// The table's header.
    pub place: Place,
}

impl RungSpec {
    /// What it does.
    pub fn action(&self) -> ActionId {
        self.action.as_ref().map_or_else(
            || self.id.value.parse().unwrap_or(ActionId::EnvToggle),
            |a| a.value,
        )
    }

    /// What it gives up.
    pub fn tier(&self) -> Tier {
        self.tier
            .as_ref()
            .map_or_else(|| self.action().tier(), |t| t.value)
    }

    /// Whether it answers this fault in this phase.
    pub fn covers(&self, verdict: VerdictId, phase: Phase) -> bool {
        let answers = self.answers.iter().flatten().any(|a| match a.value {
            Answer::Any => !verdict.is_no_fault(),
            Answer::Verdict(v) => v == verdict,
        });
        let phases = self.phases.as_deref().unwrap_or_default();
        answers && (phases.is_empty() || phases.iter().any(|p| p.value == phase))
    }
}
