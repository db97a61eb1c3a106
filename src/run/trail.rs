//! What the timeline of a diagnosis shows besides the charts: which verdicts were shown
//! and when, what happened, when something was printed, where readings were missing, and
//! which limits the user raised. Folded from the stream, so that a record shows the same.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::detect::{Thresholds, kernel_fault};
use crate::model::event::{Choice, EvidenceReport};
use crate::model::{
    Bytes, Command, Event, ExitStatus, GpuSample, Health, JobChange, Metric, Mono, Sample, Signal,
    Verdict, VerdictId,
};

/// Shown verdicts that are kept.
const STATES: usize = 64;
/// Marks that are kept.
const MARKS: usize = 128;
/// Ticks of output that are kept: as many as points of the charts.
const TICKS: usize = 1200;
/// Shortest time between two ticks of output, ms: half a reading of a chart.
const TICK_MS: u64 = 250;
/// Stretches without a reading that are kept.
const LAPSES: usize = 64;

/// A verdict in force from a moment on.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownState {
    /// Since when.
    pub at: Mono,
    /// As it was told.
    pub verdict: Arc<Verdict>,
}

/// Something that happened at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// When.
    pub at: Mono,
    /// What.
    pub kind: MarkKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum MarkKind {
    /// An attempt began.
    Attempt {
        /// Its number.
        number: u32,
    },
    /// The last line before a suspicion.
    LastLine,
    /// The health changed for the worse, or back.
    Health {
        /// To what.
        health: Health,
        /// By which verdict.
        verdict: VerdictId,
        /// So long after the first sign.
        after: Duration,
    },
    /// The kernel told of a fault.
    Kernel {
        /// In our words.
        words: String,
    },
    /// A job failed; the program may live on.
    JobFailed,
    /// Evidence is on disk.
    Evidence(EvidenceReport),
    /// A signal was sent.
    Signal {
        /// Which.
        signal: Signal,
        /// Processes that it reached.
        reached: u32,
    },
    /// The process ended.
    Exit {
        /// How.
        status: ExitStatus,
    },
    /// The wait for the card's memory ended.
    Vram {
        /// In use then; absent where it cannot be read.
        used: Option<Bytes>,
        /// How long it took.
        took: Duration,
        /// Whether it really fell.
        complete: bool,
    },
    /// An announced kill was held.
    Held,
    /// What was announced was given up, or went ahead after a hold.
    Resumed,
    /// The user asked for a minute more.
    Wait,
    /// The user said that the alarm is false.
    FalseAlarm,
}

/// A limit that the user raised for this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raised {
    /// When.
    pub at: Mono,
    /// Of which rule.
    pub verdict: VerdictId,
    /// From what to what; absent: the record does not tell.
    pub limit: Option<(Duration, Duration)>,
}

/// What the timeline reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quantity {
    /// Busy percent of the supervised card.
    Busy,
    /// Its watts.
    Power,
    /// Its memory in use, of the pool that counts.
    Memory,
    /// CPU of the tree.
    Cpu,
    /// Bytes that the tree read and wrote.
    Io,
}

impl Quantity {
    /// Every one.
    pub const ALL: [Self; 5] = [Self::Busy, Self::Power, Self::Memory, Self::Cpu, Self::Io];
}

/// Why there is no reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lack {
    /// Nothing offers it.
    Absent,
    /// The source did not answer.
    Stale,
    /// The source answered with an error.
    Failed {
        /// The error.
        why: String,
    },
}

impl Lack {
    fn of<T>(metric: &Metric<T>, now: Mono) -> Option<(Self, Mono)> {
        let before = |ms: u64| Mono(now.0.saturating_sub(ms));
        match metric {
            Metric::Fresh(_) => None,
            Metric::Stale { age_ms, .. } => Some((Self::Stale, before(*age_ms))),
            Metric::Failed { why, for_ms } => {
                let why = why.clone();
                Some((Self::Failed { why }, before(*for_ms)))
            }
            Metric::Unsupported => Some((Self::Absent, now)),
        }
    }

    /// Whether it is of the same kind; an error may be worded anew each time.
    fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// A stretch without a fresh reading of a quantity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lapse {
    /// Of what.
    pub what: Quantity,
    /// From here on.
    pub from: Mono,
    /// Until here; absent: it goes on.
    pub to: Option<Mono>,
    /// Last time that it was read, or begin of the failure.
    pub since: Mono,
    /// Why.
    pub lack: Lack,
}

