//! What a path is.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::record::ReadError;
use crate::record::bundle::{self, BundleError};
use crate::record::store::{EVENTS, MANIFEST, PLAIN_EVENTS};

use super::case;

/// Bytes that tell what a file is.
const HEAD: u64 = 4096;

/// What can be diagnosed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A case folder.
    Case(PathBuf),
    /// A run's folder, or its stream as a file.
    Record(PathBuf),
    /// A file that was exported from a record.
    Bundle(PathBuf),
    /// Text of a console: a file, or a pipe with a name.
    Log(PathBuf),
    /// The same from standard input.
    Stdin,
}

/// Why something cannot be diagnosed.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// It cannot be opened or read.
    #[error("read {}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// `meta.toml` is broken, and there is nothing beside it.
    #[error("read {}: {why}", path.display())]
    Meta {
        /// Which.
        path: PathBuf,
        /// Why, with the line.
        why: String,
    },
    /// A folder without anything to read.
    #[error(
        "find anything to diagnose in {}: a run's folder holds {EVENTS} or {PLAIN_EVENTS}, a case console.log and telemetry.csv (docs/diagnose.md)",
        path.display()
    )]
    NothingThere {
        /// Which.
        path: PathBuf,
    },
    /// A file of another kind.
    #[error("read {name}: {what}")]
    NoText {
        /// Which.
        name: String,
        /// What it is, and the cure.
        what: &'static str,
    },
    /// The record is of another version, or cannot be read.
    #[error("{0}")]
    Record(#[from] ReadError),
    /// The bundle is broken, or of another version.
    #[error("{0}")]
    Bundle(#[from] BundleError),
    /// The record has no head.
    #[error(
        "judge {}: it has no run_started, which holds the plan; its beginning is lost",
        path.display()
    )]
    NoHead {
        /// Which.
        path: PathBuf,
    },
}

impl InputError {
    /// Whether what was asked for is not there, or may not be read; else it is broken.
    pub fn is_missing(&self) -> bool {
        matches!(
            self,
            Self::Io { .. } | Self::NothingThere { .. } | Self::Record(ReadError::Io { .. })
        )
    }
}

impl Source {
    /// What lies at a path that exists.
    pub fn at(path: &Path) -> Result<Self, InputError> {
        if path.is_dir() {
            // a folder with both is a record that someone put a log into
            if path.join(EVENTS).exists()
                || path.join(PLAIN_EVENTS).exists()
                || path.join(MANIFEST).is_file()
            {
                return Ok(Self::Record(path.to_owned()));
            }
            if case::is_case(path) {
                return Ok(Self::Case(path.to_owned()));
            }
            return Err(InputError::NothingThere {
                path: path.to_owned(),
            });
        }
        // what comes through a pipe can be read once, and is text
        if std::fs::metadata(path).is_ok_and(|m| !m.is_file()) {
            return Ok(Self::Log(path.to_owned()));
        }
        let mut head = Vec::new();
        File::open(path)
            .and_then(|f| f.take(HEAD).read_to_end(&mut head))
            .map_err(|source| InputError::Io {
                path: path.to_owned(),
                source,
            })?;
        if bundle::is_bundle(path) {
            return Ok(Self::Bundle(path.to_owned()));
        }
        let packed = path.to_string_lossy().ends_with(".jsonl.gz");
        if packed || is_stream(&head) {
            return Ok(Self::Record(path.to_owned()));
        }
        Ok(Self::Log(path.to_owned()))
    }
}

/// Whether bytes begin like a stream of our events.
fn is_stream(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head);
    let first = head.trim_start();
    first.starts_with("{\"seq\":") && first.contains("\"event\":")
}

/// What bytes are that are no text; the cure with it.
pub(super) fn not_text(head: &[u8]) -> Option<&'static str> {
    const UTF_16: &str = "it is UTF-16, as PowerShell writes; turn it into UTF-8 with `iconv -f UTF-16 -t UTF-8` first";
    const KINDS: &[(&[u8], &str)] = &[
        (
            b"\x1f\x8b",
            "it is compressed (gzip); unpack it with gunzip first",
        ),
        (
            b"\x28\xb5\x2f\xfd",
            "it is compressed (zstd); unpack it with zstd -d first",
        ),
        (
            b"BZh",
            "it is compressed (bzip2); unpack it with bunzip2 first",
        ),
        (
            b"\xfd7zXZ",
            "it is compressed (xz); unpack it with unxz first",
        ),
        (b"PK\x03\x04", "it is a zip archive; unpack it first"),
        (b"\xff\xfe", UTF_16),
        (b"\xfe\xff", UTF_16),
        (
            b"%PDF",
            "it is a PDF; copy the text of the console out of it",
        ),
        (
            b"\x89PNG",
            "it is a picture; a diagnosis needs the text of the console",
        ),
        (
            b"\xff\xd8\xff",
            "it is a picture; a diagnosis needs the text of the console",
        ),
    ];
    let known = KINDS.iter().find(|(magic, _)| head.starts_with(magic));
    if let Some((_, what)) = known {
        return Some(what);
    }
    let odd = |b: &&u8| **b < 0x20 && !matches!(**b, b'\n' | b'\r' | b'\t' | 0x08 | 0x0c | 0x1b);
    let odd = head.iter().filter(odd).count();
    (odd * 20 > head.len())
        .then_some("it is no text; a diagnosis needs what the program printed on its console")
}
