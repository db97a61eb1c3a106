//! A backend that tells what it is doing, and does a convolution another way when the first one fails.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use candle_core::{DType, Device, Tensor, TensorId};

use super::{
    Affine, AttentionMask, Axis, Backend, Conv3d, ConvInput, ConvSize, GroupSums, Norm, Pending,
    Prologue,
};
use crate::error::{Error, Result};

/// An operation that begins.
#[derive(Clone, Copy, Debug)]
pub struct Op<'a> {
    /// `conv3d`, `attention`, `group_norm`.
    pub name: &'static str,
    /// Shape of what goes in: (B, T, H, W, C).
    pub shape: &'a [usize],
    /// Channels out and in, and taps, of a convolution; else empty.
    pub weight: &'a [usize],
    /// What it is computed in.
    pub dtype: DType,
    /// The way that is tried.
    pub tier: &'static str,
}

/// Hears of every operation.
pub trait Watcher: Send + Sync + Debug {
    /// It begins.
    fn begins(&self, op: Op<'_>);
    /// It is over; an error: this tier failed.
    fn ends(&self, op: Op<'_>, result: std::result::Result<(), &Error>);
}

/// A way of computing, and its name in statistics.
pub type Tier = (&'static str, Arc<dyn Backend>);

/// See the module. Weights lie on the first way's device; another way gets copies when it is first needed.
#[derive(Debug)]
pub struct Tiered {
    first: Tier,
    others: Vec<Tier>,
    watcher: Arc<dyn Watcher>,
    /// Weights in the layout of another way: by the first's weight and the place of the way.
    copies: Mutex<HashMap<(TensorId, usize), Conv3d>>,
    /// Shapes that an earlier way has failed for, with the place of the one that worked.
    worked: Mutex<HashMap<Shape, usize>>,
}

/// A convolution by its shapes.
type Shape = (Vec<usize>, Vec<usize>);

impl Tiered {
    /// `first`, and for convolutions `others` in their order.
    pub fn new(first: Tier, others: Vec<Tier>, watcher: Arc<dyn Watcher>) -> Self {
        Self {
            first,
            others,
            watcher,
            copies: Mutex::default(),
            worked: Mutex::default(),
        }
    }

    fn told<T>(&self, op: Op<'_>, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.watcher.begins(op);
        let result = work();
        self.watcher.ends(op, result.as_ref().map(|_| ()));
        result
    }

    fn norm<'a>(&self, clip: &'a Tensor) -> Op<'a> {
        Op {
            name: "group_norm",
            shape: clip.dims(),
            weight: &[],
            dtype: clip.dtype(),
            tier: self.first.0,
        }
    }

    fn copy(&self, conv: &Conv3d, place: usize, backend: &dyn Backend) -> Result<Conv3d> {
        let mut copies = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (conv.weight.id(), place);
        if let Some(copy) = copies.get(&key) {
            return Ok(copy.clone().with_stride(conv.stride));
        }
        let (weight, bias) = self.first.1.unload_conv(conv)?;
        let there = |tensor: &Tensor| -> Result<Tensor> {
            Ok(tensor.to_device(backend.device())?.to_dtype(DType::F32)?)
        };
        let bias = bias.as_ref().map(there).transpose()?;
        let copy = backend.load_conv(&there(&weight)?, bias.as_ref())?;
        copies.insert(key, copy.clone());
        Ok(copy.with_stride(conv.stride))
    }

    fn by_other(
        &self,
        place: usize,
        clip: ConvInput<'_>,
        prologue: &Prologue<'_>,
        conv: &Conv3d,
        add: Option<&Tensor>,
    ) -> Result<Tensor> {
        let backend = &*self.others[place].1;
        let conv = self.copy(conv, place, backend)?;
        let (home, dtype) = (clip.body.device(), clip.body.dtype());
        let wanted = if matches!(backend.device(), Device::Cpu) {
            DType::F32
        } else {
            dtype
        };
        let there = |tensor: &Tensor| -> Result<Tensor> {
            Ok(tensor.to_device(backend.device())?.to_dtype(wanted)?)
        };
        let norm = Moved::of(&prologue.norm, &there)?;
        let prologue = Prologue {
            norm: norm.as_norm(),
            ..prologue.clone()
        };
        let (front, body) = (clip.front.map(there).transpose()?, there(clip.body)?);
        let add = add.map(there).transpose()?;
        let clip = ConvInput {
            front: front.as_ref(),
            body: &body,
        };
        let out = backend.conv3d(clip, &prologue, &conv, add.as_ref())?;
        Ok(out.to_device(home)?.to_dtype(dtype)?)
    }
}

/// A norm on another device.
enum Moved {
    None,
    Affine(Affine),
    Rms(Tensor),
}

impl Moved {
    fn of(norm: &Norm<'_>, there: &dyn Fn(&Tensor) -> Result<Tensor>) -> Result<Self> {
        Ok(match norm {
            Norm::None => Self::None,
            Norm::Affine(affine) => Self::Affine(Affine {
                scale: there(&affine.scale)?,
                shift: there(&affine.shift)?,
            }),
            Norm::Rms(gamma) => Self::Rms(there(gamma)?),
        })
    }

