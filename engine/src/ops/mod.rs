//! The operations that the models are made of, behind one trait.
//!
//! Data is channels-last from end to end: a clip is (B, T, H, W, C), so that a pixel's channels lie
//! together. Padding, upsampling, normalisation and activation are not operations of their own but
//! the *prologue* of the convolution that reads their result, and the sum with a shortcut is its
//! *epilogue*: a device is free to fuse them, and the processor does.

mod axis;
mod clip;
pub mod cpu;
mod dry_run;
mod executor;
pub mod tiered;

pub use axis::Axis;
pub(crate) use clip::Clip;
pub(crate) use dry_run::DryRun;
pub(crate) use executor::{ConvLayer, Executor};

use candle_core::{DType, Device, Tensor};

use crate::error::{Result, argument};

/// The weights of a convolution, in the layout that a [`Backend`] has chosen.
#[derive(Clone, Debug)]
pub struct Conv3d {
    /// For the processor (kt, kh, kw, I, O).
    pub(crate) weight: Tensor,
    /// (O).
    pub(crate) bias: Option<Tensor>,
    /// Taps in time, height and width.
    pub(crate) kernel: [usize; 3],
    /// Steps in time, height and width.
    pub(crate) stride: [usize; 3],
    /// Channels in.
    pub(crate) inputs: usize,
    /// Channels out.
    pub(crate) outputs: usize,
}

impl Conv3d {
    /// Weights of `kernel` taps for `channels` in and out, already in the layout of a [`Backend`], steps of 1.
    pub fn new(
        weight: Tensor,
        bias: Option<Tensor>,
        kernel: [usize; 3],
        channels: (usize, usize),
    ) -> Self {
        Self {
            weight,
            bias,
            kernel,
            stride: [1; 3],
            inputs: channels.0,
            outputs: channels.1,
        }
    }

    /// The weights, in the layout of the backend that loaded them.
    pub fn weight(&self) -> &Tensor {
        &self.weight
    }

    /// (O), if there is one.
    pub fn bias(&self) -> Option<&Tensor> {
        self.bias.as_ref()
    }

    /// Steps in time, height and width.
    pub fn stride(&self) -> [usize; 3] {
        self.stride
    }

    /// Taps in time, height and width.
    pub fn kernel(&self) -> [usize; 3] {
        self.kernel
    }

    /// Channels in and out.
    pub fn channels(&self) -> (usize, usize) {
        (self.inputs, self.outputs)
    }

    /// Its sizes.
    pub fn size(&self) -> ConvSize {
        ConvSize {
            kernel: self.kernel,
            stride: self.stride,
            inputs: self.inputs,
            outputs: self.outputs,
        }
    }

    /// The same weights, read every `stride`-th position in time, height and width.
    #[must_use]
    pub fn with_stride(mut self, stride: [usize; 3]) -> Self {
        self.stride = stride;
        self
    }
}

/// What a plan of memory needs to know of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvSize {
    /// Taps in time, height and width.
    pub kernel: [usize; 3],
    /// Steps in time, height and width.
    pub stride: [usize; 3],
    /// Channels in.
    pub inputs: usize,
    /// Channels out.
    pub outputs: usize,
}

/// The input of a convolution: a clip, and the frames kept from the chunk before it.
#[derive(Debug)]
pub struct ConvInput<'a, T = Tensor> {
    /// Frames in front of `body`, of the same batch, size and channels.
    pub front: Option<&'a T>,
    /// (B, T, H, W, C).
    pub body: &'a T,
}

impl<T> Clone for ConvInput<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ConvInput<'_, T> {}

impl<'a, T> From<&'a T> for ConvInput<'a, T> {
    fn from(body: &'a T) -> Self {
        Self { front: None, body }
    }
}

impl ConvInput<'_> {
    /// (B, T, H, W, C) with the frames in front counted.
    ///
    /// # Errors
    /// When the frames in front differ in batch, size or channels.
    pub fn dims(&self) -> Result<(usize, usize, usize, usize, usize)> {
        input_dims(self.front.map(Tensor::dims), self.body.dims())
    }
}

impl ConvInput<'_, Clip> {
    /// (B, T, H, W, C) with the frames in front counted.
    pub(crate) fn dims(&self) -> Result<(usize, usize, usize, usize, usize)> {
        input_dims(self.front.map(Clip::dims), self.body.dims())
    }
}

