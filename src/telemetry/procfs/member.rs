//! One process of the tree: its counters and its threads.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::super::file::{ReadError, ReadResult};
use super::kept::Kept;
use super::parse::{self, Stat};
use super::threads::{TaskFiles, Threads};
use crate::model::ThreadSample;

/// Counters that are summed over the tree.
pub(super) const COUNTERS: [&str; 8] = [
    "cpu time",
    "minor faults",
    "major faults",
    "read_bytes",
    "write_bytes",
    "rchar",
    "wchar",
    "switches",
];

/// One value for each of [`COUNTERS`].
pub(super) type Counters<T> = [T; COUNTERS.len()];

/// A process as it was when last read.
#[derive(Debug, Default)]
pub(super) struct Member {
    /// Start time; another one means another process. None before the first reading.
    pub(super) start: Option<u64>,
    /// Last known value of each counter.
    pub(super) known: Counters<u64>,
    /// Each live thread as last seen, and the switches of all threads that have ended.
    seen: HashMap<u32, ThreadSample>,
    ended_switches: u64,
    files: Files,
    tasks: HashMap<u32, TaskFiles>,
    /// What the last look at the threads told; none yet.
    threads: Option<Told>,
    /// What `status` told when it was last read; none yet.
    status: Option<Status>,
    /// What `io` told in the round before, and what `stat` told then.
    io: Option<(Io, Worked)>,
}

/// Bytes read and written, and characters.
type Io = [ReadResult<u64>; 4];

/// Clock ticks and page faults of both kinds: who has worked has more of them.
type Worked = [u64; 3];

/// What changes slowly, and only `status` tells: it costs as much as all else of a process.
#[derive(Debug, Clone)]
struct Status {
    rss: ReadResult<u64>,
    swap: ReadResult<u64>,
    traced: bool,
}

/// The files that are read in every round.
#[derive(Debug, Default)]
struct Files {
    stat: Kept,
    status: Kept,
    io: Kept,
}

/// Whether switches could be counted, and the threads in uninterruptible sleep.
#[derive(Debug, Clone)]
struct Told {
    switches: ReadResult<u64>,
    waiting: ReadResult<u32>,
}

/// What one look at a process is to tell, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    /// Number of the process.
    pub(super) pid: u32,
    /// Length of a clock tick.
    pub(super) tick_ns: u64,
    /// How closely its threads are looked at.
    pub(super) threads: LookAt,
    /// As many of its threads keep their files open as well.
    pub(super) keep_threads: usize,
    /// Its files stay open for the next round.
    pub(super) keep: bool,
    /// Its `status`, too.
    pub(super) status: bool,
    /// Bytes in a page.
    pub(super) page: u64,
}

/// How closely the threads of a process are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LookAt {
    /// Not in this round.
    Nothing,
    /// One by one.
    Each,
    /// One by one, and where each of them waits.
    WaitChannels,
}

/// One reading of one process.
#[derive(Debug)]
pub(super) struct MemberReading {
    /// `stat` of the process.
    pub(super) stat: Stat,
    /// Whether each counter could be read.
    pub(super) counters: Counters<ReadResult<()>>,
    /// Resident and swapped-out bytes.
    pub(super) rss: ReadResult<u64>,
    /// See above.
    pub(super) swap: ReadResult<u64>,
    /// Whether a tracer is attached, where readable.
    pub(super) traced: bool,
    /// Threads.
    pub(super) threads: u32,
    /// Those in uninterruptible sleep when the threads were last looked at.
    pub(super) waiting: ReadResult<u32>,
    /// The threads one by one, where they were looked at.
    pub(super) per_thread: Vec<ThreadSample>,
}

impl Member {
    /// `stat` of the process in `dir`; its files stay open where `keep` is set.
    pub(super) fn stat(&mut self, dir: &Path, keep: bool) -> ReadResult<Stat> {
        let path = || dir.join("stat");
        let stat = self.files.stat.read(path, keep, parse::stat)?;
        stat.ok_or_else(|| ReadError::text(&path(), "not the usual fields"))
    }

