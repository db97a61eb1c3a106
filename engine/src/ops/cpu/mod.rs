//! The processor. Everything is computed in single precision, whatever the weights were stored in.

mod attention;
mod band;
mod conv;
mod gemm;
mod norm;
mod pixel;
mod taps;
#[cfg(test)]
#[expect(
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "small numbers, and sums that are exact"
)]
mod tests;

use std::ops::Deref;

use candle_core::{CpuStorage, DType, Device, Storage, StorageRef, Tensor};

use self::band::Frames;
use self::conv::Task;
use self::pixel::Pixel;
use super::{AttentionMask, Axis, Backend, Conv3d, ConvInput, ConvSize, GroupSums, Norm, Prologue};
use crate::error::{Result, argument};

/// The processor, on rayon's global thread pool.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu;

impl Backend for Cpu {
    fn device(&self) -> &Device {
        &Device::Cpu
    }

    fn load_conv(&self, weight: &Tensor, bias: Option<&Tensor>) -> Result<Conv3d> {
        let (outputs, inputs, kt, kh, kw) = weight.dims5()?;
        if let Some(bias) = bias
            && bias.dims() != [outputs]
        {
            return argument(format!("a bias {:?} for {outputs} channels", bias.dims()));
        }
        let weight = weight.to_dtype(DType::F32)?.contiguous()?;
        let taps = kt * kh * kw;
        let by_tap = taps::by_tap(&Numbers::of(&weight)?, [outputs, inputs, taps]);
        Ok(Conv3d::new(
            Tensor::from_vec(by_tap, (kt, kh, kw, inputs, outputs), &Device::Cpu)?,
            bias.map(|bias| bias.to_dtype(DType::F32)).transpose()?,
            [kt, kh, kw],
            (inputs, outputs),
        ))
    }

    fn unload_conv(&self, conv: &Conv3d) -> Result<(Tensor, Option<Tensor>)> {
        let weight = conv.weight.permute((4, 3, 0, 1, 2))?.contiguous()?;
        Ok((weight, conv.bias.clone()))
    }

    fn conv3d(
        &self,
        clip: ConvInput<'_>,
        prologue: &Prologue<'_>,
        conv: &Conv3d,
        add: Option<&Tensor>,
    ) -> Result<Tensor> {
        convolve(clip, prologue, conv, add, None)
    }

    fn conv_scratch(&self, batch: usize, axes: &[Axis; 3], conv: ConvSize) -> u64 {
        conv::scratch(batch, axes, conv)
    }

    fn attention_scratch(&self, _frames: usize, _tokens: usize, _channels: usize) -> u64 {
        4 * (rayon::current_num_threads() * attention::SCORES) as u64
    }

    fn group_sums(&self, clip: &Tensor, groups: usize) -> Result<GroupSums> {
        let (batch, t, h, w, channels) = clip.dims5()?;
        if batch * t * h * w == 0
            || groups == 0
            || channels == 0
            || !channels.is_multiple_of(groups)
        {
            return argument(format!(
                "a clip {:?} cannot be normalised in {groups} groups",
                clip.dims()
            ));
        }
        let clip = clip.contiguous()?;
        Ok(norm::group_sums(
            &Numbers::of(&clip)?,
            batch,
            channels,
            groups,
        ))
    }

    fn attention(&self, qkv: &Tensor, mask: AttentionMask) -> Result<Tensor> {
        let (batch, frames, h, w, wide) = qkv.dims5()?;
        if !wide.is_multiple_of(3) || wide == 0 {
            return argument(format!("{wide} channels are not queries, keys and values"));
        }
        let qkv = qkv.contiguous()?;
        let out = attention::attention(&Numbers::of(&qkv)?, [batch, frames, h * w, wide / 3], mask);
        Ok(Tensor::from_vec(
            out,
            (batch, frames, h, w, wide / 3),
            &Device::Cpu,
        )?)
    }
}

