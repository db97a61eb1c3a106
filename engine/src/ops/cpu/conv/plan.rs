//! How a convolution is cut up: parts, ways, weights that are added up, and pieces for the threads.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use rayon::prelude::*;

use super::super::taps::{Sides, Taps, by_source, doubled, single};
use super::{Task, Way};
use crate::ops::{Axis, ConvSize};

/// Positions that a block of output aims at: measured best between 256 and 512.
const BLOCK: usize = 384;

/// The share of positions in vain from which copying is cheaper than computing them.
const WASTE: f64 = 0.03;

/// The output pixels of one parity in both directions, or all of them.
pub(super) struct Part {
    /// Where its windows begin in the band, and its pixels in a block of the output.
    pub(super) offset: [usize; 2],
    /// Rows and columns of its windows.
    pub(super) kernel: [usize; 2],
    /// The weights (rows, columns, I, O) of taps in time that read the same frame.
    pub(super) weights: BTreeMap<(usize, usize), Vec<f32>>,
}

/// How a task is carried out.
pub(super) struct Plan {
    /// Height and width of the padded input.
    pub(super) axes: [Axis; 2],
    pub(super) parts: Vec<Part>,
    /// Output pixels per position of a part, along one side: 2 behind an upsampling, else 1.
    pub(super) scale: usize,
    pub(super) way: Way,
    /// Positions of a part: rows of a block, pixels of a row.
    pub(super) rows: usize,
    pub(super) w: usize,
}

/// A piece of the output: the same rows of several frames.
pub(super) struct Job<'a> {
    pub(super) batch: usize,
    /// The first frame.
    pub(super) t: usize,
    /// The first row of positions.
    pub(super) y: usize,
    /// One slice a frame, and where it begins in the whole output.
    pub(super) frames: Vec<(usize, &'a mut [f32])>,
}

/// How positions are read and cut, before weights and threads.
fn layout(axes: &[Axis; 3], conv: ConvSize, [h, w]: [usize; 2], way: Option<Way>) -> Plan {
    let [_, kh, kw] = conv.kernel;
    let halved = if conv.kernel[1..] == [3, 3] && conv.stride[1..] == [1, 1] {
        axes[1].halved().zip(axes[2].halved())
    } else {
        None
    };
    let scale = if halved.is_some() { 2 } else { 1 };
    let part = |offset, kernel| Part {
        offset,
        kernel,
        weights: BTreeMap::new(),
    };
    let parts: Vec<Part> = if halved.is_some() {
        [[0, 0], [0, 1], [1, 0], [1, 1]]
            .map(|offset| part(offset, [2, 2]))
            .into()
    } else {
        vec![part([0, 0], [kh, kw])]
    };
    let axes = halved.map_or_else(|| [axes[1].clone(), axes[2].clone()], |(h, w)| [h, w]);
    let (h, w) = (h / scale, w / scale);
    Plan {
        way: way.unwrap_or_else(|| best_way(&axes[1], w, conv.stride)),
        axes,
        parts,
        scale,
        rows: (BLOCK / w).clamp(1, h),
        w,
    }
}

/// The way that suits rows of `w` positions read from `axis`.
fn best_way(axis: &Axis, w: usize, stride: [usize; 3]) -> Way {
    #[expect(clippy::cast_precision_loss, reason = "a share of pixels in a row")]
    let waste = (axis.len() - w) as f64 / axis.len() as f64;
    if stride[1..] == [1, 1] && waste < WASTE {
        Way::Shift
    } else {
        Way::Tile
    }
}

impl Plan {
    /// Rows of the padded input that `rows` rows of positions read.
    pub(super) fn band_rows(&self, rows: usize, kh: usize, step: usize) -> usize {
        // what is above and below the positions is as high for all parts
        let margin = if self.scale == 2 { 3 } else { kh };
        (rows - 1) * step + margin
    }

    /// Which taps of a part's kernel are one, in height and width.
    fn sides(&self, part: &Part) -> [Sides; 2] {
        if self.scale == 2 {
            part.offset.map(doubled)
        } else {
            part.kernel.map(single)
        }
    }
}

