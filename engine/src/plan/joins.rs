//! What cutting and joining takes: the shadow of `vae::tiles`. The tiles themselves are gone through once for each
//! size.

use std::collections::HashMap;

use super::shadow::{Clip, Shadow};
use crate::vae::Run;
use crate::vae::tiles::Steps;

/// What a tile of one size takes and gives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// Bytes at its worst, the result counted, the tile itself not.
    pub(super) peak: u64,
    /// (T, H, W) of the result.
    pub(super) size: [usize; 3],
    pub(super) channels: usize,
}

/// Pieces by size, each reckoned once.
pub(super) struct Pieces<F> {
    known: HashMap<[usize; 3], Piece>,
    reckon: F,
}

impl<F: FnMut([usize; 3]) -> Piece> Pieces<F> {
    pub(super) fn new(reckon: F) -> Self {
        Self {
            known: HashMap::new(),
            reckon,
        }
    }

    pub(super) fn run(&mut self, shadow: &Shadow<'_>, size: [usize; 3]) -> Clip {
        let piece = *self
            .known
            .entry(size)
            .or_insert_with(|| (self.reckon)(size));
        shadow.scratch(piece.peak);
        shadow.clip(piece.size, piece.channels)
    }
}

/// Cross-fades the beginning of `next`: the blended head, the rest and both joined.
fn blend(shadow: &Shadow<'_>, next: Clip) -> Clip {
    let rest = shadow.copy(&next);
    let out = shadow.copy(&next);
    drop((next, rest));
    out
}

pub(super) fn in_space(
    shadow: &Shadow<'_>,
    clip: [usize; 3],
    channels: usize,
    steps: Option<Steps>,
    mut each: impl FnMut(&Shadow<'_>, [usize; 3]) -> Clip,
) -> Clip {
    let [t, h, w] = clip;
    let Some(Steps { from, to }) =
        steps.filter(|steps| h > steps.from.length || w > steps.from.length)
    else {
        return each(shadow, clip);
    };
    let (mut above, mut bands): (Vec<Clip>, Vec<Clip>) = (Vec::new(), Vec::new());
    let mut last = (t, 0);
    for y in (0..h).step_by(from.stride) {
        let (mut row, mut parts): (Vec<Clip>, Vec<Clip>) = (Vec::new(), Vec::new());
        let (mut width, mut height) = (0, 0);
        for (at, x) in (0..w).step_by(from.stride).enumerate() {
            let size = [t, from.length.min(h - y), from.length.min(w - x)];
            let tile = shadow.clip(size, channels);
            let mut out = each(shadow, size);
            drop(tile);
            if at < above.len() {
                out = blend(shadow, out);
            }
            if !row.is_empty() {
                out = blend(shadow, out);
            }
            let [frames, oh, ow] = out.size;
            height = to.stride.min(oh);
            let part = shadow.clip([frames, height, to.stride.min(ow)], out.channels);
            width += part.size[2];
            last = (frames, out.channels);
            parts.push(part);
            row.push(out);
        }
        bands.push(shadow.clip([last.0, height, width], last.1));
        above = row;
    }
    let height = bands.iter().map(|band| band.size[1]).sum();
    let width = bands.first().map_or(0, |band| band.size[2]);
    shadow.clip([last.0, height, width], last.1)
}

/// Frames of a piece that the run before has given already.
const SHARED: usize = 1;

/// Runs of frames that are cross-faded; `given` gets each finished part with the frames kept for the next beside it.
pub(super) fn in_time(
    shadow: &Shadow<'_>,
    [t, h, w]: [usize; 3],
    channels: usize,
    (from, to): (Run, Run),
    mut each: impl FnMut(&Shadow<'_>, [usize; 3]) -> Clip,
    mut given: impl FnMut(Clip),
) {
    let overlap = to.length - to.stride;
    let mut tail: Option<Clip> = None;
    for start in (0..t).step_by(from.stride) {
        let size = [(from.length + SHARED).min(t - start), h, w];
        // frames of one entry lie together: no copy
        let own = (shadow.batch() > 1).then(|| shadow.clip(size, channels));
        let mut run = each(shadow, size);
        drop(own);
        let frames = run.size[0];
        let kept = if tail.is_none() {
            (to.stride + SHARED).min(frames)
        } else if frames <= SHARED {
            break;
        } else {
            run = blend(shadow, run.frames(frames - SHARED));
            to.stride.min(frames - SHARED)
        };
        let [frames, oh, ow] = run.size;
        tail = Some(shadow.clip([overlap.min(frames), oh, ow], run.channels));
        given(run.frames(kept));
    }
}
