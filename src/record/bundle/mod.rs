//! Incident bundles: one redacted file about a run, fit for a public bug report.
//!
//! A bundle is a tar archive packed with gzip. All members lie in one folder,
//! `framepack-tui-<run id>/`: `README.md` for people, `contents.json`, `manifest.json`,
//! `events.jsonl` and `evidence/NNN/…`. See `docs/events.md`.

mod draft;
mod evidence;
mod spool;
mod summary;
#[cfg(test)]
mod tests;
mod write;

pub use summary::looked_for;
pub use write::{ExportError, Exported, Wanted, export, free_text};

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde::{Deserialize, Serialize};

use crate::model::Envelope;

use super::list::open_file;
use super::pack::MAGIC;
use super::reader::{Events, ReadError, Record, Warning};
use super::store::Manifest;

/// Version of a bundle: major.minor. Readers refuse another major.
pub const BUNDLE_FORMAT: &str = "1.1";
/// Member that says what is in the bundle and what is not.
pub(super) const CONTENTS: &str = "contents.json";
/// Member with the stream.
pub(super) const EVENTS_MEMBER: &str = "events.jsonl";
/// Longest member that is read: a bundle comes from somebody else.
const MAX_MEMBER: u64 = 256 << 20;
/// Members of a bundle, and the bytes of all of them together with their headers.
const MAX_MEMBERS: usize = 2_000;
const MAX_BYTES: u64 = 1 << 30;

/// Why a bundle cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// No such file, no permission, a broken archive, …
    #[error("read {}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// It is an archive, but not of ours.
    #[error("read {}: it is no bundle of `framepack-tui runs export`: there is no {EVENTS_MEMBER} in it", path.display())]
    NoEvents {
        /// Which.
        path: PathBuf,
    },
    /// Larger than any bundle that is written.
    #[error("read {}: {member} is longer than {MAX_MEMBER} bytes", path.display())]
    TooLong {
        /// Which.
        path: PathBuf,
        /// Member.
        member: String,
    },
    /// More members than any bundle that is written.
    #[error("read {}: it has more than {MAX_MEMBERS} members, and no bundle of `framepack-tui runs export` has", path.display())]
    TooMany {
        /// Which.
        path: PathBuf,
    },
    /// Made by a program whose format we do not know.
    #[error("read {}: bundle format {found} is not readable by this version, which reads {BUNDLE_FORMAT}; use a newer framepack-tui", path.display())]
    Version {
        /// Which.
        path: PathBuf,
        /// The bundle's.
        found: String,
    },
    /// The stream in it.
    #[error(transparent)]
    Record(#[from] ReadError),
}

/// `contents.json`: what is in a bundle, and what is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// See [`BUNDLE_FORMAT`].
    pub format: String,
    /// Version of the program that made it.
    pub program: String,
    /// Run id.
    pub run: String,
    /// Which free text is in it.
    #[serde(default)]
    pub text: FreeText,
    /// Members with their length in bytes.
    pub members: Vec<Member>,
    /// What was left out, each with its reason, in words.
    pub left_out: Vec<String>,
    /// How often each kind of private text was replaced: `user`, `home`, `token`, …
    pub redactions: BTreeMap<String, u64>,
    /// How many free texts of each kind were replaced: `console lines`, `arguments`, …
    #[serde(default)]
    pub masked: BTreeMap<String, u64>,
}

/// Free text, which anything may stand in: console lines, arguments, values of variables,
/// paths, names, stacks and other evidence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FreeText {
    /// None of it is in the bundle.
    #[default]
    Masked,
    /// It is, without what looks like a secret, a name or a prompt.
    Searched,
    /// The same with prompts.
    All,
}

/// One member of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Name within the bundle's folder.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
}

/// A bundle that was read.
#[derive(Debug, Clone)]
pub struct Bundle {
    record: Record,
    contents: Option<Contents>,
}

impl Bundle {
    /// The stream, in its order. Private texts are placeholders: `<home>`, `<user1>`.
    pub fn events(&self) -> &[Envelope] {
        &self.record.envelopes
    }