    /// Reads the process in `dir`, and its threads where `look` asks for them: they are many,
    /// and each costs as much as a process.
    pub(super) fn read(&mut self, dir: &Path, stat: Stat, look: &Look) -> MemberReading {
        self.start = Some(stat.start);
        let known = self.status.take().filter(|_| !look.status);
        let status = known.unwrap_or_else(|| self.files.status(dir, look.keep));
        self.status = Some(status.clone());
        let [read_bytes, write_bytes, rchar, wchar] = self.io(dir, &stat, look);
        let mut threads = stat.threads;
        let mut per_thread = Vec::new();
        if look.threads != LookAt::Nothing {
            let read = Threads::read(dir, look, &self.seen, &mut self.tasks);
            let switches = read.told.map(|()| self.count_switches(&read.samples));
            self.threads = Some(Told {
                switches,
                waiting: read.count.clone().map(|(_, waiting)| waiting),
            });
            threads = read.count.map_or(threads, |(alive, _)| alive);
            per_thread = read.samples;
        }
        let told = self.threads.clone().unwrap_or(Told {
            switches: Err(ReadError::Missing),
            waiting: Err(ReadError::Missing),
        });
        let values: Counters<ReadResult<u64>> = [
            Ok(stat.ticks.saturating_mul(look.tick_ns)),
            Ok(stat.minor),
            Ok(stat.major),
            read_bytes,
            write_bytes,
            rchar,
            wchar,
            told.switches,
        ];
        let mut number = 0;
        let counters = values.map(|value| {
            let known = &mut self.known[number];
            number += 1;
            // A counter that seems to fall is one of the kernel's corrections.
            value.map(|v| *known = v.max(*known))
        });
        let resident = stat.pages.map(|pages| pages.saturating_mul(look.page));
        MemberReading {
            stat,
            counters,
            rss: resident.map_or(status.rss, Ok),
            swap: status.swap,
            traced: status.traced,
            threads,
            waiting: told.waiting,
            per_thread,
        }
    }

    /// One that rests is asked every other round: most of a tree does, and `io` costs more
    /// than `stat`. What little it may have moved without a tick of the clock is told then.
    fn io(&mut self, dir: &Path, stat: &Stat, look: &Look) -> Io {
        let worked = [stat.ticks, stat.minor, stat.major];
        match self.io.take() {
            Some((told, then)) if then == worked && look.threads != LookAt::WaitChannels => told,
            _ => {
                let keys = ["read_bytes", "write_bytes", "rchar", "wchar"];
                let told = values(&mut self.files.io, &|| dir.join("io"), look.keep, keys);
                self.io = Some((told.clone(), worked));
                told
            }
        }
    }

    fn count_switches(&mut self, now: &[ThreadSample]) -> u64 {
        let now: HashMap<u32, ThreadSample> = now.iter().map(|t| (t.tid, t.clone())).collect();
        for (tid, last) in &self.seen {
            if !now.contains_key(tid) {
                self.ended_switches = self.ended_switches.saturating_add(last.switches);
            }
        }
        self.seen = now;
        self.seen
            .values()
            .fold(self.ended_switches, |sum, t| sum.saturating_add(t.switches))
    }
}

impl Files {
    fn status(&mut self, dir: &Path, keep: bool) -> Status {
        let keys = ["VmRSS", "VmSwap", "TracerPid"];
        let [rss, swap, tracer] = values(&mut self.status, &|| dir.join("status"), keep, keys);
        let bytes = |kib: ReadResult<u64>| kib.map(|n| n.saturating_mul(1024));
        Status {
            rss: bytes(rss),
            swap: bytes(swap),
            traced: tracer.is_ok_and(|p| p != 0),
        }
    }
}

/// The values of a file, or its error for each of them.
fn values<const N: usize>(
    file: &mut Kept,
    path: &impl Fn() -> PathBuf,
    keep: bool,
    keys: [&str; N],
) -> [ReadResult<u64>; N] {
    match file.read(path, keep, |text| parse::keyed(text, keys)) {
        Ok(values) => values.map(|v| v.ok_or(ReadError::Missing)),
        Err(error) => std::array::from_fn(|_| Err(error.clone())),
    }
}