fn input_dims(
    front: Option<&[usize]>,
    body: &[usize],
) -> Result<(usize, usize, usize, usize, usize)> {
    let &[b, t, h, w, c] = body else {
        return argument(format!("a clip has five axes, not {body:?}"));
    };
    match front {
        None => Ok((b, t, h, w, c)),
        Some(&[fb, ft, fh, fw, fc]) if (fb, fh, fw, fc) == (b, h, w, c) => Ok((b, ft + t, h, w, c)),
        Some(front) => argument(format!(
            "frames {front:?} cannot stand in front of a clip {body:?}"
        )),
    }
}

/// Numbers that a group norm comes down to once its statistics are known.
#[derive(Clone, Debug)]
pub struct Affine {
    /// (B, C): what a channel is multiplied by.
    pub scale: Tensor,
    /// (B, C): what is then added.
    pub shift: Tensor,
}

/// Sums of a group norm: they add up over the pieces of a clip, so that the statistics of the
/// whole are had without the whole in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupSums {
    /// Batch entries.
    pub batch: usize,
    /// Numbers in a group.
    pub count: f64,
    /// For each batch entry and group: the sum, and the sum of squares.
    pub sums: Vec<(f64, f64)>,
}

/// Sums that a device was asked for and may still be adding up: many pieces are then waited for once.
pub struct Pending(Box<dyn FnOnce() -> Result<GroupSums>>);

impl Pending {
    /// Sums that `wait` gives when the device has them.
    pub fn new(wait: impl FnOnce() -> Result<GroupSums> + 'static) -> Self {
        Self(Box::new(wait))
    }

    /// Waits for them.
    pub fn wait(self) -> Result<GroupSums> {
        (self.0)()
    }
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending").finish_non_exhaustive()
    }
}

impl GroupSums {
    /// Adds another piece of the same clip.
    pub fn add(&mut self, other: &Self) -> Result<()> {
        if self.sums.len() != other.sums.len() || self.batch != other.batch {
            return argument("group sums of different clips do not add up");
        }
        self.count += other.count;
        for (a, b) in self.sums.iter_mut().zip(&other.sums) {
            a.0 += b.0;
            a.1 += b.1;
        }
        Ok(())
    }

    /// Scale and shift of each channel: `gamma` and `beta` are (C), `eps` is added to the variance.
    pub fn affine(&self, gamma: &Tensor, beta: &Tensor, eps: f64) -> Result<Affine> {
        let groups = self.sums.len() / self.batch.max(1);
        let channels = gamma.elem_count();
        let device = gamma.device();
        let (gamma, beta) = (gamma.to_vec1::<f32>()?, beta.to_vec1::<f32>()?);
        if groups == 0 || !channels.is_multiple_of(groups) || beta.len() != channels {
            return argument(format!("{channels} channels do not make {groups} groups"));
        }
        let wide = channels / groups;
        let (mut scale, mut shift) = (Vec::new(), Vec::new());
        for batch in self.sums.chunks(groups) {
            for (channel, (g, b)) in gamma.iter().zip(&beta).enumerate() {
                let (sum, squares) = batch[channel / wide];
                let mean = sum / self.count;
                let variance = (squares / self.count - mean * mean).max(0.0);
                let factor = f64::from(*g) / (variance + eps).sqrt();
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "single precision is what is computed in"
                )]
                {
                    scale.push(factor as f32);
                    shift.push((f64::from(*b) - mean * factor) as f32);
                }
            }
        }
        let shape = (self.batch, channels);
        Ok(Affine {
            scale: Tensor::from_vec(scale, shape, device)?,
            shift: Tensor::from_vec(shift, shape, device)?,
        })
    }
}

/// The normalisation in front of a convolution.
#[derive(Clone, Debug)]
pub enum Norm<'a> {
    /// None.
    None,
    /// Scale and shift by channel: a group norm whose statistics are known.
    Affine(&'a Affine),
    /// x / max(|x| over the channels of the pixel, 1e-12) * sqrt(C) * gamma, gamma being (C).
    Rms(&'a Tensor),
}

/// What happens to the input of a convolution, in this order: normalise, activate, index.
#[derive(Clone, Debug)]
pub struct Prologue<'a> {
    /// The normalisation.
    pub norm: Norm<'a>,
    /// Whether x * sigmoid(x) follows it.
    pub silu: bool,
    /// Padding and upsampling in time, height and width. Zeros are zeros after the activation.
    pub axes: [Axis; 3],
}

impl Prologue<'_> {
    /// Nothing at all, for a clip of `t`, `h`, `w`.
    pub fn none(t: usize, h: usize, w: usize) -> Self {
        Self {
            norm: Norm::None,
            silu: false,
            axes: [Axis::identity(t), Axis::identity(h), Axis::identity(w)],
        }
    }
}

