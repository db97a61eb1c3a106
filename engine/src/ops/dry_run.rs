//! A run that computes nothing and counts the bytes that a backend would allocate.
//!
//! Model code runs as it is, on clips that have a layout and no numbers. Each result takes its bytes when it is made
//! and gives them back when its last view goes, so that the highest sum is the memory that a real run needs. What an
//! operation takes beside its result is the backend's word ([`Backend::conv_scratch`] and the like).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};

use candle_core::{DType, Device, Tensor};

use super::clip::{Clip, Outline};
use super::executor::ConvLayer;
use super::{Affine, Backend, ConvInput, Norm, Prologue};
use crate::error::{Result, argument};

/// Bytes taken now, and at most so far.
#[derive(Debug, Default)]
pub(super) struct Meter {
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
pub(super) struct Allocation {
    bytes: u64,
    meter: Rc<Meter>,
}

impl Allocation {
    pub(super) fn new(meter: &Rc<Meter>, bytes: u64) -> Rc<Self> {
        meter.take(bytes);
        Rc::new(Self {
            bytes,
            meter: Rc::clone(meter),
        })
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn meter(&self) -> &Rc<Meter> {
        &self.meter
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.meter.now.set(self.meter.now.get() - self.bytes);
    }
}

/// What some work took for clips of some shapes, so that it need not be traced again.
#[derive(Debug)]
struct Record {
    /// Bytes at its worst, the result counted, what was there before not.
    peak: u64,
    result: Outline,
    kept: Vec<KeptClip>,
}

/// What some work left of a clip that is kept from one piece of work to the next.
#[derive(Debug)]
enum KeptClip {
    Unchanged,
    Changed(Option<Outline>),
}

/// The work by its name, the shape of the clip that it was given, and those of the clips that were kept before it.
type Key = (&'static str, Vec<usize>, Vec<Option<Vec<usize>>>);

/// Counts what a run on `backend` would take. See the module.
#[derive(Debug)]
pub(crate) struct DryRun<'a> {
    backend: &'a dyn Backend,
    meter: Rc<Meter>,
    known: RefCell<HashMap<Key, Record>>,
}

impl<'a> DryRun<'a> {
    pub(crate) fn new(backend: &'a dyn Backend) -> Self {
        Self {
            backend,
            meter: Rc::default(),
            known: RefCell::default(),
        }
    }

    pub(super) fn backend(&self) -> &'a dyn Backend {
        self.backend
    }

    /// Bytes taken at most so far.
    pub(crate) fn peak(&self) -> u64 {
        self.meter.peak.get()
    }

    /// A clip in single precision that is there before the run, and not counted.
    pub(crate) fn input(&self, dims: &[usize]) -> Clip {
        Clip::traced_outside(&self.meter, dims, DType::F32)
    }

    /// Memory taken for a moment.
    pub(crate) fn scratch(&self, bytes: u64) {
        self.meter.take(bytes);
        self.meter.now.set(self.meter.now.get() - bytes);
    }

    /// A result in the backend's precision.
    pub(super) fn allocate(&self, dims: &[usize]) -> Clip {
        Clip::traced(&self.meter, dims, self.backend.dtype())
    }

    pub(super) fn conv3d(
        &self,
        clip: ConvInput<'_, Clip>,
        prologue: &Prologue<'_>,
        conv: &ConvLayer,
        add: Option<&Clip>,
    ) -> Result<Clip> {
        let (batch, t, h, w, channels) = clip.dims()?;
        let size = conv.size();
        let axes = &prologue.axes;
        if channels != size.inputs {
            return argument(format!(
                "a clip of {channels} channels for a convolution of {}",
                size.inputs
            ));
        }
        let mut dims = [batch, 0, 0, 0, size.outputs];
        for at in 0..3 {
            let Some(room) = axes[at].len().checked_sub(size.kernel[at]) else {
                return argument(format!(
                    "a clip of {:?} is smaller than the kernel {:?}",
                    [t, h, w],
                    size.kernel
                ));
            };
            dims[at + 1] = room / size.stride[at].max(1) + 1;
        }
        if add.is_some_and(|add| add.dims() != dims) {
            return argument(format!(
                "a shortcut {:?} for a result {dims:?}",
                add.map(Clip::dims)
            ));
        }
        // every backend reads what has no gaps
        let body = clip.body.contiguous()?;
        let front = clip.front.map(Clip::contiguous).transpose()?;
        let add = add.map(Clip::contiguous).transpose()?;
        let out = self.allocate(&dims);
        let is_plain = matches!(prologue.norm, Norm::None)
            && !prologue.silu
            && clip.front.is_none()
            && size.kernel == [1; 3]
            && size.stride == [1; 3]
            && axes
                .iter()
                .zip([t, h, w])
                .all(|(axis, len)| axis.is_identity(len));
        self.scratch(if is_plain {
            let channels = [size.inputs, size.outputs];
            self.backend.linear_scratch(batch, [t, h, w], channels)
        } else {
            self.backend.conv_scratch(batch, axes, size)
        });
        drop((body, front, add));
        Ok(out)
    }

