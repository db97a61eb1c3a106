//! Pieces that both autoencoders are made of.

use std::sync::Arc;

use candle_core::Tensor;

use crate::error::Result;
use crate::ops::{Affine, Backend, Conv3d, GroupSums, Norm, Pending, Prologue, Sight};
use crate::weights::Scope;

/// Loads the weights of a model onto a device.
#[derive(Clone, Debug)]
pub(super) struct Loader {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) scope: Scope,
}

impl Loader {
    pub(super) fn new(scope: &Scope, backend: Arc<dyn Backend>) -> Self {
        Self {
            backend,
            scope: scope.clone(),
        }
    }

    /// The place `name` below this one.
    pub(super) fn under(&self, name: impl std::fmt::Display) -> Self {
        Self {
            backend: Arc::clone(&self.backend),
            scope: self.scope.under(name),
        }
    }

    /// A tensor of this name and shape.
    pub(super) fn tensor(&self, name: &str, shape: &[usize]) -> Result<Tensor> {
        self.scope.get(name, shape, self.backend.device())
    }

    /// `weight` of this shape, whose first two numbers are channels out and in, and `bias`. What is missing of
    /// (kt, kh, kw) is 1: a linear layer and a convolution of images are convolutions of clips.
    pub(super) fn conv(&self, shape: &[usize]) -> Result<Conv3d> {
        let weight = self.tensor("weight", shape)?;
        let bias = self.tensor("bias", &shape[..1])?;
        self.backend.load_conv(&five(&weight)?, Some(&bias))
    }

    /// Several linear layers of (C, C) over the same input as one.
    pub(super) fn stacked(&self, names: &[&str], channels: usize) -> Result<Conv3d> {
        let (mut weights, mut biases) = (Vec::new(), Vec::new());
        for name in names {
            let at = self.under(name);
            weights.push(at.tensor("weight", &[channels, channels])?);
            biases.push(at.tensor("bias", &[channels])?);
        }
        self.backend.load_conv(
            &five(&Tensor::cat(&weights, 0)?)?,
            Some(&Tensor::cat(&biases, 0)?),
        )
    }
}

/// (O, I, k…) to (O, I, kt, kh, kw).
fn five(weight: &Tensor) -> Result<Tensor> {
    let mut weight = weight.clone();
    while weight.rank() < 5 {
        weight = weight.unsqueeze(2)?;
    }
    Ok(weight)
}

/// Attention of a clip after a norm, plus the clip: `qkv` makes queries, keys and values in one, `out` reads the result.
pub(super) fn attend(
    backend: &dyn Backend,
    clip: &Tensor,
    norm: Norm<'_>,
    qkv: &Conv3d,
    out: &Conv3d,
    sight: Sight,
) -> Result<Tensor> {
    let (_, t, h, w, _) = clip.dims5()?;
    let plain = Prologue::none(t, h, w);
    let prologue = Prologue {
        norm,
        ..plain.clone()
    };
    let qkv = backend.conv3d(clip.into(), &prologue, qkv, None)?;
    let seen = backend.attention(&qkv, sight)?;
    drop(qkv);
    backend.conv3d((&seen).into(), &plain, out, Some(clip))
}

/// A group norm over the clip.
#[derive(Clone, Debug)]
pub(super) struct GroupNorm {
    gamma: Tensor,
    beta: Tensor,
    groups: usize,
}

/// What is added to the variance.
const EPSILON: f64 = 1e-6;

impl GroupNorm {
    pub(super) fn load(at: &Loader, channels: usize, groups: usize) -> Result<Self> {
        Ok(Self {
            gamma: at.tensor("weight", &[channels])?,
            beta: at.tensor("bias", &[channels])?,
            groups,
        })
    }

    /// What the norm comes down to for this clip.
    pub(super) fn of(&self, backend: &dyn Backend, clip: &Tensor) -> Result<Affine> {
        self.with(&self.sums(backend, clip)?)
    }

    /// The sums of a clip, or of a piece of one.
    pub(super) fn sums(&self, backend: &dyn Backend, clip: &Tensor) -> Result<GroupSums> {
        backend.group_sums(clip, self.groups)
    }

    /// The same, not waited for.
    pub(super) fn begin(&self, backend: &dyn Backend, clip: &Tensor) -> Result<Pending> {
        backend.begin_group_sums(clip, self.groups)
    }

    /// What the norm comes down to for a clip of these sums.
    pub(super) fn with(&self, sums: &GroupSums) -> Result<Affine> {
        sums.affine(&self.gamma, &self.beta, EPSILON)
    }
}
