//! Watches a model for its supervisor: where it is, and whether it may go on.

use std::time::{Duration, Instant};

use candle_core::Tensor;

use super::told::{AT_ONCE, Told};
use crate::error::{Error, Result};
use crate::vae::Observer;

/// See the module.
pub(super) struct Watch<'a> {
    told: &'a Told,
    /// Longest time for a piece.
    limit: Option<Duration>,
    since: Instant,
    slowest: Duration,
}

/// A piece may take this many times as long as the slowest before it, and at least [`LEAST`].
const TIMES: u32 = 20;
const LEAST: Duration = Duration::from_mins(10);

impl<'a> Watch<'a> {
    /// `limit`: for one piece; absent: what follows from those before.
    pub(super) fn new(told: &'a Told, limit: Option<Duration>) -> Self {
        Self {
            told,
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
        self.told.module(module);
        self.told.go_on(AT_ONCE)?;
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
        self.told.progress(done, total, "pieces");
        Ok(())
    }
}
