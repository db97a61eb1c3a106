//! What the rules look at: one immutable view of an attempt at one moment.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::forecast::Card;
use crate::model::{
    AgentOp, Cite, Finding, Limits, MiopenRelease, Mono, Phase, Vendor, VerdictId, Waits,
};

use super::agent::Agent;
use super::channels::Channels;
use super::context::Stays;
pub(crate) use super::find::OpenFind;
use super::grant::Grant;
use super::helpers::Helpers;
use super::job::JobAnswer;
use super::learn::Learned;
use super::movement::Movement;
use super::pace::{Bar, Pace};
use super::placement::Placement;
use super::pressure::Pressure;
use super::thresholds::{Thresholds, secs};
use super::watch::Watches;

/// A known error seen in the text and not outlived by progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) verdict: VerdictId,
    /// First and last of its lines.
    pub(crate) first: Cite,
    pub(crate) last: Cite,
    pub(crate) count: u64,
}

impl Seen {
    /// First and last line, once where they are the same.
    pub(crate) fn cites(&self) -> Vec<Cite> {
        let mut cites = vec![self.first.clone()];
        if self.last != self.first {
            cites.push(self.last.clone());
        }
        cites
    }

    /// What was reported, how often, and where it stands.
    pub(crate) fn finding(&self) -> Finding {
        Finding {
            verdict: self.verdict,
            text: format!("\"{}\" ({} x)", self.first.text, self.count),
            seqs: self.cites().iter().map(|c| c.seq).collect(),
            cites: self.cites(),
            count: self.count,
        }
    }
}

/// The view.
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts of one moment, independent of each other"
)]
pub(crate) struct Facts<'a> {
    pub(crate) now: Mono,
    /// Totals of the tree and readings of the card.
    pub(crate) channels: &'a Channels,
    /// What of that belongs to the job.
    pub(crate) movement: &'a Movement,
    /// What the agent inside the program tells.
    pub(crate) agent: &'a Agent,
    /// Pace of the bar at hand.
    pub(crate) pace: &'a Pace,
    /// Memory and heat.
    pub(crate) pressure: &'a Pressure,
    /// How long the conditions of [`Definition::watch`](super::verdicts::Definition) have held.
    pub(crate) watches: &'a Watches,
    /// Words about where things are.
    pub(crate) placement: &'a Placement,
    /// What earlier stays and steps tell.
    pub(crate) learned: &'a Learned,
    /// A card is supervised.
    pub(crate) card_meant: bool,
    /// When the user last granted more time.
    pub(crate) granted: Mono,
    /// What that was, where the job does not move.
    pub(crate) grant: Grant,
    /// Raised limits, rule by rule (R6).
    pub(crate) ratchets: &'a BTreeMap<VerdictId, f64>,
    pub(crate) limits: &'a Limits,
    /// The numbers of the rules.
    pub(crate) t: &'a Thresholds,
    pub(crate) phase: Phase,
    pub(crate) phase_since: Mono,
    pub(crate) job: JobAnswer,
    /// A CPU step was announced.
    pub(crate) on_cpu: bool,
    /// The tree holds memory of the supervised card.
    pub(crate) holds_card_memory: bool,
    /// What child processes do.
    pub(crate) helpers: Helpers,
    /// The program said that it compiles or tunes, and nothing has followed yet.
    pub(crate) compiling: bool,
    pub(crate) find: Option<&'a OpenFind>,
    /// Which MIOpen, as far as told.
    pub(crate) release: MiopenRelease,
    /// What the forecast of a convolution needs to know of the card.
    pub(crate) card: &'a Card,
    /// Whose it is.
    pub(crate) vendor: Option<Vendor>,
    /// The error in the text that came last.
    pub(crate) seen: Option<&'a Seen>,
    /// A page fault of the card by this tree, in the kernel log.
    pub(crate) fault: Option<&'a Seen>,
    /// A result that is no valid one.
    pub(crate) spoilt: Option<&'a Seen>,
    /// Longest completed stays in this phase during this run.
    pub(crate) longest: Stays,
    /// Raised by recoveries and false alarms (R6), 1.0 at first.
    pub(crate) ratchet: f64,
    /// What the holder waits for; unknown while the job moves.
    pub(crate) waits: Waits,
    /// A probe speaks for the present.
    pub(crate) probed: bool,
    /// A loaded model is all that there is of a job.
    pub(crate) only_loaded: bool,
    /// The holder waits for a lock of a process that does not live.
    pub(crate) lock_is_orphaned: bool,
    /// Nothing of the job is open, so that it may be over.
    pub(crate) between_phases: bool,
    /// The bytes of the peer that the holder waits for have no count.
    pub(crate) peer_is_uncounted: bool,
    /// When the attempt began.
    pub(crate) attempt_since: Mono,
}

