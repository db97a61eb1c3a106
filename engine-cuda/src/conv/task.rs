//! One batch entry, way by way.

use std::ops::Range;
use std::sync::Arc;

use candle_core::DType;
use framepack_engine::ops::{Conv3d, Prologue};

use super::{
    COUNTED, Normalised, ROWS, THREADS, WIDE, abi, fold, folded_cost, folded_weight, int,
    plain_cost,
};
use crate::Cuda;
use crate::blas::{Matrix, Product};
use crate::dnn::{Data, Shape, Sums};
use crate::error::{Result, argument};
use crate::memory::{Buffer, Launch, long, size_of};
use crate::plan::{Folded, Slab, map, slabs};

/// The convolution of one batch entry, by address.
pub(super) struct Task<'a> {
    pub(super) cuda: &'a Cuda,
    pub(super) source: abi::Source,
    pub(super) norm: Normalised,
    pub(super) silu: bool,
    pub(super) conv: &'a Conv3d,
    /// Of the result.
    pub(super) size: [usize; 3],
    /// Channels of the buffer.
    pub(super) padded: usize,
    pub(super) weight: u64,
    pub(super) bias: u64,
    pub(super) add: u64,
    pub(super) out: u64,
}

/// A part of the input as the convolution reads it.
struct Piece {
    buffer: u64,
    frames: Range<usize>,
    rows: Range<usize>,
}

