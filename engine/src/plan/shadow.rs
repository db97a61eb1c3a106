//! Clips without numbers: a model run on these tells how much memory it takes.

use std::cell::Cell;
use std::rc::Rc;

use candle_core::DType;

use crate::ops::{Axis, Backend, ConvSize};

/// Bytes taken now, and at most so far.
#[derive(Debug, Default)]
struct Meter {
    now: Cell<u64>,
    peak: Cell<u64>,
}

impl Meter {
    fn take(&self, bytes: u64) {
        self.now.set(self.now.get() + bytes);
        self.peak.set(self.peak.get().max(self.now.get()));
    }
}

/// A piece of memory, given back when the last clip in it goes.
#[derive(Debug)]
struct Held {
    bytes: u64,
    meter: Rc<Meter>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.meter.now.set(self.meter.now.get() - self.bytes);
    }
}

/// A clip's sizes and its memory, which clones share.
#[derive(Clone, Debug)]
pub(super) struct Clip {
    /// (T, H, W).
    pub(super) size: [usize; 3],
    pub(super) channels: usize,
    held: Rc<Held>,
}

impl Clip {
    /// Bytes of its memory.
    pub(super) fn bytes(&self) -> u64 {
        self.held.bytes
    }

    /// Fewer frames in the same memory.
    pub(super) fn frames(&self, frames: usize) -> Self {
        let [_, h, w] = self.size;
        Self {
            size: [frames, h, w],
            ..self.clone()
        }
    }
}

/// Where clips are made.
#[derive(Debug)]
pub(super) struct Shadow<'a> {
    backend: &'a dyn Backend,
    batch: usize,
    meter: Rc<Meter>,
}

impl<'a> Shadow<'a> {
    pub(super) fn new(backend: &'a dyn Backend, batch: usize) -> Self {
        Self {
            backend,
            batch,
            meter: Rc::default(),
        }
    }

    /// Bytes taken at most so far.
    pub(super) fn peak(&self) -> u64 {
        self.meter.peak.get()
    }

    /// A clip with memory of its own.
    pub(super) fn clip(&self, size: [usize; 3], channels: usize) -> Clip {
        let element = self.backend.dtype().size_in_bytes();
        let bytes = (self.batch * size.iter().product::<usize>() * channels * element) as u64;
        self.meter.take(bytes);
        Clip {
            size,
            channels,
            held: Rc::new(Held {
                bytes,
                meter: Rc::clone(&self.meter),
            }),
        }
    }

    /// Entries of the batch.
    pub(super) fn batch(&self) -> usize {
        self.batch
    }

    /// A result brought to the order of the outside and to single precision, and then given away.
    pub(super) fn give(&self, clip: &Clip) {
        let copy = self.copy(clip);
        if self.backend.dtype() != DType::F32 {
            self.scratch(copy.bytes() * 4 / self.backend.dtype().size_in_bytes() as u64);
        }
    }

    /// A copy.
    pub(super) fn copy(&self, clip: &Clip) -> Clip {
        self.clip(clip.size, clip.channels)
    }

    /// Memory taken for a moment.
    pub(super) fn scratch(&self, bytes: u64) {
        self.meter.take(bytes);
        self.meter.now.set(self.meter.now.get() - bytes);
    }

    /// What [`Backend::conv3d`] takes and gives.
    pub(super) fn conv(&self, axes: &[Axis; 3], conv: ConvSize) -> Clip {
        self.conv_beside(
            axes,
            conv,
            self.backend.conv_scratch(self.batch, axes, conv),
        )
    }

    /// The same, taking so many bytes beside.
    fn conv_beside(&self, axes: &[Axis; 3], conv: ConvSize, beside: u64) -> Clip {
        let mut size = [0; 3];
        for (at, size) in size.iter_mut().enumerate() {
            let room = axes[at].len().saturating_sub(conv.kernel[at]);
            *size = room / conv.stride[at].max(1) + 1;
        }
        let out = self.clip(size, conv.outputs);
        self.scratch(beside);
        out
    }

    /// A convolution of one tap that reads the clip as it is.
    pub(super) fn linear(&self, clip: &Clip, outputs: usize) -> Clip {
        let channels = [clip.channels, outputs];
        let beside = self.backend.linear_scratch(self.batch, clip.size, channels);
        let axes = clip.size.map(Axis::identity);
        self.conv_beside(&axes, size(clip, outputs, [1; 3]), beside)
    }

    /// One that reads what a norm makes of it.
    fn linear_after_norm(&self, clip: &Clip, outputs: usize) -> Clip {
        self.conv(&clip.size.map(Axis::identity), size(clip, outputs, [1; 3]))
    }

    /// Attention after a norm, plus the clip.
    pub(super) fn attention(&self, clip: &Clip) -> Clip {
        let [t, h, w] = clip.size;
        let qkv = self.linear_after_norm(clip, 3 * clip.channels);
        let seen = self.copy(clip);
        self.scratch(self.backend.attention_scratch(t, h * w, clip.channels));
        drop(qkv);
        self.linear(&seen, clip.channels)
    }
}

/// The sizes of a convolution of steps of 1 over `clip`.
pub(super) fn size(clip: &Clip, outputs: usize, kernel: [usize; 3]) -> ConvSize {
    ConvSize {
        kernel,
        stride: [1; 3],
        inputs: clip.channels,
        outputs,
    }
}
