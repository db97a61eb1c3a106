//! The runs that left a record, and how each stands.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};

use crate::model::{Envelope, Event, Outcome};

use super::reader::read_small;
use super::retention::last_lines;
use super::store::{LOCK, MANIFEST, Manifest, Store, events_file};

/// How a run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunStatus {
    /// Its lock is held and it has no end: somebody writes the record.
    Running,
    /// The record has its end.
    Finished {
        /// How it ended.
        outcome: Outcome,
        /// Exit code of the program.
        exit_code: u8,
    },
    /// Nobody writes it, and it has no end.
    Broken {
        /// Why, as a fragment.
        why: String,
    },
}

/// A run's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEntry {
    /// Name of the folder: the run id.
    pub id: String,
    /// The folder.
    pub path: PathBuf,
    /// The manifest, where it can be read.
    pub manifest: Option<Manifest>,
    /// How it stands.
    pub status: RunStatus,
}

impl RunEntry {
    /// Looks at one folder; `None`: it is no run's.
    pub fn at(path: &Path) -> Option<Self> {
        let text = read_small(&path.join(MANIFEST)).ok();
        if text.is_none() && !events_file(path).is_file() {
            return None;
        }
        let manifest: Option<Manifest> = text.and_then(|t| serde_json::from_str(&t).ok());
        let name = path.canonicalize().ok()?;
        Some(Self {
            id: name.file_name()?.to_string_lossy().into_owned(),
            path: path.to_owned(),
            manifest,
            status: status(path),
        })
    }
}

impl Store {
    /// Every run, newest first. A store that does not exist yet is empty.
    pub fn list(&self) -> io::Result<Vec<RunEntry>> {
        let entries = match fs::read_dir(self.root()) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(e),
        };
        let mut runs = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let is_id = name
                .to_str()
                .is_some_and(|n| n.parse::<super::RunId>().is_ok());
            // a folder without a manifest is being made just now
            if is_id && entry.path().join(MANIFEST).is_file() {
                runs.extend(RunEntry::at(&entry.path()));
            }
        }
        runs.sort_by(|a, b| b.newness().cmp(&a.newness()));
        Ok(runs)
    }
}

impl RunEntry {
    /// The process that was watched, where it was not started by us.
    pub fn watched(&self) -> Option<u32> {
        self.manifest.as_ref().and_then(|m| m.watch)
    }

    /// How it stands, in a few words: `running`, `finished 10`, `watch left`, `broken`.
    pub fn state(&self) -> String {
        let state = match &self.status {
            RunStatus::Running => "running".to_owned(),
            RunStatus::Finished {
                outcome,
                exit_code: 0,
            } => outcome.short().to_owned(),
            RunStatus::Finished { outcome, exit_code } => {
                format!("{} {exit_code}", outcome.short())
            }
            RunStatus::Broken { .. } => "broken".to_owned(),
        };
        match self.watched() {
            Some(_) => format!("watch {state}"),
            None => state,
        }
    }

    /// Bytes of its folder.
    pub fn size(&self) -> u64 {
        super::retention::size_of_tree(&self.path)
    }

    /// When its last event was written.
    pub fn touched(&self) -> Option<std::time::SystemTime> {
        let meta = fs::metadata(events_file(&self.path)).or_else(|_| fs::metadata(&self.path));
        meta.and_then(|m| m.modified()).ok()
    }

    /// The id's time is to the minute; the manifest's is to the second.
    pub(crate) fn newness(&self) -> (&str, &str, &str) {
        let minute = self.id.get(..13).unwrap_or(&self.id);
        let clock = self.manifest.as_ref().map_or("", |m| &m.wall_clock);
        (minute, clock, &self.id)
    }
}

/// Opens a file of a record. Opening a pipe waits for its writer, for ever where there
/// is none: one strange folder must not hold up all the others.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let kind = file.metadata()?.file_type();
    if kind.is_fifo() || kind.is_socket() || kind.is_char_device() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        ));
    }
    Ok(file)
}

