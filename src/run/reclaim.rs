//! Between two attempts: the wait for the card's memory, and the pause.

use std::time::Duration;

use crate::model::{Bytes, Effect, Event, Mono, Outcome};

use super::reduce::emit;
use super::state::{RunState, Stage};

/// R11: memory is back when it is within this of its level before the run.
const RECLAIM_SLACK: u64 = 512 << 20;
const RECLAIM_LIMIT: Duration = Duration::from_mins(1);
/// How often the wait for memory is told.
const RECLAIM_TELL: Duration = Duration::from_secs(10);

impl RunState {
    /// The attempt is over: takes the rung, spends a restart, waits for the memory.
    pub(super) fn begin_reclaim(&mut self, rung: usize, out: &mut Vec<Effect>) {
        self.leave_attempt(rung);
        if let (Some(before), Some(used)) = (self.vram_before, self.vram_now())
            && used.0 > before.0 + RECLAIM_SLACK
        {
            out.push(emit(Event::VramWaiting { used, before }));
        }
    }

    /// Takes the rung and spends a restart.
    pub(super) fn leave_attempt(&mut self, rung: usize) {
        self.detector.end_attempt();
        self.position.take(&self.plan, rung);
        self.budget.spend(self.now);
        self.stage = Stage::Reclaiming {
            rung,
            since: self.now,
            told: self.now,
        };
    }

    pub(super) fn advance_reclaiming(
        &mut self,
        rung: usize,
        since: Mono,
        told: Mono,
        out: &mut Vec<Effect>,
    ) {
        let waited = self.now.since(since);
        let took_ms = crate::model::time::millis(waited);
        let used = self.vram_now();
        let before = self.vram_before.unwrap_or_default();
        let nothing_to_wait_for = self.vram_before.is_none();
        let back = used.is_some_and(|u| u.0 <= before.0 + RECLAIM_SLACK);
        if nothing_to_wait_for || back {
            if !nothing_to_wait_for {
                out.push(emit(Event::VramReclaimed {
                    used,
                    took_ms,
                    complete: true,
                }));
            }
            self.begin_delay(rung);
        } else if waited >= RECLAIM_LIMIT {
            out.push(emit(Event::VramReclaimed {
                used,
                took_ms,
                complete: false,
            }));
            match used {
                // an unreadable card is no proof of held memory
                None => self.begin_delay(rung),
                Some(u) => self.refuse_restart(u, before, out),
            }
        } else if self.now.since(told) >= RECLAIM_TELL
            && let Some(used) = used
        {
            out.push(emit(Event::VramWaiting { used, before }));
            self.stage = Stage::Reclaiming {
                rung,
                since,
                told: self.now,
            };
        }
    }

    pub(super) fn begin_delay(&mut self, rung: usize) {
        let salt = self
            .started
            .run
            .bytes()
            .fold(7_u64, |h, b| h.wrapping_mul(31).wrapping_add(u64::from(b)));
        self.stage = Stage::Delaying {
            rung,
            until: self.now + self.budget.delay(salt),
        };
    }

    fn refuse_restart(&mut self, used: Bytes, before: Bytes, out: &mut Vec<Effect>) {
        let summary = format!(
            "gave up: the card still holds {used} ({before} before the run) a minute after the process ended; another attempt would fail"
        );
        self.finish(Outcome::GaveUp, summary, out);
    }

    /// When the wait for memory is given up.
    pub(super) fn reclaim_until(since: Mono) -> Mono {
        since + RECLAIM_LIMIT
    }
}
