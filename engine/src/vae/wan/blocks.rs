//! The causal convolution with its cache, residual blocks, attention.

use candle_core::Tensor;

use super::super::layers::{Loader, attend};
use super::cache::{Caches, Slot, Slots};
use crate::error::Result;
use crate::ops::{AttentionMask, Axis, Clip, ConvInput, ConvLayer, Executor, Norm, Prologue};

/// The norm in front of a convolution: gamma of (C).
pub(super) fn gamma(at: &Loader<'_>, channels: usize, rank: usize) -> Result<Tensor> {
    let mut shape = vec![1; rank];
    shape[0] = channels;
    Ok(at.tensor("gamma", &shape)?.flatten_all()?)
}

/// A norm over the channels and SiLU, or nothing.
fn before(gamma: Option<&Tensor>) -> (Norm<'_>, bool) {
    (gamma.map_or(Norm::None, Norm::Rms), gamma.is_some())
}

/// A convolution of three taps a side, whose frames see none that are later: zeros at the edges, and
/// in front the frames of the chunk before.
#[derive(Debug)]
pub(super) struct Causal {
    conv: ConvLayer,
    slot: Slot,
}

impl Causal {
    pub(super) fn load(
        at: &Loader<'_>,
        inputs: usize,
        outputs: usize,
        kernel: [usize; 3],
        slots: &mut Slots,
    ) -> Result<Self> {
        let [kt, kh, kw] = kernel;
        Ok(Self {
            conv: at.conv(&[outputs, inputs, kt, kh, kw])?,
            slot: slots.next(),
        })
    }

    /// The convolution of `clip` after norm and SiLU if there is a `gamma`, plus `add`.
    pub(super) fn run(
        &self,
        exec: Executor<'_>,
        clip: &Clip,
        gamma: Option<&Tensor>,
        add: Option<&Clip>,
        caches: &mut Caches,
    ) -> Result<Clip> {
        let [kt, kh, kw] = self.conv.kernel();
        let front = caches.get(self.slot);
        let clip = ConvInput {
            front: front.as_ref(),
            body: clip,
        };
        let (_, t, h, w, _) = clip.dims()?;
        let kept = t - clip.body.dim(1)?;
        let (norm, silu) = before(gamma);
        let axes = [
            Axis::identity(t).zeros((kt - 1).saturating_sub(kept), 0),
            Axis::identity(h).zeros(kh / 2, kh / 2),
            Axis::identity(w).zeros(kw / 2, kw / 2),
        ];
        let out = exec.conv3d(clip, &Prologue { norm, silu, axes }, &self.conv, add)?;
        caches.keep(self.slot, clip.body, kt - 1)?;
        Ok(out)
    }
}

/// Norm, SiLU, convolution, twice, plus the input.
#[derive(Debug)]
pub(super) struct Resnet {
    norm1: Tensor,
    conv1: Causal,
    norm2: Tensor,
    conv2: Causal,
    shortcut: Option<ConvLayer>,
}

impl Resnet {
    fn load(at: &Loader<'_>, inputs: usize, outputs: usize, slots: &mut Slots) -> Result<Self> {
        let shortcut = at.under("conv_shortcut");
        Ok(Self {
            norm1: gamma(&at.under("norm1"), inputs, 4)?,
            conv1: Causal::load(&at.under("conv1"), inputs, outputs, [3; 3], slots)?,
            norm2: gamma(&at.under("norm2"), outputs, 4)?,
            conv2: Causal::load(&at.under("conv2"), outputs, outputs, [3; 3], slots)?,
            shortcut: (inputs != outputs)
                .then(|| shortcut.conv(&[outputs, inputs, 1, 1, 1]))
                .transpose()?,
        })
    }

    /// The `count` blocks of a level, each at the place that `at` gives; the first changes the width.
    pub(super) fn row<'a>(
        count: usize,
        (inputs, width): (usize, usize),
        slots: &mut Slots,
        mut at: impl FnMut(usize) -> Loader<'a>,
    ) -> Result<Vec<Self>> {
        let each = |j: usize| {
            let inputs = if j == 0 { inputs } else { width };
            Self::load(&at(j), inputs, width, slots)
        };
        (0..count).map(each).collect()
    }

    pub(super) fn run(&self, exec: Executor<'_>, clip: Clip, caches: &mut Caches) -> Result<Clip> {
        let inner = self
            .conv1
            .run(exec, &clip, Some(&self.norm1), None, caches)?;
        let add = match &self.shortcut {
            Some(shortcut) => {
                let (_, t, h, w, _) = clip.dims5()?;
                exec.conv3d((&clip).into(), &Prologue::none(t, h, w), shortcut, None)?
            }
            None => clip.clone(),
        };
        drop(clip);
        self.conv2
            .run(exec, &inner, Some(&self.norm2), Some(&add), caches)
    }
}

/// Attention over the tokens of each frame, plus the input.
#[derive(Debug)]
struct Attention {
    norm: Tensor,
    qkv: ConvLayer,
    out: ConvLayer,
}

impl Attention {
    fn load(at: &Loader<'_>, channels: usize) -> Result<Self> {
        Ok(Self {
            norm: gamma(&at.under("norm"), channels, 3)?,
            qkv: at.under("to_qkv").conv(&[3 * channels, channels, 1, 1])?,
            out: at.under("proj").conv(&[channels, channels, 1, 1])?,
        })
    }

    fn run(&self, exec: Executor<'_>, clip: &Clip) -> Result<Clip> {
        let norm = Norm::Rms(&self.norm);
        attend(exec, clip, norm, &self.qkv, &self.out, AttentionMask::Frame)
    }
}

/// The middle: residual block, attention, residual block.
#[derive(Debug)]
pub(super) struct Middle {
    first: Resnet,
    attention: Attention,
    second: Resnet,
}

impl Middle {
    pub(super) fn load(at: &Loader<'_>, channels: usize, slots: &mut Slots) -> Result<Self> {
        Ok(Self {
            first: Resnet::load(&at.under("resnets.0"), channels, channels, slots)?,
            attention: Attention::load(&at.under("attentions.0"), channels)?,
            second: Resnet::load(&at.under("resnets.1"), channels, channels, slots)?,
        })
    }

    pub(super) fn run(&self, exec: Executor<'_>, clip: Clip, caches: &mut Caches) -> Result<Clip> {
        let mut clip = self.first.run(exec, clip, caches)?;
        clip = self.attention.run(exec, &clip)?;
        self.second.run(exec, clip, caches)
    }
}
