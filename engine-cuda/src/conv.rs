//! The convolution: slab by slab into a buffer that holds what it reads, then one of four ways.
//!
//! | way | when |
//! | --- | --- |
//! | a matrix product on the clip itself | one tap, nothing in front |
//! | own kernel | channels out that are no multiple of eight: the last layer of a decoder |
//! | folded, by cuDNN | height and width are enlarged: taps that read the same pixel are one, 27 become 8 or 12 |
//! | cuDNN | else; a matrix product for each tap where it has no engine or is not there |

use std::ops::Range;

use candle_core::{DType, Tensor};
use framepack_engine::ops::{Axis, Clip, Conv3d, ConvSize, Norm, Prologue};

use crate::Cuda;
use crate::blas::{Matrix, Product};
use crate::dnn::{Data, Shape, Sums};
use crate::error::{Result, argument};
use crate::memory::{Buffer, Launch, address, long, size_of, uninitialised};
use crate::plan::{Cost, Folded, Slab, map, slabs};

/// Channels of the buffers are multiples of this.
pub(crate) const WIDE: usize = 8;

/// Threads of a block of the kernels that keep to some channels.
const THREADS: usize = 256;

/// The most numbers of a buffer or slab: libraries count them in 31 bits.
const COUNTED: usize = 1 << 30;

/// Rows of a matrix product at most, for the same reason.
const ROWS: usize = 1 << 21;

mod abi {
    //! Arguments of kernels, as `kernels/*.cuh` declare them.

    use candle_core::cuda_backend::cudarc::driver::DeviceRepr;

    macro_rules! passed {
        ($($name:ident { $($field:ident: $kind:ty),+ $(,)? })+) => {
            $(
                #[repr(C)]
                #[derive(Clone, Copy, Debug, Default)]
                pub(super) struct $name {
                    $(pub(super) $field: $kind),+
                }

                // SAFETY: plain numbers in C's layout.
                unsafe impl DeviceRepr for $name {}
            )+
        };
    }

    passed! {
        Source { front: u64, body: u64, front_frames: i32, height: i32, width: i32, channels: i32 }
        Maps { t: u64, h: u64, w: u64 }
        Grid {
            rows: i32, columns: i32, height: i32, width: i32, channels: i32,
            step_t: i32, step_h: i32, step_w: i32,
        }
        Places {
            t: u64, h: u64, w: u64, of_h: i32, of_w: i32, rows: i32, columns: i32,
            height: i32, width: i32, channels: i32, all: i32,
        }
        Fold { taps: [i32; 3], folded: [i32; 3], parts: [i32; 3], outputs: i32, inputs: i32 }
        Window {
            taps_t: i32, taps_h: i32, taps_w: i32, step_t: i32, step_h: i32, step_w: i32,
            rows: i32, columns: i32, padded: i32, height: i32, width: i32, outputs: i32,
        }
    }
}

