//! Pieces that both autoencoders are made of.

use candle_core::{DType, Tensor};

use crate::error::{Result, argument};
use crate::ops::{
    Affine, AttentionMask, Clip, ConvLayer, ConvSize, DryRun, Executor, GroupSums, Norm, Pending,
    Prologue,
};
use crate::weights::Scope;

/// Loads the weights of a model onto a device, or looks at their shapes alone.
#[derive(Clone, Debug)]
pub(crate) struct Loader<'a> {
    pub(super) exec: Executor<'a>,
    source: Source,
}

/// Where weights come from.
#[derive(Clone, Debug)]
enum Source {
    /// Nowhere: the model is run dry, and its sizes are those of the configuration.
    Sizes,
    /// A file, of which only the shapes are compared with the configuration.
    Shapes(Scope),
    /// A file.
    Weights(Scope),
}

impl<'a> Loader<'a> {
    /// A loader of the weights below `scope`.
    pub(crate) fn of_weights(exec: Executor<'a>, scope: Scope) -> Self {
        let source = Source::Weights(scope);
        Self { exec, source }
    }

    /// A loader that refuses weights below `scope` of other shapes than the model's; the model can only be run dry.
    pub(crate) fn of_shapes(run: &'a DryRun<'a>, scope: Scope) -> Self {
        Self {
            exec: Executor::DryRun(run),
            source: Source::Shapes(scope),
        }
    }

    /// A loader of models without weights, which can only be run dry.
    pub(crate) fn of_sizes(run: &'a DryRun<'a>) -> Self {
        Self {
            exec: Executor::DryRun(run),
            source: Source::Sizes,
        }
    }

    /// Where the weights are, so that some can be read again in another form; absent: there are none.
    pub(super) fn scope(&self) -> Option<&Scope> {
        match &self.source {
            Source::Sizes => None,
            Source::Shapes(scope) | Source::Weights(scope) => Some(scope),
        }
    }

    /// The place `name` below this one.
    pub(super) fn under(&self, name: impl std::fmt::Display) -> Self {
        Self {
            exec: self.exec,
            source: match &self.source {
                Source::Sizes => Source::Sizes,
                Source::Shapes(scope) => Source::Shapes(scope.under(name)),
                Source::Weights(scope) => Source::Weights(scope.under(name)),
            },
        }
    }

    /// Refuses a tensor of another shape, where shapes are looked at.
    fn check(&self, name: &str, shape: &[usize]) -> Result<()> {
        match &self.source {
            Source::Shapes(scope) => scope.check_shape(name, shape),
            Source::Sizes | Source::Weights(_) => Ok(()),
        }
    }

    /// A tensor of this name and shape; without numbers where there are no weights.
    pub(super) fn tensor(&self, name: &str, shape: &[usize]) -> Result<Tensor> {
        self.check(name, shape)?;
        self.exec.load(|device| match &self.source {
            Source::Weights(scope) => scope.get(name, shape, device),
            Source::Sizes | Source::Shapes(_) => {
                argument("a model without weights computes nothing")
            }
        })
    }

    /// `weight` of this shape, whose first two numbers are channels out and in, and `bias`. What is missing of
    /// (kt, kh, kw) is 1: a linear layer and a convolution of images are convolutions of clips.
    pub(super) fn conv(&self, shape: &[usize]) -> Result<ConvLayer> {
        self.check("weight", shape)?;
        self.check("bias", &shape[..1])?;
        self.exec.load_conv(conv_size(shape)?, || {
            let weight = self.tensor("weight", shape)?;
            Ok((five(&weight)?, self.tensor("bias", &shape[..1])?))
        })
    }

    /// Several linear layers of (C, C) over the same input as one.
    pub(super) fn stacked(&self, names: &[&str], channels: usize) -> Result<ConvLayer> {
        let (weight, bias) = ([channels, channels], [channels]);
        for name in names {
            self.under(name).check("weight", &weight)?;
            self.under(name).check("bias", &bias)?;
        }
        let size = conv_size(&[names.len() * channels, channels])?;
        self.exec.load_conv(size, || {
            let (mut weights, mut biases) = (Vec::new(), Vec::new());
            for name in names {
                let at = self.under(name);
                weights.push(at.tensor("weight", &weight)?);
                biases.push(at.tensor("bias", &bias)?);
            }
            Ok((five(&Tensor::cat(&weights, 0)?)?, Tensor::cat(&biases, 0)?))
        })
    }
}

