//! Tiles of pixels and runs of frames, joined as the reference joins them.
//!
//! Clips are channels-last. Neighbours overlap and are cross-faded over the overlap; group norms and
//! attention see only their tile, so a tiled result is compared with a tiled one.

use candle_core::{Device, Tensor};

use super::strategy::{Run, Steps};
use crate::error::Result;
use crate::ops::Clip;

/// Axes of a clip.
pub(super) const TIME: usize = 1;
pub(super) const HEIGHT: usize = 2;
const WIDTH: usize = 3;

/// Runs `each` over tiles of `clip` and joins what comes out; over the whole where one tile holds it.
pub(super) fn in_space(
    clip: &Clip,
    steps: Option<Steps>,
    mut each: impl FnMut(&Clip) -> Result<Clip>,
) -> Result<Clip> {
    let (_, _, h, w, _) = clip.dims5()?;
    let Some(Steps { from, to }) =
        steps.filter(|steps| h > steps.from.length || w > steps.from.length)
    else {
        return each(clip);
    };
    let overlap = to.length - to.stride;
    let (mut above, mut bands): (Vec<Clip>, Vec<Clip>) = (Vec::new(), Vec::new());
    for y in (0..h).step_by(from.stride) {
        let (mut row, mut parts): (Vec<Clip>, Vec<Clip>) = (Vec::new(), Vec::new());
        for (at, x) in (0..w).step_by(from.stride).enumerate() {
            let tile = clip.narrow(HEIGHT, y, from.length.min(h - y))?.narrow(
                WIDTH,
                x,
                from.length.min(w - x),
            )?;
            let mut tile = each(&tile.contiguous()?)?;
            if let Some(above) = above.get(at) {
                tile = blend(above, tile, HEIGHT, overlap)?;
            }
            if let Some(left) = row.last() {
                tile = blend(left, tile, WIDTH, overlap)?;
            }
            let kept = tile.narrow(HEIGHT, 0, to.stride.min(tile.dim(HEIGHT)?))?;
            parts.push(
                kept.narrow(WIDTH, 0, to.stride.min(kept.dim(WIDTH)?))?
                    .contiguous()?,
            );
            row.push(tile);
        }
        bands.push(Clip::cat(&parts, WIDTH)?);
        above = row;
    }
    let whole = Clip::cat(&bands, HEIGHT)?;
    let size = |len: usize| len * to.stride / from.stride;
    whole.narrow(HEIGHT, 0, size(h))?.narrow(WIDTH, 0, size(w))
}

/// How many tiles of (h, w) there are.
pub(super) fn count(h: usize, w: usize, steps: Option<Steps>) -> usize {
    match steps {
        Some(Steps { from, .. }) if h > from.length || w > from.length => {
            h.div_ceil(from.stride) * w.div_ceil(from.stride)
        }
        _ => 1,
    }
}

/// The frames of a piece that the run before it has given already.
const SHARED: usize = 1;

/// Where a cross-faded decode stands: what the next run of frames needs of those before it.
#[derive(Clone, Debug, Default)]
pub(super) struct Seam {
    /// Where the next run begins, in what goes in.
    pub(super) start: usize,
    /// Frames that were given.
    pub(super) given: usize,
    /// The last frames of the run before, as many as overlap.
    pub(super) tail: Option<Clip>,
}

impl Seam {
    /// Where a decode of `t` latent frames has to begin to give frame `frame` as a whole decode gives it, and the first
    /// frame that comes out so. The run before that of the frame is made for the sake of its last frames alone: as long as
    /// none of these is cross-faded itself they are the same to the bit, whatever came before it.
    pub(super) fn before(frame: usize, (from, to): (Run, Run), t: usize) -> (Self, usize) {
        let overlap = to.length - to.stride;
        let own = |run: usize| {
            let latents = (from.length + SHARED).min(t.saturating_sub(run * from.stride));
            latents.saturating_sub(SHARED) * (to.length / from.length)
        };
        let of_frame = frame.saturating_sub(SHARED) / to.stride;
        let mut run = of_frame.saturating_sub(1);
        while run > 0 && own(run) < 2 * overlap {
            run -= 1;
        }
        let given = run * to.stride;
        // without the frames before it the first of its own is not cross-faded, and there is one more
        let first = if run == 0 {
            0
        } else {
            given + to.stride + SHARED
        };
        let seam = Self {
            start: run * from.stride,
            given,
            tail: None,
        };
        (seam, first)
    }
}