    pub(super) fn attention(&self, qkv: &Clip) -> Result<Clip> {
        let (batch, t, h, w, wide) = qkv.dims5()?;
        let qkv = qkv.contiguous()?;
        let out = self.allocate(&[batch, t, h, w, wide / 3]);
        self.scratch(self.backend.attention_scratch(t, h * w, wide / 3));
        drop(qkv);
        Ok(out)
    }

    /// Runs `work` over `clip` and the clips `kept` from work before it, and only the first time over clips of these
    /// shapes: the same work takes, gives and keeps the same then.
    pub(super) fn repeat<K: AsMut<Vec<Option<Clip>>>>(
        &self,
        name: &'static str,
        clip: &Clip,
        kept: &mut K,
        work: impl FnOnce(&Clip, &mut K) -> Result<Clip>,
    ) -> Result<Clip> {
        let shape = |clip: &Clip| clip.dims().to_vec();
        let shapes = kept.as_mut().iter().map(|clip| clip.as_ref().map(shape));
        let key = (name, shape(clip), shapes.collect());
        if let Some(record) = self.known.borrow().get(&key) {
            self.scratch(record.peak);
            for (own, kept) in kept.as_mut().iter_mut().zip(&record.kept) {
                if let KeptClip::Changed(outline) = kept {
                    *own = outline
                        .as_ref()
                        .map(|outline| Clip::like(&self.meter, outline));
                }
            }
            return Ok(Clip::like(&self.meter, &record.result));
        }
        let before: Vec<Option<Weak<Allocation>>> = kept
            .as_mut()
            .iter()
            .map(|clip| clip.as_ref().and_then(Clip::allocation))
            .collect();
        let (now, highest) = (self.meter.now.get(), self.meter.peak.get());
        self.meter.peak.set(now);
        let result = work(clip, kept)?;
        let peak = self.meter.peak.get();
        self.meter.peak.set(peak.max(highest));
        let mut record = Record {
            peak: peak - now,
            result: result.outline()?,
            kept: Vec::new(),
        };
        for (at, own) in kept.as_mut().iter().enumerate() {
            let before = before.get(at).and_then(Option::as_ref);
            record.kept.push(match own {
                Some(own) if own.is_in(before) => KeptClip::Unchanged,
                // a view of what the work was given takes nothing
                Some(own) if own.is_in(clip.allocation().as_ref()) => {
                    KeptClip::Changed(Some(own.outline()?.without_memory()))
                }
                Some(own) => KeptClip::Changed(Some(own.outline()?)),
                None => KeptClip::Changed(None),
            });
        }
        self.known.borrow_mut().insert(key, record);
        Ok(result)
    }
}

/// What stands for weights that were not loaded.
pub(crate) fn no_numbers() -> Result<Tensor> {
    Ok(Tensor::zeros(0, DType::F32, &Device::Cpu)?)
}

/// What a norm comes down to where there are no sums.
pub(super) fn no_affine() -> Result<Affine> {
    let nothing = no_numbers()?;
    Ok(Affine {
        scale: nothing.clone(),
        shift: nothing,
    })
}

#[cfg(test)]
#[path = "dry_run_tests.rs"]
mod tests;
