//! What model code runs on: a backend that computes, or a dry run that counts bytes.

use candle_core::{DType, Device, Tensor};

use super::clip::{Clip, joined};
use super::dry_run::{DryRun, no_affine, no_numbers};
use super::{
    Affine, AttentionMask, Backend, Conv3d, ConvInput, ConvSize, GroupSums, Pending, Prologue,
};
use crate::error::{Error, Result, argument};

/// Steps of a loop after which its memory repeats: the second is the first with something kept before it, and the
/// third the first whose kept frames are those of an ordinary step.
const STEADY: usize = 3;

/// A convolution of a model: its sizes, and its weights where they were loaded.
#[derive(Clone, Debug)]
pub(crate) struct ConvLayer {
    size: ConvSize,
    weights: Option<Conv3d>,
}

impl ConvLayer {
    pub(crate) fn size(&self) -> ConvSize {
        self.size
    }

    /// Taps in time, height and width.
    pub(crate) fn kernel(&self) -> [usize; 3] {
        self.size.kernel
    }

    /// The same weights, read every `stride`-th position in time, height and width.
    #[must_use]
    pub(crate) fn with_stride(self, stride: [usize; 3]) -> Self {
        Self {
            size: ConvSize {
                stride,
                ..self.size
            },
            weights: self.weights.map(|weights| weights.with_stride(stride)),
        }
    }

    fn loaded(&self) -> Result<&Conv3d> {
        self.weights
            .as_ref()
            .map_or_else(|| argument("a model without weights computes nothing"), Ok)
    }
}

/// Where a model runs. Its clips are all of one kind: with numbers, or counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Executor<'a> {
    Backend(&'a dyn Backend),
    DryRun(&'a DryRun<'a>),
}

