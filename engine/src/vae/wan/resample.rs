//! What makes clips larger and smaller between the levels, and the 2.2 kind's shortcuts around levels.

use candle_core::Tensor;

use super::super::layers::Loader;
use super::blocks::Causal;
use super::cache::{Caches, Slot, Slots};
use crate::error::{Result, argument};
use crate::ops::{Axis, Clip, ConvInput, ConvLayer, Executor, Norm, Prologue};

/// Twice the size, and in most levels twice the frames: all but the first of a clip.
#[derive(Debug)]
pub(super) struct Upsample {
    time: Option<Causal>,
    space: ConvLayer,
}

impl Upsample {
    pub(super) fn load(
        at: &Loader<'_>,
        inputs: usize,
        outputs: usize,
        time: bool,
        slots: &mut Slots,
    ) -> Result<Self> {
        let conv = at.under("time_conv");
        Ok(Self {
            space: at.under("resample.1").conv(&[outputs, inputs, 3, 3])?,
            time: time
                .then(|| Causal::load(&conv, inputs, 2 * inputs, [3, 1, 1], slots))
                .transpose()?,
        })
    }

    pub(super) fn run(&self, exec: Executor<'_>, clip: Clip, caches: &mut Caches) -> Result<Clip> {
        let clip = match &self.time {
            // The first frame stays single, and the frames after it do not see it either.
            Some(conv) if !caches.first => {
                let both = conv.run(exec, &clip, None, None, caches)?;
                drop(clip);
                interleave(&both)?
            }
            _ => clip,
        };
        let (_, t, h, w, _) = clip.dims5()?;
        let axes = [
            Axis::identity(t),
            Axis::identity(h).doubled().zeros(1, 1),
            Axis::identity(w).doubled().zeros(1, 1),
        ];
        let prologue = Prologue {
            norm: Norm::None,
            silu: false,
            axes,
        };
        exec.conv3d((&clip).into(), &prologue, &self.space, None)
    }
}

/// (B, T, H, W, 2C) to (B, 2T, H, W, C): the halves of the channels are frames that follow each other.
fn interleave(clip: &Clip) -> Result<Clip> {
    let (b, t, h, w, c) = clip.dims5()?;
    let halves = clip
        .reshape(&[b, t, h * w, 2, c / 2])?
        .permute(&[0, 1, 3, 2, 4])?
        .contiguous()?;
    halves.reshape(&[b, 2 * t, h, w, c / 2])
}

/// Half the size, and in most levels half the frames.
#[derive(Debug)]
pub(super) struct Downsample {
    space: ConvLayer,
    time: Option<(ConvLayer, Slot)>,
}

impl Downsample {
    pub(super) fn load(
        at: &Loader<'_>,
        channels: usize,
        time: bool,
        slots: &mut Slots,
    ) -> Result<Self> {
        let conv = at.under("time_conv");
        let time = time.then(|| {
            let conv = conv
                .conv(&[channels, channels, 3, 1, 1])?
                .with_stride([2, 1, 1]);
            Ok::<_, crate::Error>((conv, slots.next()))
        });
        Ok(Self {
            space: at
                .under("resample.1")
                .conv(&[channels, channels, 3, 3])?
                .with_stride([1, 2, 2]),
            time: time.transpose()?,
        })
    }

    pub(super) fn run(&self, exec: Executor<'_>, clip: &Clip, caches: &mut Caches) -> Result<Clip> {
        let (_, t, h, w, _) = clip.dims5()?;
        let axes = [
            Axis::identity(t),
            Axis::identity(h).zeros(0, 1),
            Axis::identity(w).zeros(0, 1),
        ];
        let prologue = Prologue {
            norm: Norm::None,
            silu: false,
            axes,
        };
        let clip = exec.conv3d(clip.into(), &prologue, &self.space, None)?;
        let Some((conv, slot)) = &self.time else {
            return Ok(clip);
        };
        let front = caches.get(*slot);
        caches.keep(*slot, &clip, 1)?;
        let Some(front) = front else {
            return Ok(clip);
        };
        let clip = ConvInput {
            front: Some(&front),
            body: &clip,
        };
        let (_, t, h, w, _) = clip.dims()?;
        exec.conv3d(clip, &Prologue::none(t, h, w), conv, None)
    }
}

/// The 2.2 decoder's shortcut around a level: channels become frames and pixels.
#[derive(Debug)]
pub(super) struct Spread {
    outputs: usize,
    time: usize,
    /// For each frame, row, column and channel of an output block the input's channel.
    index: Tensor,
}

impl Spread {
    pub(super) fn new(
        inputs: usize,
        outputs: usize,
        time: bool,
        exec: Executor<'_>,
    ) -> Result<Self> {
        let time = if time { 2 } else { 1 };
        let parts = outputs * time * 4;
        if !parts.is_multiple_of(inputs) {
            return argument(format!("{inputs} channels do not spread over {outputs}"));
        }
        let repeats = parts / inputs;
        let index: Vec<u32> = (0..parts)
            .map(|at| {
                let (place, channel) = (at / outputs, at % outputs);
                u32::try_from((channel * time * 4 + place) / repeats).unwrap_or_default()
            })
            .collect();
        Ok(Self {
            outputs,
            time,
            index: exec.load(|device| Ok(Tensor::from_vec(index, parts, device)?))?,
        })
    }

    pub(super) fn run(&self, clip: &Clip, caches: &Caches) -> Result<Clip> {
        let (b, t, h, w, _) = clip.dims5()?;
        let count = self.time * 4 * self.outputs;
        let parts = clip.contiguous()?.index_select(&self.index, count, 4)?;
        let parts = parts.reshape(&[b, t, h, w, self.time, 2, 2, self.outputs])?;
        let parts = parts.permute(&[0, 1, 4, 2, 5, 3, 6, 7])?.contiguous()?;
        let all = parts.reshape(&[b, t * self.time, 2 * h, 2 * w, self.outputs])?;
        let skip = if caches.first { self.time - 1 } else { 0 };
        all.narrow(1, skip, t * self.time - skip)
    }
}

/// The 2.2 encoder's shortcut around a level: the means of blocks of frames, pixels and channels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gather {
    inputs: usize,
    outputs: usize,
    time: usize,
    space: usize,
}

impl Gather {
    pub(super) fn new(inputs: usize, outputs: usize, time: bool, space: bool) -> Result<Self> {
        let half = |yes: bool| if yes { 2 } else { 1 };
        let own = Self {
            inputs,
            outputs,
            time: half(time),
            space: half(space),
        };
        if !(inputs * own.time * own.space * own.space).is_multiple_of(outputs) {
            return argument(format!("{inputs} channels do not gather to {outputs}"));
        }
        Ok(own)
    }

    pub(super) fn run(self, clip: &Clip) -> Result<Clip> {
        let Self {
            inputs: c,
            outputs,
            time,
            space,
        } = self;
        // zeros in front of an odd frame
        let missing = (time - clip.dim(1)? % time) % time;
        let clip = clip.zeros_in_front(1, missing)?;
        let (b, t, h, w, _) = clip.dims5()?;
        let parts = clip.contiguous()?.reshape(&[
            b,
            t / time,
            time,
            h / space,
            space,
            w / space,
            space,
            c,
        ])?;
        let parts = parts.permute(&[0, 1, 3, 5, 7, 2, 4, 6])?.contiguous()?;
        let parts = parts.reshape(&[
            b,
            t / time,
            h / space,
            w / space,
            outputs,
            c * time * space * space / outputs,
        ])?;
        parts.mean(5)
    }
}
