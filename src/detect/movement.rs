//! Question 2: does the job move? When each kind of movement that belongs to the job was
//! last seen.
//!
//! *Something moves* is no evidence that the job moves: a page that polls, a thread that
//! collects statistics and a line every ten seconds go on beside a dead job. So each source
//! is stamped only where what moved belongs to the job, see `docs/judgement.md`.

use std::collections::HashSet;

use crate::model::{Mono, Phase, Progress};

/// What moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// The attempt began, the job began, or the window was cut.
    Begin,
    /// A counter that the adapter knows advanced: steps, sections, tiles, a search.
    Counter,
    /// The program entered a phase that it had not been in since it last moved.
    Phase,
    /// A result was written.
    Result,
    /// The program said something that it had not said before.
    Words,
    /// An operation ended, by the agent.
    Operation,
    /// The Python stack of the holder is another one, by the agent.
    Stack,
    /// The holder did work on a CPU.
    Cpu,
    /// The holder waits, and another thread of the tree keeps a core busy.
    Thread,
    /// Bytes of the job were read or written.
    Bytes,
    /// Bytes to or from a peer outside the tree.
    Network,
    /// The card works for this tree.
    Card,
    /// The card's memory that the tree holds changed.
    CardMemory,
    /// A compiler, an encoder or an archiver of the tree uses CPU.
    Helper,
}

impl Source {
    const ALL: [Self; 14] = [
        Self::Begin,
        Self::Counter,
        Self::Phase,
        Self::Result,
        Self::Words,
        Self::Operation,
        Self::Stack,
        Self::Cpu,
        Self::Thread,
        Self::Bytes,
        Self::Network,
        Self::Card,
        Self::CardMemory,
        Self::Helper,
    ];

    /// What moves, for a sentence.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Begin => "the attempt or the job began",
            Self::Counter => "a counter of the job advances",
            Self::Phase => "the program goes from phase to phase",
            Self::Result => "a result was written",
            Self::Words => "the program says something new",
            Self::Operation => "operations end",
            Self::Stack => "the job's Python stack changes",
            Self::Cpu => "the job's thread works on a CPU",
            Self::Thread => "another thread keeps a core busy while the job's thread waits",
            Self::Bytes => "bytes of the job are read or written",
            Self::Network => "bytes go to or come from a peer",
            Self::Card => "the card works",
            Self::CardMemory => "the card's memory fills or empties",
            Self::Helper => "a compiler, an encoder or an archiver works",
        }
    }
}

/// When each source last moved.
#[derive(Debug, Clone)]
pub(crate) struct Movement {
    stamps: [Mono; Source::ALL.len()],
    /// States of counters: the furthest count of each bar since the job began.
    bars: Vec<Furthest>,
    /// Phases entered since something else than a phase moved.
    entered: HashSet<(Phase, Option<u32>)>,
}

/// How far a bar has come.
#[derive(Debug, Clone, PartialEq)]
struct Furthest {
    what: Option<String>,
    total: Option<f64>,
    done: f64,
}

/// Bars that are remembered; programs draw a handful.
const MOST_BARS: usize = 64;

impl Movement {
    pub(super) fn new(now: Mono) -> Self {
        Self {
            stamps: [now; Source::ALL.len()],
            bars: Vec::new(),
            entered: HashSet::new(),
        }
    }

    /// Something moved at `at`.
    pub(super) fn stamp(&mut self, source: Source, at: Mono) {
        let stamp = &mut self.stamps[source as usize];
        if at > *stamp {
            *stamp = at;
            if source != Source::Phase {
                self.entered.clear();
            }
        }
    }

    /// A bar was drawn. A repaint of the same or an earlier state moves nothing: a refresh
    /// thread paints it for as long as the process lives.
    pub(super) fn bar(&mut self, now: Mono, p: &Progress) {
        let known = self
            .bars
            .iter_mut()
            .find(|b| b.what == p.what && b.total == p.total);
        let advanced = if let Some(bar) = known {
            // a new bar of the same name begins at its beginning
            let again = p.done < bar.done && p.done <= bar.total.unwrap_or(0.0) * 0.1;
            let restarted = again && bar.total.is_some_and(|t| bar.done >= t);
            let advanced = p.done > bar.done || restarted;
            if advanced {
                bar.done = p.done;
            }
            advanced
        } else {
            if self.bars.len() == MOST_BARS {
                self.bars.remove(0);
            }
            self.bars.push(Furthest {
                what: p.what.clone(),
                total: p.total,
                done: p.done,
            });
            true
        };
        if advanced {
            self.stamp(Source::Counter, now);
        }
    }

    /// The program entered a phase. One that it was in already since anything else moved
    /// does not count: two helpers whose lines name two phases would go on for ever.
    pub(super) fn phase(&mut self, now: Mono, phase: Phase, section: Option<u32>) {
        if self.entered.insert((phase, section)) {
            self.stamp(Source::Phase, now);
        }
    }