    fn as_norm(&self) -> Norm<'_> {
        match self {
            Self::None => Norm::None,
            Self::Affine(affine) => Norm::Affine(affine),
            Self::Rms(gamma) => Norm::Rms(gamma),
        }
    }
}

impl Backend for Tiered {
    fn device(&self) -> &Device {
        self.first.1.device()
    }

    fn dtype(&self) -> DType {
        self.first.1.dtype()
    }

    fn conv_scratch(&self, batch: usize, axes: &[Axis; 3], conv: ConvSize) -> u64 {
        self.first.1.conv_scratch(batch, axes, conv)
    }

    fn linear_scratch(&self, batch: usize, size: [usize; 3], channels: [usize; 2]) -> u64 {
        self.first.1.linear_scratch(batch, size, channels)
    }

    fn attention_scratch(&self, frames: usize, tokens: usize, channels: usize) -> u64 {
        self.first.1.attention_scratch(frames, tokens, channels)
    }

    fn compact(&self) -> Result<()> {
        self.first.1.compact()
    }

    fn join(&self, parts: &[Tensor], axis: usize) -> Result<Tensor> {
        self.first.1.join(parts, axis)
    }

    fn put(&self, whole: &Tensor, part: &Tensor, axis: usize, at: usize) -> Result<()> {
        self.first.1.put(whole, part, axis, at)
    }

    fn load_conv(&self, weight: &Tensor, bias: Option<&Tensor>) -> Result<Conv3d> {
        self.first.1.load_conv(weight, bias)
    }

    fn unload_conv(&self, conv: &Conv3d) -> Result<(Tensor, Option<Tensor>)> {
        self.first.1.unload_conv(conv)
    }

    fn conv3d(
        &self,
        clip: ConvInput<'_>,
        prologue: &Prologue<'_>,
        conv: &Conv3d,
        add: Option<&Tensor>,
    ) -> Result<Tensor> {
        let (b, t, h, w, c) = clip.dims()?;
        let shape = [b, t, h, w, c];
        let [kt, kh, kw] = conv.kernel;
        let weight = [conv.outputs, conv.inputs, kt, kh, kw];
        let op = |tier: &'static str| Op {
            name: "conv3d",
            shape: &shape,
            weight: &weight,
            dtype: clip.body.dtype(),
            tier,
        };
        let key = (shape.to_vec(), weight.to_vec());
        let known = || {
            let worked = self.worked.lock().unwrap_or_else(PoisonError::into_inner);
            worked.get(&key).copied()
        };
        let begin = if self.others.is_empty() {
            None
        } else {
            known()
        };
        let mut first_error = None;
        if begin.is_none() {
            let native = self.told(op(self.first.0), || {
                self.first.1.conv3d(clip, prologue, conv, add)
            });
            match native {
                // what does not fit together fits no other way either
                // and too little memory is answered by smaller pieces
                Err(e @ Error::Tensor(_)) if !self.others.is_empty() && !e.is_out_of_memory() => {
                    first_error = Some(e);
                }
                other => return other,
            }
        }
        for place in begin.unwrap_or(0)..self.others.len() {
            let tried = self.told(op(self.others[place].0), || {
                self.by_other(place, clip, prologue, conv, add)
            });
            match tried {
                Ok(out) => {
                    let mut worked = self.worked.lock().unwrap_or_else(PoisonError::into_inner);
                    worked.insert(key, place);
                    return Ok(out);
                }
                Err(e) => {
                    // the first error says what is wrong
                    first_error.get_or_insert(e);
                }
            }
        }
        Err(first_error.unwrap_or_else(|| Error::Argument("there is no way left".to_owned())))
    }

    fn group_sums(&self, clip: &Tensor, groups: usize) -> Result<GroupSums> {
        self.told(self.norm(clip), || self.first.1.group_sums(clip, groups))
    }

    fn begin_group_sums(&self, clip: &Tensor, groups: usize) -> Result<Pending> {
        self.told(self.norm(clip), || {
            self.first.1.begin_group_sums(clip, groups)
        })
    }

    fn attention(&self, qkv: &Tensor, mask: AttentionMask) -> Result<Tensor> {
        let op = Op {
            name: "attention",
            shape: qkv.dims(),
            weight: &[],
            dtype: qkv.dtype(),
            tier: self.first.0,
        };
        self.told(op, || self.first.1.attention(qkv, mask))
    }
}

#[cfg(test)]
#[path = "tiered_tests.rs"]
mod tests;
