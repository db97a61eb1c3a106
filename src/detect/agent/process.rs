//! What the agent of one process has said: its last heartbeat, what is in flight in it and
//! when something of it moved last.

use std::collections::VecDeque;
use std::time::Duration;

use crate::model::agent::AgentBeat;
use crate::model::{AgentOp, Cite, Mono, Phase, Progress};

/// Two beginnings this close, in milliseconds, are one: the clocks of two processes round.
const SAME_BEGINNING: u64 = 1500;
/// A younger operation comes and goes.
const STAYS: u64 = 1000;
/// Two looks at the stack this far apart are compared.
pub(super) const LOOKS_APART: Duration = Duration::from_secs(30);
/// Changes of the stack that are remembered.
const LOOKS: usize = 64;
/// Bars that are remembered.
const BARS: usize = 32;

/// A progress bar and the furthest count it has shown.
#[derive(Debug, Clone)]
struct Bar {
    what: Option<String>,
    total: Option<f64>,
    most: f64,
}

/// The state of one process.
#[derive(Debug, Clone, Default)]
pub(super) struct Process {
    pub(super) beat: Option<(Cite, AgentBeat)>,
    /// The oldest operation in flight, and since when.
    pub(super) op: Option<(AgentOp, Mono)>,
    /// A job runs, since when.
    pub(super) job: Option<Mono>,
    /// The phase with its section, and since when.
    phase: Option<(Phase, Option<u32>, Mono)>,
    bars: Vec<Bar>,
    /// When something moved last.
    pub(super) moved: Option<Mono>,
    /// Changes of the stack's digest, oldest first.
    looks: VecDeque<(Mono, String)>,
    /// When the digest changed last to one that differed from the look 30 s before.
    pub(super) stack_changed: Option<Mono>,
}

impl Process {
    /// Folds in a heartbeat of the moment `at`.
    pub(super) fn beat(&mut self, at: Mono, beat: &AgentBeat) {
        let op = beat.op.as_ref().map(|op| {
            let since = Mono(at.0.saturating_sub(op.age_ms));
            let same = self
                .op
                .as_ref()
                .filter(|(o, was)| o.is_same(op) && since.0.abs_diff(was.0) < SAME_BEGINNING);
            (op.clone(), same.map_or(since, |(_, was)| *was))
        });
        let goes_on = match (&self.op, &op) {
            (Some((_, was)), Some((_, since))) => was == since,
            _ => false,
        };
        let ended = self.op.is_some() && !goes_on;
        let called = self
            .beat
            .as_ref()
            .is_some_and(|(_, was)| beat.calls > was.calls);
        if ended || called && !goes_on {
            // an operation that has just begun shows that its thread got there
            self.move_at(op.as_ref().map_or(at, |(_, since)| *since));
        }
        self.op = op;
        if let Some(runs) = beat.job {
            self.job = runs.then(|| self.job.unwrap_or(at));
        }
        if let Some(phase) = beat.phase {
            let section = match self.phase {
                Some((was, section, _)) if was == phase => section,
                _ => None,
            };
            self.enter(at, phase, section);
        }
        if let Some(stack) = &beat.stack {
            self.look(at, stack);
        }
    }

    /// The process is in this phase.
    pub(super) fn enter(&mut self, at: Mono, phase: Phase, section: Option<u32>) {
        match self.phase {
            Some((was, part, _)) if was == phase && part == section => {}
            was => {
                let since = was
                    .filter(|(was, ..)| *was == phase)
                    .map_or(at, |(.., since)| since);
                self.phase = Some((phase, section, since));
                self.bars.clear();
                if was.is_some() {
                    self.move_at(at);
                }
            }
        }
    }

    /// A job begins in the process, or none runs any more.
    pub(super) fn job(&mut self, at: Mono, runs: bool) {
        self.job = runs.then(|| self.job.unwrap_or(at));
        self.bars.clear();
    }

    /// A bar was drawn. Only a count beyond the furthest one is an advance: a bar that is
    /// repainted, or two in turn, advance nothing.
    pub(super) fn progress(&mut self, at: Mono, bar: &Progress) {
        let same = |b: &&mut Bar| b.what == bar.what && b.total == bar.total;
        let advances = if let Some(known) = self.bars.iter_mut().find(same) {
            let full = known.total.is_some_and(|total| known.most >= total);
            let again = full && bar.done < known.most;
            let advances = bar.done > known.most || again;
            if advances {
                known.most = bar.done;
            }
            advances
        } else {
            if self.bars.len() >= BARS {
                self.bars.remove(0);
            }
            self.bars.push(Bar {
                what: bar.what.clone(),
                total: bar.total,
                most: bar.done,
            });
            bar.done > 0.0
        };
        if advances {
            self.move_at(at);
        }
    }

    fn look(&mut self, at: Mono, stack: &str) {
        if self.looks.back().is_none_or(|(_, last)| last != stack) {
            if self.looks.len() >= LOOKS {
                self.looks.pop_front();
            }
            self.looks.push_back((at, stack.to_owned()));
        }
        // the newest change that is older than the look to compare with says what that saw
        let then = Mono(at.0.saturating_sub(millis(LOOKS_APART)));
        while self.looks.get(1).is_some_and(|(when, _)| *when <= then) {
            self.looks.pop_front();
        }
        let before = self.looks.front().filter(|(when, _)| *when <= then);
        if let (Some((_, before)), Some((changed, now))) = (before, self.looks.back())
            && before != now
        {
            self.stack_changed = Some(*changed);
        }
    }

    fn move_at(&mut self, at: Mono) {
        self.moved = self.moved.max(Some(at));
    }

    /// The operation in flight, unless it is a passing one.
    pub(super) fn lasting_op(&self) -> Option<&(AgentOp, Mono)> {
        self.op.as_ref().filter(|(op, _)| op.age_ms >= STAYS)
    }

    /// A phase of a job, and since when.
    pub(super) fn phase_of_a_job(&self) -> Option<Mono> {
        let (phase, _, since) = self.phase?;
        phase.is_of_a_job().then_some(since)
    }
}

fn millis(time: Duration) -> u64 {
    crate::model::time::millis(time)
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
