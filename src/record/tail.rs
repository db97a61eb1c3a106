//! Reads a record while it grows.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::model::event::SCHEMA;
use crate::model::{Envelope, Event};

use super::pack::Unpacker;
use super::reader::{MAX_LINE, same_major};

/// Packed bytes a look: the first of a long record come while the rest is still read.
const CHUNK: usize = 16 << 10;
/// Looks a call.
const LOOKS: u32 = 1024;

/// Why a record cannot be followed (any further).
#[derive(Debug, thiserror::Error)]
pub enum TailError {
    /// It cannot be opened or read.
    #[error("read {}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The file is gone.
    #[error("follow {}: the file was removed while it was read", path.display())]
    Vanished {
        /// Which.
        path: PathBuf,
    },
    /// Another file has its name now, or it was cut.
    #[error("follow {}: the file was replaced while it was read; start again to read the new one", path.display())]
    Replaced {
        /// Which.
        path: PathBuf,
    },
    /// A line that is no event.
    #[error("read {}:{line}: {why}", path.display())]
    Line {
        /// Which.
        path: PathBuf,
        /// From 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
}

/// What every event has, in every version.
#[derive(Deserialize)]
struct AnyEnvelope {
    #[serde(rename = "seq")]
    _seq: u64,
    #[serde(rename = "event")]
    _event: AnyEvent,
}

#[derive(Deserialize)]
struct AnyEvent {
    #[serde(rename = "kind")]
    _kind: String,
}

/// A record that may still grow.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    file: File,
    read: u64,
    unpacker: Unpacker,
    /// The beginning of a line whose end is not written yet.
    partial: Vec<u8>,
    line: u64,
    begun: bool,
}