/// Runs `each` over runs of frames of `clip`, cross-fades what comes out, `frames` in all, and gives it to
/// `sink` run by run, with what the next one needs. Each run has one frame more than `from.length`, and gives
/// its first again, which is dropped.
pub(super) fn in_time(
    clip: &Clip,
    (from, to): (Run, Run),
    frames: usize,
    mut seam: Seam,
    mut each: impl FnMut(&Clip) -> Result<Clip>,
    mut sink: impl FnMut(Clip, &Seam) -> Result<()>,
) -> Result<()> {
    let t = clip.dim(TIME)?;
    let overlap = to.length - to.stride;
    while seam.start < t {
        let run = each(
            &clip
                .narrow(TIME, seam.start, (from.length + SHARED).min(t - seam.start))?
                .contiguous()?,
        )?;
        let (run, kept) = match &seam.tail {
            None => {
                let kept = (to.stride + SHARED).min(run.dim(TIME)?);
                (run, kept)
            }
            Some(tail) => {
                let own = run.dim(TIME)? - SHARED;
                if own == 0 {
                    break;
                }
                let own_frames = run.narrow(TIME, SHARED, own)?.contiguous()?;
                (blend(tail, own_frames, TIME, overlap)?, to.stride.min(own))
            }
        };
        let kept = kept.min(frames - seam.given);
        let part = run.narrow(TIME, 0, kept)?.contiguous()?;
        seam = Seam {
            start: seam.start + from.stride,
            given: seam.given + kept,
            tail: Some(last(&run, overlap)?),
        };
        drop(run);
        if kept > 0 {
            sink(part, &seam)?;
        }
    }
    Ok(())
}

/// The last `count` frames, or all, in memory of their own, so that the rest can go.
fn last(run: &Clip, count: usize) -> Result<Clip> {
    let own = run.dim(TIME)?;
    let count = count.min(own);
    run.narrow(TIME, own - count, count)?.force_contiguous()
}

