//! Between two attempts: the wait for the card's memory, and the pause.

use std::time::Duration;

use crate::model::{Bytes, Effect, Event, Mono, Outcome};

use super::reduce::emit;
use super::state::{Next, RunState, Stage};

/// R11: memory is back when it is within this of its level before the run.
const RECLAIM_SLACK: u64 = 512 << 20;
const RECLAIM_LIMIT: Duration = Duration::from_mins(1);
/// How often the wait for memory is told.
const RECLAIM_TELL: Duration = Duration::from_secs(10);

impl RunState {
    /// The attempt is over: spends a restart, waits for the memory.
    pub(super) fn begin_reclaim(&mut self, next: Next, out: &mut Vec<Effect>) {
        self.leave_attempt(next);
        if let (Some(before), Some(used)) = (self.vram_before, self.vram_now())
            && used.0 > before.0 + RECLAIM_SLACK
        {
            out.push(emit(Event::VramWaiting { used, before }));
        }
    }

    /// Spends a restart, unless the user asked for it.
    pub(super) fn leave_attempt(&mut self, next: Next) {
        self.detector.end_attempt();
        if !next.by_user {
            self.budget.spend(self.now);
        }
        self.stage = Stage::Reclaiming {
            next,
            since: self.now,
            told: self.now,
        };
    }

    pub(super) fn advance_reclaiming(
        &mut self,
        next: Next,
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
            self.begin_delay(next);
        } else if waited >= RECLAIM_LIMIT {
            out.push(emit(Event::VramReclaimed {
                used,
                took_ms,
                complete: false,
            }));
            match used {
                // an unreadable card is no proof of held memory
                None => self.begin_delay(next),
                Some(u) => self.refuse_restart(u, before, out),
            }
        } else if self.now.since(told) >= RECLAIM_TELL
            && let Some(used) = used
        {
            out.push(emit(Event::VramWaiting { used, before }));
            self.stage = Stage::Reclaiming {
                next,
                since,
                told: self.now,
            };
        }
    }

    pub(super) fn begin_delay(&mut self, next: Next) {
        let salt = self
            .started
            .run
            .bytes()
            .fold(7_u64, |h, b| h.wrapping_mul(31).wrapping_add(u64::from(b)));
        let pause = if next.by_user {
            Duration::ZERO
        } else {
            self.budget.delay(salt)
        };
        self.stage = Stage::Delaying {
            next,
            until: self.now + pause,
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