impl Tail {
    /// Opens a file of JSON lines, packed or not, from its beginning.
    pub fn open(path: &Path) -> Result<Self, TailError> {
        let file = super::list::open_file(path).map_err(|source| TailError::Io {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            path: path.to_owned(),
            file,
            read: 0,
            unpacker: Unpacker::new(),
            partial: Vec::new(),
            line: 0,
            begun: false,
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Line that comes next, from 1.
    pub const fn next_line(&self) -> u64 {
        self.line + 1
    }

    /// Bytes of the file that are read, and bytes that it has now.
    pub fn extent(&self) -> (u64, u64) {
        let length = self.file.metadata().map_or(self.read, |m| m.len());
        (self.read, length.max(self.read))
    }

    /// What was written since the last call, at most some hundred events at a time;
    /// empty: nothing for now. The first is always `run_started`. Kinds that this
    /// version does not know are left out.
    pub fn poll(&mut self) -> Result<Vec<Envelope>, TailError> {
        let mut found = Vec::new();
        let mut looked = 0;
        loop {
            let mut bytes = Vec::new();
            let n = (&mut self.file)
                .take(CHUNK as u64)
                .read_to_end(&mut bytes)
                .map_err(|source| self.failed(source))?;
            self.read += n as u64;
            let searched = self.partial.len();
            self.unpacker.feed(&bytes, &mut self.partial);
            self.take_lines(searched, &mut found)?;
            if self.unpacker.damages() > 0 {
                self.line += 1;
                return Err(self.wrong("the file is damaged here".to_owned()));
            }
            looked += 1;
            // of blank lines and unknown kinds there may be any number
            if !found.is_empty() || looked == LOOKS && n > 0 {
                return Ok(found);
            }
            if n == 0 {
                // what was written before it went away has been read
                return self.same_file().map(|()| found);
            }
        }
    }

    fn failed(&self, source: io::Error) -> TailError {
        TailError::Io {
            path: self.path.clone(),
            source,
        }
    }

    fn same_file(&self) -> Result<(), TailError> {
        let path = || self.path.clone();
        let there = match fs::metadata(&self.path) {
            Ok(there) => there,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(TailError::Vanished { path: path() });
            }
            Err(e) => return Err(self.failed(e)),
        };
        let ours = self.file.metadata().map_err(|e| self.failed(e))?;
        let same = (there.dev(), there.ino()) == (ours.dev(), ours.ino());
        if same && ours.len() >= self.read {
            Ok(())
        } else {
            Err(TailError::Replaced { path: path() })
        }
    }

    /// `searched`: bytes at the beginning of what is there that have no end of a line.
    fn take_lines(&mut self, searched: usize, found: &mut Vec<Envelope>) -> Result<(), TailError> {
        let mut bytes = std::mem::take(&mut self.partial);
        let (mut from, mut searched) = (0, searched);
        while let Some(end) = bytes[searched..].iter().position(|b| *b == b'\n') {
            self.line += 1;
            let line = bytes[from..searched + end].trim_ascii();
            if !line.is_empty() {
                found.extend(self.parse(line)?);
            }
            (from, searched) = (searched + end + 1, searched + end + 1);
        }
        bytes.drain(..from);
        // no text has it: a hole, which may be as long as a disk
        let hole = bytes[searched - from..].contains(&0);
        if hole || bytes.len() as u64 > MAX_LINE {
            self.line += 1;
            return Err(self.wrong(if hole {
                "not an event: zero bytes, as of a file that was never written".to_owned()
            } else {
                format!("the line is longer than {MAX_LINE} bytes")
            }));
        }
        self.partial = bytes;
        Ok(())
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Envelope>, TailError> {
        let envelope: Envelope = match serde_json::from_slice(line) {
            Ok(envelope) => envelope,
            // a newer minor version: its new kinds and words are left out
            Err(_) if self.begun && serde_json::from_slice::<AnyEnvelope>(line).is_ok() => {
                return Ok(None);
            }
            Err(e) => return Err(self.wrong(format!("not an event: {e}"))),
        };
        if !self.begun {
            match &envelope.event {
                Event::RunStarted(head) if same_major(&head.schema, SCHEMA) => self.begun = true,
                Event::RunStarted(head) => {
                    return Err(self.wrong(format!(
                        "format {} is not readable by this version, which reads {SCHEMA}; use a newer framepack-tui",
                        head.schema
                    )));
                }
                _ => return Err(self.wrong("a record begins with run_started".to_owned())),
            }
        }
        Ok(Some(envelope))
    }

    fn wrong(&self, why: String) -> TailError {
        TailError::Line {
            path: self.path.clone(),
            line: self.line,
            why,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;
    use crate::record::tests::samples;

    fn stream() -> Vec<u8> {
        let mut text = Vec::new();
        for (i, event) in samples::one_of_each().into_iter().enumerate() {
            let env = Envelope {
                seq: i as u64 + 1,
                at: crate::model::Mono(i as u64),
                from: None,
                event,
            };
            serde_json::to_writer(&mut text, &env).unwrap();
            text.push(b'\n');
        }
        text
    }

    fn append(path: &Path, bytes: &[u8]) {
        let mut file = File::options().append(true).open(path).unwrap();
        file.write_all(bytes).unwrap();
    }

    #[test]
    fn a_line_is_read_when_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let text = stream();
        fs::write(&path, &text[..20]).unwrap();
        let mut tail = Tail::open(&path).unwrap();
        assert_eq!(tail.poll().unwrap(), []);
        append(&path, &text[20..]);
        let mut all = Vec::new();
        loop {
            let more = tail.poll().unwrap();
            if more.is_empty() {
                break;
            }
            all.extend(more);
        }
        assert_eq!(all.len(), text.split(|b| *b == b'\n').count() - 1);
        append(
            &path,
            b"{\"seq\":999,\"at\":1,\"event\":{\"kind\":\"news_of_2030\"}}\n",
        );
        assert_eq!(tail.poll().unwrap(), []);
        append(&path, b"\0\0\0\n");
        let line = text.split(|b| *b == b'\n').count() + 1;
        let error = tail.poll().unwrap_err().to_string();
        assert!(error.contains(&format!("events.jsonl:{line}: ")), "{error}");
    }

    #[test]
    fn a_file_that_goes_away_is_told_after_its_last_word() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        fs::write(&path, stream()).unwrap();
        let mut gone = Tail::open(&path).unwrap();
        let mut replaced = Tail::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let end = |tail: &mut Tail| loop {
            match tail.poll() {
                Ok(more) => assert!(!more.is_empty(), "the end was not told"),
                Err(e) => return e,
            }
        };
        assert!(matches!(end(&mut gone), TailError::Vanished { .. }));
        fs::write(&path, stream()).unwrap();
        assert!(matches!(end(&mut replaced), TailError::Replaced { .. }));
        let mut cut = Tail::open(&path).unwrap();
        assert!(!cut.poll().unwrap().is_empty());
        File::create(&path).unwrap();
        assert!(matches!(end(&mut cut), TailError::Replaced { .. }));
    }

    /// A hole as long as a disk is no record that goes on.
    #[test]
    fn a_hole_is_no_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        for text in [Vec::new(), stream()] {
            fs::write(&path, &text).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            file.set_len(1 << 40).unwrap();
            let mut tail = Tail::open(&path).unwrap();
            let error = loop {
                match tail.poll() {
                    Ok(more) => assert!(!more.is_empty(), "the hole was not told"),
                    Err(e) => break e.to_string(),
                }
            };
            assert!(error.contains("zero bytes"), "{error}");
            assert!(tail.read <= text.len() as u64 + 2 * CHUNK as u64);
            let mut events = super::super::reader::Events::open(&path).unwrap();
            while events.next().unwrap().is_some() {}
            let said: Vec<_> = events.warnings().iter().map(ToString::to_string).collect();
            assert!(said.concat().contains("is not read"), "{said:?}");
        }
    }

    #[test]
    fn what_is_no_record_is_refused_at_its_first_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let tick = br#"{"seq":1,"at":0,"event":{"kind":"tick"}}"#;
        for bytes in [&b"hello\n"[..], &[tick, &b"\n"[..]].concat()] {
            fs::write(&path, bytes).unwrap();
            let error = Tail::open(&path).unwrap().poll().unwrap_err();
            assert!(matches!(error, TailError::Line { line: 1, .. }), "{error}");
        }
        let text = String::from_utf8(stream()).unwrap();
        fs::write(
            &path,
            text.replace(&format!(r#""schema":"{SCHEMA}""#), r#""schema":"2.0""#),
        )
        .unwrap();
        let error = Tail::open(&path).unwrap().poll().unwrap_err().to_string();
        assert!(error.contains("format 2.0"), "{error}");
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(pieces in prop::collection::vec(any::<Vec<u8>>(), 0..6), whole in any::<bool>()) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("events.jsonl");
            fs::write(&path, if whole { stream() } else { Vec::new() }).unwrap();
            let mut tail = Tail::open(&path).unwrap();
            for piece in pieces {
                append(&path, &piece);
                if tail.poll().is_err() {
                    break;
                }
            }
        }
    }
}