/// The sizes of a convolution whose weight is (O, I, k…).
fn conv_size(shape: &[usize]) -> Result<ConvSize> {
    let [outputs, inputs, taps @ ..] = shape else {
        return argument(format!("a weight of shape {shape:?}"));
    };
    let mut kernel = [1; 3];
    for (own, taps) in kernel.iter_mut().rev().zip(taps.iter().rev()) {
        *own = *taps;
    }
    Ok(ConvSize {
        kernel,
        stride: [1; 3],
        inputs: *inputs,
        outputs: *outputs,
    })
}

/// (O, I, k…) to (O, I, kt, kh, kw).
fn five(weight: &Tensor) -> Result<Tensor> {
    let mut weight = weight.clone();
    while weight.rank() < 5 {
        weight = weight.unsqueeze(2)?;
    }
    Ok(weight)
}

/// (B, C, T, H, W) with this many channels to a clip where and as `exec` computes; empty ones are refused.
pub(super) fn to_clip(
    exec: Executor<'_>,
    outside: &Clip,
    channels: usize,
    what: &str,
) -> Result<Clip> {
    match outside.dims() {
        [b, c, t, h, w] if *c == channels && b * t * h * w > 0 => {
            // less is then copied
            let here = exec.upload(outside)?.to_dtype(exec.dtype())?;
            here.permute(&[0, 2, 3, 4, 1])?.contiguous()
        }
        other => argument(format!(
            "{what} of shape {other:?} where [batch, {channels}, frames, height, width] is needed"
        )),
    }
}

/// The way back, to single precision.
pub(super) fn from_clip(clip: &Clip) -> Result<Clip> {
    clip.permute(&[0, 4, 1, 2, 3])?
        .contiguous()?
        .to_dtype(DType::F32)
}

/// Attention of a clip after a norm, plus the clip: `qkv` makes queries, keys and values in one, `out` reads the result.
pub(super) fn attend(
    exec: Executor<'_>,
    clip: &Clip,
    norm: Norm<'_>,
    qkv: &ConvLayer,
    out: &ConvLayer,
    mask: AttentionMask,
) -> Result<Clip> {
    let (_, t, h, w, _) = clip.dims5()?;
    let plain = Prologue::none(t, h, w);
    let prologue = Prologue {
        norm,
        ..plain.clone()
    };
    let qkv = exec.conv3d(clip.into(), &prologue, qkv, None)?;
    let seen = exec.attention(&qkv, mask)?;
    drop(qkv);
    exec.conv3d((&seen).into(), &plain, out, Some(clip))
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
    pub(super) fn load(at: &Loader<'_>, channels: usize, groups: usize) -> Result<Self> {
        Ok(Self {
            gamma: at.tensor("weight", &[channels])?,
            beta: at.tensor("bias", &[channels])?,
            groups,
        })
    }

    /// What the norm comes down to for this clip.
    pub(super) fn of(&self, exec: Executor<'_>, clip: &Clip) -> Result<Affine> {
        self.with(exec, &self.sums(exec, clip)?)
    }

    /// The sums of a clip, or of a piece of one.
    pub(super) fn sums(&self, exec: Executor<'_>, clip: &Clip) -> Result<GroupSums> {
        exec.group_sums(clip, self.groups)
    }

    /// The same, not waited for.
    pub(super) fn begin(&self, exec: Executor<'_>, clip: &Clip) -> Result<Pending> {
        exec.begin_group_sums(clip, self.groups)
    }

    /// What the norm comes down to for a clip of these sums.
    pub(super) fn with(&self, exec: Executor<'_>, sums: &GroupSums) -> Result<Affine> {
        exec.affine(sums, (&self.gamma, &self.beta), EPSILON)
    }
}
