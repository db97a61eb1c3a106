//! What is known of one process of the attempt.

use std::cmp::Reverse;
use std::time::Duration;

use crate::agent::protocol::PROTOCOL;
use crate::model::agent::{AgentBeat, AgentHello};
use crate::model::{AgentOp, Mono, Phase, PhaseChange, Progress};

/// An operation in flight for this long makes its process the main one.
const OLD: Duration = Duration::from_secs(10);
/// Of two old operations the one that began this much earlier counts, in milliseconds.
const EARLIER: u64 = 2000;
/// An operation that is in flight for less, in milliseconds, is not reported.
const STAYS: u64 = 1000;
/// A heartbeat without news is reported this often.
const BEAT: Duration = Duration::from_secs(5);

/// How much speaks for a process being the one that generates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Hello,
    Torch,
    Works,
}

/// What is known of a process' jobs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct JobState {
    /// One runs, by the last message about it.
    pub(super) runs: bool,
    /// One has ended.
    pub(super) ended: bool,
    /// The last heartbeat has said otherwise.
    pub(super) doubted: bool,
}

/// A phase, as its process reported it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PhaseState {
    pub(super) phase: Phase,
    pub(super) section: Option<u32>,
    pub(super) sections: Option<u32>,
}

impl PhaseState {
    pub(super) const fn change(self) -> PhaseChange {
        PhaseChange {
            phase: self.phase,
            section: self.section,
            sections: self.sections,
            on_cpu: false,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) conn: u64,
    pub(super) hello: AgentHello,
    /// Processes that said hello before it.
    order: usize,
    pub(super) seq: u64,
    pub(super) rank: Rank,
    pub(super) beat: Option<(Mono, Box<AgentBeat>)>,
    /// The operation in flight, since when.
    op: Option<Mono>,
    pub(super) phase: Option<PhaseState>,
    /// The last heartbeat named another phase.
    phase_doubted: bool,
    pub(super) bar: Option<(Mono, Progress)>,
    pub(super) job: JobState,
    pub(super) closed: Option<Mono>,
    pub(super) said_bye: bool,
    pub(super) lost: bool,
}

impl Process {
    pub(super) fn new(conn: u64, hello: AgentHello, seq: u64, order: usize) -> Self {
        Self {
            conn,
            hello,
            order,
            seq,
            rank: Rank::Hello,
            beat: None,
            op: None,
            phase: None,
            phase_doubted: false,
            bar: None,
            job: JobState::default(),
            closed: None,
            said_bye: false,
            lost: false,
        }
    }

    /// Whether it is heard: its connection is not lost, and its messages are understood.
    pub(super) fn is_heard(&self) -> bool {
        !self.lost && self.hello.protocol == PROTOCOL
    }

    /// Whether a job, a phase of one or an operation is in flight in it.
    pub(super) fn works(&self) -> bool {
        self.job.runs || self.op.is_some() || self.is_in(Phase::is_of_a_job)
    }

    fn is_in(&self, of: impl Fn(Phase) -> bool) -> bool {
        self.phase.is_some_and(|p| of(p.phase))
    }

    /// Since when an operation is in flight that is old.
    fn old_op(&self, now: Mono) -> Option<Mono> {
        self.op.filter(|since| now.since(*since) >= OLD)
    }

    /// Whether it becomes the main process in the place of the present one.
    pub(super) fn displaces(&self, main: &Self, now: Mono) -> bool {
        if !main.is_heard() || self.works() != main.works() {
            return !main.is_heard() || self.works();
        }
        if !self.works() {
            // a worker has ended its job, and the page beside it waits for its user
            let rests = main.job.ended && !main.is_in(|phase| phase == Phase::Idle);
            return self.rank > main.rank || rests && self.is_in(|phase| phase == Phase::Idle);
        }
        match (self.old_op(now), main.old_op(now)) {
            (Some(own), Some(other)) => own.0 + EARLIER < other.0,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => match (self.hello.rank, main.hello.rank) {
                (Some(own), Some(other)) => own < other,
                _ => false,
            },
        }
    }

    /// The greatest of several is the likeliest to be the one that generates.
    pub(super) fn claim(&self, now: Mono) -> impl Ord + use<> {
        let op = self.old_op(now).unwrap_or(Mono(u64::MAX));
        let number = self.hello.rank.unwrap_or(u32::MAX);
        (
            self.works(),
            Reverse(op),
            self.rank,
            Reverse(number),
            Reverse(self.order),
        )
    }

    /// It is the main process from here on: what was held back so far is news.
    pub(super) fn become_main(&mut self) {
        self.beat = None;
        self.bar = None;
    }

    /// Folds in a heartbeat. It comes back where it is to be reported: of the main process
    /// and of each that shows work or has done so until now.
    pub(super) fn beat(
        &mut self,
        now: Mono,
        is_main: bool,
        mut beat: Box<AgentBeat>,
    ) -> Option<Box<AgentBeat>> {
        // thousands a second come and go: only one that stays is worth a report, and until
        // the next report it would seem to stay
        beat.op = beat.op.take().filter(|op| op.age_ms >= STAYS);
        let since = beat.op.as_ref().map(|op| began(now, op));
        self.op = match (self.op, since) {
            (Some(was), Some(since)) if was.0.abs_diff(since.0) < STAYS => Some(was),
            (_, since) => since,
        };
        let news = match &self.beat {
            Some((at, told)) => now.since(*at) >= BEAT || is_news((*at, told), (now, &beat)),
            None => true,
        };
        if !news {
            return None;
        }
        let before = self.beat.replace((now, beat.clone()));
        let showed_work = before.is_some_and(|(_, before)| before.shows_work());
        let counts = beat.steps.is_some();
        (is_main || counts || beat.shows_work() || showed_work).then_some(beat)
    }

    /// The phase that heartbeats name against the last message about it: that was lost. One
    /// heartbeat alone may have been made at the very moment at which the phase changed.
    pub(super) fn phase_by_beat(&mut self, phase: Phase) -> Option<PhaseState> {
        let differs = match self.phase {
            Some(known) => known.phase != phase,
            None => phase.says_something(),
        };
        if !differs || !std::mem::replace(&mut self.phase_doubted, true) {
            self.phase_doubted = differs;
            return None;
        }
        self.phase_doubted = false;
        Some(PhaseState {
            phase,
            section: None,
            sections: None,
        })
    }
}

const fn began(now: Mono, op: &AgentOp) -> Mono {
    Mono(now.0.saturating_sub(op.age_ms))
}

/// Whether a heartbeat says more than that the interpreter runs.
fn is_news((then, told): (Mono, &AgentBeat), (now, beat): (Mono, &AgentBeat)) -> bool {
    let same_op = match (&told.op, &beat.op) {
        (Some(a), Some(b)) => a.is_same(b) && began(then, a).0.abs_diff(began(now, b).0) < STAYS,
        (a, b) => a.is_none() && b.is_none(),
    };
    let failed = |b: &AgentBeat| {
        let counts = b
            .tiers
            .iter()
            .filter(|(name, _)| name.rsplit('.').next() != Some("ok"));
        counts.map(|(_, n)| n).sum::<u64>()
    };
    let new_tier = || beat.tiers.keys().any(|name| !told.tiers.contains_key(name));
    let same_place = told.phase == beat.phase && told.job == beat.job;
    let same_steps = told.steps == beat.steps;
    !same_op || !same_place || !same_steps || failed(told) != failed(beat) || new_tier()
}