/// [`Backend::conv3d`], where a test may choose the way.
fn convolve(
    clip: ConvInput<'_>,
    prologue: &Prologue<'_>,
    conv: &Conv3d,
    add: Option<&Tensor>,
    way: Option<conv::Way>,
) -> Result<Tensor> {
    let (batch, t, h, w, c) = clip.dims()?;
    let axes = &prologue.axes;
    if c != conv.inputs {
        return argument(format!(
            "a clip of {c} channels for a convolution of {}",
            conv.inputs
        ));
    }
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
    let Some(size) = conv::output_size(axes, conv.kernel, conv.stride) else {
        let padded: Vec<usize> = axes.iter().map(Axis::len).collect();
        return argument(format!(
            "a clip of {padded:?} is smaller than the kernel {:?}",
            conv.kernel
        ));
    };
    let shape = (batch, size[0], size[1], size[2], conv.outputs);
    if let Some(add) = add
        && add.dims() != [shape.0, shape.1, shape.2, shape.3, shape.4]
    {
        return argument(format!(
            "a shortcut {:?} for a result {shape:?}",
            add.dims()
        ));
    }
    let compact = |tensor: Option<&Tensor>| tensor.map(Tensor::contiguous).transpose();
    let (body, front, add) = (clip.body.contiguous()?, compact(clip.front)?, compact(add)?);
    let (body, front, add) = (
        Numbers::of(&body)?,
        numbers(front.as_ref())?,
        numbers(add.as_ref())?,
    );
    let (weight, bias) = (Numbers::of(&conv.weight)?, numbers(conv.bias.as_ref())?);
    let norm = NormNumbers::of(&prologue.norm, batch, c)?;
    let frame = h * w * c;
    let (body_entry, front) = (
        body.len() / batch.max(1),
        front.as_deref().unwrap_or_default(),
    );
    let front_entry = front.len() / batch.max(1);
    let task = Task {
        batch: (0..batch)
            .map(|at| {
                let frames = Frames {
                    front: &front[at * front_entry..][..front_entry],
                    body: &body[at * body_entry..][..body_entry],
                    size: frame.max(1),
                };
                (frames, norm.pixel(at, c, prologue.silu))
            })
            .collect(),
        width: w,
        axes,
        weight: &weight,
        bias: bias.as_deref(),
        add: add.as_deref(),
        kernel: conv.kernel,
        stride: conv.stride,
        inputs: c,
        outputs: conv.outputs,
    };
    Ok(Tensor::from_vec(task.run(size, way), shape, &Device::Cpu)?)
}

/// The numbers of a tensor that may be missing.
fn numbers(tensor: Option<&Tensor>) -> Result<Option<Numbers<'_>>> {
    tensor.map(Numbers::of).transpose()
}

/// The numbers of a contiguous tensor in single precision, borrowed.
struct Numbers<'a> {
    storage: StorageRef<'a>,
    range: std::ops::Range<usize>,
}

impl<'a> Numbers<'a> {
    fn of(tensor: &'a Tensor) -> Result<Self> {
        let (storage, layout) = tensor.storage_and_layout();
        let Some((start, end)) = layout.contiguous_offsets() else {
            return argument("a tensor with gaps where one without is needed");
        };
        match &*storage {
            Storage::Cpu(CpuStorage::F32(all)) if end <= all.len() => Ok(Self {
                range: start..end,
                storage,
            }),
            _ => argument(format!(
                "the processor computes in F32 on tensors of its own, not {:?} on {:?}",
                tensor.dtype(),
                tensor.device().location()
            )),
        }
    }
}

impl Deref for Numbers<'_> {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match &*self.storage {
            Storage::Cpu(CpuStorage::F32(all)) => &all[self.range.clone()],
            _ => &[],
        }
    }
}

/// The numbers of a [`Norm`].
enum NormNumbers<'a> {
    None,
    Affine(Numbers<'a>, Numbers<'a>),
    Rms(Numbers<'a>),
}

impl<'a> NormNumbers<'a> {
    fn of(norm: &Norm<'a>, batch: usize, channels: usize) -> Result<Self> {
        let fits = |tensor: &Tensor, count: usize| {
            if tensor.elem_count() == count {
                Ok(())
            } else {
                argument(format!(
                    "a norm {:?} for {batch} clips of {channels} channels",
                    tensor.dims()
                ))
            }
        };
        match *norm {
            Norm::None => Ok(Self::None),
            Norm::Affine(affine) => {
                fits(&affine.scale, batch * channels)?;
                fits(&affine.shift, batch * channels)?;
                Ok(Self::Affine(
                    Numbers::of(&affine.scale)?,
                    Numbers::of(&affine.shift)?,
                ))
            }
            Norm::Rms(gamma) => {
                fits(gamma, channels)?;
                Ok(Self::Rms(Numbers::of(gamma)?))
            }
        }
    }

    /// What is done to the pixels of batch entry `at`.
    fn pixel(&self, at: usize, channels: usize, silu: bool) -> Pixel<'_> {
        let own = at * channels..(at + 1) * channels;
        match (self, silu) {
            (Self::None, false) => Pixel::Copy,
            (Self::None, true) => Pixel::Silu,
            (Self::Affine(scale, shift), false) => Pixel::Affine(&scale[own.clone()], &shift[own]),
            (Self::Affine(scale, shift), true) => {
                Pixel::AffineSilu(&scale[own.clone()], &shift[own])
            }
            (Self::Rms(gamma), false) => Pixel::Rms(gamma),
            (Self::Rms(gamma), true) => Pixel::RmsSilu(gamma),
        }
    }
}
