//! The threads of one process, and the system call of each.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::file::ReadError;
use super::super::procfs::{parse, read_once};
use super::call::{self, Place};
use super::text;
use crate::model::{Bytes, ProbedThread, Wait};

/// A thread as `stat` shows it: that file can be read whatever the thread waits in.
#[derive(Debug)]
pub(super) struct Task {
    /// Its number.
    pub(super) tid: u32,
    /// Its folder.
    pub(super) dir: PathBuf,
    stat: parse::Stat,
}

/// Where a thread is, or why that cannot be read.
pub(super) enum Whereabouts {
    /// By the kernel.
    Place(Place),
    /// Not readable: why.
    Unreadable(String),
    /// It has ended.
    Ended,
}

impl Task {
    /// Up to `most` threads of the process in `dir`, the main thread first, and how many
    /// there are beyond.
    pub(super) fn list(dir: &Path, pid: u32, most: usize) -> (Vec<Self>, u32) {
        let tasks = dir.join("task");
        let entries = fs::read_dir(&tasks).into_iter().flatten().flatten();
        let mut tids: Vec<u32> = entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        tids.sort_unstable_by_key(|tid| (*tid != pid, *tid));
        let beyond = u32::try_from(tids.len().saturating_sub(most)).unwrap_or(u32::MAX);
        let read = |tid: u32| {
            let dir = tasks.join(tid.to_string());
            let stat = parse::stat(&read_once(&dir.join("stat")).ok()?)?;
            Some(Self { tid, dir, stat })
        };
        (
            tids.into_iter().take(most).filter_map(read).collect(),
            beyond,
        )
    }

    /// Whether it is in uninterruptible sleep: it may hold locks that a reader of the
    /// process's memory and files waits for.
    pub(super) const fn is_blocked(&self) -> bool {
        self.stat.state == 'D'
    }

    /// State letter.
    pub(super) const fn state(&self) -> char {
        self.stat.state
    }

    /// Its place, without the words for a refusal.
    pub(super) fn whereabouts(&self, refusal: impl Fn() -> String) -> Whereabouts {
        if self.stat.state == 'R' {
            return Whereabouts::Place(Place::Running);
        }
        match read_once(&self.dir.join("syscall")) {
            Ok(text) => match call::parse(&text) {
                Ok(place) => Whereabouts::Place(place),
                Err(why) => Whereabouts::Unreadable(why),
            },
            Err(ReadError::Missing) if !self.dir.join("stat").exists() => Whereabouts::Ended,
            Err(ReadError::Missing) => {
                Whereabouts::Unreadable("the kernel has no file `syscall` for threads".to_owned())
            }
            Err(error) if text::is_refusal(&error) => Whereabouts::Unreadable(refusal()),
            Err(error) => Whereabouts::Unreadable(error.to_string()),
        }
    }

    /// The kernel function in which it waits; none where it waits in none or that is hidden.
    pub(super) fn channel(&self) -> Option<String> {
        let text = read_once(&self.dir.join("wchan")).ok()?;
        (!matches!(text.as_str(), "" | "0")).then(|| text::clip(&text))
    }

    /// The thread with what it waits in.
    pub(super) fn probed(&self, tick_ns: u64, wait: Wait) -> ProbedThread {
        let schedule = read_once(&self.dir.join("schedstat")).ok();
        let run = schedule.and_then(|text| parse::schedstat(&text));
        let io = read_once(&self.dir.join("io")).unwrap_or_default();
        let keys = ["rchar", "read_bytes", "wchar", "write_bytes"];
        let [rchar, read, wchar, written] = parse::keyed(&io, keys);
        ProbedThread {
            tid: self.tid,
            name: self.stat.comm.clone(),
            state: self.stat.state,
            run_ns: run.map_or_else(|| self.stat.ticks.saturating_mul(tick_ns), |(run, _)| run),
            read: rchar.max(read).map(Bytes),
            written: wchar.max(written).map(Bytes),
            major_faults: self.stat.major,
            minor_faults: self.stat.minor,
            wait,
        }
    }
}
