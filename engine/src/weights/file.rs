//! One safetensors file: the header when it is opened, the tensors when they are asked for.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};

use super::unique::{Twice, twice};
use crate::error::{Error, Result};

/// The largest header that is read. The format allows 100 MB; the largest models have below 1 MiB.
const MAX_HEADER: u64 = 16 << 20;

/// Bytes read and converted at once.
const PIECE: usize = 1 << 20;

/// The file, open, with what its header says.
#[derive(Debug)]
pub(super) struct TensorFile {
    path: PathBuf,
    file: File,
    metadata: Metadata,
    /// Where the tensors begin.
    start: u64,
}

impl TensorFile {
    /// Opens `path`, and checks that the header fits the file, so that no read goes astray and no
    /// shape asks for more memory than the file has bytes.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let io = |source| Error::Io {
            path: path.to_owned(),
            source,
        };
        let wrong = |reason: String| Error::File {
            path: path.to_owned(),
            reason,
        };
        let file = crate::error::open(path)?;
        let about = file.metadata().map_err(io)?;
        let size = about.len();
        if size < 8 {
            return Err(wrong(format!("{size} bytes are no safetensors file")));
        }
        let mut first = [0; 8];
        file.read_exact_at(&mut first, 0).map_err(io)?;
        let length = u64::from_le_bytes(first);
        if length > MAX_HEADER || length > size - 8 {
            if let Some(kind) = foreign(first) {
                return Err(wrong(kind.to_owned()));
            }
            return Err(wrong(format!(
                "not a safetensors file, or cut short: its header would be {length} bytes long, the file has {size}"
            )));
        }
        let mut header = vec![0; usize::try_from(length).unwrap_or_default()];
        file.read_exact_at(&mut header, 8).map_err(io)?;
        let damaged = |error: serde_json::Error| wrong(format!("damaged header: {error}"));
        if let Some(twice) = twice(&header).map_err(damaged)? {
            return Err(forged(path, twice));
        }
        let metadata: Metadata = serde_json::from_slice(&header).map_err(damaged)?;
        let start = 8 + length;
        let (promised, has) = (metadata.data_len() as u64, size - start);
        if promised != has {
            let cure = if promised > has {
                "cut short: download it again"
            } else {
                "longer than its header says"
            };
            return Err(wrong(format!(
                "{cure} ({has} bytes of tensors, the header says {promised})"
            )));
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            metadata,
            start,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What `__metadata__` says under this name.
    pub(super) fn says(&self, name: &str) -> Option<&str> {
        self.metadata
            .metadata()
            .as_ref()?
            .get(name)
            .map(String::as_str)
    }

    /// Path, size, and when it was written last.
    pub(super) fn about(&self) -> Result<(PathBuf, u64, Option<std::time::SystemTime>)> {
        let about = self.file.metadata().map_err(|source| Error::Io {
            path: self.path.clone(),
            source,
        })?;
        Ok((self.path.clone(), about.len(), about.modified().ok()))
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.metadata.offset_keys()
    }

    pub(super) fn shape(&self, name: &str) -> Result<&[usize]> {
        Ok(&self.info(name)?.shape)
    }

    /// Reads a tensor into memory, in single precision.
    pub(super) fn read(&self, name: &str) -> Result<Tensor> {
        let info = self.info(name)?;
        let count = info.shape.iter().product();
        let numbers = self.numbers(name, 0..count)?;
        if let Some(at) = numbers.iter().position(|x| !x.is_finite()) {
            return Err(self.weight(
                name,
                format!(
                    "number {at} of it is none (NaN or infinite): the file is damaged, download it again"
                ),
            ));
        }
        let shape = info.shape.as_slice();
        Ok(Tensor::from_vec(numbers, shape, &Device::Cpu)?)
    }

    /// How a tensor's numbers are stored.
    pub(super) fn dtype(&self, name: &str) -> Result<Dtype> {
        Ok(self.info(name)?.dtype)
    }

    /// Reads some of a tensor's numbers, in single precision, whatever they are.
    pub(super) fn numbers(&self, name: &str, which: std::ops::Range<usize>) -> Result<Vec<f32>> {
        let info = self.info(name)?;
        let wide = match info.dtype {
            Dtype::F64 => 8,
            Dtype::F32 => 4,
            Dtype::F16 | Dtype::BF16 => 2,
            other => {
                return Err(self.weight(
                    name,
                    format!("is stored as {other:?}; F64, F32, F16 and BF16 can be read"),
                ));
            }
        };
        let place = |number: usize| {
            let at = number.checked_mul(wide)?.checked_add(info.data_offsets.0)?;
            (at <= info.data_offsets.1).then_some(at)
        };
        let (Some(begin), Some(end)) = (place(which.start), place(which.end)) else {
            return Err(self.weight(name, format!("has no numbers {which:?}")));
        };
        let count = end.saturating_sub(begin) / wide;
        let mut numbers = Vec::new();
        // an abort would say nothing of the file
        numbers.try_reserve_exact(count).map_err(|_too_much| {
            let mib = (count * 4) >> 20;
            self.weight(name, format!("{mib} MiB of memory for it cannot be had"))
        })?;
        let mut piece = vec![0; PIECE.min(end.saturating_sub(begin))];
        let mut at = begin;
        while at < end {
            let piece = &mut piece[..PIECE.min(end - at)];
            self.file
                .read_exact_at(piece, self.start + at as u64)
                .map_err(|error| {
                    let reason = match error.kind() {
                        std::io::ErrorKind::UnexpectedEof => {
                            "the file was cut short while it was read".to_owned()
                        }
                        _ => error.to_string(),
                    };
                    self.weight(name, reason)
                })?;
            extend(&mut numbers, piece, info.dtype);
            at += piece.len();
        }
        Ok(numbers)
    }

    fn info(&self, name: &str) -> Result<&TensorInfo> {
        self.metadata
            .info(name)
            .ok_or_else(|| self.weight(name, "missing".to_owned()))
    }

    fn weight(&self, name: &str, reason: String) -> Error {
        Error::Weight {
            path: self.path.clone(),
            name: name.to_owned(),
            reason,
        }
    }
}

