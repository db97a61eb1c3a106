//! Attention in blocks of queries: two matrix products and a softmax, whose scores are never held all at once.

use candle_core::{DType, Tensor};
use framepack_engine::ops::AttentionMask;

use crate::Cuda;
use crate::blas::{Matrix, Product};
use crate::error::{Result, argument};
use crate::memory::{Launch, address, long, size_of, uninitialised};
use crate::sizing::Sizing;

/// Rows of scores begin at multiples of this many numbers, so that they can be read four at a time and the products are fast.
const ALIGNED: usize = 8;

/// Queries of a block at most: enough to fill the card.
const MOST: usize = 4096;

/// [`framepack_engine::ops::Backend::attention`].
pub(crate) fn attention(cuda: &Cuda, qkv: &Tensor, mask: AttentionMask) -> Result<Tensor> {
    let (batch, frames, h, w, wide) = qkv.dims5()?;
    if !wide.is_multiple_of(3) || wide == 0 {
        return argument(format!("{wide} channels are not queries, keys and values"));
    }
    let qkv = qkv.contiguous()?;
    let (channels, tokens) = (wide / 3, h * w);
    let out = uninitialised(&[batch, frames, h, w, channels], cuda)?;
    let stream = cuda.kernels.stream();
    let (from, to) = (
        address(&qkv, cuda.dtype, stream)?,
        address(&out, cuda.dtype, stream)?,
    );
    let size = size_of(cuda.dtype);
    let most_keys = match mask {
        AttentionMask::Causal => frames * tokens,
        AttentionMask::Frame => tokens,
    };
    let (block, row) = blocks(cuda.sizing, most_keys, tokens);
    let scores = cuda.buffer(block * row * 4)?;
    let weights = cuda.buffer(block * row * size)?;
    for entry in 0..batch {
        for frame in 0..frames {
            let first = match mask {
                AttentionMask::Causal => 0,
                AttentionMask::Frame => frame * tokens,
            };
            let keys = (frame + 1) * tokens - first;
            for start in (0..tokens).step_by(block) {
                let queries = block.min(tokens - start);
                let token = |at: usize| (entry * frames * tokens + at) as u64;
                let query = token(frame * tokens + start);
                let numbers = |at: u64, offset: usize| {
                    from + (at * wide as u64 + offset as u64) * size as u64
                };
                let part = Part {
                    queries,
                    keys,
                    channels,
                    query: numbers(query, 0),
                    key: numbers(token(first), channels),
                    value: numbers(token(first), 2 * channels),
                    out: to + query * (channels * size) as u64,
                };
                part.run(cuda, scores.address(), weights.address())?;
            }
        }
    }
    Ok(out)
}

/// Queries of a block, and numbers of a row of scores: scores in single precision, and the weights made of them, keep
/// to the scratch.
fn blocks(sizing: Sizing, keys: usize, tokens: usize) -> (usize, usize) {
    let row = keys.next_multiple_of(ALIGNED).max(ALIGNED);
    let each = row * (4 + size_of(sizing.dtype));
    ((sizing.scratch / each).clamp(1, tokens.clamp(1, MOST)), row)
}

/// Bytes beside what is read and given, for so many keys and tokens of a frame; what convolutions have left is counted.
pub(crate) fn scratch(sizing: Sizing, keys: usize, tokens: usize) -> usize {
    let (block, row) = blocks(sizing, keys, tokens);
    block * row * (4 + size_of(sizing.dtype)) + sizing.kept()
}

/// Some queries of one frame and the keys that they see, by address.
struct Part {
    queries: usize,
    keys: usize,
    channels: usize,
    query: u64,
    key: u64,
    value: u64,
    out: u64,
}

impl Part {
    fn run(&self, cuda: &Cuda, scores: u64, weights: u64) -> Result<()> {
        let row = self.keys.next_multiple_of(ALIGNED);
        let clip = |at| Matrix {
            at,
            dtype: cuda.dtype,
            stride: 3 * self.channels,
        };
        #[expect(clippy::cast_precision_loss, reason = "some hundred channels")]
        let factor = 1.0 / (self.channels as f32).sqrt();
        let score = Matrix {
            at: scores,
            dtype: DType::F32,
            stride: row,
        };
        let what = Product {
            transposed: true,
            factor,
            ..Product::new(self.queries, self.keys, self.channels)
        };
        cuda.product(what, clip(self.query), clip(self.key), score)?;
        let launch = Launch {
            blocks: (self.queries, 1),
            threads: if self.keys > 8192 { 1024 } else { 256 },
            shared: 0,
        };
        let count = i32::try_from(self.keys).unwrap_or(i32::MAX);
        cuda.kernels.launch(
            "softmax",
            cuda.dtype,
            launch,
            &(scores, weights, count, long(row)),
        )?;
        let weight = Matrix {
            at: weights,
            dtype: cuda.dtype,
            stride: row,
        };
        let out = Matrix {
            at: self.out,
            dtype: cuda.dtype,
            stride: self.channels,
        };
        let what = Product::new(self.queries, self.channels, self.keys);
        cuda.product(what, weight, clip(self.value), out)
    }
}