fn int(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

/// [`framepack_engine::ops::Backend::conv3d`].
pub(crate) fn conv3d(
    cuda: &Cuda,
    clip: Clip<'_>,
    prologue: &Prologue<'_>,
    conv: &Conv3d,
    add: Option<&Tensor>,
) -> Result<Tensor> {
    let size = check(clip, prologue, conv)?;
    let batch = clip.body.dim(0)?;
    let (inputs, outputs) = conv.channels();
    let shape = [batch, size[0], size[1], size[2], outputs];
    if let Some(add) = add
        && add.dims() != shape
    {
        return argument(format!(
            "a shortcut {:?} for a result {shape:?}",
            add.dims()
        ));
    }
    let compact = |tensor: Option<&Tensor>| tensor.map(Tensor::contiguous).transpose();
    let (body, front, add) = (clip.body.contiguous()?, compact(clip.front)?, compact(add)?);
    let out = uninitialised(&shape, cuda.dtype, &cuda.device)?;
    let place = |tensor: Option<&Tensor>| {
        tensor.map_or(Ok(0), |tensor| {
            address(tensor, cuda.dtype, cuda.kernels.stream())
        })
    };
    let (_, _, h, w, _) = body.dims5()?;
    let bytes = size_of(cuda.dtype);
    let frame = h * w * inputs * bytes;
    let front_frames = front.as_ref().map_or(Ok(0), |front| front.dim(1))?;
    let norm = Normalised::of(cuda, &prologue.norm, batch, inputs)?;
    for entry in 0..batch {
        let at = |base: u64, bytes: usize| {
            if base == 0 {
                0
            } else {
                base + (entry * bytes) as u64
            }
        };
        let own = size.iter().product::<usize>() * outputs * bytes;
        let task = Task {
            cuda,
            source: abi::Source {
                front: at(place(front.as_ref())?, front_frames * frame),
                body: at(place(Some(&body))?, body.dim(1)? * frame),
                front_frames: int(front_frames),
                height: int(h),
                width: int(w),
                channels: int(inputs),
            },
            norm: norm.entry(entry, inputs),
            silu: prologue.silu,
            conv,
            size,
            padded: inputs.next_multiple_of(WIDE),
            weight: address(conv.weight(), cuda.dtype, cuda.kernels.stream())?,
            bias: conv.bias().map_or(Ok(0), |bias| {
                address(bias, DType::F32, cuda.kernels.stream())
            })?,
            add: at(place(add.as_ref())?, own),
            out: at(place(Some(&out))?, own),
        };
        task.run(prologue)?;
    }
    Ok(out)
}

/// The size of the result.
fn check(clip: Clip<'_>, prologue: &Prologue<'_>, conv: &Conv3d) -> Result<[usize; 3]> {
    let (_, t, h, w, c) = clip.dims()?;
    let (inputs, _) = conv.channels();
    if c != inputs {
        return argument(format!(
            "a clip of {c} channels for a convolution of {inputs}"
        ));
    }
    if c > WIDE * THREADS {
        return argument(format!(
            "{c} channels where at most {} are done",
            WIDE * THREADS
        ));
    }
    let axes = &prologue.axes;
    if [t, h, w]
        .iter()
        .zip(axes)
        .any(|(len, axis)| axis.needs() > *len)
    {
        return argument(format!(
            "padding for another size than that of the clip {:?}",
            clip.body.dims()
        ));
    }
    let (kernel, stride) = (conv.kernel(), conv.stride());
    let mut size = [0; 3];
    for (i, size) in size.iter_mut().enumerate() {
        let Some(more) = axes[i].len().checked_sub(kernel[i]) else {
            let padded: Vec<usize> = axes.iter().map(Axis::len).collect();
            return argument(format!(
                "a clip of {padded:?} is smaller than the kernel {kernel:?}"
            ));
        };
        *size = more / stride[i] + 1;
    }
    Ok(size)
}

/// The axes folded, if height and width can be.
fn fold(maps: &[Vec<i32>; 3], taps: [usize; 3]) -> Option<[Folded; 3]> {
    if taps[1] != 3 || taps[2] != 3 {
        return None;
    }
    let time = (taps[0] == 3).then(|| Folded::pairs(&maps[0])).flatten();
    Some([
        time.unwrap_or_else(|| Folded::plain(maps[0].clone(), taps[0])),
        Folded::pairs(&maps[1])?,
        Folded::pairs(&maps[2])?,
    ])
}

/// What slabs cost whose buffer has these frames, rows and columns.
fn plain_cost(cuda: &Cuda, [_, rows, columns]: [usize; 3], conv: ConvSize) -> Cost {
    let ConvSize { kernel, stride, .. } = conv;
    let by_taps = cuda.dnn.is_none() && kernel != [1; 3] && conv.outputs.is_multiple_of(WIDE);
    Cost {
        read: columns * conv.inputs.next_multiple_of(WIDE) * size_of(cuda.dtype),
        // the sums of the products are on the grid of what is read
        written: if by_taps {
            columns * conv.outputs * 4 * stride[0] * stride[1]
        } else {
            0
        },
        rows,
        taps: [kernel[0], kernel[1]],
        stride: [stride[0], stride[1]],
    }
}

/// The same on folded axes.
fn folded_cost(cuda: &Cuda, axes: &[Folded; 3], conv: ConvSize) -> Cost {
    let parts: usize = axes.iter().map(|axis| axis.parts).product();
    let bytes = size_of(cuda.dtype);
    Cost {
        read: axes[2].map.len() * conv.inputs.next_multiple_of(WIDE) * bytes,
        written: axes[2].windows() * parts * conv.outputs * bytes,
        rows: axes[1].map.len(),
        taps: [axes[0].taps, axes[1].taps],
        stride: [1; 2],
    }
}

/// Bytes that [`conv3d`] takes at most beside what it reads and gives, but for cuDNN's workspace, which is small.
pub(crate) fn scratch(cuda: &Cuda, axes: &[Axis; 3], conv: ConvSize) -> usize {
    let limit = cuda.scratch.min(COUNTED * size_of(cuda.dtype));
    let most = |cost: Cost, frames: usize, rows: usize| {
        let all = slabs(frames, rows, cost, limit);
        let bytes = all.iter().map(|slab| cost.of_slab(slab, rows));
        bytes.max().unwrap_or(0)
    };
    let maps = axes.each_ref().map(map);
    if conv.stride == [1; 3]
        && conv.outputs.is_multiple_of(WIDE)
        && cuda.dnn.is_some()
        && let Some(axes) = fold(&maps, conv.kernel)
    {
        let weight: usize = axes.iter().map(|axis| axis.parts * axis.taps).product();
        let weight = weight * conv.outputs * conv.inputs.next_multiple_of(WIDE);
        let cost = folded_cost(cuda, &axes, conv);
        let slab = most(cost, axes[0].windows(), axes[1].windows());
        return weight * size_of(cuda.dtype) + slab;
    }
    let lengths = axes.each_ref().map(Axis::len);
    let size = |i: usize| lengths[i].saturating_sub(conv.kernel[i]) / conv.stride[i] + 1;
    most(plain_cost(cuda, lengths, conv), size(0), size(1))
}

/// A norm by address.
#[derive(Clone, Copy, Debug, Default)]
struct Normalised {
    scale: u64,
    shift: u64,
    gamma: u64,
}

impl Normalised {
    fn of(cuda: &Cuda, norm: &Norm<'_>, batch: usize, channels: usize) -> Result<Self> {
        let stream = cuda.kernels.stream();
        let single = |tensor: &Tensor, count: usize| {
            if tensor.elem_count() != count {
                return argument(format!(
                    "a norm {:?} for {batch} clips of {channels} channels",
                    tensor.dims()
                ));
            }
            address(tensor, DType::F32, stream)
        };
        Ok(match *norm {
            Norm::None => Self::default(),
            Norm::Affine(affine) => Self {
                scale: single(&affine.scale, batch * channels)?,
                shift: single(&affine.shift, batch * channels)?,
                gamma: 0,
            },
            Norm::Rms(gamma) => Self {
                gamma: single(gamma, channels)?,
                ..Self::default()
            },
        })
    }

    fn entry(self, entry: usize, channels: usize) -> Self {
        let offset = if self.scale == 0 {
            0
        } else {
            (entry * channels * 4) as u64
        };
        Self {
            scale: self.scale + offset,
            shift: self.shift + offset,
            gamma: self.gamma,
        }
    }

    fn none(self) -> bool {
        self.scale == 0 && self.gamma == 0
    }
}

/// The convolution of one batch entry, by address.
struct Task<'a> {
    cuda: &'a Cuda,
    source: abi::Source,
    norm: Normalised,
    silu: bool,
    conv: &'a Conv3d,
    /// Of the result.
    size: [usize; 3],
    /// Channels of the buffer.
    padded: usize,
    weight: u64,
    bias: u64,
    add: u64,
    out: u64,
}