/// What a file is by its first bytes, where that is something that people take for safetensors, and the cure.
fn foreign(first: [u8; 8]) -> Option<&'static str> {
    match first {
        // a zip, as `torch.save` writes; the pickle alone, as it did before version 1.6
        [b'P', b'K', 3, 4, ..] | [0x80, 2..=5, ..] => Some(
            "a pickle of PyTorch, which can run any program when it is read; only safetensors are read: save its tensors once with \
             safetensors.torch.save_file",
        ),
        [b'G', b'G', b'U', b'F', ..] => {
            Some("a GGUF file; only safetensors are read: take the model's safetensors")
        }
        _ => None,
    }
}

/// The error for a header in which a name stands twice.
fn forged(path: &Path, Twice { key, under }: Twice) -> Error {
    let path = path.to_owned();
    match under {
        None => Error::Weight {
            path,
            name: key,
            reason: "stands twice in the header: the file is damaged or forged, download it again"
                .to_owned(),
        },
        Some(name) => Error::File {
            path,
            reason: format!(
                "{key} stands twice under {name} in the header: the file is damaged or forged, make it anew"
            ),
        },
    }
}

/// Adds the little-endian numbers in `bytes`.
fn extend(numbers: &mut Vec<f32>, bytes: &[u8], dtype: Dtype) {
    let (pairs, _) = bytes.as_chunks::<2>();
    let (quads, _) = bytes.as_chunks::<4>();
    let (eights, _) = bytes.as_chunks::<8>();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "rounded to the nearest, as everywhere; what is too large becomes infinite and is refused"
    )]
    let single = |eight: &[u8; 8]| f64::from_le_bytes(*eight) as f32;
    match dtype {
        Dtype::F64 => numbers.extend(eights.iter().map(single)),
        Dtype::F16 => numbers.extend(
            pairs
                .iter()
                .map(|pair| half::f16::from_le_bytes(*pair).to_f32()),
        ),
        Dtype::BF16 => numbers.extend(
            pairs
                .iter()
                .map(|pair| half::bf16::from_le_bytes(*pair).to_f32()),
        ),
        _ => numbers.extend(quads.iter().map(|quad| f32::from_le_bytes(*quad))),
    }
}
