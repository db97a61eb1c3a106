//! Attention with one head, streamed: scores exist for one block of queries and keys at a time, and
//! the softmax is carried along from block to block.

#![expect(
    clippy::inline_always,
    reason = "the loop becomes vector code only inside of the dispatch that calls it"
)]

use rayon::prelude::*;

use super::gemm::{Into, Matrix, product};
use super::pixel::exp;
use crate::ops::AttentionMask;

/// Queries of a job.
const QUERIES: usize = 96;

/// Keys of a step.
const KEYS: usize = 512;

/// Scores that a thread holds.
pub(super) const SCORES: usize = QUERIES * KEYS;

/// `qkv`: `batch` x `frames` x `tokens` x 3`channels`; the result has `channels`.
pub(super) fn attention(
    qkv: &[f32],
    [batch, frames, tokens, channels]: [usize; 4],
    mask: AttentionMask,
) -> Vec<f32> {
    let mut out = vec![0f32; batch * frames * tokens * channels];
    if out.is_empty() {
        return out;
    }
    let entry = frames * tokens * 3 * channels;
    let jobs: Vec<(usize, usize, &mut [f32])> = out
        .chunks_mut(tokens * channels)
        .enumerate()
        .flat_map(|(frame, rows)| {
            let blocks = rows.chunks_mut(QUERIES * channels).enumerate();
            blocks
                .map(move |(block, rows)| (frame, block * QUERIES, rows))
                .collect::<Vec<_>>()
        })
        .collect();
    jobs.into_par_iter()
        .for_each_init(State::default, |state, (frame, query, rows)| {
            let all = &qkv[frame / frames * entry..][..entry];
            let frame = frame % frames;
            let seen = match mask {
                AttentionMask::Causal => 0..(frame + 1) * tokens,
                AttentionMask::Frame => frame * tokens..(frame + 1) * tokens,
            };
            state.run(rows, all, frame * tokens + query, seen, channels);
        });
    out
}

/// What a thread keeps from job to job.
#[derive(Default)]
struct State {
    scores: Vec<f32>,
    /// For each query the largest score so far, and the sum of the exponentials over it.
    running: Vec<(f32, f32)>,
}

impl State {
    /// The result of the queries from token `query` on, which is `out` long, over the tokens `seen`.
    fn run(
        &mut self,
        out: &mut [f32],
        qkv: &[f32],
        query: usize,
        seen: std::ops::Range<usize>,
        c: usize,
    ) {
        let pitch = 3 * c;
        let queries = out.len() / c;
        #[expect(
            clippy::cast_precision_loss,
            reason = "a head has some hundred channels"
        )]
        let scale = 1.0 / (c as f32).sqrt();
        self.running.clear();
        self.running.resize(queries, (f32::NEG_INFINITY, 0.0));
        let end = seen.end;
        for first in seen.step_by(KEYS) {
            let keys = KEYS.min(end - first);
            self.scores.resize(queries * keys, 0.0);
            let q = Matrix::rows(&qkv[query * pitch..], pitch);
            let k = Matrix::columns(&qkv[first * pitch + c..], pitch);
            product(
                &mut self.scores,
                Into::Replace,
                (queries, c, keys),
                scale,
                q,
                k,
            );
            pulp::Arch::new().dispatch(|| {
                let rows = self
                    .scores
                    .chunks_mut(keys)
                    .zip(&mut self.running)
                    .zip(out.chunks_mut(c));
                for ((scores, running), out) in rows {
                    step(scores, running, out);
                }
            });
            let v = Matrix::rows(&qkv[first * pitch + 2 * c..], pitch);
            product(
                out,
                Into::Add,
                (queries, keys, c),
                1.0,
                Matrix::rows(&self.scores, keys),
                v,
            );
        }
        for ((_, sum), out) in self.running.iter().zip(out.chunks_mut(c)) {
            for x in out {
                *x /= sum;
            }
        }
    }
}

/// Turns scores into weights over the largest score so far, and brings what was summed before down
/// to the same measure.
#[inline(always)]
fn step(scores: &mut [f32], running: &mut (f32, f32), out: &mut [f32]) {
    let mut lanes = [f32::NEG_INFINITY; 16];
    for chunk in scores.chunks(16) {
        for (lane, &score) in lanes.iter_mut().zip(chunk) {
            *lane = if score > *lane { score } else { *lane };
        }
    }
    let largest = lanes.into_iter().fold(running.0, f32::max);
    if largest > running.0 {
        let factor = if running.0 == f32::NEG_INFINITY {
            0.0
        } else {
            exp(running.0 - largest)
        };
        running.1 *= factor;
        for x in out.iter_mut() {
            *x *= factor;
        }
        running.0 = largest;
    }
    for score in scores.iter_mut() {
        *score = exp(*score - largest);
    }
    let mut lanes = [0f32; 16];
    for chunk in scores.chunks(16) {
        for (lane, score) in lanes.iter_mut().zip(chunk) {
            *lane += score;
        }
    }
    running.1 += lanes.iter().sum::<f32>();
}