/// Bytes that a convolution of `batch` entries takes beside its operands and its result: bands, windows and
/// blocks of all threads, and weights that are added up.
pub(in crate::ops::cpu) fn scratch(batch: usize, axes: &[Axis; 3], conv: ConvSize) -> u64 {
    let Some([t, h, w]) = super::output_size(axes, conv.kernel, conv.stride) else {
        return 0;
    };
    if h * w == 0 {
        return 0;
    }
    let plan = layout(axes, conv, [h, w], None);
    let line = plan.axes[1].len();
    let band = plan.band_rows(plan.rows, conv.kernel[1], conv.stride[1]) * line * conv.inputs;
    let [kh, kw] = plan.parts[0].kernel;
    let (windows, block) = match plan.way {
        Way::Shift => (0, (plan.rows - 1) * line + plan.w),
        Way::Tile => (plan.rows * plan.w * kw * conv.inputs, plan.rows * plan.w),
    };
    let jobs = (h / plan.scale).div_ceil(plan.rows) * t * batch;
    let threads = rayon::current_num_threads().min(jobs);
    let each = conv.kernel[0] * band + windows + block * conv.outputs;
    let sums = needed(axes, conv, t)
        .iter()
        .filter(|time| plan.scale == 2 || time.len() > 1)
        .count();
    let weights = sums * plan.parts.len() * kh * kw * conv.inputs * conv.outputs;
    4 * (threads * each + weights) as u64
}

/// The taps in time that read one frame each, for `t` frames of output.
fn needed(axes: &[Axis; 3], conv: ConvSize, t: usize) -> Vec<Range<usize>> {
    let mut needed: Vec<Range<usize>> = (0..t)
        .flat_map(|t| frames_of(axes, conv, t))
        .map(|(_, taps)| taps)
        .collect();
    needed.sort_unstable_by_key(|taps| (taps.start, taps.end));
    needed.dedup();
    needed
}

/// The frames that frame `t` of the output reads, and the taps that read them.
fn frames_of(axes: &[Axis; 3], conv: ConvSize, t: usize) -> Vec<(usize, Range<usize>)> {
    let first = t * conv.stride[0];
    by_source((first..first + conv.kernel[0]).map(|t| axes[0].source(t)))
}

impl Task<'_> {
    fn size(&self) -> ConvSize {
        ConvSize {
            kernel: self.kernel,
            stride: self.stride,
            inputs: self.inputs,
            outputs: self.outputs,
        }
    }

    pub(super) fn plan(&self, [t, h, w]: [usize; 3], way: Option<Way>) -> Plan {
        let mut plan = layout(self.axes, self.size(), [h, w], way);
        self.add_weights(&mut plan, t);
        plan
    }

    /// Adds up the weights that `t` frames of output need.
    fn add_weights(&self, plan: &mut Plan, t: usize) {
        let taps = Taps {
            weight: self.weight,
            kernel: self.kernel,
            size: self.inputs * self.outputs,
        };
        let needed = needed(self.axes, self.size(), t);
        let sides: Vec<[Sides; 2]> = plan.parts.iter().map(|part| plan.sides(part)).collect();
        plan.parts
            .par_iter_mut()
            .zip(sides)
            .for_each(|(part, [rows, columns])| {
                for time in &needed {
                    // those that are used as they are stay where they are
                    if let Cow::Owned(sum) = taps.sum(time, &rows, &columns) {
                        part.weights.insert((time.start, time.end), sum);
                    }
                }
            });
    }

    /// The frames that frame `t` of the output reads, and the taps that read them.
    pub(super) fn frames_of(&self, t: usize) -> Vec<(usize, Range<usize>)> {
        frames_of(self.axes, self.size(), t)
    }

    /// Cuts the output into pieces of `rows` rows: enough of them for all threads, and each over as many
    /// frames as that allows, since frames share their bands.
    pub(super) fn jobs<'o>(
        &self,
        out: &'o mut [f32],
        [t, h, w]: [usize; 3],
        rows: usize,
        positions: usize,
    ) -> Vec<Job<'o>> {
        let blocks = h.div_ceil(rows);
        let wanted = 4 * rayon::current_num_threads();
        let cuts = if self.kernel[0] == 1 {
            t
        } else {
            wanted.div_ceil(self.batch.len() * blocks).clamp(1, t)
        };
        let run = t.div_ceil(cuts);
        let runs = t.div_ceil(run);
        let mut jobs: Vec<Job<'o>> = (0..self.batch.len() * runs * blocks)
            .map(|at| Job {
                batch: at / (runs * blocks),
                t: at / blocks % runs * run,
                y: at % blocks * positions,
                frames: Vec::with_capacity(run),
            })
            .collect();
        let pixels = rows * w * self.outputs;
        for (at, frame) in out.chunks_mut(h * w * self.outputs).enumerate() {
            let begin = at * h * w * self.outputs;
            let first = (at / t * runs + at % t / run) * blocks;
            for (block, rows) in frame.chunks_mut(pixels).enumerate() {
                jobs[first + block]
                    .frames
                    .push((begin + block * pixels, rows));
            }
        }
        jobs
    }
}