impl<'a> Executor<'a> {
    /// The backend that computes, or that a dry run asks for its figures.
    pub(crate) fn backend(self) -> &'a dyn Backend {
        match self {
            Self::Backend(backend) => backend,
            Self::DryRun(run) => run.backend(),
        }
    }

    /// The precision of clips.
    pub(crate) fn dtype(self) -> DType {
        self.backend().dtype()
    }

    /// A convolution of these sizes; `weight` gives (O, I, kt, kh, kw) and (O), and is not asked in a dry run.
    pub(crate) fn load_conv(
        self,
        size: ConvSize,
        weights: impl FnOnce() -> Result<(Tensor, Tensor)>,
    ) -> Result<ConvLayer> {
        let weights = match self {
            Self::Backend(backend) => {
                let (weight, bias) = weights()?;
                let conv = backend.load_conv(&weight, Some(&bias))?;
                Some(conv.with_stride(size.stride))
            }
            Self::DryRun(_) => None,
        };
        Ok(ConvLayer { size, weights })
    }

    /// A tensor that `load` gives on the device; in a dry run one without numbers.
    pub(crate) fn load(self, load: impl FnOnce(&Device) -> Result<Tensor>) -> Result<Tensor> {
        match self {
            Self::Backend(backend) => load(backend.device()),
            Self::DryRun(_) => no_numbers(),
        }
    }

    /// A clip from the outside, brought to the device.
    pub(crate) fn upload(self, clip: &Clip) -> Result<Clip> {
        match self {
            Self::Backend(backend) => Ok(clip.tensor()?.to_device(backend.device())?.into()),
            Self::DryRun(run) if run.backend().device().is_cpu() => Ok(clip.clone()),
            Self::DryRun(_) => clip.force_contiguous(),
        }
    }

    /// Zeros in the precision of clips.
    pub(crate) fn zeros(self, dims: &[usize]) -> Result<Clip> {
        match self {
            Self::Backend(backend) => {
                Ok(Tensor::zeros(dims, backend.dtype(), backend.device())?.into())
            }
            Self::DryRun(run) => Ok(run.allocate(dims)),
        }
    }

    /// [`Backend::conv3d`].
    pub(crate) fn conv3d(
        self,
        clip: ConvInput<'_, Clip>,
        prologue: &Prologue<'_>,
        conv: &ConvLayer,
        add: Option<&Clip>,
    ) -> Result<Clip> {
        match self {
            Self::Backend(backend) => {
                let clip = ConvInput {
                    front: clip.front.map(Clip::tensor).transpose()?,
                    body: clip.body.tensor()?,
                };
                let add = add.map(Clip::tensor).transpose()?;
                Ok(backend.conv3d(clip, prologue, conv.loaded()?, add)?.into())
            }
            Self::DryRun(run) => run.conv3d(clip, prologue, conv, add),
        }
    }

    /// [`Backend::attention`].
    pub(crate) fn attention(self, qkv: &Clip, mask: AttentionMask) -> Result<Clip> {
        match self {
            Self::Backend(backend) => Ok(backend.attention(qkv.tensor()?, mask)?.into()),
            Self::DryRun(run) => run.attention(qkv),
        }
    }

    /// [`Backend::group_sums`]; a dry run has none.
    pub(crate) fn group_sums(self, clip: &Clip, groups: usize) -> Result<GroupSums> {
        match self {
            Self::Backend(backend) => backend.group_sums(clip.tensor()?, groups),
            Self::DryRun(_) => no_sums(clip),
        }
    }

    /// [`Backend::begin_group_sums`].
    pub(crate) fn begin_group_sums(self, clip: &Clip, groups: usize) -> Result<Pending> {
        match self {
            Self::Backend(backend) => backend.begin_group_sums(clip.tensor()?, groups),
            Self::DryRun(_) => {
                let sums = no_sums(clip)?;
                Ok(Pending::new(move || Ok(sums)))
            }
        }
    }

    /// [`GroupSums::affine`].
    pub(crate) fn affine(
        self,
        sums: &GroupSums,
        (gamma, beta): (&Tensor, &Tensor),
        eps: f64,
    ) -> Result<Affine> {
        match self {
            Self::Backend(_) => sums.affine(gamma, beta, eps),
            Self::DryRun(_) => no_affine(),
        }
    }

    /// [`Backend::compact`].
    pub(crate) fn compact(self) -> Result<()> {
        match self {
            Self::Backend(backend) => backend.compact(),
            Self::DryRun(_) => Ok(()),
        }
    }

    /// [`Backend::join`].
    pub(crate) fn join(self, parts: &[Clip], axis: usize) -> Result<Clip> {
        match self {
            Self::Backend(backend) => {
                let parts: Result<Vec<Tensor>> =
                    parts.iter().map(|part| part.tensor().cloned()).collect();
                Ok(backend.join(&parts?, axis)?.into())
            }
            Self::DryRun(_) if parts.len() == 1 => Ok(parts[0].clone()),
            Self::DryRun(run) => {
                let length = joined(parts.iter().map(Clip::dims), axis)?;
                let mut dims = parts.first().map_or(&[][..], Clip::dims).to_vec();
                let Some(own) = dims.get_mut(axis) else {
                    return argument("no clips to put together");
                };
                *own = length;
                Ok(run.allocate(&dims))
            }
        }
    }

    /// [`Backend::put`].
    pub(crate) fn put(self, whole: &Clip, part: &Clip, axis: usize, at: usize) -> Result<()> {
        match self {
            Self::Backend(backend) => backend.put(whole.tensor()?, part.tensor()?, axis, at),
            // a view with gaps is copied first
            Self::DryRun(_) => part.contiguous().map(drop),
        }
    }

    /// Refuses NaN and infinite numbers: their sum is not finite either. In a dry run only the copy in single
    /// precision counts.
    pub(crate) fn check_finite(self, clip: &Clip, error: impl FnOnce() -> Error) -> Result<()> {
        let single = clip.to_dtype(DType::F32)?;
        match self {
            Self::Backend(_) => {
                let sum = single.tensor()?.sum_all()?;
                if sum.to_scalar::<f32>()?.is_finite() {
                    return Ok(());
                }
                Err(error())
            }
            Self::DryRun(_) => Ok(()),
        }
    }

    /// Runs `work`, which depends on nothing but `clip`. A dry run does so once for each shape, and takes the bytes
    /// of that run from then on.
    pub(crate) fn repeat(
        self,
        name: &'static str,
        clip: &Clip,
        work: impl FnOnce(&Clip) -> Result<Clip>,
    ) -> Result<Clip> {
        self.repeat_keeping(name, clip, &mut Vec::new(), |clip, _| work(clip))
    }

    /// The same for work that depends on the clips `kept` from the work before it too, and changes them.
    pub(crate) fn repeat_keeping<K: AsMut<Vec<Option<Clip>>>>(
        self,
        name: &'static str,
        clip: &Clip,
        kept: &mut K,
        work: impl FnOnce(&Clip, &mut K) -> Result<Clip>,
    ) -> Result<Clip> {
        match self {
            Self::Backend(_) => work(clip, kept),
            Self::DryRun(run) => run.repeat(name, clip, kept, work),
        }
    }

    /// The state from which a decode can go on; no dry run does.
    pub(crate) fn state<S: Default>(self, state: impl FnOnce() -> S) -> S {
        match self {
            Self::Backend(_) => state(),
            Self::DryRun(_) => S::default(),
        }
    }

    /// The steps of a loop that gives its results away; in a dry run those after which its memory repeats.
    pub(crate) fn until_steady<T>(self, steps: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        let most = match self {
            Self::Backend(_) => usize::MAX,
            Self::DryRun(_) => STEADY,
        };
        steps.take(most)
    }
}

fn no_sums(clip: &Clip) -> Result<GroupSums> {
    Ok(GroupSums {
        batch: clip.dim(0)?,
        count: 0.0,
        sums: Vec::new(),
    })
}
