//! Reads a record back, leniently: what a power cut, a full disk or a newer
//! program left there is a warning, not the end.

use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

use crate::model::event::{SCHEMA, TURN_MS};
use crate::model::{Envelope, Event, Mono};

use super::list::open_file;
use super::pack::TextReader;
use super::store::{FORMAT, MANIFEST, Manifest, events_file, is_readable};

/// Longest line that is read; longer ones are skipped with a warning.
pub(super) const MAX_LINE: u64 = 16 << 20;
/// Bytes of a longer line that are skipped.
const SKIPPED: usize = 64 << 20;
/// Longest manifest: a command may have 2 MiB.
const MAX_MANIFEST: u64 = 16 << 20;
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
    #[error("read {}: format {found} is not readable by this version, which reads {known}; use a newer framepack-tui", path.display())]
    Version {
        /// Which.
        path: PathBuf,
        /// The record's.
        found: String,
        /// Ours.
        known: &'static str,
    },
    /// Not one event is in it.
    #[error("read {}: {why}", path.display())]
    NoEvents {
        /// Which.
        path: PathBuf,
        /// What it is instead, and what to do.
        why: String,
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
    /// Line of the stream's text, from 1; absent: the whole record.
    pub line: Option<u64>,
    /// What is wrong.
    pub text: String,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// A record as it is read, one event after the other, in bounded memory. What cannot be
/// used is left out and told by [`Events::warnings`].
pub struct Events {
    path: PathBuf,
    manifest: Option<Manifest>,
    lines: TextReader<Box<dyn Read + Send>>,
    number: u64,
    line: Vec<u8>,
    damages: u64,
    ended: bool,
    last_seq: Option<u64>,
    last_at: Mono,
    missing: u64,
    /// Missing ones that cannot be ticks: the clock did not turn so often.
    beyond_ticks: u64,
    has_ticks: bool,
    /// What the stream itself says was dropped.
    told: u64,
    disordered: u64,
    warnings: Vec<Warning>,
    more_warnings: u64,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events")
            .field("path", &self.path)
            .field("line", &self.number)
            .finish_non_exhaustive()
    }
}

