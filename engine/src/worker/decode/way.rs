//! In which way a decode goes on.

use super::Plan;
use crate::error::{Error, Result};
use crate::ops::Backend;
use crate::plan::{self, Choice, MemoryBudget};
use crate::vae::{Direction, Strategy};
use crate::worker::attempt::Try;
use crate::worker::parts::{Parts, frames_in};
use crate::worker::{Ready, Work, sizes};

impl Plan {
    /// The planner's way, or that of the frames that are there already, if it still fits: another would give
    /// others.
    ///
    /// `is_first`: this attempt has not decoded yet, and what is known of one is known of that before it.
    pub(super) fn choose(
        &self,
        work: &Work<'_>,
        now: &Try,
        ready: &Ready,
        parts: &mut Parts,
        (chosen, is_first): (&mut Option<Choice>, bool),
    ) -> Result<Strategy> {
        let job = self.job();
        let backend = &*ready.backend;
        let weights = self.model.weight_bytes(Direction::Decode, now.dtype);
        let room = sizes::room(work, ready, weights);
        let fits = |way: Strategy| {
            let peak = plan::peak(&job, backend, &way).ok()?;
            let left = room.left().unwrap_or(u64::MAX);
            (peak <= left && now.failed.is_none()).then_some(Choice {
                strategy: way,
                peak,
            })
        };
        let before = self.before(work, backend, parts);
        let too_much =
            before.filter(|_| is_first && now.failed.is_none() && is_killed(work, backend, parts));
        let choice = match (too_much, before.and_then(fits)) {
            (Some(way), _) => self.below(work, backend, &room, &way)?,
            (None, Some(choice)) => choice,
            (None, None) => sizes::choose(&job, backend, &room, now.failed.as_ref())?,
        };
        if let Some(way) = before.filter(|way| *way != choice.strategy) {
            self.given_up(work, parts, &way)?;
        }
        if before != Some(choice.strategy) {
            parts.begin(&sizes::to_json(&choice.strategy))?;
        }
        *chosen = Some(choice);
        Ok(choice.strategy)
    }

    /// Says which frames are made anew since they were made in another way, which cannot be gone on in.
    fn given_up(&self, work: &Work<'_>, parts: &Parts, way: &Strategy) -> Result<()> {
        let whole = self.frames - frames_in(&parts.gaps()?);
        if whole > 0 {
            let before = sizes::words(way);
            work.problem(&format!(
                "{whole} of {} frames are there from an earlier attempt, {before}, for which there is not enough memory now: all are decoded anew",
                self.frames
            ));
        }
        Ok(())
    }

    /// A way that takes half of what `way` takes: the kernel ends a process without a word, and the ladder has one rung for that.
    fn below(
        &self,
        work: &Work<'_>,
        backend: &dyn Backend,
        room: &MemoryBudget,
        way: &Strategy,
    ) -> Result<Choice> {
        let job = self.job();
        let half = plan::peak(&job, backend, way)? / 2;
        let choice = sizes::choose(&job, backend, &sizes::at_most(room, half), None)?;
        let before = sizes::words(way);
        if choice.strategy == *way {
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

    /// The way of an earlier attempt. One that cannot be read, or is none of this model, is as good as none, and said.
    fn before(&self, work: &Work<'_>, backend: &dyn Backend, parts: &Parts) -> Option<Strategy> {
        let told = match parts.way() {
            Ok(Some(told)) => told,
            Ok(None) => {
                if parts.frames_there().is_ok_and(|frames| frames > 0) {
                    work.problem(&format!(
                        "{}: is missing, and without it nobody knows how the frames beside it were made: the decode begins anew",
                        parts.way_path().display()
                    ));
                }
                return None;
            }
            Err(e) => {
                work.problem(&format!("{e}: the decode begins anew"));
                return None;
            }
        };
        let suits = |way: &Strategy| plan::peak(&self.job(), backend, way).is_ok();
        let way = sizes::from_json(&told).filter(suits);
        if way.is_none() {
            work.problem(&format!(
                "{}: says nothing of how this video can be decoded: the decode begins anew",
                parts.way_path().display()
            ));
        }
        way
    }
}

/// Whether the attempt before was ended for want of the host's memory, and its way made no frame.
fn is_killed(work: &Work<'_>, backend: &dyn Backend, parts: &Parts) -> bool {
    if !backend.device().is_cpu() || !work.settings.is_host_short() {
        return false;
    }
    let Some(run) = &work.settings.run else {
        return false;
    };
    parts.got_nowhere(run).unwrap_or_else(|e| {
        work.problem(&format!("{e}: nothing is known of the attempt before"));
        false
    })
}