impl Facts<'_> {
    /// How long the job has not moved.
    pub(crate) fn silent_for(&self) -> Duration {
        self.now.since(self.movement.last().0)
    }

    /// How long every total of the tree (CPU, I/O, faults) and the card have been at rest.
    pub(crate) fn totals_rest_for(&self) -> Duration {
        let c = self.channels;
        let all = [&c.gpu, &c.cpu, &c.faults, &c.io, &c.net, &c.memory];
        let last = all.iter().map(|ch| ch.active).max().unwrap_or_default();
        self.now.since(last)
    }

    /// Limit of silence in the present phase.
    pub(crate) fn silence_limit(&self) -> Duration {
        let configured = self.limits.phases.get(&self.phase).and_then(|l| l.silence);
        let prior = configured.unwrap_or_else(|| silence_prior(self.phase, self.t));
        let learned = self.learned.silence_limit(self.phase, prior, self.t);
        learned.max(self.longest_stay()).mul_f64(self.ratchet)
    }

    /// What the run itself has shown to be honest in this phase. The steps of a bar tell
    /// more than the stay in the phase that has them.
    pub(crate) fn longest_stay(&self) -> Duration {
        let counted = matches!(
            self.phase,
            Phase::Sampling | Phase::Startup | Phase::Unknown
        );
        if counted {
            return Duration::ZERO;
        }
        self.longest.productive.mul_f64(self.t.longest_stay_factor)
    }

    /// What the limit of a rule about a job that lives was raised by.
    pub(crate) fn soft_ratchet(&self, rule: VerdictId) -> f64 {
        self.ratchets.get(&rule).copied().unwrap_or(1.0)
    }

    /// A convolution that the agent sees in flight on an AMD card, and for how long: MIOpen
    /// searches or compiles inside the call, while its kernels run after it.
    pub(crate) fn conv_on_card(&self) -> Option<(&AgentOp, Duration)> {
        let (op, age) = self.agent.op(self.now)?;
        let amd = self.vendor == Some(Vendor::Amd);
        let miopen = amd && op.is_on_card() && op.is_convolution();
        miopen.then_some((op, age))
    }

    /// The last heartbeat, where it names an operation or is the last word of a hung
    /// interpreter; else the readings speak.
    pub(crate) fn beat_cites(&self) -> Vec<Cite> {
        let speaks = self.agent.op(self.now).is_some() || self.agent.stopped(self.now).is_some();
        let cite = self.agent.cite().filter(|_| speaks);
        cite.into_iter().cloned().collect()
    }

    /// What a step of the bar at hand usually takes; zero where none is counted.
    pub(crate) fn usual_step(&self) -> Duration {
        let usual = self.pace.bar().and_then(Bar::usual);
        usual.map_or(Duration::ZERO, |u| secs(u.step_s))
    }

    /// Whether the card's memory is full and system memory is mapped for it instead, while
    /// the card draws some power above rest: the job goes on, much slower.
    pub(crate) fn overflows(&self) -> bool {
        let p = self.pressure;
        let grown = p.gtt_taken().is_some_and(|g| g >= self.t.spill_gtt_mib);
        p.vram_is_full(self.t) && grown && self.pace.bar().is_some()
    }

    /// Whether something is known that explains a busy CPU beside an idle card.
    pub(crate) const fn works_elsewhere(&self) -> bool {
        self.on_cpu || !matches!(self.helpers, Helpers::None)
    }

    /// Phases whose work is the CPU's: imports, encoding the video, mesh work, and what is
    /// fetched. Loading is the CPU's only while bytes move.
    pub(crate) const fn cpu_is_normal(&self) -> bool {
        matches!(
            self.phase,
            Phase::Startup | Phase::Download | Phase::MeshPost | Phase::Save
        )
    }

    /// Phases in which the card computes, so that a busy core proves no work: the runtime
    /// waits for its queue in a loop.
    pub(crate) const fn card_computes(&self) -> bool {
        match self.phase {
            Phase::TextEncode
            | Phase::Sampling
            | Phase::VaeEncode
            | Phase::VaeDecode
            | Phase::Delight
            | Phase::Texture => true,
            // behind a full bar of steps
            Phase::Unknown => !self.job.by_sign_alone,
            _ => false,
        }
    }

    /// Whether the phase is one in which GPU work is expected and silence is judged.
    pub(crate) const fn judged(&self) -> bool {
        self.job.job.in_flight() && !matches!(self.phase, Phase::Idle | Phase::Done)
    }
}

/// R1's priors. A start-up has no milestone yet and an unknown phase may be
/// anything, so both get the longest.
fn silence_prior(phase: Phase, t: &Thresholds) -> Duration {
    secs(match phase {
        Phase::Startup | Phase::Unknown | Phase::MeshPost => t.silence_long_s,
        Phase::Download => t.silence_download_s,
        Phase::ModelLoad => t.silence_load_s,
        _ => t.silence_s,
    })
}

/// Numbers behind a sentence, in brackets; nothing where none is known.
pub(crate) fn figures(known: &[Option<String>]) -> String {
    let words: Vec<&str> = known.iter().flatten().map(String::as_str).collect();
    if words.is_empty() {
        return String::new();
    }
    format!(" ({})", words.join(", "))
}
