//! How a level is gone through within a number of bytes: arithmetic alone, of which the passes are the mirror.

use super::super::super::config::HunyuanConfig;
use super::region::{EDGE, FRONT, Grid};
use crate::ops::{Axis, Backend, ConvSize};

/// Positions of a piece beyond which larger pieces make nothing faster.
const PIECE: usize = 1 << 20;

/// The fewest rows of a band: each band makes the rows at its edges again.
const BAND: usize = 16;

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

/// How a level is gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LevelPlan {
    pub(super) mode: Mode,
    pub(super) grid: Grid,
    /// Bytes at its worst.
    pub(super) peak: u64,
}

/// The way through a level that makes the least again and stays within `budget` bytes; if none does, the one
/// that takes the least.
pub(super) fn choose(sizes: &Sizes, backend: &dyn Backend, element: u64, budget: u64) -> LevelPlan {
    let mode = |whole, keep| Mode { whole, keep };
    let modes = if sizes.below.is_some() {
        vec![mode(true, true), mode(false, true), mode(false, false)]
    } else {
        vec![mode(true, true), mode(true, false)]
    };
    let mut least: Option<LevelPlan> = None;
    for mode in modes {
        for grid in grids(sizes.size) {
            let peak = Need {
                sizes,
                backend,
                element,
                grid,
            }
            .peak(mode);
            let plan = LevelPlan { mode, grid, peak };
            if peak <= budget {
                return plan;
            }
            if least.is_none_or(|least| peak < least.peak) {
                least = Some(plan);
            }
        }
    }
    least.unwrap_or(LevelPlan {
        mode: mode(sizes.below.is_none(), false),
        grid: Grid { frames: 1, rows: 1 },
        peak: 0,
    })
}

/// The pieces that may be tried, larger ones first.
fn grids([t, h, w]: [usize; 3]) -> Vec<Grid> {
    let mut grids: Vec<Grid> = [8, 4, 2, 1]
        .into_iter()
        .filter(|&frames| frames == 1 || (frames <= t && frames * h * w <= PIECE))
        .map(|frames| Grid { frames, rows: h })
        .collect();
    let mut rows = h;
    while rows > BAND {
        // even, so that bands begin where pairs of equal rows do
        rows = (rows / 2).next_multiple_of(2).max(BAND);
        grids.push(Grid { frames: 1, rows });
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

    /// Scratch of a convolution that makes the first frames and rows of the level: those that read the most
    /// in different ways.
    fn scratch(&self, frames: usize, rows: usize, kernel: usize, outputs: usize, up: bool) -> u64 {
        let [t, h, _] = self.sizes.size;
        let inputs = if up || outputs != self.sizes.width || kernel == 1 {
            self.sizes.inputs
        } else {
            self.sizes.inputs.max(self.sizes.width)
        };
        self.scratch_of(frames.min(t), rows.min(h), kernel, [inputs, outputs], up)
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
        let axes = [
            t.replicate(kernel - 1, 0).part(0..frames + kernel - 1, 0),
            h.replicate(edge, edge).part(0..rows + 2 * edge, 0),
            w.replicate(edge, edge),
        ];
        let conv = ConvSize {
            kernel: [kernel; 3],
            stride: [1; 3],
            inputs,
            outputs,
        };
        self.backend.conv_scratch(1, &axes, conv)
    }

    /// Bytes at the worst of all passes.
    fn peak(&self, mode: Mode) -> u64 {
        let Sizes { inputs, width, .. } = *self.sizes;
        let mut worst = 0;
        if self.sizes.below.is_some() {
            worst = worst.max(self.enlarging(mode));
        }
        // the residual block that may change the width
        let first = if mode.whole || self.sizes.below.is_none() {
            let clip = self.whole(inputs);
            if inputs == width && !mode.keep {
                self.again()
            } else {
                clip + self.whole(width)
                    + self.first_held().max(self.second(inputs != width, false))
            }
        } else {
            let passes = self.first_lazy().max(self.second(true, true));
            self.fused() + self.below() + self.whole(width) + passes
        };
        let others = if mode.keep {
            2 * self.whole(width) + self.first_held().max(self.second(false, false))
        } else {
            self.again()
        };
        worst.max(first).max(others)
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
            (true, false) => self.scratch(frames, rows, 1, width, false),
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
