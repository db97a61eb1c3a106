//! The states of a checkpoint: what a decode needs to go on after a frame.

use std::fs;
use std::ops::RangeInclusive;

use candle_core::Device;

use super::CheckpointDir;
use super::index::CheckpointIndex;
use crate::error::Result;
use crate::vae::Carry;

/// Where an earlier decode stopped.
#[derive(Debug, Default)]
pub(in crate::worker) struct Stop {
    /// The state; absent: there is none to go on from.
    pub(in crate::worker) carry: Option<Carry>,
    /// Sentences about states that cannot be used.
    pub(in crate::worker) unfit: Vec<String>,
}

impl CheckpointDir {
    /// The newest state after so many frames that can be used; those that cannot go. It has no more than `most` bytes.
    pub(in crate::worker) fn resume(
        &mut self,
        device: &Device,
        most: u64,
        frames: &RangeInclusive<usize>,
    ) -> Result<Stop> {
        let mut stop = Stop::default();
        for (after, path) in CheckpointIndex::of(self)?.states {
            // a later one is of frames that were not written, or are torn: it waits for nothing
            if !frames.contains(&after) {
                continue;
            }
            let reason = match Carry::load(&path, device, most) {
                Ok(carry) if carry.frames() == after => {
                    stop.carry = Some(carry);
                    break;
                }
                Ok(carry) => format!(
                    "{}: is of {} frames, not of {after}",
                    path.display(),
                    carry.frames()
                ),
                Err(e) => e.to_string(),
            };
            stop.unfit.push(reason);
            // one that cannot be read is as good as none: it is told once
            let _ = fs::remove_file(&path);
        }
        self.kept = stop.carry.as_ref().map_or(0, Carry::frames);
        Ok(stop)
    }

    /// The frames up to the newest state that is not after `frame`, so far as names tell; 0: there is none.
    pub(in crate::worker) fn state_before(&self, frame: usize) -> Result<usize> {
        let states = CheckpointIndex::of(self)?.states.into_iter();
        let mut before = states.map(|(after, _)| after).filter(|at| *at <= frame);
        Ok(before.next().unwrap_or(0))
    }

    /// Removes the states to free their room.
    pub(in crate::worker) fn drop_states(&mut self) -> Result<()> {
        for (_, path) in CheckpointIndex::of(self)?.states {
            // what stays takes room and does no other harm
            let _ = fs::remove_file(&path);
        }
        self.kept = 0;
        Ok(())
    }
}
