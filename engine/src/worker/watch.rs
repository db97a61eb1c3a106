//! The observer of a model under a supervisor: reports modules and pieces, and ends a run that was cancelled or hangs.

use std::time::{Duration, Instant};

use candle_core::Tensor;

use super::reporter::{AT_ONCE, Reporter};
use crate::error::{Error, Result};
use crate::vae::Observer;

/// Reports to the supervisor and checks the time limit of each piece.
pub(super) struct Watch<'a> {
    reporter: &'a Reporter,
    /// Longest time for a piece.
    limit: Option<Duration>,
    since: Instant,
    slowest: Duration,
}

/// A piece may take this many times as long as the slowest before it, and at least [`LEAST`].
const TIMES: u32 = 20;
const LEAST: Duration = Duration::from_mins(10);

impl<'a> Watch<'a> {
    /// `limit` is for one piece; if absent, it follows from the pieces before.
    pub(super) fn new(reporter: &'a Reporter, limit: Option<Duration>) -> Self {
        Self {
            reporter,
            limit,
            since: Instant::now(),
            slowest: Duration::ZERO,
        }
    }

    fn limit(&self) -> Option<Duration> {
        let learned = (!self.slowest.is_zero()).then(|| (self.slowest * TIMES).max(LEAST));
        self.limit.or(learned)
    }
}

impl Observer for Watch<'_> {
    fn after(&mut self, module: &str, _: &Tensor) -> Result<()> {
        self.reporter.module(module);
        self.reporter.check_cancelled(AT_ONCE)?;
        match self.limit() {
            Some(limit) if self.since.elapsed() > limit => Err(Error::Late {
                module: module.to_owned(),
                limit,
            }),
            _ => Ok(()),
        }
    }

    fn pieces(&mut self, done: usize, total: usize) -> Result<()> {
        self.slowest = self.slowest.max(self.since.elapsed());
        self.since = Instant::now();
        self.reporter.progress(done, total, "pieces");
        Ok(())
    }
}
