//! Writes a bundle on a thread of its own, because a disk may block as well.

use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::model::event::{EvidenceItem, EvidenceReport};
use crate::model::time::millis;

use super::index::{self, Entry};
use super::{Part, failed, output};

/// The bundle's table of contents as the event stream tells it.
const REPORT: &str = "report.json";

/// Hands parts to the disk.
pub(super) struct Writer {
    parts: mpsc::Sender<Vec<Part>>,
    items: mpsc::Receiver<(EvidenceItem, Entry)>,
    kinds: std::cell::RefCell<Vec<&'static str>>,
    dir: PathBuf,
}

impl Writer {
    pub(super) fn start(dir: PathBuf) -> Self {
        let (parts, theirs) = mpsc::channel::<Vec<Part>>();
        let (done, items) = mpsc::channel();
        let folder = dir.clone();
        let started = thread::Builder::new()
            .name("evidence writer".to_owned())
            .spawn(move || {
                for part in theirs.into_iter().flatten() {
                    if done.send(output::write(&folder, &part)).is_err() {
                        return;
                    }
                }
            });
        // Without a thread `items` is disconnected, and `finish` says so.
        drop(started);
        Self {
            parts,
            items,
            kinds: std::cell::RefCell::default(),
            dir,
        }
    }

    pub(super) fn write(&self, parts: Vec<Part>) {
        self.kinds.borrow_mut().extend(parts.iter().map(|p| p.kind));
        // Refused only if the thread is gone; `finish` finds out.
        let _gone = self.parts.send(parts);
    }

    /// Waits for the files, then writes the report itself beside them.
    pub(super) fn finish(self, report: &mut EvidenceReport, begun: Instant, limit: Duration) {
        let end = Instant::now() + limit;
        drop(self.parts);
        let mut entries = Vec::new();
        for kind in self.kinds.into_inner() {
            let left = end.saturating_duration_since(Instant::now());
            let (item, entry) = self.items.recv_timeout(left).unwrap_or_else(|_late| {
                let why = format!("not written to {} in time", self.dir.display());
                (failed(kind, why.clone()), Entry::failed(kind, why))
            });
            report.items.push(item);
            entries.push(entry);
        }
        report.took_ms = millis(begun.elapsed());
        let (done, written) = mpsc::channel();
        let (dir, copy) = (self.dir, report.clone());
        let started = thread::Builder::new().spawn(move || {
            let index = index::Index::new(&copy, entries);
            let both = output::write_json(&dir, index::FILE, &index)
                .and(output::write_json(&dir, REPORT, &copy));
            let _too_late = done.send(both);
        });
        let left = end.saturating_duration_since(Instant::now());
        let written = match started {
            Ok(_) => written.recv_timeout(left),
            Err(_) => Ok(Err("no thread for it".to_owned())),
        };
        match written {
            Ok(Ok(())) => {}
            Ok(Err(why)) => report.items.push(failed("report", why)),
            Err(_late) => report
                .items
                .push(failed("report", "not written in time".to_owned())),
        }
    }
}