/// Whether somebody holds the lock of the run in this folder.
pub fn is_held(run: &Path) -> bool {
    // shared: two who look at the same time do not take each other for the run
    open_file(&run.join(LOCK)).is_ok_and(|lock| {
        flock(&lock, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
    })
}

fn status(run: &Path) -> RunStatus {
    // looked at first: a run that ends meanwhile has its end in the file
    let held = is_held(run);
    match end(run) {
        // whoever has written it may still show it
        finished @ RunStatus::Finished { .. } => finished,
        _ if held => RunStatus::Running,
        broken => broken,
    }
}

/// The end of the run, as its record has it.
fn end(run: &Path) -> RunStatus {
    let broken = |why: String| RunStatus::Broken { why };
    let events = events_file(run);
    let bytes = match last_lines(&events) {
        Ok(bytes) => bytes,
        Err(e) => {
            let name = events.file_name().unwrap_or_default().display();
            return broken(format!("{name}: {e}"));
        }
    };
    let last = bytes
        .split(|b| *b == b'\n')
        .rfind(|line| !line.trim_ascii().is_empty());
    match last.map(serde_json::from_slice::<Envelope>) {
        Some(Ok(Envelope {
            event: Event::RunFinished {
                outcome, exit_code, ..
            },
            ..
        })) => RunStatus::Finished { outcome, exit_code },
        _ => broken("it has no end: its supervisor was killed, or the machine went down".into()),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Zoned;

    use super::super::store::{EVENTS, PLAIN_EVENTS};
    use super::*;

    const END: &str = r#"{"seq":9,"at":1,"event":{"kind":"run_finished","outcome":{"end":"finished","restarts":1},"exit_code":10,"result":null,"summary":"finished"}}"#;

    fn run(root: &Path, id: &str, events: &str) {
        let dir = root.join(id);
        fs::create_dir_all(&dir).unwrap();
        let manifest = format!(
            r#"{{"format":"1.0","program":"0.1.0","run":"{id}","wall_clock":"2026-01-01T00:00:00Z","argv":["python"]}}"#
        );
        fs::write(dir.join(MANIFEST), manifest).unwrap();
        fs::write(dir.join(LOCK), "").unwrap();
        fs::write(dir.join(PLAIN_EVENTS), events).unwrap();
    }

    #[test]
    fn newest_first_each_with_its_state() {
        let tmp = tempfile::tempdir().unwrap();
        let store = Store::at(tmp.path());
        assert_eq!(Store::at(tmp.path().join("none")).list().unwrap(), []);
        run(tmp.path(), "20260101-0001-00aa", &format!("{{}}\n{END}\n"));
        run(tmp.path(), "20260101-0002-00aa", "{\"seq\":1,\"at\":0,\"ev");
        fs::create_dir(tmp.path().join("notes")).unwrap();
        let live = store.create(&["python".to_owned()], &Zoned::now()).unwrap();
        let runs = store.list().unwrap();
        let ids: Vec<_> = runs.iter().map(|r| r.id.as_str()).collect();
        assert_eq!(
            ids,
            [
                live.id().as_str(),
                "20260101-0002-00aa",
                "20260101-0001-00aa"
            ]
        );
        assert_eq!(runs[0].status, RunStatus::Running);
        let manifest = runs[0].manifest.as_ref().unwrap();
        assert_eq!(manifest.pid, Some(std::process::id()));
        assert!(matches!(runs[1].status, RunStatus::Broken { .. }));
        assert_eq!(
            runs[2].status,
            RunStatus::Finished {
                outcome: Outcome::Finished { restarts: 1 },
                exit_code: 10
            }
        );
        assert_eq!(runs[2].manifest.as_ref().unwrap().pid, None);
        let path = live.path().to_owned();
        drop(live);
        // a program that another test starts just now has it open until it is executed
        let end = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while is_held(&path) {
            assert!(std::time::Instant::now() < end, "still held");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(RunEntry::at(&tmp.path().join("notes")).is_none());
    }

    #[test]
    fn a_run_whose_end_is_still_shown_is_over() {
        let tmp = tempfile::tempdir().unwrap();
        let store = Store::at(tmp.path());
        let live = store.create(&["python".to_owned()], &Zoned::now()).unwrap();
        let status = || store.list().unwrap().remove(0).status;
        let events = live.path().join(PLAIN_EVENTS);
        fs::write(&events, "{}\n").unwrap();
        assert_eq!(status(), RunStatus::Running);
        fs::write(&events, format!("{{}}\n{END}\n")).unwrap();
        assert!(is_held(live.path()));
        assert!(matches!(
            status(),
            RunStatus::Finished { exit_code: 10, .. }
        ));
    }

    #[test]
    fn a_pipe_in_a_record_holds_nobody_up() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path().join("20260101-0001-00aa");
        run(tmp.path(), "20260101-0001-00aa", "");
        fs::remove_file(dir.join(PLAIN_EVENTS)).unwrap();
        fs::remove_file(dir.join(LOCK)).unwrap();
        for name in [EVENTS, LOCK] {
            let mode = Mode::RUSR | Mode::WUSR;
            let pipe = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, dir.join(name), pipe, mode, 0).unwrap();
        }
        let (to, from) = std::sync::mpsc::channel();
        let store = Store::at(tmp.path());
        std::thread::spawn(move || to.send(store.list().unwrap()));
        let runs = from.recv_timeout(std::time::Duration::from_secs(20));
        let runs = runs.expect("the list waits for the pipe");
        let RunStatus::Broken { why } = &runs[0].status else {
            panic!("{runs:?}")
        };
        assert!(why.contains("not a regular file"), "{why}");
        assert!(super::super::Tail::open(&dir.join(EVENTS)).is_err());
    }
}
