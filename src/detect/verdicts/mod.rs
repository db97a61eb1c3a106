//! The catalogue of verdicts: each has a file with its [`Definition`].
//!
//! A new verdict is its line in `VerdictId`, its `mod` line here and its file. What a verdict
//! means, how severe it is, whether a restart is right, what to do and which rules can reach it
//! is read from its [`Definition`] and stands nowhere else.

mod advice;
mod app_error;
mod blas_error;
mod block_allocator;
mod busy_idle;
mod compile_warmup;
mod corrupt_model;
mod cpu_fallback;
mod cpu_phase;
mod crash_segv;
mod crawl;
mod device_mismatch;
mod disk_full;
mod download_stall;
mod download_wait;
mod dtype_mismatch;
mod find_stall;
mod finished;
mod gpu_oom;
mod gpu_reset;
mod gpu_unavailable;
mod gtt_exhausted;
mod healthy;
mod host_oom;
mod idle_waiting;
mod killed;
mod loading_io;
mod memory_fault;
mod miopen_db;
mod missing_dependency;
mod nan_output;
mod no_algorithm;
mod no_kernel_image;
mod not_ended;
mod offload_risk;
mod paused;
mod permission_kfd;
mod pinned_memory;
mod port_in_use;
mod quiet;
mod remote_wait;
mod silent_hang;
mod slow_link;
mod spin_hang;
mod steps;
mod thrash;
mod throttled;
mod vram_spill;

use std::sync::LazyLock;

use super::facts::Facts;
use super::rule::Check;
use super::watch::Watch;
use crate::causes::Explanation;
use crate::model::worker::OwnWork;
use crate::model::{
    ActionId, Backend, Bytes, Health, Phase, Severity, Vendor, Verdict, VerdictId, for_each_verdict,
};

/// A step of a remedy: what to do, and its tier, which is how much it gives up.
pub type Step = (ActionId, u8);

/// What a remedy depends on besides the verdict.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RemedyFacts {
    /// The driver's last word about a reset of the card: it came back, or not; absent:
    /// no word.
    pub recovered: Option<bool>,
    /// MIOpen's own lines name the naive kernel.
    pub naive: bool,
    /// A model was being moved between host and card as everything stopped.
    pub copies: bool,
    /// Attempts of this run that ended with the same verdict before.
    pub tries: u32,
    /// The job of a server that was killed can be sent again, and the ladder has a rung for
    /// that by name.
    pub kept: bool,
    /// Memory of the supervised card.
    pub vram: Option<Bytes>,
    /// Its architecture: `gfx1100`, `sm_89`.
    pub arch: Option<String>,
    /// Whose card it is.
    pub vendor: Option<Vendor>,
    /// What the program computes with: MIOpen's variables answer nothing beside ROCm.
    pub backend: Backend,
    /// Actions that change nothing, because the program does so already.
    pub in_force: Vec<ActionId>,
    /// Why it happened, where that is known: its cure comes before the table's.
    pub cause: Option<Explanation>,
    /// What our own worker makes, where it is the program: it has no text encoder, and other
    /// settings than a generation.
    pub own: Option<OwnWork>,
}

/// When a restart without being asked is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    Never,
    Always,
    /// Once the program has failed.
    AfterFailure,
    /// Once the program has failed or stopped moving.
    AfterEnd,
    /// Once the driver said that the card came back.
    AfterRecovery,
    /// Where the job can be sent again and the ladder has a rung for this verdict by name.
    WithKeptJob,
}

/// Where a verdict can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Anywhere,
    Gpu,
    Amd,
}

/// How much a verdict explains. Of several equally severe ones the deepest is the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// It says how the program ended.
    Ending,
    /// It says that nothing moves.
    Standstill,
    /// It names a cause.
    Cause,
}

