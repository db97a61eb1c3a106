//! `AutoencoderKLWan`, the 2.1 kind and the 2.2 kind.
//!
//! Time goes through in chunks: the first of one latent frame, then any number. Each causal
//! convolution keeps the last frames of its input for the next chunk, so that chunks are exact.

mod blocks;
mod cache;
mod config;
mod decoder;
mod encoder;
mod family;
mod resample;
mod single_file;

pub use self::config::WanConfig;
pub(super) use self::family::FAMILY;

use self::cache::{Caches, Slots};
use super::strategy::{Ratio, Tiling};
use super::tiles::TIME;
use crate::error::{Result, argument};
use crate::ops::{Clip, Executor};

/// Latent frames of a chunk after the first: the reference's 1 unless frames of video are asked for.
fn step(tiling: &Tiling, ratio: Ratio) -> Result<usize> {
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

/// The chunks of a clip of `frames` frames from `start` on, each as its first frame and the number of its frames: the
/// first frame of the clip is a chunk by itself.
fn chunks(start: usize, frames: usize, step: usize) -> impl Iterator<Item = (usize, usize)> {
    let first = (start == 0 && frames > 0).then_some((0, 1));
    let rest = (start.max(1)..frames).step_by(step.max(1));
    first
        .into_iter()
        .chain(rest.map(move |start| (start, step.min(frames - start))))
}

/// Runs `each` over the first frame, then over `step` frames at a time, with the caches between them, and
/// joins what comes out.
fn in_chunks(
    exec: Executor<'_>,
    clip: &Clip,
    step: usize,
    slots: &Slots,
    mut each: impl FnMut(&Clip, &mut Caches) -> Result<Clip>,
) -> Result<Clip> {
    let frames = clip.dim(TIME)?;
    let mut caches = Caches::new(slots);
    let mut parts = Vec::new();
    for (start, count) in chunks(0, frames, step) {
        let chunk = clip.narrow(TIME, start, count)?.contiguous()?;
        caches.last = start + count == frames;
        let name = if caches.last { "last chunk" } else { "chunk" };
        parts.push(exec.repeat_keeping(name, &chunk, &mut caches, &mut each)?);
        caches.first = false;
    }
    drop(caches);
    Clip::cat(&parts, TIME)
}

/// Patches of `p` x `p` pixels to channels: (B, T, H, W, C) to (B, T, H/p, W/p, C p p). The pixel's place in the
/// width is the outer of the two.
fn patch(clip: &Clip, p: usize) -> Result<Clip> {
    if p == 1 {
        return Ok(clip.clone());
    }
    let (b, t, h, w, c) = clip.dims5()?;
    if !h.is_multiple_of(p) || !w.is_multiple_of(p) {
        return argument(format!(
            "a video of {h} x {w} pixels does not make patches of {p} x {p}"
        ));
    }
    let parts = clip.reshape(&[b, t, h / p, p, w / p, p, c])?;
    let parts = parts.permute(&[0, 1, 2, 4, 6, 5, 3])?.contiguous()?;
    parts.reshape(&[b, t, h / p, w / p, c * p * p])
}

/// The way back.
fn unpatch(clip: &Clip, p: usize) -> Result<Clip> {
    if p == 1 {
        return Ok(clip.clone());
    }
    let (b, t, h, w, c) = clip.dims5()?;
    let c = c / p / p;
    let parts = clip.contiguous()?.reshape(&[b, t, h, w, c, p, p])?;
    let parts = parts.permute(&[0, 1, 2, 6, 3, 5, 4])?.contiguous()?;
    parts.reshape(&[b, t, h * p, w * p, c])
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Tensor};

    use super::*;

    #[test]
    fn patches_come_back() {
        let all: Vec<f32> = (0u8..144).map(f32::from).collect();
        let clip: Clip = Tensor::from_vec(all.clone(), (1, 2, 4, 6, 3), &Device::Cpu)
            .unwrap()
            .into();
        let patches = patch(&clip, 2).unwrap();
        assert_eq!(patches.dims(), [1, 2, 2, 3, 12]);
        // channel 1 of the first patch: its pixels by column, then by row
        let first: Vec<f32> = patches
            .narrow(4, 4, 4)
            .unwrap()
            .tensor()
            .unwrap()
            .flatten_all()
            .unwrap()
            .to_vec1()
            .unwrap();
        assert_eq!(first[..4], [1.0, 19.0, 4.0, 22.0]);
        let back: Vec<f32> = unpatch(&patches, 2)
            .unwrap()
            .tensor()
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
