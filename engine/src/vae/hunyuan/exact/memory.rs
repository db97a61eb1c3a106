//! How a level is gone through within a number of bytes: arithmetic alone, of which the passes are the mirror.

use super::super::HunyuanConfig;
use super::region::{EDGE, FRONT, Grid};
use crate::ops::{Axis, Backend, ConvSize};

/// Positions of a piece beyond which larger pieces make nothing faster.
const PIECE: usize = 1 << 20;

/// Frames after the first from which on pieces read alike.
const PHASES: usize = 4;

/// The fewest rows of a band: each band makes the rows at its edges again.
const BAND: usize = 16;

/// How many bands are tried.
const BANDS: [usize; 20] = [
    2, 3, 4, 5, 6, 8, 9, 10, 12, 14, 16, 20, 24, 30, 40, 60, 90, 150, 300, 600,
];

/// A level of the decoder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// (T, H, W) of the clip that is enlarged to this level's, if any is, and whether time is.
    below: Option<([usize; 3], bool, bool)>,
    /// (T, H, W) of the level.
    pub(super) size: [usize; 3],
    /// Channels of what comes in.
    inputs: usize,
    /// Channels of the level.
    width: usize,
}

/// The levels of a decoder for latents of (t, h, w).
pub(super) fn levels(config: &HunyuanConfig, latents: [usize; 3]) -> Vec<Sizes> {
    let widths = config.block_out_channels.iter().rev();
    let (mut size, mut below) = (latents, None);
    let mut inputs = config.block_out_channels.last().copied().unwrap_or(1);
    let mut levels = Vec::new();
    for (at, &width) in widths.enumerate() {
        levels.push(Sizes {
            below,
            size,
            inputs,
            width,
        });
        let (time, space) = config.changes(at);
        if time || space {
            below = Some((size, time, space));
            let [t, h, w] = size;
            let wide = |side: usize| if space { 2 * side } else { side };
            size = [if time { 2 * t - 1 } else { t }, wide(h), wide(w)];
        } else {
            below = None;
        }
        inputs = width;
    }
    levels
}

/// What is kept, and what is made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mode {
    /// Whether the enlarged clip is kept as a whole.
    pub(super) whole: bool,
    /// Whether the first convolution's result is kept in residual blocks that do not change the width.
    pub(super) keep: bool,
}

/// How each pass over a level cuts it up: what one leaves no room for has gone when another begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grids {
    /// The pass that makes the enlarged clip, or only its sums.
    pub(super) enlarging: Grid,
    /// Both convolutions of the first residual block.
    pub(super) first: [Grid; 2],
    /// Those of the others.
    pub(super) others: [Grid; 2],
}

/// How a level is gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LevelPlan {
    pub(super) mode: Mode,
    pub(super) grids: Grids,
    /// Bytes at its worst.
    pub(super) peak: u64,
}

/// A pass over a level.
#[derive(Clone, Copy, Debug)]
enum Pass {
    Enlarging,
    /// The first or second convolution of the first block.
    First(usize),
    /// The same of the others.
    Others(usize),
}

/// The way through a level that makes the least again and stays within `budget` bytes; if none does, the one
/// that takes the least.
pub(super) fn choose(sizes: &Sizes, backend: &dyn Backend, element: u64, budget: u64) -> LevelPlan {
    let mode = |whole, keep| Mode { whole, keep };
    let rest = if sizes.below.is_some() {
        vec![mode(false, true), mode(false, false)]
    } else {
        vec![mode(true, false)]
    };
    let mut least = plan(sizes, backend, element, budget, mode(true, true));
    for mode in rest {
        if least.peak <= budget {
            break;
        }
        let next = plan(sizes, backend, element, budget, mode);
        if next.peak < least.peak {
            least = next;
        }
    }
    least
}

/// The largest pieces within `budget` for each pass, or the smallest.
fn plan(sizes: &Sizes, backend: &dyn Backend, element: u64, budget: u64, mode: Mode) -> LevelPlan {
    let pieces = grids(sizes.size);
    let mut peak = 0;
    let mut cut = |pass| {
        let need = |&grid: &Grid| {
            let need = Need {
                sizes,
                backend,
                element,
                grid,
            };
            (grid, need.of(pass, mode))
        };
        let (grid, bytes) = best(pieces.iter().map(need), budget);
        peak = peak.max(bytes);
        grid
    };
    let grids = Grids {
        enlarging: cut(Pass::Enlarging),
        first: [cut(Pass::First(0)), cut(Pass::First(1))],
        others: [cut(Pass::Others(0)), cut(Pass::Others(1))],
    };
    LevelPlan { mode, grids, peak }
}

/// The first of these that keeps to `budget`; else the one that takes the least.
fn best(all: impl Iterator<Item = (Grid, u64)>, budget: u64) -> (Grid, u64) {
    let mut least = (Grid { frames: 1, rows: 1 }, u64::MAX);
    for (grid, bytes) in all {
        if bytes < least.1 {
            least = (grid, bytes);
        }
        if bytes <= budget {
            break;
        }
    }
    least
}

