//! One process of the tree: its counters and its threads.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::super::file::{self, ReadError, ReadResult};
use super::parse::{self, Stat};
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
    /// Start time; another one means another process.
    pub(super) start: u64,
    /// Last known value of each counter.
    pub(super) known: Counters<u64>,
    /// Switches of each live thread, and of all threads that have ended.
    switches: HashMap<u32, u64>,
    ended_switches: u64,
    /// What the last look at the threads told; none yet.
    threads: Option<Told>,
}

/// Whether switches could be counted, and the threads in uninterruptible sleep.
#[derive(Debug, Clone)]
struct Told {
    switches: ReadResult<u64>,
    waiting: ReadResult<u32>,
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
    /// Reads the process `pid`, and its threads where `detail` is asked for: they are
    /// many, and each costs as much as a process.
    pub(super) fn read(
        &mut self,
        proc: &Path,
        pid: u32,
        stat: Stat,
        tick_ns: u64,
        detail: bool,
    ) -> MemberReading {
        let dir = proc.join(pid.to_string());
        let status = file::read_text(&dir.join("status"));
        let io = file::read_text(&dir.join("io"));
        let [rss, swap, tracer] = values(&status, ["VmRSS", "VmSwap", "TracerPid"]);
        let bytes = |kib: ReadResult<u64>| kib.map(|n| n.saturating_mul(1024));
        let [read_bytes, write_bytes, rchar, wchar] =
            values(&io, ["read_bytes", "write_bytes", "rchar", "wchar"]);
        let mut threads = stat.threads;
        let mut per_thread = Vec::new();
        if detail {
            let read = Threads::read(&dir, pid, tick_ns);
            let switches = read.switches.map(|now| self.count_switches(now));
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
            Ok(stat.ticks.saturating_mul(tick_ns)),
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
        MemberReading {
            stat,
            counters,
            rss: bytes(rss),
            swap: bytes(swap),
            traced: tracer.is_ok_and(|p| p != 0),
            threads,
            waiting: told.waiting,
            per_thread,
        }
    }

    fn count_switches(&mut self, now: HashMap<u32, u64>) -> u64 {
        for (tid, last) in &self.switches {
            if !now.contains_key(tid) {
                self.ended_switches = self.ended_switches.saturating_add(*last);
            }
        }
        self.switches = now;
        self.switches
            .values()
            .fold(self.ended_switches, |sum, n| sum.saturating_add(*n))
    }
}

/// The values of a file, or its error for each of them.
fn values<const N: usize>(text: &ReadResult<String>, keys: [&str; N]) -> [ReadResult<u64>; N] {
    match text {
        Ok(text) => parse::keyed(text, keys).map(|v| v.ok_or(ReadError::Missing)),
        Err(error) => std::array::from_fn(|_| Err(error.clone())),
    }
}

struct Threads {
    count: ReadResult<(u32, u32)>,
    switches: ReadResult<HashMap<u32, u64>>,
    samples: Vec<ThreadSample>,
}

impl Threads {
    fn read(dir: &Path, pid: u32, tick_ns: u64) -> Self {
        let tasks = dir.join("task");
        let listed: ReadResult<Vec<(u32, PathBuf)>> = fs::read_dir(&tasks)
            .map(|entries| {
                entries
                    .filter_map(Result::ok)
                    .filter_map(|e| Some((e.file_name().to_str()?.parse().ok()?, e.path())))
                    .collect()
            })
            .map_err(|e| ReadError::os(&tasks, &e));
        let listed = match listed {
            Ok(listed) => listed,
            Err(error) => {
                return Self {
                    count: Err(error.clone()),
                    switches: Err(error),
                    samples: Vec::new(),
                };
            }
        };
        let (mut alive, mut waiting) = (0, 0);
        let mut switches = Ok(HashMap::new());
        let mut samples = Vec::new();
        for (tid, path) in listed {
            // A thread that ends meanwhile has no stat any more.
            let Ok(stat) = parse::read_stat(&path.join("stat")) else {
                continue;
            };
            alive += 1;
            waiting += u32::from(stat.state == 'D');
            let (run_ns, count) = scheduling(&path);
            match (&mut switches, &count) {
                (Ok(all), Ok(n)) => {
                    all.insert(tid, *n);
                }
                (Ok(_), Err(error)) if *error != ReadError::Missing || alive == 1 => {
                    switches = Err(error.clone());
                }
                _ => {}
            }
            if let Ok(switches) = count {
                samples.push(ThreadSample {
                    pid,
                    tid,
                    name: stat.comm,
                    state: stat.state,
                    run_ns: run_ns.unwrap_or_else(|| stat.ticks.saturating_mul(tick_ns)),
                    switches,
                    wchan: file::read_text(&path.join("wchan"))
                        .ok()
                        .filter(|w| !matches!(w.as_str(), "" | "0")),
                });
            }
        }
        samples.sort_by_key(|s| s.tid);
        Self {
            count: Ok((alive, waiting)),
            switches,
            samples,
        }
    }
}

/// Run time where the kernel keeps schedstat, and how often the thread was put on
/// a CPU (from schedstat, else its context switches).
fn scheduling(task: &Path) -> (Option<u64>, ReadResult<u64>) {
    let sched = file::read_text(&task.join("schedstat"))
        .ok()
        .and_then(|text| parse::schedstat(&text));
    if let Some((run, switches)) = sched {
        return (Some(run), Ok(switches));
    }
    let path = task.join("status");
    let switches = file::read_text(&path).and_then(|text| {
        let keys = ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"];
        match parse::keyed(&text, keys) {
            [Some(own), Some(forced)] => Ok(own.saturating_add(forced)),
            _ => Err(ReadError::Missing),
        }
    });
    (None, switches)
}
