//! A decode that gives its frames chunk by chunk, and may go on where another one stopped.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use candle_core::{Device, Tensor};
use safetensors::View;

use crate::error::{Error, Result, argument, io};
use crate::ops::Clip;

/// Frames that are finished.
#[derive(Debug)]
pub struct Chunk {
    /// Number of the first, from 0.
    pub first: usize,
    /// (B, 3, T, H, W).
    pub video: Tensor,
    /// What the next chunk needs of this one and those before it.
    pub carry: Carry,
}

/// Finished frames as a network hands them out.
#[derive(Debug)]
pub(crate) struct Frames {
    /// Number of the first, from 0.
    pub(crate) first: usize,
    /// (B, 3, T, H, W) in single precision.
    pub(crate) video: Clip,
    /// Latent frame at which the next chunk begins.
    pub(crate) next: usize,
    /// What the next chunk needs of this one and those before it, by name.
    pub(crate) state: BTreeMap<String, Clip>,
}

/// Takes finished frames in their order. An error ends the decode.
pub(crate) type FrameSink<'a> = dyn FnMut(Frames) -> Result<()> + 'a;

impl Frames {
    /// The frames that are not among the `given` first ones; absent: all are.
    pub(crate) fn after(self, given: usize) -> Result<Option<Self>> {
        let count = self.video.dim(2)?;
        let skip = given.saturating_sub(self.first);
        if skip >= count {
            return Ok(None);
        }
        Ok(Some(Self {
            first: self.first + skip,
            video: self.video.narrow(2, skip, count - skip)?,
            ..self
        }))
    }
}

impl TryFrom<Frames> for Chunk {
    type Error = Error;

    fn try_from(frames: Frames) -> Result<Self> {
        let video = frames.video.tensor()?.clone();
        let tensor = |(name, clip): (String, Clip)| Ok((name, clip.tensor()?.clone()));
        let carry = Carry {
            given: frames.first + video.dim(2)?,
            next: frames.next,
            tensors: frames
                .state
                .into_iter()
                .map(tensor)
                .collect::<Result<_>>()?,
        };
        Ok(Self {
            first: frames.first,
            video,
            carry,
        })
    }
}

/// The state from which a decode goes on after a chunk: the rest is the same to the bit as in a decode that was never
/// interrupted, given the same model, latents, strategy and device.
#[derive(Clone, Debug, Default)]
pub struct Carry {
    /// Frames of video given so far.
    pub(super) given: usize,
    /// Latent frame at which the next chunk begins.
    pub(super) next: usize,
    /// The rest, by name.
    pub(super) tensors: BTreeMap<String, Tensor>,
}

/// Names in a file for the two numbers.
const GIVEN: &str = "given";
const NEXT: &str = "next";
/// Name in a file for the digest of all others.
const DIGEST: &str = "digest";
/// Bytes of a file beside its tensors, at most: their names and shapes, and the numbers.
const HEADER: u64 = 16 << 20;

impl Carry {
    /// Frames of video that were given up to here.
    pub fn frames(&self) -> usize {
        self.given
    }

    /// Bytes that [`Carry::save`] writes, about.
    pub fn bytes(&self) -> usize {
        self.tensors
            .values()
            .map(|tensor| tensor.elem_count() * tensor.dtype().size_in_bytes())
            .sum()
    }

    /// Writes it as safetensors. Not atomic: the name is the caller's matter.
    pub fn save(&self, path: &Path) -> Result<()> {
        let mut all: HashMap<String, Tensor> = HashMap::new();
        for (name, tensor) in &self.tensors {
            all.insert(name.clone(), tensor.to_device(&Device::Cpu)?.contiguous()?);
        }
        for (name, number) in [(GIVEN, self.given), (NEXT, self.next)] {
            let number = u32::try_from(number)
                .map_err(|_too_many| Error::Argument(format!("{number} frames are too many")))?;
            all.insert(name.to_owned(), Tensor::new(&[number], &Device::Cpu)?);
        }
        let digest = Tensor::new(&digest(&all)[..], &Device::Cpu)?;
        all.insert(DIGEST.to_owned(), digest);
        safetensors::serialize_to_file(&all, None, path).map_err(|e| match e {
            safetensors::SafeTensorError::IoError(source) => Error::Io {
                path: path.to_owned(),
                source,
            },
            other => Error::File {
                path: path.to_owned(),
                reason: other.to_string(),
            },
        })
    }

