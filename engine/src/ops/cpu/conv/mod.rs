//! conv3d on the processor.
//!
//! The output is made in blocks of rows. For each block the padded, normalised and activated rows
//! that it reads are made in a band of their own, so that neither a padded copy of the input nor a
//! column buffer of 27 times its size exists. Since a pixel's channels lie together, the kw taps of
//! a row are one window that slides over the band: kt * kh products with K = kw * C.
//!
//! Two ways to hand such windows to the product:
//! - *shift*: all positions of the band's rows, padding included, whose results are then left out. No copy;
//! - *tile*: the windows of true positions copied together first. A copy, but nothing is computed
//!   in vain, which counts where rows are short, and any stride can be read.
//!
//! Behind a nearest upsampling of height and width the output falls into four parts, by even and odd rows
//! and columns, each a convolution of 2 x 2 taps over the input before the upsampling ([`super::taps`]).

mod plan;

use std::ops::Range;

use rayon::prelude::*;

pub(super) use self::plan::scratch;
use self::plan::{Job, Part, Plan};
use super::band::{Filler, Frames, Ring};
use super::gemm::{Into, Matrix, product};
use super::pixel::Pixel;
use crate::ops::Axis;

/// How the windows reach the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Shift,
    Tile,
}

/// One convolution: what is read, with what, and of which sizes.
pub(super) struct Task<'a> {
    /// For each batch entry, its frames and what is done to their pixels.
    pub(super) batch: Vec<(Frames<'a>, Pixel<'a>)>,
    /// The input's pixels in a row.
    pub(super) width: usize,
    pub(super) axes: &'a [Axis; 3],
    /// (kt, kh, kw, I, O).
    pub(super) weight: &'a [f32],
    pub(super) bias: Option<&'a [f32]>,
    pub(super) add: Option<&'a [f32]>,
    pub(super) kernel: [usize; 3],
    pub(super) stride: [usize; 3],
    pub(super) inputs: usize,
    pub(super) outputs: usize,
}

/// Frames, rows and pixels in a row of the output.
pub(super) fn output_size(
    axes: &[Axis; 3],
    kernel: [usize; 3],
    stride: [usize; 3],
) -> Option<[usize; 3]> {
    let mut size = [0; 3];
    for (at, size) in size.iter_mut().enumerate() {
        *size = axes[at].len().checked_sub(kernel[at])? / stride[at] + 1;
    }
    Some(size)
}

/// What a thread keeps from job to job.
struct Scratch {
    ring: Ring,
    windows: Vec<f32>,
    block: Vec<f32>,
}

/// A band and the weights of the taps that read it.
type Term<'a> = (&'a [f32], &'a [f32]);

