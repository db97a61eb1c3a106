//! How many runs are kept.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};

use super::pack::{MAGIC, last_member};
use super::store::{LOCK, MANIFEST, RunId, Store, events_file};

/// What is kept. Pruning begins only at one and a half times the limits and then
/// goes down to them, so that it is rare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Runs.
    pub runs: usize,
    /// Bytes over all runs.
    pub bytes: u64,
    /// A run without an end in its record may still be of use, or be running on a
    /// file system without locks: it is kept for this long.
    pub unfinished: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            runs: 100,
            bytes: 2 << 30,
            unfinished: Duration::from_hours(24),
        }
    }
}

/// What was pruned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Runs that were removed, oldest first.
    pub removed: Vec<RunId>,
    /// Bytes that came free.
    pub bytes: u64,
    /// Runs that could not be removed, and why.
    pub failed: Vec<String>,
}

struct Candidate {
    id: RunId,
    path: PathBuf,
    bytes: u64,
}

impl Store {
    /// Removes the oldest finished runs if there are too many, or they are too
    /// large. A store that does not exist yet is empty. Only folders that are
    /// named like a run and hold a manifest are ever touched.
    pub fn prune(&self, keep: Retention, now: SystemTime) -> io::Result<Pruned> {
        let mut runs = candidates(self.root())?;
        runs.sort_by(|a, b| a.id.cmp(&b.id));
        let mut count = runs.len();
        let mut bytes: u64 = runs.iter().map(|r| r.bytes).sum();
        let mut pruned = Pruned::default();
        if count <= keep.runs + keep.runs / 2 && bytes <= keep.bytes + keep.bytes / 2 {
            return Ok(pruned);
        }
        for run in runs {
            if count <= keep.runs && bytes <= keep.bytes {
                break;
            }
            // Held until the folder is gone: nobody can begin to write meanwhile.
            let Some(_lock) = lock_if_over(&run.path, keep.unfinished, now) else {
                continue;
            };
            match fs::remove_dir_all(&run.path) {
                Ok(()) => {
                    count -= 1;
                    bytes = bytes.saturating_sub(run.bytes);
                    pruned.bytes += run.bytes;
                    pruned.removed.push(run.id);
                }
                Err(e) => pruned.failed.push(format!("{}: {e}", run.path.display())),
            }
        }
        Ok(pruned)
    }
}

/// Why a run was not removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// Its lock is held: somebody writes the record.
    Held,
    /// It has no end and was written to not long ago.
    Unfinished,
    /// The system's answer.
    Failed(String),
}

/// Removes one run's folder if the run is over; gives its bytes. `dry`: only looks.
pub fn remove_run(
    run: &Path,
    unfinished: Duration,
    now: SystemTime,
    dry: bool,
) -> Result<u64, Kept> {
    let bytes = size_of_tree(run);
    let Some(_lock) = lock_if_over(run, unfinished, now) else {
        return Err(if super::is_held(run) {
            Kept::Held
        } else {
            Kept::Unfinished
        });
    };
    if !dry {
        fs::remove_dir_all(run).map_err(|e| Kept::Failed(e.to_string()))?;
    }
    Ok(bytes)
}

fn candidates(root: &Path) -> io::Result<Vec<Candidate>> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Some(id) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        let path = entry.path();
        if entry.file_type()?.is_dir() && path.join(MANIFEST).is_file() {
            let bytes = size_of_tree(&path);
            found.push(Candidate { id, path, bytes });
        }
    }
    Ok(found)
}

/// Size of every file below; links are not followed, what cannot be read counts 0.
pub(super) fn size_of_tree(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(m) if m.is_dir() => size_of_tree(&entry.path()),
            Ok(m) => m.len(),
            Err(_) => 0,
        })
        .sum()
}

/// The run's lock, if the run is over: nobody holds it, and the record has its
/// end or has not been touched for `unfinished`.
fn lock_if_over(run: &Path, unfinished: Duration, now: SystemTime) -> Option<File> {
    let lock = super::list::open_file(&run.join(LOCK)).ok()?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive).ok()?;
    let events = events_file(run);
    let touched = fs::metadata(&events)
        .or_else(|_| fs::metadata(run.join(MANIFEST)))
        .and_then(|m| m.modified())
        .ok()?;
    let old = now
        .duration_since(touched)
        .is_ok_and(|age| age >= unfinished);
    (old || has_end(&events)).then_some(lock)
}