    /// Manifest of the run, if it is there and readable.
    pub const fn manifest(&self) -> Option<&Manifest> {
        self.record.manifest.as_ref()
    }

    /// What could not be used of the stream.
    pub fn warnings(&self) -> &[Warning] {
        &self.record.warnings
    }

    /// What is in the bundle and what is not, if that is there and readable.
    pub const fn contents(&self) -> Option<&Contents> {
        self.contents.as_ref()
    }

    /// Stream, manifest and warnings as of a record.
    pub fn into_record(self) -> Record {
        self.record
    }
}

/// Whether this file looks like a bundle: packed, and named `*.tgz` or `*.tar.gz`.
pub fn is_bundle(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if !(name.ends_with(".tgz") || name.ends_with(".tar.gz")) {
        return false;
    }
    let mut head = [0; MAGIC.len()];
    open_file(path).is_ok_and(|mut f| f.read_exact(&mut head).is_ok() && head == MAGIC)
}

/// Reads a bundle. Nothing is unpacked to disk.
pub fn open(path: &Path) -> Result<Bundle, BundleError> {
    let failed = |source| BundleError::Io {
        path: path.to_owned(),
        source,
    };
    let file = open_file(path).map_err(failed)?;
    let mut found = Found::default();
    let mut archive = tar::Archive::new(Unpacked {
        source: MultiGzDecoder::new(file),
        left: MAX_BYTES,
    });
    for (n, entry) in archive.entries().map_err(failed)?.enumerate() {
        if n == MAX_MEMBERS {
            return Err(BundleError::TooMany {
                path: path.to_owned(),
            });
        }
        let mut entry = entry.map_err(failed)?;
        let name = entry.path().map_err(failed)?.into_owned();
        // below the one folder that every bundle has
        let within: PathBuf = name.components().skip(1).collect();
        let Some(slot) = found.slot(&within) else {
            continue;
        };
        if entry.size() > MAX_MEMBER {
            return Err(BundleError::TooLong {
                path: path.to_owned(),
                member: within.display().to_string(),
            });
        }
        let mut bytes = Vec::new();
        read_member(&mut entry, &mut bytes).map_err(failed)?;
        *slot = Some(bytes);
    }
    found.into_bundle(path)
}

fn read_member(entry: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<()> {
    entry.take(MAX_MEMBER).read_to_end(bytes).map(drop)
}

/// An archive that comes to an end: a small file can unpack to any length.
struct Unpacked<R> {
    source: R,
    left: u64,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.source.read(buf)?;
        self.left = self.left.checked_sub(n as u64).ok_or_else(|| {
            let limit = MAX_BYTES >> 20;
            io::Error::other(format!("it unpacks to more than {limit} MiB"))
        })?;
        Ok(n)
    }
}

/// The members that are read.
#[derive(Debug, Default)]
struct Found {
    events: Option<Vec<u8>>,
    manifest: Option<Vec<u8>>,
    contents: Option<Vec<u8>>,
}

impl Found {
    fn slot(&mut self, member: &Path) -> Option<&mut Option<Vec<u8>>> {
        match member.to_str()? {
            EVENTS_MEMBER => Some(&mut self.events),
            super::store::MANIFEST => Some(&mut self.manifest),
            CONTENTS => Some(&mut self.contents),
            _ => None,
        }
    }

    fn into_bundle(self, path: &Path) -> Result<Bundle, BundleError> {
        let contents: Option<Contents> = self.contents.as_deref().and_then(parsed);
        if let Some(c) = &contents
            && !super::reader::same_major(&c.format, BUNDLE_FORMAT)
        {
            return Err(BundleError::Version {
                path: path.to_owned(),
                found: c.format.clone(),
            });
        }
        let events = self.events.ok_or_else(|| BundleError::NoEvents {
            path: path.to_owned(),
        })?;
        let name = path.join(EVENTS_MEMBER);
        let mut record = Record::collect(Events::from_reader(Cursor::new(events), &name))?;
        record.manifest = self.manifest.as_deref().and_then(parsed);
        Ok(Bundle { record, contents })
    }
}

fn parsed<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}
