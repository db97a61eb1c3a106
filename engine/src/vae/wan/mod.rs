//! `AutoencoderKLWan`, the 2.1 kind and the 2.2 kind.
//!
//! Time goes through in chunks: the first of one latent frame, then any number. Each causal
//! convolution keeps the last frames of its input for the next chunk, so that chunks are exact.

mod blocks;
mod cache;
mod decoder;
mod encoder;
mod resample;

pub use self::decoder::Decoder;
pub use self::encoder::Encoder;

use candle_core::Tensor;

use self::cache::{Caches, Slots};
use super::tiles::{Ratio, TIME, Tiling};
use crate::error::{Result, argument};

/// Latent frames of a chunk after the first: the reference's 1 unless frames of video are asked for.
pub(crate) fn step(tiling: &Tiling, ratio: Ratio) -> Result<usize> {
    let Some(run) = tiling.time else {
        return Ok(1);
    };
    if run.length == 0 || !run.length.is_multiple_of(ratio.time) {
        return argument(format!(
            "runs of {} frames: a multiple of {} is needed",
            run.length, ratio.time
        ));
    }
    Ok(run.length / ratio.time)
}

/// Runs `each` over the first frame, then over `step` frames at a time, with the caches between them, and
/// joins what comes out.
fn in_chunks(
    clip: &Tensor,
    step: usize,
    slots: &Slots,
    mut each: impl FnMut(&Tensor, &mut Caches) -> Result<Tensor>,
) -> Result<Tensor> {
    let frames = clip.dim(TIME)?;
    let mut caches = Caches::new(slots);
    let mut chunks = Vec::new();
    let mut start = 0;
    while start < frames {
        let count = if start == 0 {
            1
        } else {
            step.min(frames - start)
        };
        let chunk = clip.narrow(TIME, start, count)?.contiguous()?;
        chunks.push(each(&chunk, &mut caches)?);
        caches.first = false;
        start += count;
    }
    drop(caches);
    Ok(Tensor::cat(&chunks, TIME)?)
}

/// Patches of `p` x `p` pixels to channels: (B, T, H, W, C) to (B, T, H/p, W/p, C p p). The pixel's place in the
/// width is the outer of the two.
fn patch(clip: &Tensor, p: usize) -> Result<Tensor> {
    if p == 1 {
        return Ok(clip.clone());
    }
    let (b, t, h, w, c) = clip.dims5()?;
    if !h.is_multiple_of(p) || !w.is_multiple_of(p) {
        return argument(format!(
            "a video of {h} x {w} pixels does not make patches of {p} x {p}"
        ));
    }
    let parts = clip.reshape(vec![b, t, h / p, p, w / p, p, c])?;
    let parts = parts.permute(vec![0, 1, 2, 4, 6, 5, 3])?.contiguous()?;
    Ok(parts.reshape((b, t, h / p, w / p, c * p * p))?)
}

/// The way back.
fn unpatch(clip: &Tensor, p: usize) -> Result<Tensor> {
    if p == 1 {
        return Ok(clip.clone());
    }
    let (b, t, h, w, c) = clip.dims5()?;
    let c = c / p / p;
    let parts = clip.contiguous()?.reshape(vec![b, t, h, w, c, p, p])?;
    let parts = parts.permute(vec![0, 1, 2, 6, 3, 5, 4])?.contiguous()?;
    Ok(parts.reshape((b, t, h * p, w * p, c))?)
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Tensor};

    use super::*;

    #[test]
    fn patches_come_back() {
        let all: Vec<f32> = (0u8..144).map(f32::from).collect();
        let clip = Tensor::from_vec(all.clone(), (1, 2, 4, 6, 3), &Device::Cpu).unwrap();
        let patches = patch(&clip, 2).unwrap();
        assert_eq!(patches.dims(), [1, 2, 2, 3, 12]);
        // channel 1 of the first patch: its pixels by column, then by row
        let first: Vec<f32> = patches
            .narrow(4, 4, 4)
            .unwrap()
            .flatten_all()
            .unwrap()
            .to_vec1()
            .unwrap();
        assert_eq!(first[..4], [1.0, 19.0, 4.0, 22.0]);
        let back: Vec<f32> = unpatch(&patches, 2)
            .unwrap()
            .flatten_all()
            .unwrap()
            .to_vec1()
            .unwrap();
        assert_eq!(back, all);
        assert!(
            patch(&clip, 4)
                .unwrap_err()
                .to_string()
                .contains("does not make patches of 4 x 4")
        );
    }
}