impl Task<'_> {
    pub(super) fn run(&self, prologue: &Prologue<'_>) -> Result<()> {
        let (inputs, outputs) = self.conv.channels();
        let maps = prologue.axes.each_ref().map(map);
        let one = self.conv.kernel() == [1; 3] && self.conv.stride() == [1; 3];
        let whole = !outputs.is_multiple_of(WIDE);
        let same =
            |i: usize, len: i32| prologue.axes[i].is_identity(usize::try_from(len).unwrap_or(0));
        let source = self.source;
        let as_it_is = source.front == 0
            && self.norm.none()
            && !self.silu
            && inputs.is_multiple_of(WIDE)
            && same(0, int(maps[0].len()))
            && same(1, source.height)
            && same(2, source.width);
        if one && !whole && as_it_is {
            let pixels = self.size.iter().product();
            return self.product(source.body, pixels, self.out, self.add);
        }
        if !whole
            && self.conv.stride() == [1; 3]
            && self.cuda.dnn.is_some()
            && let Some(axes) = fold(&maps, self.conv.kernel())
        {
            return self.folded(&axes);
        }
        self.slabs(&maps)
    }

    /// As the convolution stands.
    fn slabs(&self, maps: &[Vec<i32>; 3]) -> Result<()> {
        let (_, outputs) = self.conv.channels();
        let bytes = size_of(self.cuda.dtype);
        let lengths = [maps[0].len(), maps[1].len(), maps[2].len()];
        let cost = plain_cost(self.cuda.sizing, lengths, self.conv.size());
        // slabs in which the result's numbers can be counted
        let fits = COUNTED / (self.size[2] * outputs).max(1) / self.size[1].max(1);
        let limit = self.cuda.sizing.scratch.min(COUNTED * bytes);
        let row = self.size[2] * outputs;
        for slab in slabs(self.size[0], self.size[1], cost, limit) {
            for frames in crate::plan::pieces(slab.frames.len(), fits.max(1)) {
                let frames = slab.frames.start + frames.start..slab.frames.start + frames.end;
                let slab = Slab {
                    frames,
                    rows: slab.rows.clone(),
                };
                let first = (slab.frames.start * self.size[1] + slab.rows.start) * row * bytes;
                let at = |base: u64| if base == 0 { 0 } else { base + first as u64 };
                self.slab(maps, &slab, at(self.out), at(self.add))?;
            }
        }
        Ok(())
    }

    fn slab(&self, maps: &[Vec<i32>; 3], slab: &Slab, out: u64, add: u64) -> Result<()> {
        let (_, outputs) = self.conv.channels();
        let (taps, stride) = (self.conv.kernel(), self.conv.stride());
        let read =
            |of: &Range<usize>, i: usize| of.start * stride[i]..(of.end - 1) * stride[i] + taps[i];
        let (frames, rows) = (read(&slab.frames, 0), read(&slab.rows, 1));
        let columns = maps[2].len();
        let numbers = frames.len() * rows.len() * columns * self.padded;
        let buffer = self.cuda.buffer(numbers * size_of(self.cuda.dtype))?;
        let piece = Piece {
            buffer: buffer.address(),
            frames,
            rows,
        };
        self.prepare(maps, &piece)?;
        let shape = Shape {
            dtype: self.cuda.dtype,
            input: [piece.frames.len(), piece.rows.len(), columns],
            inputs: self.padded,
            outputs,
            taps,
            stride,
        };
        if !outputs.is_multiple_of(WIDE) {
            return self.narrow(shape, piece.buffer, out, add);
        }
        if taps == [1; 3] && stride == [1; 3] {
            return self.product(piece.buffer, shape.input.iter().product(), out, add);
        }
        let data = Data {
            input: piece.buffer,
            weight: self.weight,
            bias: self.bias,
            add,
            output: out,
        };
        if self.by_dnn(shape, data)? {
            return Ok(());
        }
        self.by_taps(shape, piece.buffer, out, add)
    }

    /// Fills a buffer with what the convolution reads.
    fn prepare(&self, maps: &[Vec<i32>; 3], piece: &Piece) -> Result<()> {
        let kernels = &self.cuda.kernels;
        let [t, h, w] = [
            kernels.map(&maps[0])?,
            kernels.map(&maps[1])?,
            kernels.map(&maps[2])?,
        ];
        let maps = abi::Maps {
            t: kernels.map_address(&t) + (piece.frames.start * 4) as u64,
            h: kernels.map_address(&h) + (piece.rows.start * 4) as u64,
            w: kernels.map_address(&w),
        };
        let rows = piece.rows.len();
        let columns = int(w.len());
        let launch = Launch {
            blocks: (piece.frames.len() * rows, 1),
            threads: THREADS,
            shared: 0,
        };
        let (silu, padded) = (i32::from(self.silu), int(self.padded));
        if self.norm.gamma != 0 {
            let (lanes, each) = crate::plan::lanes(self.padded.div_ceil(WIDE));
            let name = match each {
                1 => "prepare_rms1",
                2 => "prepare_rms2",
                3 => "prepare_rms3",
                4 => "prepare_rms4",
                _ => return argument(format!("a norm over {} channels at once", self.padded)),
            };
            let arguments = (
                self.source,
                maps,
                piece.buffer,
                self.norm.gamma,
                silu,
                int(rows),
                columns,
                padded,
                int(lanes),
            );
            return kernels.launch(name, self.cuda.dtype, launch, &arguments);
        }
        let Normalised { scale, shift, .. } = self.norm;
        let arguments = (
            self.source,
            maps,
            piece.buffer,
            scale,
            shift,
            silu,
            int(rows),
            columns,
            padded,
        );
        kernels.launch("prepare", self.cuda.dtype, launch, &arguments)
    }

    /// By cuDNN: whether it has an engine for it.
    fn by_dnn(&self, shape: Shape, data: Data) -> Result<bool> {
        let wanted = Sums {
            bias: data.bias != 0,
            add: data.add != 0,
        };
        let Some(done) = self.cuda.convolve(shape, wanted, data)? else {
            return Ok(false);
        };
        let (bias, add) = (
            if done.bias { 0 } else { data.bias },
            if done.add { 0 } else { data.add },
        );
        self.finish(data.output, bias, add, shape.output().iter().product())?;
        Ok(true)
    }

    /// Adds what is not null to a result.
    fn finish(&self, out: u64, bias: u64, add: u64, pixels: usize) -> Result<()> {
        if bias == 0 && add == 0 {
            return Ok(());
        }
        let (_, outputs) = self.conv.channels();
        let count = pixels * outputs;
        let arguments = (out, bias, add, long(count), int(outputs));
        self.cuda.kernels.launch(
            "finish",
            self.cuda.dtype,
            Launch::over(count / WIDE),
            &arguments,
        )
    }

    /// One tap: a matrix product over the pixels.
    fn product(&self, from: u64, pixels: usize, out: u64, add: u64) -> Result<()> {
        let (_, outputs) = self.conv.channels();
        let bytes = size_of(self.cuda.dtype);
        let matrix = |at, stride| Matrix {
            at,
            dtype: self.cuda.dtype,
            stride,
        };
        for start in (0..pixels).step_by(ROWS) {
            let what = Product {
                transposed: true,
                ..Product::new(ROWS.min(pixels - start), outputs, self.padded)
            };
            let at = |base: u64, wide: usize| matrix(base + (start * wide * bytes) as u64, wide);
            let weight = matrix(self.weight, self.padded);
            self.cuda
                .product(what, at(from, self.padded), weight, at(out, outputs))?;
        }
        self.finish(out, self.bias, add, pixels)
    }

    fn narrow(&self, shape: Shape, buffer: u64, out: u64, add: u64) -> Result<()> {
        /// Pixels of a strip and of a warp, as in `narrow.cuh`.
        const STRIP: usize = 8;
        const WARP: usize = 32;
        let size = shape.output();
        let window = abi::Window {
            taps_t: int(shape.taps[0]),
            taps_h: int(shape.taps[1]),
            taps_w: int(shape.taps[2]),
            step_t: int(shape.stride[0]),
            step_h: int(shape.stride[1]),
            step_w: int(shape.stride[2]),
            rows: int(shape.input[1]),
            columns: int(shape.input[2]),
            padded: int(self.padded),
            height: int(size[1]),
            width: int(size[2]),
            outputs: int(shape.outputs),
        };
        let rows = size[0] * size[1];
        let launch = |pixels: usize| Launch {
            blocks: (rows, size[2].div_ceil(pixels)),
            threads: THREADS,
            shared: 0,
        };
        let (kernels, dtype) = (&self.cuda.kernels, self.cuda.dtype);
        if dtype == DType::F32 {
            let lanes = if self.padded <= 16 * WIDE { 16 } else { 32 };
            let arguments = (buffer, self.weight, self.bias, add, out, window, int(lanes));
            return kernels.launch("narrow", dtype, launch(THREADS / lanes * STRIP), &arguments);
        }
        let arguments = (buffer, self.weight, self.bias, add, out, window);
        kernels.launch("narrow", dtype, launch(THREADS / WARP * 32), &arguments)
    }

    /// A matrix product for each tap, on shifted views of the buffer, summed up in single precision.
    fn by_taps(&self, shape: Shape, buffer: u64, out: u64, add: u64) -> Result<()> {
        let [t, h, w] = shape.input;
        let (size, outputs) = (shape.output(), shape.outputs);
        let [kt, kh, kw] = shape.taps;
        // results are where their window begins; what lies between them is computed and not used
        let pixels = t * h * w - ((kt - 1) * h + kh - 1) * w - (kw - 1);
        let sums = self.cuda.buffer(pixels * outputs * 4)?;
        let bytes = size_of(self.cuda.dtype) as u64;
        let matrix = |at, dtype, stride| Matrix { at, dtype, stride };
        for tap in 0..kt * kh * kw {
            let shift = (tap / kw / kh * h + tap / kw % kh) * w + tap % kw;
            for start in (0..pixels).step_by(ROWS) {
                let what = Product {
                    transposed: true,
                    kept: if tap == 0 { 0.0 } else { 1.0 },
                    ..Product::new(ROWS.min(pixels - start), outputs, self.padded)
                };
                let from = buffer + ((shift + start) * self.padded) as u64 * bytes;
                let weight = self.weight + (tap * self.padded) as u64 * bytes;
                self.cuda.product(
                    what,
                    matrix(from, self.cuda.dtype, self.padded),
                    matrix(weight, self.cuda.dtype, kt * kh * kw * self.padded),
                    matrix(
                        sums.address() + (start * outputs * 4) as u64,
                        DType::F32,
                        outputs,
                    ),
                )?;
            }
        }
        let grid = abi::Grid {
            rows: int(h),
            columns: int(w),
            height: int(size[1]),
            width: int(size[2]),
            channels: int(outputs),
            step_t: int(shape.stride[0]),
            step_h: int(shape.stride[1]),
            step_w: int(shape.stride[2]),
        };
        let count = size.iter().product::<usize>() * outputs;
        let arguments = (sums.address(), out, self.bias, add, grid, long(count));
        self.cuda
            .kernels
            .launch("gather", self.cuda.dtype, Launch::over(count), &arguments)
    }

    /// Enlarged axes: all parts as one convolution with fewer taps, then each result to its place.
    fn folded(&self, axes: &[Folded; 3]) -> Result<()> {
        let (_, outputs) = self.conv.channels();
        let bytes = size_of(self.cuda.dtype);
        let parts: usize = axes.iter().map(|axis| axis.parts).product();
        let all = parts * outputs;
        let taps = [axes[0].taps, axes[1].taps, axes[2].taps];
        let weight = self.weight_folded(axes)?;
        let maps = [
            axes[0].map.clone(),
            axes[1].map.clone(),
            axes[2].map.clone(),
        ];
        let windows = [axes[0].windows(), axes[1].windows(), axes[2].windows()];
        let cost = folded_cost(self.cuda.sizing, axes, self.conv.size());
        let limit = self.cuda.sizing.scratch.min(COUNTED * bytes);
        for slab in slabs(windows[0], windows[1], cost, limit) {
            let frames = slab.frames.start..slab.frames.end + taps[0] - 1;
            let rows = slab.rows.start..slab.rows.end + taps[1] - 1;
            let shape = Shape {
                dtype: self.cuda.dtype,
                input: [frames.len(), rows.len(), maps[2].len()],
                inputs: self.padded,
                outputs: all,
                taps,
                stride: [1; 3],
            };
            let buffer = self
                .cuda
                .buffer(shape.input.iter().product::<usize>() * self.padded * bytes)?;
            let piece = Piece {
                buffer: buffer.address(),
                frames,
                rows,
            };
            self.prepare(&maps, &piece)?;
            let aside = self
                .cuda
                .buffer(shape.output().iter().product::<usize>() * all * bytes)?;
            let data = Data {
                input: piece.buffer,
                weight: weight.address(),
                bias: 0,
                add: 0,
                output: aside.address(),
            };
            if self.cuda.convolve(shape, Sums::default(), data)?.is_none() {
                let plain = Task {
                    weight: weight.address(),
                    bias: 0,
                    ..*self
                };
                plain.by_taps(shape, piece.buffer, aside.address(), 0)?;
            }
            self.place(axes, &slab, aside.address(), all)?;
        }
        Ok(())
    }

    /// The weights for these axes: of pieces of a clip, all want the same.
    fn weight_folded(&self, axes: &[Folded; 3]) -> Result<Arc<Buffer>> {
        let outputs = self.conv.channels().1;
        let count = folded_weight(axes, self.conv.size());
        let bytes = count * size_of(self.cuda.dtype);
        let fold = abi::Fold {
            taps: self.conv.kernel().map(int),
            folded: axes.each_ref().map(|axis| int(axis.taps)),
            parts: axes.each_ref().map(|axis| int(axis.parts)),
            reads: axes.each_ref().map(|axis| axis.reads),
            outputs: int(outputs),
            inputs: int(self.padded),
        };
        let key = (self.conv.weight().id(), axes.each_ref().map(Folded::form));
        self.cuda.folds.get(key, bytes, || {
            let weight = self.cuda.buffer(bytes)?;
            let arguments = (self.weight, weight.address(), fold, long(count));
            self.cuda
                .kernels
                .launch("fold", self.cuda.dtype, Launch::over(count), &arguments)?;
            Ok(weight)
        })
    }

    /// The results of a slab of windows to their places.
    fn place(&self, axes: &[Folded; 3], slab: &Slab, aside: u64, all: usize) -> Result<()> {
        let (_, outputs) = self.conv.channels();
        let bytes = size_of(self.cuda.dtype);
        let kernels = &self.cuda.kernels;
        let [t, h, w] = [
            kernels.map(&axes[0].places)?,
            kernels.map(&axes[1].places)?,
            kernels.map(&axes[2].places)?,
        ];
        let (rows, columns) = (slab.rows.len(), axes[2].windows());
        // the places count windows from the beginning, `aside` holds those of the slab
        let before = (slab.frames.start * rows + slab.rows.start) * columns * all * bytes;
        let aside = aside.wrapping_sub(before as u64);
        let results = (axes[0].results(&slab.frames), axes[1].results(&slab.rows));
        let whole = results.1.len() == self.size[1];
        let each = if whole { results.0.len() } else { 1 };
        for frame in results.0.clone().step_by(each.max(1)) {
            let first = (frame * self.size[1] + results.1.start) * self.size[2] * outputs * bytes;
            let places = abi::Places {
                t: kernels.map_address(&t) + (frame * 4) as u64,
                h: kernels.map_address(&h) + (results.1.start * 4) as u64,
                w: kernels.map_address(&w),
                of_h: int(axes[1].parts),
                of_w: int(axes[2].parts),
                rows: int(rows),
                columns: int(columns),
                height: int(results.1.len()),
                width: int(self.size[2]),
                channels: int(outputs),
                all: int(all),
            };
            let add = if self.add == 0 {
                0
            } else {
                self.add + first as u64
            };
            let arguments = (aside, self.out + first as u64, self.bias, add, places);
            let launch = Launch {
                blocks: (each * results.1.len(), 1),
                threads: THREADS,
                shared: 0,
            };
            kernels.launch("place", self.cuda.dtype, launch, &arguments)?;
        }
        Ok(())
    }
}
