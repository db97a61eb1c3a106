//! The strategy with which a decode goes on.

use super::Plan;
use crate::error::{Error, Result};
use crate::ops::Backend;
use crate::plan::{self, Choice, MemoryBudget};
use crate::vae::{Direction, Strategy};
use crate::worker::attempt::Try;
use crate::worker::checkpoint::{CheckpointDir, frames_in};
use crate::worker::{Ready, Work, sizes};

impl Plan {
    /// The strategy of the frames in the checkpoint if it still fits, as another one gives other frames; else the
    /// planner's choice.
    ///
    /// `is_first`: this attempt has not decoded yet, so the attempt marker is that of the attempt before.
    pub(super) fn choose(
        &self,
        work: &Work<'_>,
        now: &Try,
        ready: &Ready,
        checkpoint: &mut CheckpointDir,
        (chosen, is_first): (&mut Option<Choice>, bool),
    ) -> Result<Strategy> {
        let job = self.job();
        let backend = &*ready.backend;
        let weights = self.model.weight_bytes(Direction::Decode, now.dtype);
        let budget = sizes::budget(work, ready, weights);
        let fits = |strategy: Strategy| {
            let peak = plan::peak(&job, backend, &strategy).ok()?;
            let left = budget.left().unwrap_or(u64::MAX);
            (peak <= left && now.failed.is_none()).then_some(Choice { strategy, peak })
        };
        let before = self.before(work, backend, checkpoint);
        let too_much = before
            .filter(|_| is_first && now.failed.is_none() && is_killed(work, backend, checkpoint));
        let choice = match (too_much, before.and_then(fits)) {
            (Some(strategy), _) => self.below(work, backend, &budget, &strategy)?,
            (None, Some(choice)) => choice,
            (None, None) => sizes::choose(&job, backend, &budget, now.failed.as_ref())?,
        };
        if let Some(strategy) = before.filter(|strategy| *strategy != choice.strategy) {
            self.given_up(work, checkpoint, &strategy)?;
        }
        if before != Some(choice.strategy) {
            checkpoint.begin(&sizes::to_json(&choice.strategy))?;
        }
        *chosen = Some(choice);
        Ok(choice.strategy)
    }

    /// Reports that frames of a strategy that does not fit any more are decoded again.
    fn given_up(
        &self,
        work: &Work<'_>,
        checkpoint: &CheckpointDir,
        strategy: &Strategy,
    ) -> Result<()> {
        let whole = self.frames - frames_in(&checkpoint.gaps()?);
        if whole > 0 {
            let before = sizes::words(strategy);
            work.problem(&format!(
                "{whole} of {} frames are there from an earlier attempt, {before}, for which there is not enough memory now: all are decoded anew",
                self.frames
            ));
        }
        Ok(())
    }

    /// A strategy that takes half of the memory of `strategy`: the kernel kills without a message, and the ladder has one
    /// rung for that.
    fn below(
        &self,
        work: &Work<'_>,
        backend: &dyn Backend,
        budget: &MemoryBudget,
        strategy: &Strategy,
    ) -> Result<Choice> {
        let job = self.job();
        let half = plan::peak(&job, backend, strategy)? / 2;
        let choice = sizes::choose(&job, backend, &sizes::at_most(budget, half), None)?;
        let before = sizes::words(strategy);
        if choice.strategy == *strategy {
            work.problem(&format!(
                "the attempt before, {before}, ended for want of memory, and there is no smaller way: free memory, or set vae_tile and vae_chunk"
            ));
        } else {
            let e = Error::Memory(format!(
                "the attempt before, {before}, ended without a frame"
            ));
            work.retreat(&e, "pieces", "smaller");
        }
        Ok(choice)
    }

    /// The strategy of an earlier attempt; absent, and reported, if it cannot be read or does not suit the model.
    fn before(
        &self,
        work: &Work<'_>,
        backend: &dyn Backend,
        checkpoint: &CheckpointDir,
    ) -> Option<Strategy> {
        let told = match checkpoint.way() {
            Ok(Some(told)) => told,
            Ok(None) => {
                if checkpoint.frames_there().is_ok_and(|frames| frames > 0) {
                    work.problem(&format!(
                        "{}: is missing, and without it nobody knows how the frames beside it were made: the decode begins anew",
                        checkpoint.way_path().display()
                    ));
                }
                return None;
            }
            Err(e) => {
                work.problem(&format!("{e}: the decode begins anew"));
                return None;
            }
        };
        let suits = |strategy: &Strategy| plan::peak(&self.job(), backend, strategy).is_ok();
        let strategy = sizes::from_json(&told).filter(suits);
        if strategy.is_none() {
            work.problem(&format!(
                "{}: says nothing of how this video can be decoded: the decode begins anew",
                checkpoint.way_path().display()
            ));
        }
        strategy
    }
}

/// Whether the attempt before was killed for lack of host memory before it made a frame.
fn is_killed(work: &Work<'_>, backend: &dyn Backend, checkpoint: &CheckpointDir) -> bool {
    if !backend.device().is_cpu() || !work.settings.is_host_short() {
        return false;
    }
    let Some(run) = &work.settings.run else {
        return false;
    };
    checkpoint.got_nowhere(run).unwrap_or_else(|e| {
        work.problem(&format!("{e}: nothing is known of the attempt before"));
        false
    })
}
