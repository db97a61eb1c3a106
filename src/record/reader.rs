//! Reads a record back, leniently: what a power cut, a full disk or a newer
//! program left there is a warning, not the end.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::model::event::SCHEMA;
use crate::model::{Envelope, Event};

use super::store::{EVENTS, FORMAT, MANIFEST, Manifest};

/// Longest line that is read; longer ones are skipped with a warning.
pub(super) const MAX_LINE: u64 = 16 << 20;
/// Warnings that are kept one by one; the rest is counted.
const MAX_WARNINGS: usize = 100;

/// Why a record cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No such file, no permission, …
    #[error("read {}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Written by a program whose format we do not know.
    #[error("{}: format {found} is not readable by this version, which reads {known}; use a newer framepack-tui", path.display())]
    Version {
        /// Which.
        path: PathBuf,
        /// The record's.
        found: String,
        /// Ours.
        known: &'static str,
    },
}

/// The one field that every version of the manifest has.
#[derive(serde::Deserialize)]
struct Head {
    format: String,
}

/// Something in a record that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Line of `events.jsonl`, from 1; absent: the whole record.
    pub line: Option<u64>,
    /// What is wrong.
    pub text: String,
}

/// A record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Record {
    /// The manifest, if there is a readable one.
    pub manifest: Option<Manifest>,
    /// The stream.
    pub envelopes: Vec<Envelope>,
    /// What could not be used, at most 100.
    pub warnings: Vec<Warning>,
    /// Further warnings that are only counted.
    pub more_warnings: u64,
}

impl Record {
    /// Reads a run's folder, or a single file of JSON lines.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let failed = |path: &Path, source| ReadError::Io {
            path: path.to_owned(),
            source,
        };
        let mut record = Self::default();
        let events = if path.is_dir() {
            record.read_manifest(&path.join(MANIFEST))?;
            path.join(EVENTS)
        } else {
            path.to_owned()
        };
        let file = File::open(&events).map_err(|e| failed(&events, e))?;
        record
            .read_events(BufReader::new(file))
            .map_err(|e| failed(&events, e))?;
        match record.head_schema() {
            Some(found) if !same_major(&found, SCHEMA) => Err(ReadError::Version {
                path: events,
                found,
                known: SCHEMA,
            }),
            _ => Ok(record),
        }
    }

    /// Reads a stream of JSON lines, such as what `--headless` wrote. Errors of
    /// the reader itself only; the version is not checked.
    pub fn from_lines(lines: impl BufRead) -> io::Result<Self> {
        let mut record = Self::default();
        record.read_events(lines)?;
        Ok(record)
    }

    fn warn(&mut self, line: Option<u64>, text: String) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(Warning { line, text });
        } else {
            self.more_warnings += 1;
        }
    }

    fn read_manifest(&mut self, path: &Path) -> Result<(), ReadError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) => {
                self.warn(None, format!("no manifest: {e}"));
                return Ok(());
            }
        };
        // The version comes first: another major may have other fields.
        if let Ok(Head { format }) = serde_json::from_str(&text)
            && !same_major(&format, FORMAT)
        {
            return Err(ReadError::Version {
                path: path.to_owned(),
                found: format,
                known: FORMAT,
            });
        }
        match serde_json::from_str(&text) {
            Ok(manifest) => self.manifest = Some(manifest),
            Err(e) => self.warn(None, format!("unreadable manifest: {e}")),
        }
        Ok(())
    }

    fn read_events(&mut self, mut lines: impl BufRead) -> io::Result<()> {
        let mut number = 0;
        let mut line = Vec::new();
        loop {
            line.clear();
            number += 1;
            let n = lines.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
            if n == 0 {
                break;
            }
            let whole = line.last() == Some(&b'\n');
            if !whole && line.len() as u64 == MAX_LINE {
                skip_line(&mut lines)?;
                self.warn(Some(number), format!("longer than {MAX_LINE} bytes"));
                continue;
            }
            self.take_line(number, &line, whole);
        }
        self.check_order();
        Ok(())
    }

    fn take_line(&mut self, number: u64, line: &[u8], whole: bool) {
        if line.trim_ascii().is_empty() {
            return;
        }
        match serde_json::from_slice(line) {
            Ok(envelope) => self.envelopes.push(envelope),
            Err(_) if !whole => self.warn(
                Some(number),
                "the last line is cut off; the run ended in the middle of a write".to_owned(),
            ),
            Err(e) => self.warn(Some(number), format!("not an event that is known: {e}")),
        }
    }

    /// Gaps are said once; they are normal where a sink had to drop something.
    fn check_order(&mut self) {
        let Some(first) = self.envelopes.first() else {
            self.warn(None, "the record is empty".to_owned());
            return;
        };
        let mut missing = first.seq.saturating_sub(1);
        let mut disordered = 0_u64;
        for pair in self.envelopes.windows(2) {
            match pair[1].seq.checked_sub(pair[0].seq) {
                None | Some(0) => disordered += 1,
                Some(step) => missing += step - 1,
            }
        }
        if missing > 0 {
            self.warn(None, format!("{missing} events are missing"));
        }
        if disordered > 0 {
            self.warn(None, format!("{disordered} events are out of order"));
        }
    }

    fn head_schema(&self) -> Option<String> {
        self.envelopes.iter().find_map(|e| match &e.event {
            Event::RunStarted(head) => Some(head.schema.clone()),
            _ => None,
        })
    }
}

fn skip_line(lines: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = lines.fill_buf()?;
        let (skip, end) = match buffer.iter().position(|b| *b == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        lines.consume(skip);
        if end {
            return Ok(());
        }
    }
}

pub(super) fn same_major(found: &str, known: &str) -> bool {
    let major = |v: &str| v.split('.').next().and_then(|m| m.parse::<u32>().ok());
    major(found).is_some() && major(found) == major(known)
}
