//! Residual blocks, attention and the causal convolution.

use super::super::layers::{GroupNorm, Loader, attend};
use crate::error::Result;
use crate::ops::{
    Affine, AttentionMask, Axis, Clip, ConvInput, ConvLayer, Executor, Norm, Prologue,
};

/// A convolution whose frames see no later ones: the edges repeated, in time only in front.
#[derive(Debug)]
pub(super) struct Causal {
    pub(super) conv: ConvLayer,
}

impl Causal {
    /// Loads `k` x `k` x `k` taps.
    pub(super) fn load(at: &Loader<'_>, inputs: usize, outputs: usize, k: usize) -> Result<Self> {
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
    pub(super) fn plain(&self, exec: Executor<'_>, clip: &Clip) -> Result<Clip> {
        self.run(exec, clip, axes(clip)?, None, None)
    }

    /// The convolution of `clip` read through `axes`, after a norm and SiLU if there is one, plus `add`.
    pub(super) fn run(
        &self,
        exec: Executor<'_>,
        clip: &Clip,
        axes: [Axis; 3],
        norm: Option<&Affine>,
        add: Option<&Clip>,
    ) -> Result<Clip> {
        let prologue = Prologue {
            norm: norm.map_or(Norm::None, Norm::Affine),
            silu: norm.is_some(),
            axes: self.pad(axes),
        };
        exec.conv3d(ConvInput::from(clip), &prologue, &self.conv, add)
    }
}

/// The axes of a clip, as they are.
pub(super) fn axes(clip: &Clip) -> Result<[Axis; 3]> {
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
    pub(super) fn load(
        at: &Loader<'_>,
        inputs: usize,
        outputs: usize,
        groups: usize,
    ) -> Result<Self> {
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
        at: &Loader<'_>,
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

    pub(super) fn run(&self, exec: Executor<'_>, clip: Clip) -> Result<Clip> {
        let norm = self.norm1.of(exec, &clip)?;
        let inner = self
            .conv1
            .run(exec, &clip, axes(&clip)?, Some(&norm), None)?;
        // before the second convolution, so that a wide input is gone when its output is made
        let add = match &self.shortcut {
            Some(shortcut) => shortcut.plain(exec, &clip)?,
            None => clip.clone(),
        };
        drop(clip);
        let norm = self.norm2.of(exec, &inner)?;
        self.conv2
            .run(exec, &inner, axes(&inner)?, Some(&norm), Some(&add))
    }
}

/// Attention over the tokens of a frame and of those before it, plus the input.
#[derive(Debug)]
pub(super) struct Attention {
    norm: GroupNorm,
    qkv: ConvLayer,
    out: ConvLayer,
}

impl Attention {
    fn load(at: &Loader<'_>, channels: usize, groups: usize) -> Result<Self> {
        Ok(Self {
            norm: GroupNorm::load(&at.under("group_norm"), channels, groups)?,
            qkv: at.stacked(&["to_q", "to_k", "to_v"], channels)?,
            out: at.under("to_out.0").conv(&[channels, channels])?,
        })
    }

    fn run(&self, exec: Executor<'_>, clip: &Clip) -> Result<Clip> {
        let norm = self.norm.of(exec, clip)?;
        let norm = Norm::Affine(&norm);
        attend(
            exec,
            clip,
            norm,
            &self.qkv,
            &self.out,
            AttentionMask::Causal,
        )
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
        at: &Loader<'_>,
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
        exec: Executor<'_>,
        clip: Clip,
        mut after: impl FnMut(&str, &Clip) -> Result<()>,
    ) -> Result<Clip> {
        let mut clip = self.first.run(exec, clip)?;
        after("mid_block.resnets.0", &clip)?;
        if let Some(attention) = &self.attention {
            clip = attention.run(exec, &clip)?;
            after("mid_block.attentions.0", &clip)?;
        }
        let clip = self.second.run(exec, clip)?;
        after("mid_block", &clip)?;
        Ok(clip)
    }
}