/// Whether the last lines hold the end of the stream.
fn has_end(events: &Path) -> bool {
    let mark = br#""kind":"run_finished""#;
    last_lines(events).is_ok_and(|bytes| bytes.windows(mark.len()).any(|w| w == mark))
}

/// The last lines of a stream: those of the last 64 KiB, and of packed ones those of the
/// last member if that is not longer. The end of a run is in a member of its own.
pub(super) fn last_lines(events: &Path) -> io::Result<Vec<u8>> {
    const TAIL: u64 = 64 << 10;
    let mut file = super::list::open_file(events)?;
    let mut head = Vec::new();
    file.by_ref()
        .take(MAGIC.len() as u64)
        .read_to_end(&mut head)?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    Ok(last_member(&bytes, head == MAGIC))
}

#[cfg(test)]
mod tests {
    use super::super::store::PLAIN_EVENTS as EVENTS;
    use super::*;
    use jiff::Zoned;

    const KEEP: Retention = Retention {
        runs: 2,
        bytes: 1 << 30,
        unfinished: Duration::from_hours(24),
    };

    fn run(root: &Path, id: &str, events: &str) {
        let dir = root.join(id);
        fs::create_dir_all(dir.join("evidence/001")).unwrap();
        fs::write(dir.join(MANIFEST), "{}").unwrap();
        fs::write(dir.join(LOCK), "").unwrap();
        fs::write(dir.join(EVENTS), events).unwrap();
    }

    const END: &str = r#"{"seq":9,"at":1,"event":{"kind":"run_finished","outcome":{}}}"#;

    #[test]
    fn the_oldest_finished_runs_go_and_only_beyond_one_and_a_half() {
        let tmp = tempfile::tempdir().unwrap();
        let store = Store::at(tmp.path());
        for n in 1..=3 {
            run(tmp.path(), &format!("20260101-000{n}-00aa"), END);
        }
        fs::create_dir(tmp.path().join("notes")).unwrap();
        let now = SystemTime::now();
        assert_eq!(store.prune(KEEP, now).unwrap(), Pruned::default());
        // The oldest of all has no end: it is kept, the next one goes.
        run(tmp.path(), "20260101-0000-00aa", "{}\n");
        let pruned = store.prune(KEEP, now).unwrap();
        let removed: Vec<_> = pruned.removed.iter().map(RunId::as_str).collect();
        assert_eq!(removed, ["20260101-0001-00aa", "20260101-0002-00aa"]);
        assert!(pruned.bytes > 0 && pruned.failed.is_empty());
        assert!(tmp.path().join("notes").is_dir());
        // After a day it is no longer kept.
        run(tmp.path(), "20260101-0004-00aa", END);
        run(tmp.path(), "20260101-0005-00aa", END);
        let later = now + Duration::from_hours(25);
        let pruned = store.prune(KEEP, later).unwrap();
        assert_eq!(pruned.removed[0].as_str(), "20260101-0000-00aa");
    }

    #[test]
    fn a_run_that_lives_is_never_pruned() {
        let tmp = tempfile::tempdir().unwrap();
        let store = Store::at(tmp.path());
        let live = store.create(&[], &Zoned::now()).unwrap();
        fs::write(live.path().join(EVENTS), END).unwrap();
        let keep = Retention { runs: 0, ..KEEP };
        let later = SystemTime::now() + Duration::from_hours(48);
        assert_eq!(store.prune(keep, later).unwrap().removed, []);
        let path = live.path().to_owned();
        drop(live);
        assert_eq!(store.prune(keep, later).unwrap().removed.len(), 1);
        assert!(!path.exists());
    }

    #[test]
    fn size_counts_too() {
        let tmp = tempfile::tempdir().unwrap();
        let store = Store::at(tmp.path());
        for n in 1..=4 {
            run(
                tmp.path(),
                &format!("20260101-000{n}-00aa"),
                &format!("{}\n{END}", "x".repeat(1000)),
            );
        }
        let keep = Retention {
            runs: 100,
            bytes: 2500,
            ..KEEP
        };
        assert_eq!(
            store.prune(keep, SystemTime::now()).unwrap().removed.len(),
            2
        );
        let missing = Store::at(tmp.path().join("none"));
        assert_eq!(
            missing.prune(keep, SystemTime::now()).unwrap(),
            Pruned::default()
        );
    }
}