/// See the module. Everything is oldest first and bounded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trail {
    /// Verdicts as they were shown.
    pub states: Arc<VecDeque<ShownState>>,
    /// What happened.
    pub marks: Arc<VecDeque<Mark>>,
    /// When something was printed, at most every quarter of a second.
    pub output: Arc<VecDeque<Mono>>,
    /// Where readings were missing.
    pub lapses: Arc<VecDeque<Lapse>>,
    /// Limits that the user raised, one a rule.
    pub raised: Vec<Raised>,
    /// Why the last decision to restart took its rung: a hold has reasons of its own.
    pub why_rung: Option<String>,
}

impl Trail {
    /// The verdict in force at a moment.
    pub fn state_at(&self, t: Mono) -> Option<&ShownState> {
        self.states.iter().rev().find(|s| s.at <= t)
    }

    /// Why there was no reading of `what` at a moment.
    pub fn lapse_at(&self, what: Quantity, t: Mono) -> Option<&Lapse> {
        let covers = |l: &&Lapse| l.what == what && l.from <= t && l.to.is_none_or(|to| t < to);
        self.lapses.iter().rev().find(covers)
    }

    /// The next mark after a moment, or the last one before it.
    pub fn mark_from(&self, t: Mono, later: bool) -> Option<&Mark> {
        if later {
            self.marks.iter().find(|m| m.at > t)
        } else {
            self.marks.iter().rev().find(|m| m.at < t)
        }
    }
}

/// The fold behind a [`Trail`].
#[derive(Debug, Clone, Default)]
pub(super) struct Tracks {
    pub(super) trail: Trail,
    /// Which limit the last suspicion ran against.
    limit: Option<(VerdictId, Duration)>,
    /// When the user last granted time: the deadline of a silence that began before is no limit.
    granted: Option<Mono>,
    last_output: Option<Mono>,
}

/// Appends to a bounded list.
fn push<T: Clone>(list: &mut Arc<VecDeque<T>>, most: usize, item: T) {
    let list = Arc::make_mut(list);
    if list.len() == most {
        list.pop_front();
    }
    list.push_back(item);
}

impl Tracks {
    /// Folds an event in.
    pub(super) fn event(&mut self, at: Mono, event: &Event) {
        match event {
            Event::Line(_) => self.output(at),
            Event::Verdict(verdict) => self.verdict(at, verdict),
            Event::Command(Command::Wait) => self.granted = Some(at),
            Event::Command(Command::FalseAlarm) => self.false_alarm(at),
            Event::AttemptStarted(_) => {
                self.last_output = None;
                self.trail.why_rung = None;
            }
            Event::Decision(d) if matches!(d.choice, Choice::Restart { .. }) => {
                self.trail.why_rung = Some(d.why.clone());
            }
            _ => {}
        }
        if let Some(kind) = mark_of(event) {
            self.mark(at, kind);
        }
    }

    fn output(&mut self, at: Mono) {
        self.last_output = Some(at);
        let last = self.trail.output.back();
        if last.is_none_or(|t| at.0.saturating_sub(t.0) >= TICK_MS) {
            push(&mut self.trail.output, TICKS, at);
        }
    }

    /// Marks keep their order, though a last line is known to be one only later.
    fn mark(&mut self, at: Mono, kind: MarkKind) {
        let marks = Arc::make_mut(&mut self.trail.marks);
        if marks.len() == MARKS {
            marks.pop_front();
        }
        let place = marks.partition_point(|m| m.at <= at);
        marks.insert(place, Mark { at, kind });
    }

    fn verdict(&mut self, at: Mono, verdict: &Verdict) {
        use Health as H;
        let before = self.trail.states.back().map(|s| s.verdict.health);
        let doubted = |h: H| matches!(h, H::Suspect | H::Hung | H::Failing);
        let was = before.is_some_and(doubted);
        let granted = self.granted.is_some_and(|at| verdict.onset <= at);
        if let (H::Suspect, Some(next), false) = (verdict.health, &verdict.next, granted) {
            self.limit = Some((verdict.id, next.at.since(verdict.onset)));
        }
        if let (true, false, Some(line)) = (doubted(verdict.health), was, self.last_output) {
            let known = |m: &Mark| m.at == line && m.kind == MarkKind::LastLine;
            if !self.trail.marks.iter().any(known) {
                self.mark(line, MarkKind::LastLine);
            }
        }
        let worse = matches!(
            verdict.health,
            H::Slow | H::Suspect | H::Hung | H::Failing | H::Failed | H::Blind
        );
        let back = matches!(verdict.health, H::Healthy) && before.is_some_and(|h| h != H::Starting);
        if (worse || back) && before != Some(verdict.health) {
            let kind = MarkKind::Health {
                health: verdict.health,
                verdict: verdict.id,
                after: at.since(verdict.onset),
            };
            self.mark(at, kind);
        }
        let verdict = Arc::new(verdict.clone());
        push(&mut self.trail.states, STATES, ShownState { at, verdict });
    }

