//! Pieces of clips: where they lie, and convolutions that make one from another.

use std::ops::Range;

use super::super::super::tiles::{HEIGHT, TIME};
use super::super::blocks::Causal;
use crate::error::{Result, argument};
use crate::ops::{Affine, Axis, Clip, ConvInput, Executor, Norm, Prologue};

/// Frames and rows of a clip, over its whole width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) frames: Range<usize>,
    pub(super) rows: Range<usize>,
}

impl Region {
    /// All of a clip (T, H, W).
    pub(super) fn all([t, h, _]: [usize; 3]) -> Self {
        Self {
            frames: 0..t,
            rows: 0..h,
        }
    }

    /// What a causal convolution of three taps a side reads to make this: two frames more in front and a row
    /// above and below, as far as the clip of height `h` has them.
    pub(super) fn read(&self, h: usize) -> Self {
        Self {
            frames: self.frames.start.saturating_sub(FRONT)..self.frames.end,
            rows: self.rows.start.saturating_sub(EDGE)..(self.rows.end + EDGE).min(h),
        }
    }
}

/// Frames that a causal convolution reads before its own.
pub(super) const FRONT: usize = 2;

/// Rows that it reads above and below its own.
pub(super) const EDGE: usize = 1;

/// How a clip is cut into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    /// Frames of a piece.
    pub(super) frames: usize,
    /// Rows of a piece.
    pub(super) rows: usize,
}

impl Grid {
    /// The bands of rows of a clip of height `h`.
    pub(super) fn bands(self, h: usize) -> impl Iterator<Item = Range<usize>> {
        steps(h, self.rows)
    }

    /// The runs of frames of a clip of `t` frames.
    pub(super) fn runs(self, t: usize) -> impl DoubleEndedIterator<Item = Range<usize>> {
        steps(t, self.frames)
    }
}

fn steps(len: usize, step: usize) -> impl DoubleEndedIterator<Item = Range<usize>> {
    let step = step.max(1);
    (0..len.div_ceil(step)).map(move |at| at * step..((at + 1) * step).min(len))
}

/// A region of a clip in memory, perhaps in two tensors that follow each other in time.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) front: Option<Clip>,
    pub(super) body: Clip,
    pub(super) region: Region,
}

impl Part {
    pub(super) fn new(body: Clip, region: Region) -> Self {
        Self {
            front: None,
            body,
            region,
        }
    }

    /// A clip as a whole.
    pub(super) fn whole(clip: &Clip) -> Result<Self> {
        let (_, t, h, w, _) = clip.dims5()?;
        Ok(Self::new(clip.clone(), Region::all([t, h, w])))
    }

    /// The frames `wanted` of it, which it must have, without the memory of the others.
    pub(super) fn frames(&self, exec: Executor<'_>, wanted: Range<usize>) -> Result<Self> {
        let Range { start, end } = self.region.frames;
        if wanted.start < start || wanted.end > end || wanted.is_empty() {
            return argument(format!("frames {wanted:?} of a piece of {start}..{end}"));
        }
        let own = self.body.dim(TIME)?;
        let split = end - own;
        let mut tensors = Vec::new();
        if let Some(front) = &self.front
            && wanted.start < split
        {
            let count = wanted.end.min(split) - wanted.start;
            tensors.push(front.narrow(TIME, wanted.start - start, count)?);
        }
        if wanted.end > split {
            let first = wanted.start.max(split);
            tensors.push(self.body.narrow(TIME, first - split, wanted.end - first)?);
        }
        let body = match tensors.as_slice() {
            _ if wanted == (split..end) => self.body.clone(),
            [one] => one.force_contiguous()?,
            several => exec.join(several, TIME)?,
        };
        Ok(Self::new(
            body,
            Region {
                frames: wanted,
                rows: self.region.rows.clone(),
            },
        ))
    }

    /// This piece with `later`, which follows it in time.
    pub(super) fn before(self, later: Self) -> Self {
        Self {
            region: Region {
                frames: self.region.frames.start..later.region.frames.end,
                rows: later.region.rows,
            },
            front: Some(self.body),
            body: later.body,
        }
    }
}

/// The rows `rows` of the frames `frames` of a clip, without a copy where they lie together.
pub(super) fn rows_of(clip: &Clip, frames: Range<usize>, rows: Range<usize>) -> Result<Clip> {
    clip.narrow(TIME, frames.start, frames.len())?
        .narrow(HEIGHT, rows.start, rows.len())?
        .contiguous()
}

/// Writes `piece` to its place in `clip`.
pub(super) fn put(exec: Executor<'_>, clip: &Clip, piece: &Clip, to: &Region) -> Result<()> {
    let frames = clip.narrow(TIME, to.frames.start, to.frames.len())?;
    exec.put(&frames, piece, HEIGHT, to.rows.start)
}

/// Convolutions whose result lies within a clip of this size.
#[derive(Clone, Copy)]
pub(super) struct Conv<'a> {
    pub(super) exec: Executor<'a>,
    /// (T, H, W) of the clip that the result is a piece of.
    pub(super) size: [usize; 3],
}

impl Conv<'_> {
    /// The piece `to` of the convolution of the clip that `from` is a piece of, after a norm and SiLU if there is
    /// one, plus `add`.
    pub(super) fn run(
        self,
        conv: &Causal,
        from: &Part,
        to: &Region,
        norm: Option<&Affine>,
        add: Option<&Clip>,
    ) -> Result<Clip> {
        let axes = self.size.map(Axis::identity);
        self.through(conv, axes, from, to, norm, add)
    }

    /// The same, where the clip is read through `axes`.
    pub(super) fn through(
        self,
        conv: &Causal,
        axes: [Axis; 3],
        from: &Part,
        to: &Region,
        norm: Option<&Affine>,
        add: Option<&Clip>,
    ) -> Result<Clip> {
        let prologue = Prologue {
            norm: norm.map_or(Norm::None, Norm::Affine),
            silu: norm.is_some(),
            axes: pieces(conv.pad(axes), conv.conv.kernel(), from, to),
        };
        let clip = ConvInput {
            front: from.front.as_ref(),
            body: &from.body,
        };
        self.exec.conv3d(clip, &prologue, &conv.conv, add)
    }
}

/// The parts of padded axes that make `to` of `from`.
fn pieces(
    [t, h, w]: [Axis; 3],
    [kt, kh, _]: [usize; 3],
    from: &Part,
    Region { frames, rows }: &Region,
) -> [Axis; 3] {
    [
        t.part(frames.start..frames.end + kt - 1, from.region.frames.start),
        h.part(rows.start..rows.end + kh - 1, from.region.rows.start),
        w,
    ]
}