/// A part of the input as the convolution reads it.
struct Piece {
    buffer: u64,
    frames: Range<usize>,
    rows: Range<usize>,
}

impl Task<'_> {
    fn run(&self, prologue: &Prologue<'_>) -> Result<()> {
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
        let cost = plain_cost(self.cuda, lengths, self.conv.size());
        // slabs in which the result's numbers can be counted
        let fits = COUNTED / (self.size[2] * outputs).max(1) / self.size[1].max(1);
        let limit = self.cuda.scratch.min(COUNTED * bytes);
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
        let stream = self.cuda.kernels.stream();
        let buffer = Buffer::new(numbers * size_of(self.cuda.dtype), stream)?;
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
        let sums = Buffer::new(pixels * outputs * 4, self.cuda.kernels.stream())?;
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
        let count = all * taps.iter().product::<usize>() * self.padded;
        let stream = self.cuda.kernels.stream();
        let weight = Buffer::new(count * bytes, stream)?;
        let fold = abi::Fold {
            taps: self.conv.kernel().map(int),
            folded: taps.map(int),
            parts: [axes[0].parts, axes[1].parts, axes[2].parts].map(int),
            outputs: int(outputs),
            inputs: int(self.padded),
        };
        let arguments = (self.weight, weight.address(), fold, long(count));
        self.cuda
            .kernels
            .launch("fold", self.cuda.dtype, Launch::over(count), &arguments)?;
        let maps = [
            axes[0].map.clone(),
            axes[1].map.clone(),
            axes[2].map.clone(),
        ];
        let windows = [axes[0].windows(), axes[1].windows(), axes[2].windows()];
        let cost = folded_cost(self.cuda, axes, self.conv.size());
        let limit = self.cuda.scratch.min(COUNTED * bytes);
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
            let buffer = Buffer::new(
                shape.input.iter().product::<usize>() * self.padded * bytes,
                stream,
            )?;
            let piece = Piece {
                buffer: buffer.address(),
                frames,
                rows,
            };
            self.prepare(&maps, &piece)?;
            let aside = Buffer::new(
                shape.output().iter().product::<usize>() * all * bytes,
                stream,
            )?;
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