    /// Reads what [`Carry::save`] wrote, if it is whole, and its tensors have no more than `most` bytes.
    pub fn load(path: &Path, device: &Device, most: u64) -> Result<Self> {
        let wrong = |reason: String| Error::File {
            path: path.to_owned(),
            reason,
        };
        let size = crate::error::open(path)?
            .metadata()
            .map_err(io(path))?
            .len();
        if size > most.saturating_add(HEADER) {
            return Err(wrong(format!(
                "{size} bytes are no state of this decode, which takes {most} bytes in all"
            )));
        }
        let bytes = crate::error::read(path)?;
        let all = candle_core::safetensors::load_buffer(&bytes, &Device::Cpu);
        let mut all = all.map_err(|e| wrong(format!("no state of a decode: {e}")))?;
        drop(bytes);
        let told = all
            .remove(DIGEST)
            .and_then(|told| told.to_vec1::<u8>().ok());
        if told.as_deref() != Some(&digest(&all)[..]) {
            return Err(wrong(
                "no state of a decode, or damaged: its digest is another".to_owned(),
            ));
        }
        let mut number = |name: &str| -> Result<usize> {
            let tensor = all.remove(name);
            let number = tensor.and_then(|tensor| tensor.to_vec1::<u32>().ok()?.first().copied());
            number
                .and_then(|number| usize::try_from(number).ok())
                .ok_or_else(|| wrong(format!("no number `{name}` in it")))
        };
        let (given, next) = (number(GIVEN)?, number(NEXT)?);
        let tensors = all
            .into_iter()
            .map(|(name, tensor)| Ok((name, tensor.to_device(device)?)))
            .collect::<Result<_>>()?;
        Ok(Self {
            given,
            next,
            tensors,
        })
    }

    /// A carry after `given` frames, the next chunk being that of latent frame `next`, where nothing else is needed.
    pub(crate) fn stateless(given: usize, next: usize) -> Self {
        Self {
            given,
            next,
            tensors: BTreeMap::new(),
        }
    }

    /// The same on another device.
    pub fn to_device(&self, device: &Device) -> Result<Self> {
        let there = |(name, tensor): (&String, &Tensor)| -> Result<_> {
            Ok((name.clone(), tensor.to_device(device)?))
        };
        Ok(Self {
            tensors: self.tensors.iter().map(there).collect::<Result<_>>()?,
            ..*self
        })
    }

    /// Refuses what cannot be of a decode of `latents` frames.
    pub(super) fn check(&self, latents: usize) -> Result<()> {
        if self.next > latents || (self.next == 0) != (self.given == 0) {
            return argument(format!(
                "a state after latent frame {} is none of a decode of {latents}",
                self.next
            ));
        }
        Ok(())
    }
}

/// Where a decode has to begin to give its frames from a certain one on.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// The carry that the decode is given; absent: it begins with its first frame.
    pub carry: Option<Carry>,
    /// The frame at which the work begins.
    pub work: usize,
    /// The first frame that comes out as in a whole decode: chunks before it only lead there.
    pub first: usize,
}

impl Start {
    /// Where an earlier decode left `carry`.
    pub fn after(carry: Carry) -> Self {
        let frames = carry.frames();
        Self {
            carry: Some(carry),
            work: frames,
            first: frames,
        }
    }
}

/// Of names, types, shapes and numbers.
fn digest(all: &HashMap<String, Tensor>) -> [u8; 32] {
    let mut hash = blake3::Hasher::new();
    let sorted: BTreeMap<&String, &Tensor> = all.iter().collect();
    for (name, tensor) in sorted {
        let about = format!("{name} {:?} {:?};", tensor.dtype(), tensor.dims());
        hash.update(about.as_bytes());
        hash.update(&tensor.data());
    }
    *hash.finalize().as_bytes()
}

/// Puts the chunks of a decode together.
pub(super) fn whole(
    run: impl FnOnce(&mut dyn FnMut(Chunk) -> Result<()>) -> Result<()>,
) -> Result<Tensor> {
    let mut parts = Vec::new();
    run(&mut |chunk| {
        parts.push(chunk.video);
        Ok(())
    })?;
    match parts.as_slice() {
        [one] => Ok(one.clone()),
        _ => Ok(Tensor::cat(&parts, 2)?),
    }
}