    /// A job begins: its bars count from their beginning.
    pub(super) fn begin_job(&mut self, now: Mono) {
        self.bars.clear();
        self.stamp(Source::Begin, now);
    }

    /// R7: the world stood still; the window starts again.
    pub(super) fn cut(&mut self, now: Mono) {
        self.stamp(Source::Begin, now);
    }

    /// The last movement and what moved.
    pub(crate) fn last(&self) -> (Mono, Source) {
        self.latest(|_| true)
    }

    /// The last movement but for work on a CPU, which a loop without end does as well.
    pub(crate) fn last_but_cpu(&self) -> Mono {
        self.latest(|s| !matches!(s, Source::Cpu | Source::Thread))
            .0
    }

    /// The last movement that no helper process made.
    pub(crate) fn last_but_helpers(&self) -> Mono {
        self.latest(|s| s != Source::Helper).0
    }

    /// The last movement that is surely the job's, without a probe.
    pub(crate) fn last_by_job(&self) -> Mono {
        self.latest(|s| !matches!(s, Source::Thread | Source::Bytes | Source::Network))
            .0
    }

    /// When a source last moved.
    pub(crate) fn at(&self, source: Source) -> Mono {
        self.stamps[source as usize]
    }

    /// The last moment at which the program said or finished anything.
    pub(crate) fn last_word(&self) -> Mono {
        self.latest(|s| {
            matches!(
                s,
                Source::Begin
                    | Source::Counter
                    | Source::Phase
                    | Source::Result
                    | Source::Words
                    | Source::Operation
            )
        })
        .0
    }

    /// The last moment at which something was counted or finished.
    pub(crate) fn last_finished(&self) -> Mono {
        self.at(Source::Counter)
            .max(self.at(Source::Operation))
            .max(self.at(Source::Result))
    }

    /// The last moment at which bytes of the job moved: storage, network, the card's memory.
    pub(crate) fn last_transfer(&self) -> Mono {
        self.at(Source::Bytes)
            .max(self.at(Source::Network))
            .max(self.at(Source::CardMemory))
    }

    fn latest(&self, counts: impl Fn(Source) -> bool) -> (Mono, Source) {
        // a plain loop: this is asked some hundred times a second
        let mut last = (Mono::ZERO, Source::Begin);
        for source in Source::ALL {
            let at = self.at(source);
            // of equal moments the first of the list
            if at > last.0 && counts(source) {
                last = (at, source);
            }
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(done: f64, total: f64) -> Progress {
        Progress {
            what: None,
            done,
            total: Some(total),
            seconds_per_step: None,
            sampling: true,
            closed: false,
        }
    }

    fn at(s: u64) -> Mono {
        Mono::from_secs(s)
    }

    #[test]
    fn a_bar_counts_where_its_count_advances() {
        let mut m = Movement::new(at(0));
        m.bar(at(1), &bar(4.0, 8.0));
        m.bar(at(2), &bar(5.0, 8.0));
        for s in 3..60 {
            m.bar(at(s), &bar(5.0, 8.0));
            m.bar(at(s), &bar(4.0, 8.0));
            m.bar(at(s), &bar(0.0, 8.0));
        }
        assert_eq!(m.last(), (at(2), Source::Counter));
    }

    #[test]
    fn the_next_bar_of_a_name_counts_again_once_the_one_before_was_full() {
        let mut m = Movement::new(at(0));
        m.bar(at(1), &bar(8.0, 8.0));
        m.bar(at(30), &bar(0.0, 8.0));
        m.bar(at(31), &bar(1.0, 8.0));
        assert_eq!(m.last(), (at(31), Source::Counter));
        // a late repaint of the full one
        m.bar(at(40), &bar(8.0, 8.0));
        m.bar(at(41), &bar(8.0, 8.0));
        assert_eq!(m.last(), (at(40), Source::Counter));
    }

    #[test]
    fn phases_that_alternate_move_nothing() {
        let mut m = Movement::new(at(0));
        for s in 1..100 {
            let phase = if s % 2 == 0 {
                Phase::Save
            } else {
                Phase::VaeDecode
            };
            m.phase(at(s), phase, None);
        }
        assert_eq!(m.last(), (at(2), Source::Phase));
        m.stamp(Source::Card, at(100));
        m.phase(at(101), Phase::Save, None);
        assert_eq!(m.last(), (at(101), Source::Phase));
    }

    #[test]
    fn a_moment_that_came_before_moves_nothing() {
        let mut m = Movement::new(at(10));
        m.stamp(Source::Cpu, at(5));
        assert_eq!(m.last(), (at(10), Source::Begin));
        m.stamp(Source::Cpu, at(11));
        m.stamp(Source::Bytes, at(11));
        assert_eq!(m.last().0, at(11));
        assert_eq!(m.last_but_cpu(), at(11));
        assert_eq!(m.last_transfer(), at(11));
        assert_eq!(m.last_word(), at(10));
    }
}