/// The pieces that may be tried, larger ones first.
fn grids([t, h, w]: [usize; 3]) -> Vec<Grid> {
    let mut grids: Vec<Grid> = [8, 4, 2, 1]
        .into_iter()
        .filter(|&frames| frames == 1 || (frames <= t && frames * h * w <= PIECE))
        .map(|frames| Grid { frames, rows: h })
        .collect();
    for count in BANDS {
        // even, so that bands begin where pairs of equal rows do
        let rows = h.div_ceil(count).next_multiple_of(2).max(BAND);
        if rows < grids.last().map_or(0, |last| last.rows) {
            grids.push(Grid { frames: 1, rows });
        }
    }
    grids
}

struct Need<'a> {
    sizes: &'a Sizes,
    backend: &'a dyn Backend,
    element: u64,
    grid: Grid,
}

impl Need<'_> {
    /// Bytes of a clip of these frames and rows.
    fn bytes(&self, frames: usize, rows: usize, channels: usize) -> u64 {
        let [t, h, w] = self.sizes.size;
        self.element * (frames.min(t) * rows.min(h) * w * channels) as u64
    }

    fn whole(&self, channels: usize) -> u64 {
        let [t, h, _] = self.sizes.size;
        self.bytes(t, h, channels)
    }

    fn below(&self) -> u64 {
        let cells = |[t, h, w]: [usize; 3]| (t * h * w * self.sizes.inputs) as u64;
        self.sizes
            .below
            .map_or(0, |(size, _, _)| self.element * cells(size))
    }

    fn banded(&self) -> bool {
        self.grid.rows < self.sizes.size[1]
    }

    /// Scratch of a convolution that makes so many frames and rows of the level.
    fn scratch(&self, frames: usize, rows: usize, kernel: usize, outputs: usize, up: bool) -> u64 {
        let [t, h, _] = self.sizes.size;
        let inputs = if up || outputs != self.sizes.width {
            self.sizes.inputs
        } else {
            self.sizes.inputs.max(self.sizes.width)
        };
        self.scratch_of(frames.min(t), rows.min(h), kernel, [inputs, outputs], up)
    }

    /// Scratch of the shortcut over so many frames and rows.
    fn linear_scratch(&self, frames: usize, rows: usize, outputs: usize) -> u64 {
        let size = [self.frames(frames), self.rows(rows), self.sizes.size[2]];
        let channels = [self.sizes.inputs, outputs];
        self.backend.linear_scratch(1, size, channels)
    }

    fn scratch_of(
        &self,
        frames: usize,
        rows: usize,
        kernel: usize,
        [inputs, outputs]: [usize; 2],
        up: bool,
    ) -> u64 {
        let [t, h, w] = match (up, self.sizes.below) {
            (true, Some((size, time, space))) => enlarge(size.map(Axis::identity), time, space),
            _ => self.sizes.size.map(Axis::identity),
        };
        let edge = kernel / 2;
        let (t, h, w) = (
            t.replicate(kernel - 1, 0),
            h.replicate(edge, edge),
            w.replicate(edge, edge),
        );
        let conv = ConvSize {
            kernel: [kernel; 3],
            stride: [1; 3],
            inputs,
            outputs,
        };
        // how often a frame is read, and so what a backend adds up, differs from piece to piece
        let starts = 0..=PHASES.min(self.sizes.size[0].saturating_sub(frames));
        let each = starts.map(|start| {
            let axes = [
                t.part(start..start + frames + kernel - 1, 0),
                h.part(0..rows + 2 * edge, 0),
                w.clone(),
            ];
            self.backend.conv_scratch(1, &axes, conv)
        });
        each.max().unwrap_or_default()
    }

    /// Bytes of a pass at its worst.
    fn of(&self, pass: Pass, mode: Mode) -> u64 {
        let Sizes {
            inputs,
            width,
            below,
            ..
        } = *self.sizes;
        match pass {
            Pass::Enlarging if below.is_some() => self.enlarging(mode),
            Pass::Enlarging => 0,
            // the residual block that may change the width
            Pass::First(conv) if mode.whole || below.is_none() => {
                if inputs == width {
                    return self.equal(conv, mode);
                }
                let each = [self.first_held(), self.second(true, false)];
                self.whole(inputs) + self.whole(width) + each[conv]
            }
            Pass::First(conv) => {
                let each = [self.first_lazy(), self.second(true, true)];
                self.fused() + self.below() + self.whole(width) + each[conv]
            }
            Pass::Others(conv) => self.equal(conv, mode),
        }
    }

    /// The passes of a block that does not change the width and whose input is in memory.
    fn equal(&self, conv: usize, mode: Mode) -> u64 {
        let whole = self.whole(self.sizes.width);
        match (conv, mode.keep) {
            (0, true) => 2 * whole + self.first_held(),
            (0, false) => whole + self.first_held(),
            (_, true) => 2 * whole + self.second(false, false),
            (_, false) => self.again(),
        }
    }

    /// The pass that makes the enlarged clip, or its sums.
    fn enlarging(&self, mode: Mode) -> u64 {
        let Grid { frames, rows } = self.grid;
        let inputs = self.sizes.inputs;
        let piece = self.bytes(frames, rows, inputs) + self.scratch(frames, rows, 3, inputs, true);
        if mode.whole {
            return self.below() + self.whole(inputs) + piece;
        }
        self.below() + self.making_fused().max(self.fused() + piece)
    }

    /// The weights that upsampling and shortcut are in one, where there is a shortcut.
    fn fused(&self) -> u64 {
        let Sizes { inputs, width, .. } = *self.sizes;
        if inputs == width {
            return 0;
        }
        self.element * (27 * inputs * width) as u64
    }

    /// What making them takes, in single precision: the upsampling's weights, the product, and its copy in the
    /// layout of the backend.
    fn making_fused(&self) -> u64 {
        let Sizes { inputs, width, .. } = *self.sizes;
        if inputs == width {
            return 0;
        }
        4 * (27 * inputs * (inputs + 2 * width)) as u64
    }

    /// The first convolution of a block whose input is in memory, beside input and result.
    fn first_held(&self) -> u64 {
        let (Grid { frames, rows }, width) = (self.grid, self.sizes.width);
        self.bytes(frames, rows, width) + self.scratch(frames, rows, 3, width, false)
    }

    /// The same where the input is made as it is read.
    fn first_lazy(&self) -> u64 {
        let (Grid { frames, rows }, Sizes { inputs, width, .. }) = (self.grid, *self.sizes);
        let high = if self.banded() { rows + 2 * PAIR } else { rows };
        let kept = self.bytes(FRONT, high, inputs);
        let new = self.bytes(frames, high, inputs);
        let making = self.scratch(frames, high, 3, inputs, true);
        let reading = self.bytes(frames, rows, width) + self.scratch(frames, rows, 3, width, false);
        let copy = if frames == FRONT { 0 } else { kept };
        kept + new + making.max(reading).max(copy)
    }

    /// The second convolution with the shortcut, beside what is in memory as a whole.
    fn second(&self, makes: bool, lazy: bool) -> u64 {
        let (Grid { frames, rows }, width) = (self.grid, self.sizes.width);
        let out = self.bytes(frames, rows, width);
        let add = if makes || self.banded() { out } else { 0 };
        let making = match (makes, lazy) {
            (false, _) => 0,
            (true, true) => self.scratch(frames, rows, 3, width, true),
            (true, false) => self.linear_scratch(frames, rows, width),
        };
        let window = self.window(frames + FRONT, rows + 2 * EDGE);
        let own = [width, width];
        let reading =
            window + out + self.scratch_of(self.frames(frames), self.rows(rows), 3, own, false);
        self.above(EDGE) + add + making.max(reading)
    }

    /// Both convolutions of a block, the first again.
    fn again(&self) -> u64 {
        let (Grid { frames, rows }, width) = (self.grid, self.sizes.width);
        let own = [width, width];
        let high = if self.banded() { rows + 2 * EDGE } else { rows };
        let inner = self.bytes(frames + FRONT, high, width);
        let (f, r) = (self.frames(frames + FRONT), self.rows(high));
        let making =
            self.window(frames + 2 * FRONT, rows + 4 * EDGE) + self.scratch_of(f, r, 3, own, false);
        let out = self.bytes(frames, rows, width);
        let add = if self.banded() { out } else { 0 };
        let reading = self.scratch_of(self.frames(frames), self.rows(rows), 3, own, false);
        let kept = self.bytes(FRONT, high, width);
        self.whole(width) + self.above(2 * EDGE) + inner + making.max(add + out + reading.max(kept))
    }

    fn frames(&self, frames: usize) -> usize {
        frames.min(self.sizes.size[0])
    }

    fn rows(&self, rows: usize) -> usize {
        rows.min(self.sizes.size[1])
    }

    /// Rows kept from above this band and the next.
    fn above(&self, rows: usize) -> u64 {
        if self.banded() {
            2 * self.bytes(self.sizes.size[0], rows, self.sizes.width)
        } else {
            0
        }
    }

    /// A window put together of such rows and the clip's own.
    fn window(&self, frames: usize, rows: usize) -> u64 {
        if self.banded() {
            self.bytes(frames, rows, self.sizes.width)
        } else {
            0
        }
    }
}

/// Rows that a band of an enlarged clip has more at each edge: the one that is read, and its twin.
pub(super) const PAIR: usize = 2;

/// The axes of the larger clip, read from the smaller one's.
fn enlarge([t, h, w]: [Axis; 3], time: bool, space: bool) -> [Axis; 3] {
    let wide = |axis: Axis| if space { axis.doubled() } else { axis };
    let t = if time { t.doubled_after_first() } else { t };
    [t, wide(h), wide(w)]
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