impl Events {
    /// Opens a run's folder, or a single file of JSON lines, packed or not. A folder of
    /// another major version is refused here, a stream of one by [`Events::next`].
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let failed = |path: &Path, source| ReadError::Io {
            path: path.to_owned(),
            source,
        };
        let (manifest, events) = if path.is_dir() {
            (
                Some(read_manifest(&path.join(MANIFEST))?),
                events_file(path),
            )
        } else {
            (None, path.to_owned())
        };
        let file = open_file(&events).map_err(|e| failed(&events, e))?;
        let mut this = Self::new(Box::new(file), events);
        match manifest {
            Some(Ok(manifest)) => this.manifest = Some(manifest),
            Some(Err(warning)) => this.warn(None, warning),
            None => {}
        }
        Ok(this)
    }

    /// From a reader; `name` is what errors call it.
    pub fn from_reader(reader: impl Read + Send + 'static, name: &Path) -> Self {
        Self::new(Box::new(reader), name.to_owned())
    }

    fn new(reader: Box<dyn Read + Send>, path: PathBuf) -> Self {
        Self {
            path,
            manifest: None,
            lines: TextReader::new(reader),
            number: 0,
            line: Vec::new(),
            damages: 0,
            ended: false,
            last_seq: None,
            last_at: Mono::ZERO,
            missing: 0,
            beyond_ticks: 0,
            has_ticks: false,
            told: 0,
            disordered: 0,
            warnings: Vec::new(),
            more_warnings: 0,
        }
    }

    /// The manifest, if there is a readable one.
    pub const fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()
    }

    /// What could not be used so far, at most 100.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Further warnings that are only counted.
    pub const fn more_warnings(&self) -> u64 {
        self.more_warnings
    }

    /// Line of the stream's text that was read last, from 1.
    pub const fn line_number(&self) -> u64 {
        self.number
    }

    /// The next event with the text of its line, without its end; `None`: the end.
    #[expect(
        clippy::should_implement_trait,
        reason = "it lends its line and may fail"
    )]
    pub fn next(&mut self) -> Result<Option<(Envelope, &[u8])>, ReadError> {
        let envelope = loop {
            if self.ended {
                return Ok(None);
            }
            if let Some(envelope) = self.read_line()? {
                break envelope;
            }
        };
        self.check_version(&envelope)?;
        self.check_order(&envelope);
        Ok(Some((envelope, self.line.trim_ascii())))
    }

    /// Behind the end: refuses what holds no event at all. A record that is only cut off
    /// still has those before the cut.
    pub fn require_any(&self) -> Result<(), ReadError> {
        if self.last_seq.is_some() {
            return Ok(());
        }
        let why = match self.warnings.iter().find(|w| w.line.is_some()) {
            None => "it is empty: the run was killed before its first event was written, or the disk was full; there is nothing to be had from it".to_owned(),
            Some(first) => format!(
                "it holds no event of a run ({first}): it is damaged or another file; take a copy of the record, or another run (`framepack-tui runs list`)"
            ),
        };
        Err(ReadError::NoEvents {
            path: self.path.clone(),
            why,
        })
    }

    fn warn(&mut self, line: Option<u64>, text: String) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(Warning { line, text });
        } else {
            self.more_warnings += 1;
        }
    }

    fn failed(&self, source: io::Error) -> ReadError {
        ReadError::Io {
            path: self.path.clone(),
            source,
        }
    }

    /// One line; `None`: there is no event in it.
    fn read_line(&mut self) -> Result<Option<Envelope>, ReadError> {
        self.line.clear();
        let mut one = self.lines.by_ref().take(MAX_LINE);
        let n = one.read_until(b'\n', &mut self.line);
        let n = n.map_err(|e| self.failed(e))?;
        if n == 0 {
            self.end();
            return Ok(None);
        }
        self.number += 1;
        let damages = self.lines.damages();
        if damages > self.damages {
            self.damages = damages;
            let text = "the file is damaged about here; what could be unpacked again is read on";
            self.warn(Some(self.number), text.to_owned());
        }
        let whole = self.line.last() == Some(&b'\n');
        if !whole && self.line.len() as u64 == MAX_LINE {
            let more = skip_line(&mut self.lines).map_err(|e| self.failed(e))?;
            self.warn(Some(self.number), format!("longer than {MAX_LINE} bytes"));
            if !more {
                let text = format!(
                    "no end of a line in {} MiB: what comes behind is not read",
                    SKIPPED >> 20
                );
                self.warn(Some(self.number), text);
                self.end();
            }
            return Ok(None);
        }
        Ok(self.parse(whole))
    }

    fn parse(&mut self, whole: bool) -> Option<Envelope> {
        if self.line.trim_ascii().is_empty() {
            return None;
        }
        match serde_json::from_slice(&self.line) {
            Ok(envelope) => Some(envelope),
            Err(_) if !whole => {
                let text = "the last line is cut off; the run ended in the middle of a write";
                self.warn(Some(self.number), text.to_owned());
                None
            }
            Err(e) => {
                self.warn(
                    Some(self.number),
                    format!("not an event that is known: {e}"),
                );
                None
            }
        }
    }

    fn check_version(&self, envelope: &Envelope) -> Result<(), ReadError> {
        match &envelope.event {
            Event::RunStarted(head) if !same_major(&head.schema, SCHEMA) => {
                Err(ReadError::Version {
                    path: self.path.clone(),
                    found: head.schema.clone(),
                    known: SCHEMA,
                })
            }
            _ => Ok(()),
        }
    }

    fn check_order(&mut self, envelope: &Envelope) {
        match envelope.seq.checked_sub(self.last_seq.unwrap_or(0)) {
            None | Some(0) => self.disordered += 1,
            Some(step) => {
                let turns = envelope.at.since(self.last_at).as_millis() / u128::from(TURN_MS);
                let ticks = u64::try_from(turns).unwrap_or(u64::MAX).saturating_add(2);
                self.missing += step - 1;
                self.beyond_ticks += (step - 1).saturating_sub(ticks);
            }
        }
        match &envelope.event {
            Event::Tick => self.has_ticks = true,
            Event::Dropped { n, .. } => self.told = self.told.saturating_add(*n),
            _ => {}
        }
        self.last_seq = Some(envelope.seq);
        self.last_at = envelope.at;
    }

    /// Gaps are said once; they are normal where a sink had to drop something.
    fn end(&mut self) {
        self.ended = true;
        if !self.lines.finish() {
            let text = "the file ends in the middle of a write: the program was killed, the disk was full, or the run still goes on; what was written before is read";
            self.warn(Some(self.number), text.to_owned());
        }
        if self.last_seq.is_none() {
            self.warn(None, "the record is empty".to_owned());
            return;
        }
        // `--headless` leaves ticks out, and numbers them all the same
        let missing = if self.has_ticks {
            self.missing
        } else {
            self.beyond_ticks.saturating_sub(self.told)
        };
        if missing > 0 {
            self.warn(None, format!("{missing} events are missing"));
        }
        if self.disordered > 0 {
            self.warn(None, format!("{} events are out of order", self.disordered));
        }
    }
}