/// A rule about a running attempt.
pub(crate) struct Rule {
    /// Rules are asked in this order. Of those about a dead job at most one speaks: an open Find
    /// explains a spin, silence excludes both. `crawl`, whose cause is not established, comes last.
    pub(super) order: u8,
    /// What it speaks for where its signs name no other verdict.
    pub(super) verdict: VerdictId,
    pub(super) check: fn(&Facts<'_>) -> Check,
}

type RuleEntry = (u8, fn(&Facts<'_>) -> Check);

const fn rule(order: u8, check: fn(&Facts<'_>) -> Check) -> RuleEntry {
    (order, check)
}

/// The properties of a verdict that no run changes.
pub struct Definition {
    /// A sentence for the documents.
    pub meaning: &'static str,
    /// Its severity by default; [`Severity::Info`]: it is no fault.
    pub severity: Severity,
    /// When a restart without being asked is right.
    pub restart: Restart,
    /// A ladder should have a rung for it on these cards; absent: it may or should not, by
    /// [`Definition::restart`].
    pub wants_rung: Option<Scope>,
    /// Whether a rule says it of a job that goes on.
    pub job_may_live: bool,
    pub depth: Depth,
    /// Whether slow steps need no other explanation beside it.
    pub explains_slowness: bool,
    /// Whether its words may be of an optional part, or of a result that is saved all the same.
    pub may_be_survived: bool,
    /// What it means where a program ended with it, in a few words.
    pub failure: &'static str,
    /// What happens meanwhile, where it is a wait that may look like a hang.
    pub wait: Option<&'static str>,
    /// What to do, in the order in which it is tried.
    pub steps: fn(Phase, &RemedyFacts) -> &'static [Step],
    /// The advice for this action in words; absent: the action's own words.
    pub advice: fn(&Verdict, &RemedyFacts, ActionId) -> Option<String>,
    /// A condition that is looked at with every sample of the card: see [`super::watch`].
    pub(super) watch: Option<Watch>,
    pub(super) rules: &'static [RuleEntry],
}

impl Definition {
    /// A fault that the user must cure, until the definition says more.
    const fn fault() -> Self {
        Self {
            meaning: "",
            severity: Severity::Error,
            restart: Restart::Never,
            wants_rung: None,
            job_may_live: false,
            depth: Depth::Cause,
            explains_slowness: false,
            may_be_survived: false,
            failure: "the program failed",
            wait: None,
            steps: |_, _| steps::ENVIRONMENT,
            advice: |_, _, _| None,
            watch: None,
            rules: &[],
        }
    }

    const fn no_fault() -> Self {
        Self {
            severity: Severity::Info,
            steps: |_, _| steps::NOTHING,
            ..Self::fault()
        }
    }

    /// Whether the run goes on, or ended well.
    pub fn is_no_fault(&self) -> bool {
        self.severity == Severity::Info
    }

    /// Whether a restart is wrong, or only the user's to decide.
    pub const fn needs_the_user(&self) -> bool {
        matches!(self.restart, Restart::Never | Restart::AfterRecovery)
    }
}

macro_rules! definitions {
    ($( $variant:ident $module:ident )+) => {
        impl VerdictId {
            /// Its definition.
            pub const fn definition(self) -> &'static Definition {
                match self {
                    $( Self::$variant => &$module::DEFINITION, )+
                }
            }
        }
    };
}
for_each_verdict!(definitions);

impl VerdictId {
    /// Whether this verdict is no fault: the run goes on, or ended well.
    pub fn is_no_fault(self) -> bool {
        self.definition().is_no_fault()
    }

    /// The severity that the verdict has by default.
    pub const fn severity(self) -> Severity {
        self.definition().severity
    }
}

/// Whether a restart without being asked is right after this verdict, by its definition.
pub fn may_restart(verdict: &Verdict, recovered: Option<bool>, kept: bool) -> bool {
    let failed = matches!(verdict.health, Health::Failed | Health::Failing);
    match verdict.id.definition().restart {
        Restart::Never => false,
        Restart::Always => true,
        Restart::AfterFailure => failed,
        Restart::AfterEnd => failed || verdict.health == Health::Hung,
        Restart::AfterRecovery => recovered == Some(true),
        Restart::WithKeptJob => kept,
    }
}

/// The conditions that are looked at with every sample of the card, each with its verdict.
pub(super) static WATCHES: LazyLock<Vec<(VerdictId, Watch)>> = LazyLock::new(|| {
    let of = |id: &VerdictId| Some((*id, id.definition().watch?));
    VerdictId::ALL.iter().filter_map(of).collect()
});

/// Every rule, in the order in which they are asked.
pub(super) static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let of = |verdict: &VerdictId| {
        let verdict = *verdict;
        let entries = verdict.definition().rules.iter();
        entries.map(move |(order, check)| Rule {
            order: *order,
            verdict,
            check: *check,
        })
    };
    let mut rules: Vec<Rule> = VerdictId::ALL.iter().flat_map(of).collect();
    rules.sort_by_key(|rule| rule.order);
    rules
});

#[cfg(test)]
mod tests;