    fn false_alarm(&mut self, at: Mono) {
        self.granted = Some(at);
        let alarmed = self.trail.states.back().map(|s| &s.verdict);
        let Some(verdict) = alarmed.filter(|v| matches!(v.health, Health::Suspect | Health::Hung))
        else {
            return;
        };
        let id = verdict.id;
        let limit = self.limit.filter(|(of, _)| *of == id).map(|(_, d)| d);
        let limit = limit.map(|d| (d, d.mul_f64(Thresholds::DEFAULT.ratchet_factor)));
        self.limit = limit.map(|(_, to)| (id, to)).or(self.limit);
        // a second time: from where it began
        let raised = &mut self.trail.raised;
        let first = raised.iter().position(|r| r.verdict == id);
        let first = first.and_then(|at| raised.remove(at).limit);
        let limit = limit.map(|(from, to)| (first.map_or(from, |(from, _)| from), to));
        raised.push(Raised {
            at,
            verdict: id,
            limit,
        });
    }

    /// Folds readings in: `card` is the supervised one.
    pub(super) fn sample(&mut self, now: Mono, sample: &Sample, card: Option<&GpuSample>) {
        let none = || Some((Lack::Absent, now));
        let process = sample.process.as_ref();
        for what in Quantity::ALL {
            let lack = match what {
                Quantity::Busy => card.map_or_else(none, |g| Lack::of(&g.busy, now)),
                Quantity::Power => card.map_or_else(none, |g| Lack::of(&g.power_w, now)),
                Quantity::Memory => card.map_or_else(none, |g| {
                    let pool = if g.pool_is_gtt() {
                        &g.gtt_used
                    } else {
                        &g.vram_used
                    };
                    Lack::of(pool, now)
                }),
                Quantity::Cpu => process.map_or_else(none, |p| Lack::of(&p.cpu_ns, now)),
                Quantity::Io => process.map_or_else(none, |p| {
                    let chars = Lack::of(&p.read_chars, now);
                    Lack::of(&p.read_bytes, now).and(chars)
                }),
            };
            self.lapse(now, what, lack);
        }
    }

    fn lapse(&mut self, now: Mono, what: Quantity, lack: Option<(Lack, Mono)>) {
        let lapses = &self.trail.lapses;
        let open = lapses
            .iter()
            .rposition(|l| l.what == what && l.to.is_none());
        let goes_on = match (open.and_then(|at| lapses.get(at)), &lack) {
            (None, None) => true,
            (Some(open), Some((lack, _))) => open.lack.is_like(lack),
            _ => false,
        };
        if goes_on {
            return;
        }
        if let Some(ended) = open.and_then(|at| Arc::make_mut(&mut self.trail.lapses).get_mut(at)) {
            ended.to = Some(now);
        }
        if let Some((lack, since)) = lack {
            let lapse = Lapse {
                what,
                from: now,
                to: None,
                since,
                lack,
            };
            push(&mut self.trail.lapses, LAPSES, lapse);
        }
    }
}

/// The mark that an event leaves by itself.
fn mark_of(event: &Event) -> Option<MarkKind> {
    Some(match event {
        Event::AttemptStarted(spec) => MarkKind::Attempt {
            number: spec.number,
        },
        Event::Kernel { text } => MarkKind::Kernel {
            words: kernel_fault(text)?.words(),
        },
        Event::Job(JobChange::Failed { .. }) => MarkKind::JobFailed,
        Event::EvidenceTaken(report) => MarkKind::Evidence(report.clone()),
        Event::SignalSent {
            signal, reached, ..
        } => MarkKind::Signal {
            signal: *signal,
            reached: *reached,
        },
        Event::Exited(report) => MarkKind::Exit {
            status: report.status,
        },
        Event::VramReclaimed {
            used,
            took_ms,
            complete,
        } => MarkKind::Vram {
            used: *used,
            took: Duration::from_millis(*took_ms),
            complete: *complete,
        },
        Event::Decision(d) => match d.choice {
            Choice::Hold => MarkKind::Held,
            Choice::Resume => MarkKind::Resumed,
            _ => return None,
        },
        Event::Command(Command::Wait) => MarkKind::Wait,
        Event::Command(Command::FalseAlarm) => MarkKind::FalseAlarm,
        _ => return None,
    })
}
