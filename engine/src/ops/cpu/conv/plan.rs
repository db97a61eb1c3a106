//! How a convolution is cut up: parts, ways, weights that are added up, and pieces for the threads.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use rayon::prelude::*;

use super::super::taps::{Taps, by_source, doubled, single};
use super::{Task, Way};
use crate::ops::Axis;

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

impl Task<'_> {
    pub(super) fn plan(&self, [t, h, w]: [usize; 3], way: Option<Way>) -> Plan {
        let [_, kh, kw] = self.kernel;
        let halved = if self.kernel[1..] == [3, 3] && self.stride[1..] == [1, 1] {
            self.axes[1].halved().zip(self.axes[2].halved())
        } else {
            None
        };
        let scale = if halved.is_some() { 2 } else { 1 };
        let parts: Vec<Part> = if halved.is_some() {
            let parities = [[0, 0], [0, 1], [1, 0], [1, 1]];
            parities
                .map(|offset| Part {
                    offset,
                    kernel: [2, 2],
                    weights: BTreeMap::new(),
                })
                .into()
        } else {
            vec![Part {
                offset: [0, 0],
                kernel: [kh, kw],
                weights: BTreeMap::new(),
            }]
        };
        let axes = halved.map_or_else(
            || [self.axes[1].clone(), self.axes[2].clone()],
            |(h, w)| [h, w],
        );
        let (h, w) = (h / scale, w / scale);
        let rows = (BLOCK / w).clamp(1, h);
        let way = way.unwrap_or_else(|| self.way(&axes[1], w));
        let mut plan = Plan {
            axes,
            parts,
            scale,
            way,
            rows,
            w,
        };
        self.add_weights(&mut plan, t);
        plan
    }

    /// The way that suits rows of `w` positions read from `axis`.
    fn way(&self, axis: &Axis, w: usize) -> Way {
        #[expect(clippy::cast_precision_loss, reason = "a share of pixels in a row")]
        let waste = (axis.len() - w) as f64 / axis.len() as f64;
        if self.stride[1..] == [1, 1] && waste < WASTE {
            Way::Shift
        } else {
            Way::Tile
        }
    }

    /// Adds up the weights that `t` frames of output need.
    fn add_weights(&self, plan: &mut Plan, t: usize) {
        let taps = Taps {
            weight: self.weight,
            kernel: self.kernel,
            size: self.inputs * self.outputs,
        };
        let mut needed: Vec<Range<usize>> = (0..t)
            .flat_map(|t| self.frames_of(t))
            .map(|(_, taps)| taps)
            .collect();
        needed.sort_unstable_by_key(|taps| (taps.start, taps.end));
        needed.dedup();
        let scale = plan.scale;
        plan.parts.par_iter_mut().for_each(|part| {
            let [rows, columns] = if scale == 2 {
                part.offset.map(doubled)
            } else {
                part.kernel.map(single)
            };
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
        let first = t * self.stride[0];
        by_source((first..first + self.kernel[0]).map(|t| self.axes[0].source(t)))
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
