//! The causal convolution with its cache, residual blocks, attention.

use candle_core::Tensor;

use super::super::layers::{Loader, attend};
use super::cache::{Caches, Slot, Slots};
use crate::error::Result;
use crate::ops::{Axis, Backend, Clip, Conv3d, Norm, Prologue, Sight};

/// The norm in front of a convolution: gamma of (C).
pub(super) fn gamma(at: &Loader, channels: usize, rank: usize) -> Result<Tensor> {
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
    conv: Conv3d,
    slot: Slot,
}

impl Causal {
    pub(super) fn load(
        at: &Loader,
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
        backend: &dyn Backend,
        clip: &Tensor,
        gamma: Option<&Tensor>,
        add: Option<&Tensor>,
        caches: &mut Caches,
    ) -> Result<Tensor> {
        let [kt, kh, kw] = self.conv.kernel();
        let front = caches.get(self.slot);
        let clip = Clip {
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
        let out = backend.conv3d(clip, &Prologue { norm, silu, axes }, &self.conv, add)?;
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
    shortcut: Option<Conv3d>,
}

impl Resnet {
    fn load(at: &Loader, inputs: usize, outputs: usize, slots: &mut Slots) -> Result<Self> {
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
    pub(super) fn row(
        count: usize,
        (inputs, width): (usize, usize),
        slots: &mut Slots,
        mut at: impl FnMut(usize) -> Loader,
    ) -> Result<Vec<Self>> {
        let each = |j: usize| {
            let inputs = if j == 0 { inputs } else { width };
            Self::load(&at(j), inputs, width, slots)
        };
        (0..count).map(each).collect()
    }

    pub(super) fn run(
        &self,
        backend: &dyn Backend,
        clip: Tensor,
        caches: &mut Caches,
    ) -> Result<Tensor> {
        let inner = self
            .conv1
            .run(backend, &clip, Some(&self.norm1), None, caches)?;
        let add = match &self.shortcut {
            Some(shortcut) => {
                let (_, t, h, w, _) = clip.dims5()?;
                backend.conv3d((&clip).into(), &Prologue::none(t, h, w), shortcut, None)?
            }
            None => clip.clone(),
        };
        drop(clip);
        self.conv2
            .run(backend, &inner, Some(&self.norm2), Some(&add), caches)
    }
}

/// Attention over the tokens of each frame, plus the input.
#[derive(Debug)]
struct Attention {
    norm: Tensor,
    qkv: Conv3d,
    out: Conv3d,
}

impl Attention {
    fn load(at: &Loader, channels: usize) -> Result<Self> {
        Ok(Self {
            norm: gamma(&at.under("norm"), channels, 3)?,
            qkv: at.under("to_qkv").conv(&[3 * channels, channels, 1, 1])?,
            out: at.under("proj").conv(&[channels, channels, 1, 1])?,
        })
    }

    fn run(&self, backend: &dyn Backend, clip: &Tensor) -> Result<Tensor> {
        let norm = Norm::Rms(&self.norm);
        attend(backend, clip, norm, &self.qkv, &self.out, Sight::Frame)
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
    pub(super) fn load(at: &Loader, channels: usize, slots: &mut Slots) -> Result<Self> {
        Ok(Self {
            first: Resnet::load(&at.under("resnets.0"), channels, channels, slots)?,
            attention: Attention::load(&at.under("attentions.0"), channels)?,
            second: Resnet::load(&at.under("resnets.1"), channels, channels, slots)?,
        })
    }

    pub(super) fn run(
        &self,
        backend: &dyn Backend,
        clip: Tensor,
        caches: &mut Caches,
    ) -> Result<Tensor> {
        let mut clip = self.first.run(backend, clip, caches)?;
        clip = self.attention.run(backend, &clip)?;
        self.second.run(backend, clip, caches)
    }
}
