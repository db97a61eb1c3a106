//! The convolution: slab by slab into a buffer that holds what it reads, then one of four ways.
//!
//! | way | when |
//! | --- | --- |
//! | a matrix product on the clip itself | one tap, nothing in front |
//! | own kernel | channels out that are no multiple of eight: the last layer of a decoder |
//! | folded, by cuDNN | height and width are enlarged: taps that read the same pixel are one, 27 become 8 or 12 (for a single frame: 4, 8 or 12) |
//! | cuDNN | else; a matrix product for each tap where it has no engine or is not there |

mod abi;
mod task;

use candle_core::{DType, Tensor, TensorId};
use framepack_engine::ops::{Axis, Conv3d, ConvInput, ConvSize, Norm, Prologue};

use crate::Cuda;
use crate::error::{Result, argument};
use crate::kept::Kept;
use crate::memory::{Buffer, address, size_of, uninitialised};
use crate::plan::{Cost, Folded, Form, map, slabs};
use crate::sizing::Sizing;

use self::task::Task;

/// Channels of the buffers are multiples of this.
pub(crate) const WIDE: usize = 8;

/// Threads of a block of the kernels that keep to some channels.
const THREADS: usize = 256;

/// The most numbers of a buffer or slab: libraries count them in 31 bits.
const COUNTED: usize = 1 << 30;

/// Rows of a matrix product at most, for the same reason.
const ROWS: usize = 1 << 21;

fn int(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

/// [`framepack_engine::ops::Backend::conv3d`].
pub(crate) fn conv3d(
    cuda: &Cuda,
    clip: ConvInput<'_>,
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
    let out = uninitialised(&shape, cuda)?;
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
fn check(clip: ConvInput<'_>, prologue: &Prologue<'_>, conv: &Conv3d) -> Result<[usize; 3]> {
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
    if taps[0] > 3 || taps[1] != 3 || taps[2] != 3 {
        return None;
    }
    let time = (taps[0] == 3)
        .then(|| Folded::pairs(&maps[0]).or_else(|| Folded::single(&maps[0])))
        .flatten();
    Some([
        time.unwrap_or_else(|| Folded::plain(maps[0].clone(), taps[0])),
        Folded::pairs(&maps[1])?,
        Folded::pairs(&maps[2])?,
    ])
}

/// What slabs cost whose buffer has these frames, rows and columns.
fn plain_cost(sizing: Sizing, [_, rows, columns]: [usize; 3], conv: ConvSize) -> Cost {
    let ConvSize { kernel, stride, .. } = conv;
    let by_taps = !sizing.dnn && kernel != [1; 3] && conv.outputs.is_multiple_of(WIDE);
    Cost {
        read: columns * conv.inputs.next_multiple_of(WIDE) * size_of(sizing.dtype),
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
fn folded_cost(sizing: Sizing, axes: &[Folded; 3], conv: ConvSize) -> Cost {
    let parts: usize = axes.iter().map(|axis| axis.parts).product();
    let bytes = size_of(sizing.dtype);
    Cost {
        read: axes[2].map.len() * conv.inputs.next_multiple_of(WIDE) * bytes,
        written: axes[2].windows() * parts * conv.outputs * bytes,
        rows: axes[1].map.len(),
        taps: [axes[0].taps, axes[1].taps],
        stride: [1; 2],
    }
}

/// Numbers of a weight for folded axes.
fn folded_weight(axes: &[Folded; 3], conv: ConvSize) -> usize {
    let each: usize = axes.iter().map(|axis| axis.parts * axis.taps).product();
    each * conv.outputs * conv.inputs.next_multiple_of(WIDE)
}

/// Folded weights that are kept: by the weight, of which no other ever has the number, and the axes.
pub(crate) type Folds = Kept<(TensorId, [Form; 3]), Buffer>;

/// Bytes that [`conv3d`] takes at most beside what it reads and gives, but for cuDNN's workspace, which is small. What
/// earlier ones have left in [`Folds`] is counted.
pub(crate) fn scratch(sizing: Sizing, axes: &[Axis; 3], conv: ConvSize) -> usize {
    let limit = sizing.scratch.min(COUNTED * size_of(sizing.dtype));
    let most = |cost: Cost, frames: usize, rows: usize| {
        let all = slabs(frames, rows, cost, limit);
        let bytes = all.iter().map(|slab| cost.of_slab(slab, rows));
        bytes.max().unwrap_or(0)
    };
    let maps = axes.each_ref().map(map);
    if conv.stride == [1; 3]
        && conv.outputs.is_multiple_of(WIDE)
        && sizing.dnn
        && let Some(axes) = fold(&maps, conv.kernel)
    {
        let weight = folded_weight(&axes, conv) * size_of(sizing.dtype);
        let cost = folded_cost(sizing, &axes, conv);
        let slab = most(cost, axes[0].windows(), axes[1].windows());
        let own = if weight > sizing.kept() { weight } else { 0 };
        return own + slab + sizing.kept();
    }
    let lengths = axes.each_ref().map(Axis::len);
    let size = |i: usize| lengths[i].saturating_sub(conv.kernel[i]) / conv.stride[i] + 1;
    most(plain_cost(sizing, lengths, conv), size(0), size(1)) + sizing.kept()
}

/// The same of one tap over a clip as it is: a matrix product on the clip itself, if its channels lie as it needs them.
pub(crate) fn linear_scratch(sizing: Sizing, size: [usize; 3], channels: [usize; 2]) -> usize {
    let [inputs, outputs] = channels;
    if inputs.is_multiple_of(WIDE) && outputs.is_multiple_of(WIDE) {
        return sizing.kept();
    }
    let conv = ConvSize {
        kernel: [1; 3],
        stride: [1; 3],
        inputs,
        outputs,
    };
    scratch(sizing, &size.map(Axis::identity), conv)
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
