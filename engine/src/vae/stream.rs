//! A decode that gives its frames chunk by chunk, and may go on where another one stopped.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use candle_core::{Device, Tensor};
use safetensors::View;

use super::hunyuan::Frames;
use crate::error::{Error, Result, argument, io};

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

/// What a decode needs to go on after a chunk: with it the rest is the same to the bit as in a decode
/// that was never interrupted, given the same model, latents, tiling and device.
#[derive(Clone, Debug, Default)]
pub struct Carry {
    /// Frames of video that were given.
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

    /// One that says no more than its number.
    #[cfg(test)]
    pub(crate) fn after_frames(frames: usize) -> Self {
        Self {
            given: frames,
            next: frames,
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

/// The frames of an exact decode of `latents` frames as a chunk, if not all of them are `given` already.
pub(super) fn after(frames: &Frames, given: usize, latents: usize) -> Option<Chunk> {
    let count = frames.video.dim(2).ok()?;
    let skip = given.saturating_sub(frames.first);
    if skip >= count {
        return None;
    }
    Some(Chunk {
        first: frames.first + skip,
        video: frames.video.narrow(2, skip, count - skip).ok()?,
        carry: Carry {
            given: frames.first + count,
            next: latents,
            tensors: BTreeMap::new(),
        },
    })
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