/// Which tokens a token sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttentionMask {
    /// Those of its own frame and of the frames before it.
    Causal,
    /// Those of its own frame.
    Frame,
}

/// What a device must be able to do. Tensors are candle's, on [`Backend::device`].
pub trait Backend: Send + Sync + std::fmt::Debug {
    /// Where the tensors live.
    fn device(&self) -> &Device;

    /// The precision of clips. Weights come to [`Backend::load_conv`] in single precision, and norms stay in it.
    fn dtype(&self) -> DType {
        DType::F32
    }

    /// Takes a weight (O, I, kt, kh, kw) and a bias (O) into the layout that this device wants.
    fn load_conv(&self, weight: &Tensor, bias: Option<&Tensor>) -> Result<Conv3d>;

    /// The way back: (O, I, kt, kh, kw) and (O), so that another backend can take over.
    fn unload_conv(&self, _conv: &Conv3d) -> Result<(Tensor, Option<Tensor>)> {
        argument("the weights of this device cannot be brought back")
    }

    /// The convolution without padding of what the prologue makes of `clip`, plus bias, plus `add`.
    ///
    /// `add` has the shape of the result (B, T', H', W', O).
    fn conv3d(
        &self,
        clip: ConvInput<'_>,
        prologue: &Prologue<'_>,
        conv: &Conv3d,
        add: Option<&Tensor>,
    ) -> Result<Tensor>;

    /// Bytes that [`Backend::conv3d`] takes at most beside what it reads and what it gives, for `batch` entries
    /// read through `axes`.
    ///
    /// Unless a backend knows better: the padded and normalised input.
    fn conv_scratch(&self, batch: usize, axes: &[Axis; 3], conv: ConvSize) -> u64 {
        let padded: usize = axes.iter().map(Axis::len).product();
        (self.dtype().size_in_bytes() * batch * padded * conv.inputs) as u64
    }

    /// The same of a convolution of one tap that reads a clip of `size` as it is, without norm or activation: from and
    /// to so many channels.
    ///
    /// Unless a backend knows better: what any convolution takes.
    fn linear_scratch(&self, batch: usize, size: [usize; 3], channels: [usize; 2]) -> u64 {
        let [inputs, outputs] = channels;
        let conv = ConvSize {
            kernel: [1; 3],
            stride: [1; 3],
            inputs,
            outputs,
        };
        self.conv_scratch(batch, &size.map(Axis::identity), conv)
    }

    /// Bytes that [`Backend::attention`] takes at most beside what it reads and what it gives, for frames of `tokens`
    /// tokens of `channels` numbers.
    ///
    /// Unless a backend knows better: the scores of 1024 queries, in single precision.
    fn attention_scratch(&self, frames: usize, tokens: usize, channels: usize) -> u64 {
        let _ = channels;
        4 * (frames * tokens * tokens.min(1024)) as u64
    }

    /// Before something large is allocated: puts together what is free, so that it finds a place in one. A device whose
    /// memory does not come in pieces has nothing to do.
    fn compact(&self) -> Result<()> {
        Ok(())
    }

    /// Tensors that follow each other along `axis` as one.
    fn join(&self, parts: &[Tensor], axis: usize) -> Result<Tensor> {
        Ok(Tensor::cat(parts, axis)?)
    }

    /// Writes `part` into `whole`, which has no gaps, from `at` on along `axis`.
    fn put(&self, whole: &Tensor, part: &Tensor, axis: usize, at: usize) -> Result<()> {
        Ok(whole.slice_set(&part.contiguous()?, axis, at)?)
    }

    /// The sums over (T, H, W, C / groups) of a clip (B, T, H, W, C).
    fn group_sums(&self, clip: &Tensor, groups: usize) -> Result<GroupSums>;

    /// Begins to add them up. A device that works on its own need not be waited for.
    fn begin_group_sums(&self, clip: &Tensor, groups: usize) -> Result<Pending> {
        let sums = self.group_sums(clip, groups)?;
        Ok(Pending::new(move || Ok(sums)))
    }

    /// Attention with one head: `qkv` is (B, T, H, W, 3C), queries, keys and values in this order, the scale
    /// 1/sqrt(C), the result (B, T, H, W, C). The scores of all tokens are never held at once.
    fn attention(&self, qkv: &Tensor, mask: AttentionMask) -> Result<Tensor>;
}
