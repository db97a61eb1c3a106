//! Sums of a group norm.

#![expect(
    clippy::inline_always,
    reason = "the loop becomes vector code only inside of the dispatch that calls it"
)]

use rayon::prelude::*;

use crate::ops::GroupSums;

/// Pixels of a job.
const JOB: usize = 2048;

/// Pixels summed in single precision before the sum goes on in double precision.
const RUN: usize = 32;

/// The sums of `clip`, which has `batch` entries of pixels of `channels` numbers. The order of
/// summation does not depend on the number of threads.
pub(super) fn group_sums(clip: &[f32], batch: usize, channels: usize, groups: usize) -> GroupSums {
    let entry = clip.len() / batch;
    let wide = channels / groups;
    let mut sums = Vec::with_capacity(batch * groups);
    for clip in clip.chunks(entry) {
        let parts: Vec<Vec<(f64, f64)>> = clip
            .par_chunks(JOB * channels)
            .map(|pixels| pulp::Arch::new().dispatch(|| channel_sums(pixels, channels)))
            .collect();
        let mut total = vec![(0.0, 0.0); groups];
        for part in parts {
            for (channel, (sum, squares)) in part.into_iter().enumerate() {
                let group = &mut total[channel / wide];
                group.0 += sum;
                group.1 += squares;
            }
        }
        sums.extend(total);
    }
    #[expect(clippy::cast_precision_loss, reason = "no clip has 2^53 numbers")]
    let count = (entry / groups) as f64;
    GroupSums { batch, count, sums }
}

#[inline(always)]
fn channel_sums(pixels: &[f32], channels: usize) -> Vec<(f64, f64)> {
    let mut total = vec![(0f64, 0f64); channels];
    let (mut sum, mut squares) = (vec![0f32; channels], vec![0f32; channels]);
    for run in pixels.chunks(RUN * channels) {
        sum.fill(0.0);
        squares.fill(0.0);
        for pixel in run.chunks_exact(channels) {
            for ((sum, squares), &x) in sum.iter_mut().zip(&mut squares).zip(pixel) {
                *sum += x;
                *squares += x * x;
            }
        }
        for ((total, &sum), &squares) in total.iter_mut().zip(&sum).zip(&squares) {
            total.0 += f64::from(sum);
            total.1 += f64::from(squares);
        }
    }
    total
}
