//! Headers of safetensors files, read with bounds and without trust.
//!
//! A file is 8 bytes (length of the header, little-endian), a JSON header (`name` to
//! `dtype`, `shape` and `data_offsets` from the end of the header; `__metadata__`: text
//! to text), and the tensors' bytes one behind the other. Source of the fact: the
//! format's description in the safetensors repository of Hugging Face.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Read};

use framepack_engine::weights::{Twice, twice};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::Digest;

/// A header longer than this, in bytes, is none of ours: an entry's is a few KiB, and a
/// saved state of the random sources adds some 10 KiB.
pub const LONGEST_HEADER: u64 = 1 << 20;
/// Bytes of the length field.
const LENGTH: u64 = 8;
const METADATA: &str = "__metadata__";

/// Why a file's header cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The file ends before its header or its tensors do.
    #[error("it is torn: {missing} bytes are missing at its end")]
    Torn {
        /// Bytes that are missing.
        missing: u64,
    },
    /// It is something else.
    #[error("it is no safetensors file: {0}")]
    Foreign(String),
    /// It is one, and what it says does not fit together.
    #[error("its header is wrong: {0}")]
    Wrong(String),
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Io(String),
}

/// One tensor of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Name.
    pub name: String,
    /// The format's name of its element type, such as `BF16`.
    pub dtype: String,
    /// Shape.
    pub shape: Vec<u64>,
    /// Bytes of its data.
    pub bytes: u64,
}

/// What a file says of itself, checked against its length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The tensors, in the order of their data.
    pub tensors: Vec<Tensor>,
    /// `__metadata__`.
    pub metadata: BTreeMap<String, String>,
    /// Whether the header is what its `seal` was made for.
    pub seal: Digest,
    /// Offset of the data in the file.
    pub data_at: u64,
    /// Bytes of data, up to the end of the file.
    pub data_bytes: u64,
}

impl Header {
    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|t| t.name == name)
    }
}

/// Reads the header of a file that is `size` bytes long. Reads at most
/// [`LONGEST_HEADER`] and 8 bytes.
pub fn read(file: &mut impl Read, size: u64) -> Result<Header, HeaderError> {
    let failed = |e: io::Error| HeaderError::Io(e.to_string());
    if size < LENGTH {
        return Err(HeaderError::Foreign(format!("it has {size} bytes")));
    }
    let mut length = [0; 8];
    file.read_exact(&mut length).map_err(failed)?;
    let length = u64::from_le_bytes(length);
    if !(2..=LONGEST_HEADER).contains(&length) {
        return Err(HeaderError::Foreign(format!(
            "its header would have {length} bytes"
        )));
    }
    let mut text = Vec::new();
    file.take(length).read_to_end(&mut text).map_err(failed)?;
    if text.first() != Some(&b'{') {
        return Err(HeaderError::Foreign(
            "its header does not begin with {".to_owned(),
        ));
    }
    let missing = length - text.len() as u64;
    if missing > 0 {
        return Err(HeaderError::Torn { missing });
    }
    once(&text)?;
    let raw: Raw = serde_json::from_slice(&text).map_err(|e| HeaderError::Wrong(e.to_string()))?;
    let mut header = checked(raw, LENGTH + length, size)?;
    header.seal = seal(&text);
    Ok(header)
}

/// Compares `seal` of the metadata with the SHA-256 of the header without it, as JSON in ASCII with keys in order
/// and no blanks: as the agent's `safetensors.py` makes it.
fn seal(text: &[u8]) -> Digest {
    let mut head: Value = serde_json::from_slice(text).unwrap_or_default();
    let metadata = head.get_mut(METADATA).and_then(Value::as_object_mut);
    let Some(Value::String(told)) = metadata.and_then(|told| told.remove("seal")) else {
        return Digest::NotTold;
    };
    let found = Sha256::digest(in_ascii(&head.to_string()));
    if format!("{found:x}") == told {
        Digest::Holds
    } else {
        Digest::Differs
    }
}

/// JSON with everything but printable ASCII escaped.
fn in_ascii(json: &str) -> String {
    let mut ascii = String::with_capacity(json.len());
    for c in json.chars() {
        if (' '..='~').contains(&c) {
            ascii.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // a String takes everything
            let _ = write!(ascii, "\\u{unit:04x}");
        }
    }
    ascii
}

/// The header, if its tensors fill the file from `data_at` to `size`.
fn checked(raw: Raw, data_at: u64, size: u64) -> Result<Header, HeaderError> {
    let mut entries: Vec<(String, RawTensor)> = raw.tensors.into_iter().collect();
    // empty tensors share their beginning with the next one
    entries.sort_by_key(|(_, t)| t.data_offsets);
    let (mut at, mut tensors) = (0, Vec::with_capacity(entries.len()));
    for (name, tensor) in entries {
        let wrong = |why: &str| HeaderError::Wrong(format!("tensor {name}: {why}"));
        let (begin, end) = tensor.data_offsets;
        if begin != at || end < begin {
            return Err(wrong(&format!(
                "its data lies at {begin} to {end}, not behind byte {at}"
            )));
        }
        let bytes = end - begin;
        if let Some(wide) = width(&tensor.dtype) {
            let wanted = tensor.shape.iter().try_fold(wide, |n, d| n.checked_mul(*d));
            if wanted != Some(bytes) {
                return Err(wrong("shape and type do not fit its data"));
            }
        }
        at = end;
        tensors.push(Tensor {
            name,
            dtype: tensor.dtype,
            shape: tensor.shape,
            bytes,
        });
    }
    let there = size.saturating_sub(data_at);
    match at.checked_sub(there) {
        Some(0) => Ok(Header {
            tensors,
            metadata: raw.metadata.unwrap_or_default(),
            seal: Digest::NotTold,
            data_at,
            data_bytes: there,
        }),
        Some(missing) => Err(HeaderError::Torn { missing }),
        None => Err(HeaderError::Wrong(format!(
            "{} bytes follow its last tensor",
            there - at
        ))),
    }
}

/// Bytes of one element; `None`: a type that this version does not know.
fn width(dtype: &str) -> Option<u64> {
    Some(match dtype {
        "BOOL" | "U8" | "I8" | "F8_E4M3" | "F8_E5M2" => 1,
        "U16" | "I16" | "F16" | "BF16" => 2,
        "U32" | "I32" | "F32" => 4,
        "U64" | "I64" | "F64" | "C64" => 8,
        _ => return None,
    })
}

#[derive(Deserialize)]
struct RawTensor {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

/// The JSON header.
#[derive(Deserialize)]
struct Raw {
    #[serde(rename = "__metadata__")]
    metadata: Option<BTreeMap<String, String>>,
    #[serde(flatten)]
    tensors: BTreeMap<String, RawTensor>,
}

/// Refuses a header in which a name stands twice: whoever reads the first and whoever reads the last would see two files.
fn once(text: &[u8]) -> Result<(), HeaderError> {
    let wrong = |why: String| Err(HeaderError::Wrong(why));
    match twice(text) {
        Ok(None) => Ok(()),
        Ok(Some(Twice { key, under: None })) => wrong(format!("{key:?} is there twice")),
        Ok(Some(Twice {
            key,
            under: Some(name),
        })) => wrong(format!("{key:?} of {name} is there twice")),
        Err(e) => wrong(e.to_string()),
    }
}

#[cfg(test)]
#[path = "safetensors_tests.rs"]
mod tests;