impl Task<'_> {
    /// Runs it, in this way or in the one that suits the shape: (B, T', H', W', O).
    pub(super) fn run(&self, size: [usize; 3], way: Option<Way>) -> Vec<f32> {
        let [t, h, w] = size;
        let mut out = vec![0f32; self.batch.len() * t * h * w * self.outputs];
        if out.is_empty() {
            return out;
        }
        let plan = self.plan(size, way);
        let jobs = self.jobs(&mut out, size, plan.rows * plan.scale, plan.rows);
        jobs.into_par_iter().for_each_init(
            || Scratch {
                ring: Ring::new(self.kernel[0]),
                windows: Vec::new(),
                block: Vec::new(),
            },
            |scratch, job| self.run_job(job, &plan, scratch),
        );
        out
    }

    fn run_job(&self, job: Job<'_>, plan: &Plan, scratch: &mut Scratch) {
        let (frames, pixel) = self.batch[job.batch];
        let line = plan.axes[1].len();
        let Plan { scale, w, .. } = *plan;
        let Some(rows) = job
            .frames
            .first()
            .map(|(_, out)| out.len() / (w * self.outputs * scale * scale))
        else {
            return;
        };
        let first_row = job.y * self.stride[1];
        let band_rows = plan.band_rows(rows, self.kernel[1], self.stride[1]);
        let filler = Filler {
            pixel,
            rows: &plan.axes[0],
            columns: &plan.axes[1],
            width: self.width,
            channels: self.inputs,
        };
        let Scratch {
            ring,
            windows,
            block,
        } = scratch;
        ring.reset(band_rows * line * self.inputs);
        for (at, (begin, out)) in job.frames.into_iter().enumerate() {
            let groups = self.frames_of(job.t + at);
            let wanted: Vec<usize> = groups.iter().map(|(frame, _)| *frame).collect();
            let bands = ring.hold(&wanted, |band, at| {
                filler.fill(band, frames.get(at), first_row);
            });
            for part in &plan.parts {
                let terms: Vec<Term<'_>> = bands
                    .iter()
                    .zip(&groups)
                    .map(|(band, (_, taps))| (*band, self.weights(part, taps)))
                    .collect();
                let pitch = match plan.way {
                    _ if terms.is_empty() => {
                        block.clear();
                        block.resize(rows * w * self.outputs, 0.0);
                        w
                    }
                    Way::Shift => self.shift(&terms, part, (rows, w, line), block),
                    Way::Tile => self.tile(&terms, part, (rows, w, line), windows, block),
                };
                place(out, block, part.offset, (w, pitch, scale), self.outputs);
            }
            self.finish(out, begin);
        }
    }

    fn weights<'p>(&'p self, part: &'p Part, taps: &Range<usize>) -> &'p [f32] {
        let size = self.kernel[1] * self.kernel[2] * self.inputs * self.outputs;
        part.weights
            .get(&(taps.start, taps.end))
            .map_or_else(|| &self.weight[taps.start * size..][..size], Vec::as_slice)
    }

    /// Adds up the products of all positions of the bands' rows; gives how many a row of the result has.
    fn shift(
        &self,
        terms: &[Term<'_>],
        part: &Part,
        (rows, w, line): (usize, usize, usize),
        block: &mut Vec<f32>,
    ) -> usize {
        let (c, o) = (self.inputs, self.outputs);
        let ([py, px], [kh, kw]) = (part.offset, part.kernel);
        let positions = (rows - 1) * line + w;
        block.resize(positions * o, 0.0);
        let mut into = Into::Replace;
        for (band, weights) in terms {
            for (dy, weight) in weights.chunks(kw * c * o).enumerate().take(kh) {
                let windows = Matrix::rows(&band[((py + dy) * line + px) * c..], c);
                product(
                    block,
                    into,
                    (positions, kw * c, o),
                    1.0,
                    windows,
                    Matrix::rows(weight, o),
                );
                into = Into::Add;
            }
        }
        line
    }

    /// The same for true positions alone, copied together.
    fn tile(
        &self,
        terms: &[Term<'_>],
        part: &Part,
        (rows, w, line): (usize, usize, usize),
        windows: &mut Vec<f32>,
        block: &mut Vec<f32>,
    ) -> usize {
        let [_, sh, sw] = self.stride;
        let (c, o) = (self.inputs, self.outputs);
        let ([py, px], [kh, kw]) = (part.offset, part.kernel);
        let k = kw * c;
        block.resize(rows * w * o, 0.0);
        windows.resize(rows * w * k, 0.0);
        let mut into = Into::Replace;
        for (band, weights) in terms {
            for (dy, weight) in weights.chunks(k * o).enumerate().take(kh) {
                for (y, row) in windows.chunks_mut(w * k).enumerate() {
                    let from = &band[((y * sh + py + dy) * line + px) * c..];
                    for (x, window) in row.chunks_mut(k).enumerate() {
                        window.copy_from_slice(&from[x * sw * c..][..k]);
                    }
                }
                product(
                    block,
                    into,
                    (rows * w, k, o),
                    1.0,
                    Matrix::rows(windows, k),
                    Matrix::rows(weight, o),
                );
                into = Into::Add;
            }
        }
        w
    }

    /// Adds bias and shortcut.
    fn finish(&self, out: &mut [f32], begin: usize) {
        pulp::Arch::new().dispatch(|| {
            if let Some(bias) = self.bias {
                for pixel in out.chunks_mut(self.outputs) {
                    for (x, bias) in pixel.iter_mut().zip(bias) {
                        *x += bias;
                    }
                }
            }
            if let Some(add) = self.add {
                for (x, add) in out.iter_mut().zip(&add[begin..]) {
                    *x += add;
                }
            }
        });
    }
}

/// Puts a part's results, whose rows have `pitch` positions of which `w` are true, to their places in the
/// output: every `scale`-th row and pixel from `offset` on.
fn place(
    out: &mut [f32],
    block: &[f32],
    [row, column]: [usize; 2],
    (w, pitch, scale): (usize, usize, usize),
    o: usize,
) {
    for (y, out) in out
        .chunks_mut(w * scale * o)
        .skip(row)
        .step_by(scale)
        .enumerate()
    {
        let from = &block[y * pitch * o..][..w * o];
        if scale == 1 {
            out.copy_from_slice(from);
        } else {
            for (out, from) in out
                .chunks_mut(o)
                .skip(column)
                .step_by(scale)
                .zip(from.chunks(o))
            {
                out.copy_from_slice(from);
            }
        }
    }
}
