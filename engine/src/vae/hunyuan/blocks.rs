//! Residual blocks, attention and the causal convolution.

use candle_core::Tensor;

use super::super::layers::{GroupNorm, Loader, attend};
use crate::error::Result;
use crate::ops::{Affine, Axis, Backend, Clip, Conv3d, Norm, Prologue, Sight};

/// A convolution whose frames see no later ones: the edges repeated, in time only in front.
#[derive(Debug)]
pub(super) struct Causal {
    pub(super) conv: Conv3d,
}

impl Causal {
    /// Loads `k` x `k` x `k` taps.
    pub(super) fn load(at: &Loader, inputs: usize, outputs: usize, k: usize) -> Result<Self> {
        Ok(Self {
            conv: at.conv(&[outputs, inputs, k, k, k])?,
        })
    }

    pub(super) fn with_stride(self, stride: [usize; 3]) -> Self {
        Self {
            conv: self.conv.with_stride(stride),
        }
    }

    /// The padding of these axes.
    pub(super) fn pad(&self, [t, h, w]: [Axis; 3]) -> [Axis; 3] {
        let [kt, kh, kw] = self.conv.kernel();
        [
            t.replicate(kt - 1, 0),
            h.replicate(kh / 2, kh / 2),
            w.replicate(kw / 2, kw / 2),
        ]
    }

    /// The convolution of `clip` as it is.
    pub(super) fn plain(&self, backend: &dyn Backend, clip: &Tensor) -> Result<Tensor> {
        self.run(backend, clip, axes(clip)?, None, None)
    }

    /// The convolution of `clip` read through `axes`, after a norm and SiLU if there is one, plus `add`.
    pub(super) fn run(
        &self,
        backend: &dyn Backend,
        clip: &Tensor,
        axes: [Axis; 3],
        norm: Option<&Affine>,
        add: Option<&Tensor>,
    ) -> Result<Tensor> {
        let prologue = Prologue {
            norm: norm.map_or(Norm::None, Norm::Affine),
            silu: norm.is_some(),
            axes: self.pad(axes),
        };
        backend.conv3d(Clip::from(clip), &prologue, &self.conv, add)
    }
}

/// The axes of a clip, as they are.
pub(super) fn axes(clip: &Tensor) -> Result<[Axis; 3]> {
    let (_, t, h, w, _) = clip.dims5()?;
    Ok([t, h, w].map(Axis::identity))
}

/// Norm, SiLU, convolution, twice, plus the input.
#[derive(Debug)]
pub(super) struct Resnet {
    pub(super) norm1: GroupNorm,
    pub(super) conv1: Causal,
    pub(super) norm2: GroupNorm,
    pub(super) conv2: Causal,
    pub(super) shortcut: Option<Causal>,
}

impl Resnet {
    pub(super) fn load(at: &Loader, inputs: usize, outputs: usize, groups: usize) -> Result<Self> {
        let shortcut = at.under("conv_shortcut.conv");
        Ok(Self {
            norm1: GroupNorm::load(&at.under("norm1"), inputs, groups)?,
            conv1: Causal::load(&at.under("conv1.conv"), inputs, outputs, 3)?,
            norm2: GroupNorm::load(&at.under("norm2"), outputs, groups)?,
            conv2: Causal::load(&at.under("conv2.conv"), outputs, outputs, 3)?,
            shortcut: (inputs != outputs)
                .then(|| Causal::load(&shortcut, inputs, outputs, 1))
                .transpose()?,
        })
    }

    /// The `count` blocks `resnets.…` of a level; the first changes the width.
    pub(super) fn row(
        at: &Loader,
        count: usize,
        inputs: usize,
        width: usize,
        groups: usize,
    ) -> Result<Vec<Self>> {
        let each = |j: usize| {
            let inputs = if j == 0 { inputs } else { width };
            Self::load(
                &at.under(format_args!("resnets.{j}")),
                inputs,
                width,
                groups,
            )
        };
        (0..count).map(each).collect()
    }

    pub(super) fn run(&self, backend: &dyn Backend, clip: Tensor) -> Result<Tensor> {
        let norm = self.norm1.of(backend, &clip)?;
        let inner = self
            .conv1
            .run(backend, &clip, axes(&clip)?, Some(&norm), None)?;
        // before the second convolution, so that a wide input is gone when its output is made
        let add = match &self.shortcut {
            Some(shortcut) => shortcut.plain(backend, &clip)?,
            None => clip.clone(),
        };
        drop(clip);
        let norm = self.norm2.of(backend, &inner)?;
        self.conv2
            .run(backend, &inner, axes(&inner)?, Some(&norm), Some(&add))
    }
}

/// Attention over the tokens of a frame and of those before it, plus the input.
#[derive(Debug)]
pub(super) struct Attention {
    norm: GroupNorm,
    qkv: Conv3d,
    out: Conv3d,
}

impl Attention {
    fn load(at: &Loader, channels: usize, groups: usize) -> Result<Self> {
        Ok(Self {
            norm: GroupNorm::load(&at.under("group_norm"), channels, groups)?,
            qkv: at.stacked(&["to_q", "to_k", "to_v"], channels)?,
            out: at.under("to_out.0").conv(&[channels, channels])?,
        })
    }

    fn run(&self, backend: &dyn Backend, clip: &Tensor) -> Result<Tensor> {
        let norm = self.norm.of(backend, clip)?;
        let norm = Norm::Affine(&norm);
        attend(backend, clip, norm, &self.qkv, &self.out, Sight::Causal)
    }
}

/// The middle: residual block, attention, residual block.
#[derive(Debug)]
pub(super) struct Middle {
    first: Resnet,
    attention: Option<Attention>,
    second: Resnet,
}

impl Middle {
    pub(super) fn load(
        at: &Loader,
        channels: usize,
        groups: usize,
        attention: bool,
    ) -> Result<Self> {
        let resnet = |i: usize| {
            Resnet::load(
                &at.under(format_args!("resnets.{i}")),
                channels,
                channels,
                groups,
            )
        };
        Ok(Self {
            first: resnet(0)?,
            attention: attention
                .then(|| Attention::load(&at.under("attentions.0"), channels, groups))
                .transpose()?,
            second: resnet(1)?,
        })
    }

    pub(super) fn run(
        &self,
        backend: &dyn Backend,
        clip: Tensor,
        mut after: impl FnMut(&str, &Tensor) -> Result<()>,
    ) -> Result<Tensor> {
        let mut clip = self.first.run(backend, clip)?;
        after("mid_block.resnets.0", &clip)?;
        if let Some(attention) = &self.attention {
            clip = attention.run(backend, &clip)?;
            after("mid_block.attentions.0", &clip)?;
        }
        let clip = self.second.run(backend, clip)?;
        after("mid_block", &clip)?;
        Ok(clip)
    }
}
