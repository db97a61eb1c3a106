//! Where collectors write to: bounded, and readable when they do not return.

use std::collections::VecDeque;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::model::event::{EvidenceItem, ItemState};

use super::index::Entry;
use super::{Part, Trouble};

/// Room that is always left for the note that something was cut.
const NOTE: usize = 128;

#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    cut: u64,
    step: String,
    closed: bool,
}

/// A buffer that the collector fills and that may be taken from it at any time.
#[derive(Debug, Clone)]
pub(super) struct Output {
    state: Arc<Mutex<Buffer>>,
    max: usize,
}

/// What was in an output.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) bytes: Vec<u8>,
}

impl Output {
    pub(super) fn new(max: usize) -> Self {
        Self {
            state: Arc::default(),
            max,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Buffer> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line. What does not fit is counted and left out.
    pub(super) fn line(&self, text: impl AsRef<str>) {
        let text = text.as_ref();
        let mut state = self.lock();
        let room = (self.max - NOTE).saturating_sub(state.bytes.len());
        if state.closed || text.len() >= room {
            state.cut += text.len() as u64 + 1;
            return;
        }
        state.bytes.extend_from_slice(text.as_bytes());
        state.bytes.push(b'\n');
    }

    /// Bytes that still fit.
    pub(super) fn room(&self) -> usize {
        (self.max - NOTE).saturating_sub(self.lock().bytes.len())
    }

    /// Counts what was left out by the collector itself.
    pub(super) fn left_out(&self, bytes: u64) {
        self.lock().cut += bytes;
    }

    /// Says what is being done now (`while reading …`): if the collector does not
    /// return, that is the finding.
    pub(super) fn doing(&self, what: impl Into<String>) {
        self.lock().step = what.into();
    }

    pub(super) fn step(&self) -> String {
        self.lock().step.clone()
    }

    /// Whether nobody waits any more: the collector should end.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().bytes.is_empty()
    }

    /// Takes what there is, and closes the output.
    pub(super) fn take(&self) -> Kept {
        let mut state = self.lock();
        state.closed = true;
        let mut bytes = std::mem::take(&mut state.bytes);
        // JSON lines stay JSON lines: a note there would be no JSON.
        if state.cut > 0 && bytes.first() != Some(&b'{') {
            bytes.extend_from_slice(format!("[{} bytes left out]\n", state.cut).as_bytes());
        }
        Kept { bytes }
    }

    /// Adds a small file under a heading. `false`: it could not be read, which is
    /// said in its place.
    pub(super) fn file(&self, path: &Path, max: u64) -> bool {
        self.doing(format!("while reading {}", path.display()));
        self.line(format!("== {}", path.display()));
        match read_text(path, max) {
            Ok(text) => {
                self.line(text.trim_end_matches(['\n', '\0']));
                true
            }
            Err(e) => {
                self.line(format!("(not readable: {e})"));
                false
            }
        }
    }
}

/// Adds the latest lines that fit, in their order.
pub(super) fn latest<'a>(
    out: &Output,
    lines: impl DoubleEndedIterator<Item = &'a String>,
) -> Result<(), Trouble> {
    let mut room = out.room();
    let mut kept = VecDeque::new();
    for line in lines.rev() {
        if line.len() + 1 < room {
            room -= line.len() + 1;
            kept.push_front(line);
        } else {
            out.left_out(line.len() as u64 + 1);
            room = 0;
        }
    }
    if kept.is_empty() {
        return Err(Trouble::absent("none yet"));
    }
    for line in kept {
        out.line(line);
    }
    Ok(())
}

/// Text of a small file of /proc or sysfs, at most `max` bytes of it.
pub(super) fn read_text(path: &Path, max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(max).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_data()
}

fn make_dir(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
}

/// Puts a part on disk. A failed collector may still have left something.
pub(super) fn write(dir: &Path, part: &Part) -> (EvidenceItem, Entry) {
    let mut entry = Entry {
        kind: part.kind.to_owned(),
        state: match &part.trouble {
            None => ItemState::Ok,
            Some(Trouble::Absent(_)) => ItemState::Absent,
            Some(Trouble::Failed(_)) => ItemState::Failed,
        },
        file: None,
        bytes: 0,
        took_ms: part.took_ms,
        why: part.trouble.as_ref().map(|t| t.why().to_owned()),
    };
    if !part.kept.bytes.is_empty() {
        let path = dir.join(part.file);
        match make_dir(dir).and_then(|()| write_private(&path, &part.kept.bytes)) {
            Ok(()) => {
                entry.file = Some(within_run(dir, part.file));
                entry.bytes = part.kept.bytes.len() as u64;
            }
            Err(e) => {
                entry.state = ItemState::Failed;
                entry.why = Some(format!("write {}: {e}", path.display()));
            }
        }
    } else if entry.why.is_none() {
        entry.state = ItemState::Absent;
        entry.why = Some("nothing to report".to_owned());
    }
    let item = EvidenceItem {
        kind: entry.kind.clone(),
        file: entry.file.clone(),
        bytes: entry.bytes,
        failed: entry.why.clone(),
        absent: entry.state == ItemState::Absent,
    };
    (item, entry)
}

/// `evidence/001/threads.txt`: the name from the run's folder on.
fn within_run(dir: &Path, file: &str) -> String {
    let mut parts: Vec<_> = dir.iter().rev().take(2).collect();
    parts.reverse();
    let parts = parts.iter().map(|p| p.to_string_lossy());
    let mut name: Vec<_> = parts.collect();
    name.push(file.into());
    name.join("/")
}

/// A table of contents.
pub(super) fn write_json(dir: &Path, name: &str, value: &impl Serialize) -> Result<(), String> {
    let path = dir.join(name);
    let write = || -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(value)?;
        text.push(b'\n');
        make_dir(dir)?;
        write_private(&path, &text)
    };
    write().map_err(|e| format!("write {}: {e}", path.display()))
}
