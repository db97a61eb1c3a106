//! What a chunk leaves for the next.

use std::collections::BTreeMap;

use candle_core::Tensor;

use super::super::tiles::TIME;
use crate::error::{Result, argument};
use crate::ops::Clip;

/// Where a convolution keeps its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(usize);

/// Gives every convolution of a model its own slot while it is loaded.
#[derive(Debug, Default)]
pub(super) struct Slots(usize);

impl Slots {
    pub(super) fn next(&mut self) -> Slot {
        self.0 += 1;
        Slot(self.0 - 1)
    }
}

/// The frames kept, one entry a slot.
#[derive(Debug)]
pub(super) struct Caches {
    frames: Vec<Option<Clip>>,
    /// Whether no chunk has gone through yet.
    pub(super) first: bool,
    /// Whether no chunk comes after this one: nothing is kept then.
    pub(super) last: bool,
}

impl AsMut<Vec<Option<Clip>>> for Caches {
    fn as_mut(&mut self) -> &mut Vec<Option<Clip>> {
        &mut self.frames
    }
}

impl Caches {
    /// Before the first chunk.
    pub(super) fn new(slots: &Slots) -> Self {
        Self {
            frames: vec![None; slots.0],
            first: true,
            last: false,
        }
    }

    /// One for each tile, with what [`Caches::tensors`] gave; `first`: there is nothing yet.
    pub(super) fn of_tiles(
        slots: &Slots,
        tiles: usize,
        tensors: &BTreeMap<String, Tensor>,
        first: bool,
    ) -> Result<Vec<Self>> {
        let mut all: Vec<Self> = (0..tiles).map(|_| Self::new(slots)).collect();
        for (name, tensor) in tensors {
            let place = name
                .split_once('.')
                .and_then(|(tile, slot)| Some((tile.parse().ok()?, slot.parse().ok()?)));
            let frames = place
                .and_then(|(tile, slot): (usize, usize)| all.get_mut(tile)?.frames.get_mut(slot));
            let Some(frames) = frames else {
                return argument(format!("`{name}` is no cache of this decode"));
            };
            *frames = Some(tensor.clone().into());
        }
        for caches in &mut all {
            caches.first = first;
        }
        Ok(all)
    }

    /// Everything that is kept, by the numbers of tile and slot.
    pub(super) fn tensors(all: &[Self]) -> BTreeMap<String, Clip> {
        let named = all.iter().enumerate().flat_map(|(tile, caches)| {
            let kept = caches.frames.iter().enumerate();
            kept.filter_map(move |(slot, frames)| Some((format!("{tile}.{slot}"), frames.clone()?)))
        });
        named.collect()
    }

    /// What the last chunk left.
    pub(super) fn get(&self, slot: Slot) -> Option<Clip> {
        self.frames[slot.0].clone()
    }

    /// Keeps the last `count` frames of what stands in `slot` and of `clip` after it, if a chunk comes after this one.
    pub(super) fn keep(&mut self, slot: Slot, clip: &Clip, count: usize) -> Result<()> {
        if self.last {
            self.frames[slot.0] = None;
            return Ok(());
        }
        let own = clip.dim(TIME)?;
        let kept = if own >= count {
            last(clip, count)?
        } else {
            match &self.frames[slot.0] {
                Some(old) => {
                    let old = old.narrow(
                        TIME,
                        old.dim(TIME)?.saturating_sub(count - own),
                        (count - own).min(old.dim(TIME)?),
                    )?;
                    Clip::cat(&[&old, clip], TIME)?
                }
                None => clip.clone(),
            }
        };
        self.frames[slot.0] = Some(kept);
        Ok(())
    }
}

/// The last `count` frames, in memory of their own, so that the rest of the clip can go.
fn last(clip: &Clip, count: usize) -> Result<Clip> {
    let own = clip.dim(TIME)?;
    if own == count {
        return Ok(clip.clone());
    }
    clip.narrow(TIME, own - count, count)?.force_contiguous()
}