/// Cross-fades the beginning of `next` with the end of `before` along `axis` over `overlap`: position k of
/// the overlap is before * (1 - k/n) + next * k/n.
fn blend(before: &Clip, next: Clip, axis: usize, overlap: usize) -> Result<Clip> {
    let n = overlap.min(before.dim(axis)?).min(next.dim(axis)?);
    if n == 0 {
        return Ok(next);
    }
    // of the next clip, and of the one before
    let ramp = |device: &Device, dtype| -> Result<Tensor> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "an overlap is some hundred pixels"
        )]
        let weights: Vec<f32> = (0..n).map(|k| k as f32 / n as f32).collect();
        let mut shape = [1; 5];
        shape[axis] = n;
        Ok(Tensor::from_vec(weights, &shape, device)?.to_dtype(dtype)?)
    };
    let fall =
        |device: &Device, dtype| -> Result<Tensor> { Ok(ramp(device, dtype)?.affine(-1.0, 1.0)?) };
    let tail = before
        .narrow(axis, before.dim(axis)? - n, n)?
        .broadcast_mul(fall)?;
    let head = next.narrow(axis, 0, n)?.broadcast_mul(ramp)?.add(&tail)?;
    drop(tail);
    let rest = next.dim(axis)? - n;
    if rest == 0 {
        return Ok(head);
    }
    Clip::cat(&[head, next.narrow(axis, n, rest)?.contiguous()?], axis)
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "small integers are exact")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Doubles each pixel along both sides: what a decoder does to sizes.
    fn enlarge(tile: &Clip) -> Result<Clip> {
        let tile = tile.tensor()?;
        let twice = |len: usize| {
            (0..2 * u32::try_from(len).unwrap())
                .map(|i| i / 2)
                .collect::<Vec<_>>()
        };
        let index = |len: usize| Tensor::new(twice(len), &Device::Cpu).unwrap();
        let tile = tile.index_select(&index(tile.dim(HEIGHT)?), HEIGHT)?;
        Ok(tile.index_select(&index(tile.dim(WIDTH)?), WIDTH)?.into())
    }

    fn ramp(dims: [usize; 5]) -> Clip {
        let all: Vec<f32> = (0..dims.iter().product::<usize>())
            .map(|i| (i % 251) as f32)
            .collect();
        Tensor::from_vec(all, &dims, &Device::Cpu).unwrap().into()
    }

    fn difference(a: &Clip, b: &Clip) -> f32 {
        assert_eq!(a.dims(), b.dims());
        let (a, b) = (a.tensor().unwrap(), b.tensor().unwrap());
        (a - b)
            .unwrap()
            .abs()
            .unwrap()
            .flatten_all()
            .unwrap()
            .max(0)
            .unwrap()
            .to_scalar()
            .unwrap()
    }

    proptest! {
        #[test]
        fn tiles_of_what_sees_only_its_own_pixel_join_to_the_whole(
            h in 1..14usize, w in 1..14usize, length in 1..7usize, less in 0..6usize, batch in 1..3usize,
        ) {
            let stride = (length - less.min(length - 1)).max(1);
            let clip = ramp([batch, 2, h, w, 3]);
            let from = Run { length, stride };
            let steps = Steps { from, to: Run { length: 2 * length, stride: 2 * stride } };
            let joined = in_space(&clip, Some(steps), enlarge).unwrap();
            prop_assert!(difference(&joined, &enlarge(&clip).unwrap()) < 1e-3);
        }

        #[test]
        fn runs_of_what_sees_only_its_own_frame_join_to_the_whole(
            t in 1..20usize, length in 1..6usize, less in 0..5usize,
        ) {
            let stride = (length - less.min(length - 1)).max(1);
            let clip = ramp([1, t, 2, 3, 2]);
            // four frames a latent, the first alone
            let decode = |run: &Clip| {
                let run = run.tensor()?;
                let t = u32::try_from(run.dim(TIME)?).unwrap();
                let index: Vec<u32> = (0..4 * t - 3).map(|i| i.div_ceil(4)).collect();
                Ok(Clip::from(run.index_select(&Tensor::new(index, &Device::Cpu)?, TIME)?))
            };
            let (from, to) = (Run { length, stride }, Run { length: 4 * length, stride: 4 * stride });
            let mut parts = Vec::new();
            let mut seams = Vec::new();
            in_time(&clip, (from, to), 4 * t - 3, Seam::default(), decode, |part, seam| {
                parts.push(part);
                seams.push(seam.clone());
                Ok(())
            }).unwrap();
            let joined = Clip::cat(&parts, TIME).unwrap();
            prop_assert!(difference(&joined, &decode(&clip).unwrap()) < 1e-3);
            // each frame alone, and those after it
            for frame in 0..4 * t - 3 {
                let (seam, first) = Seam::before(frame, (from, to), t);
                prop_assert!(first <= frame);
                // of usual overlaps it is the run before
                let of_frame = (frame.max(1) - 1) / to.stride * from.stride;
                let is_usual = 3 * (length - stride) <= length;
                prop_assert!(!is_usual || of_frame <= seam.start + from.stride);
                let mut at = seam.given;
                in_time(&clip, (from, to), 4 * t - 3, seam, decode, |part, seam| {
                    if at >= first {
                        let want = joined.narrow(TIME, at, part.dim(TIME)?)?;
                        assert!(difference(&part, &want) < f32::MIN_POSITIVE);
                    }
                    at = seam.given;
                    Ok(())
                }).unwrap();
                prop_assert_eq!(at, 4 * t - 3);
            }
            // from each seam on the rest is the same to the bit
            for (at, seam) in seams.into_iter().enumerate() {
                let mut rest = Vec::new();
                in_time(&clip, (from, to), 4 * t - 3, seam, decode, |part, _| {
                    rest.push(part);
                    Ok(())
                }).unwrap();
                prop_assert_eq!(rest.len(), parts.len() - at - 1);
                for (again, part) in rest.iter().zip(&parts[at + 1..]) {
                    prop_assert!(difference(again, part) < f32::MIN_POSITIVE);
                }
            }
        }
    }
}