/// A manifest, or another file that is as short.
pub(super) fn read_small(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open_file(path)?
        .take(MAX_MANIFEST)
        .read_to_string(&mut text)?;
    Ok(text)
}

/// The manifest, or why there is none that can be used.
fn read_manifest(path: &Path) -> Result<Result<Manifest, String>, ReadError> {
    let text = match read_small(path) {
        Ok(text) => text,
        Err(e) => return Ok(Err(format!("no manifest: {e}"))),
    };
    // The version comes first: another major may have other fields.
    if let Ok(Head { format }) = serde_json::from_str(&text)
        && !is_readable(&format)
    {
        return Err(ReadError::Version {
            path: path.to_owned(),
            found: format,
            known: FORMAT,
        });
    }
    Ok(serde_json::from_str(&text).map_err(|e| format!("unreadable manifest: {e}")))
}

/// A record, all of it in memory.
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
    /// Reads a run's folder, or a single file of JSON lines, packed or not.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Self::collect(Events::open(path)?)
    }

    /// Reads a stream of JSON lines, such as what `--headless` wrote, packed or not.
    pub fn from_lines(lines: impl Read + Send + 'static) -> Result<Self, ReadError> {
        Self::collect(Events::from_reader(lines, Path::new("the stream")))
    }

    /// Reads to the end.
    pub(super) fn collect(mut events: Events) -> Result<Self, ReadError> {
        let mut envelopes = Vec::new();
        while let Some((envelope, _)) = events.next()? {
            envelopes.push(envelope);
        }
        Ok(Self {
            envelopes,
            manifest: events.manifest,
            warnings: events.warnings,
            more_warnings: events.more_warnings,
        })
    }
}

/// Goes behind the end of the line; `false`: it has none within a bound, as in a file that
/// is a hole.
pub(super) fn skip_line(lines: &mut impl BufRead) -> io::Result<bool> {
    let mut left = SKIPPED;
    loop {
        let buffer = lines.fill_buf()?;
        let (skip, end) = match buffer.iter().position(|b| *b == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        lines.consume(skip);
        if end {
            return Ok(true);
        }
        let Some(rest) = left.checked_sub(skip) else {
            return Ok(false);
        };
        left = rest;
    }
}

pub(super) fn same_major(found: &str, known: &str) -> bool {
    let major = |v: &str| v.split('.').next().and_then(|m| m.parse::<u32>().ok());
    major(found).is_some() && major(found) == major(known)
}

/// The text of a run's stream, or of a single file: plain JSON lines, whatever the format.
pub fn open_text(path: &Path) -> Result<impl Read, ReadError> {
    let path = if path.is_dir() {
        events_file(path)
    } else {
        path.to_owned()
    };
    match open_file(&path) {
        Ok(file) => Ok(TextReader::new(file)),
        Err(source) => Err(ReadError::Io { path, source }),
    }
}
