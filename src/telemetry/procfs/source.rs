//! The source: the tree read once a period, summed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::super::aging::{Age, Change};
use super::super::file::{ReadError, ReadResult};
use super::super::source::{Answer, Source, SourceError, lock};
use super::super::track::Tracker;
use super::kept::Kept;
use super::member::{COUNTERS, Counters, Look, LookAt, Member, MemberReading};
use super::tree::Census;
use crate::model::time::millis;
use crate::model::{Bytes, Metric, ProcSample, ThreadSample, TimeScale};

/// Who belongs to the tree is found out this often: it costs a look at every
/// process of the machine.
const SCAN_PERIOD: Duration = Duration::from_millis(900);
/// The threads one by one, where nobody asks for them each time.
const SLOW_ROUND: Duration = Duration::from_secs(5);
/// `status` of the processes is read this often.
const STATUS_ROUND: Duration = Duration::from_millis(2900);
/// What the threads told is fresh for so long, and what `status` told.
const THREADS_FRESH: Duration = Duration::from_millis(1500);
const STATUS_FRESH: Duration = Duration::from_secs(4);
/// Processes of which the files stay open, three of each.
const KEPT: usize = 64;
/// Threads of which the files stay open, two of each. With those of the processes that is
/// less than half of what a program may open by default (1024).
const KEPT_THREADS: usize = 128;
/// Names of children in a sample.
const NAMES: usize = 16;

/// What is to be watched; set by the caller, read by the thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Target {
    /// Root of the tree.
    pub(crate) pid: Option<u32>,
    /// A subreaper above it, to which orphans fall.
    pub(crate) reaper: Option<u32>,
    /// Threads one by one in every round.
    pub(crate) detail: bool,
}

/// Who lives in the tree, for sources that read more of its processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Members {
    /// Root and reaper of the tree.
    pub(crate) of: (Option<u32>, Option<u32>),
    /// Start time of each process by its number, zombies left out: they hold nothing.
    pub(crate) pids: BTreeMap<u32, u64>,
}

/// The tree, and whose it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProcReading {
    /// The target at the time of the reading.
    pub(crate) target: Target,
    /// The tree; absent without target, and when nobody lives in it.
    pub(crate) sample: Option<ProcSample>,
}

/// Reads the supervised tree.
#[derive(Debug)]
pub(crate) struct ProcSource {
    proc: PathBuf,
    tick_ns: u64,
    page: u64,
    target: Arc<Mutex<Target>>,
    /// Threads of the last slow round; taken by the sampler.
    threads: Arc<Mutex<Vec<ThreadSample>>>,
    /// Kept up to date for other sources.
    living: Arc<Mutex<Members>>,
    tree: Tree,
    scale: TimeScale,
}

/// What is remembered of one target.
#[derive(Debug, Default)]
struct Tree {
    of: (Option<u32>, Option<u32>),
    census: Census,
    scanned: Option<(Instant, BTreeSet<u32>)>,
    /// When the threads were last looked at.
    slow: Option<Instant>,
    /// When `status` was last read.
    status: Option<Instant>,
    live: HashMap<u32, Member>,
    /// `wchan` of the root process, kept open.
    wchan: Kept,
    ended: Counters<u64>,
    tracker: Tracker,
}

impl ProcSource {
    /// A reader over the folder that has `proc` in it.
    pub(crate) fn new(
        root: &Path,
        target: Arc<Mutex<Target>>,
        threads: Arc<Mutex<Vec<ThreadSample>>>,
        living: Arc<Mutex<Members>>,
    ) -> Self {
        Self {
            proc: root.join("proc"),
            page: ::procfs::page_size(),
            tick_ns: 1_000_000_000 / ::procfs::ticks_per_second().max(1),
            target,
            threads,
            living,
            tree: Tree::default(),
            scale: TimeScale::REAL,
        }
    }

    /// Its rounds as often on the run's clock as they are by default on the machine's.
    pub(crate) const fn at_scale(mut self, scale: TimeScale) -> Self {
        self.scale = scale;
        self
    }

    fn members(&mut self, root: u32, reaper: Option<u32>) -> Result<BTreeSet<u32>, SourceError> {
        if let Some((at, members)) = &self.tree.scanned
            && self.scale.run_time(at.elapsed()) < SCAN_PERIOD
        {
            return Ok(members.clone());
        }
        let members = self
            .tree
            .census
            .members(&self.proc, root, reaper)
            .map_err(|error| {
                let path = self.proc.display();
                match error.kind() {
                    std::io::ErrorKind::NotFound => SourceError::Absent(format!("no {path} here")),
                    _ => SourceError::Failed(format!("{path}: {error}")),
                }
            })?;
        self.tree.scanned = Some((Instant::now(), members.clone()));
        Ok(members)
    }

    /// Reads every member that still lives, and retires those that do not.
    fn read_members(
        &mut self,
        pids: &BTreeSet<u32>,
        detail: bool,
        asked: bool,
    ) -> BTreeMap<u32, MemberReading> {
        let mut readings = BTreeMap::new();
        let mut known = std::mem::take(&mut self.tree.live);
        let mut keep_threads = KEPT_THREADS;
        let at = self.tree.status;
        let status =
            detail || at.is_none_or(|at| self.scale.run_time(at.elapsed()) >= STATUS_ROUND);
        if status {
            self.tree.status = Some(Instant::now());
        }
        for (number, pid) in pids.iter().enumerate() {
            let dir = self.proc.join(pid.to_string());
            let look = Look {
                pid: *pid,
                tick_ns: self.tick_ns,
                threads: match (detail, asked) {
                    (_, true) => LookAt::WaitChannels,
                    (true, false) => LookAt::Each,
                    (false, false) => LookAt::Nothing,
                },
                keep: number < KEPT,
                keep_threads,
                status,
                page: self.page,
            };
            let mut member = known.remove(pid).unwrap_or_default();
            let stat = member.stat(&dir, look.keep);
            if member.start.is_some() && member.start != stat.as_ref().ok().map(|s| s.start) {
                // it has ended, or its number is another's now
                self.tree.census.forget(*pid);
                self.tree.retire(&std::mem::take(&mut member));
            }
            let Ok(stat) = stat else {
                continue;
            };
            let reading = member.read(&dir, stat, &look);
            let threads = usize::try_from(reading.threads).unwrap_or(usize::MAX);
            keep_threads = keep_threads.saturating_sub(threads);
            readings.insert(*pid, reading);
            self.tree.live.insert(*pid, member);
        }
        for (pid, member) in known {
            self.tree.census.forget(pid);
            self.tree.retire(&member);
        }
        readings
    }
}

impl Source for ProcSource {
    type Reading = ProcReading;

    fn name(&self) -> String {
        "proc".to_owned()
    }

    fn read(&mut self) -> Result<Answer<ProcReading>, SourceError> {
        let target = *lock(&self.target);
        if self.tree.of != (target.pid, target.reaper) {
            self.tree = Tree {
                of: (target.pid, target.reaper),
                ..Tree::default()
            };
        }
        let mut reading = ProcReading {
            target,
            sample: None,
        };
        let Some(root) = target.pid else {
            *lock(&self.living) = Members::default();
            return Ok(Answer::good(reading));
        };
        let slow = self
            .tree
            .slow
            .is_none_or(|at| self.scale.run_time(at.elapsed()) >= SLOW_ROUND);
        let detail = target.detail || slow;
        let pids = self.members(root, target.reaper)?;
        let mut members = self.read_members(&pids, detail, target.detail);
        *lock(&self.living) = Members {
            of: self.tree.of,
            pids: members
                .iter()
                .filter(|(_, m)| !matches!(m.stat.state, 'Z' | 'X' | 'x'))
                .map(|(pid, m)| (*pid, m.stat.start))
                .collect(),
        };
        if members.is_empty() {
            return Ok(Answer::good(reading));
        }
        if detail {
            self.tree.slow = Some(Instant::now());
            let all = members
                .values_mut()
                .map(|m| std::mem::take(&mut m.per_thread));
            *lock(&self.threads) = all.flatten().collect();
        }
        let wait = wait_channel(&mut self.tree.wchan, &self.proc, root, members.get(&root));
        reading.sample = Some(self.tree.sum(root, &members, wait, self.scale));
        Ok(Answer::good(reading))
    }
}

impl Tree {
    /// Keeps the counters of a process that has ended.
    fn retire(&mut self, member: &Member) {
        for (sum, last) in self.ended.iter_mut().zip(member.known) {
            *sum = sum.saturating_add(last);
        }
    }

    /// Counter `n` of the tree: the sum where at least one process shows it.
    fn counter(&mut self, n: usize, members: &BTreeMap<u32, MemberReading>) -> Metric<u64> {
        let answers = members.values().map(|m| m.counters[n].clone());
        let sum = self
            .live
            .values()
            .fold(self.ended[n], |sum, m| sum.saturating_add(m.known[n]));
        let answer = any_good(answers).map(|_| sum);
        self.tracker.settle(COUNTERS[n], answer)
    }

    fn sum(
        &mut self,
        root: u32,
        members: &BTreeMap<u32, MemberReading>,
        wait: ReadResult<String>,
        scale: TimeScale,
    ) -> ProcSample {
        let memory = |of: fn(&MemberReading) -> &ReadResult<u64>| {
            any_good(members.values().map(|m| of(m).clone()))
                .map(|all| Bytes(all.iter().fold(0, |sum: u64, n| sum.saturating_add(*n))))
        };
        let (rss, swap) = (memory(|m| &m.rss), memory(|m| &m.swap));
        let waiting = any_good(members.values().map(|m| m.waiting.clone()));
        let waiting = waiting.map(|all| all.iter().sum());
        let look = self.slow;
        let state = members
            .get(&root)
            .map(|m| m.stat.state)
            .ok_or_else(|| ReadError::text(Path::new("root process"), "it has ended"));
        let others = members.iter().filter(|(pid, _)| **pid != root);
        let children = others.map(|(_, m)| m.stat.comm.clone()).take(NAMES);
        ProcSample {
            pid: root,
            processes: u32::try_from(members.len()).unwrap_or(u32::MAX),
            threads: members
                .values()
                .fold(0, |sum, m| sum.saturating_add(m.threads)),
            children: children.collect(),
            traced: members.values().any(|m| m.traced),
            stopped: stopped_besides(root, members),
            cpu_ns: self.counter(0, members),
            minor_faults: self.counter(1, members),
            major_faults: self.counter(2, members),
            read_bytes: self.counter(3, members),
            write_bytes: self.counter(4, members),
            read_chars: self.counter(5, members),
            write_chars: self.counter(6, members),
            switches: as_old_as(
                look,
                scale.real_time(THREADS_FRESH),
                self.counter(7, members),
            ),
            state: self.tracker.settle("state", state),
            d_state: as_old_as(
                look,
                scale.real_time(THREADS_FRESH),
                self.tracker.settle("threads", waiting),
            ),
            wait_channel: self.tracker.settle("wchan", wait),
            rss: self.tracker.settle("VmRSS", rss),
            swap: as_old_as(
                self.status,
                scale.real_time(STATUS_FRESH),
                self.tracker.settle("VmSwap", swap),
            ),
            per_thread: Vec::new(),
            on_cards: Vec::new(),
        }
    }
}

/// What is not read in each round is as old as the last look at it. A failure already
/// counts its time.
fn as_old_as<T>(look: Option<Instant>, fresh: Duration, told: Metric<T>) -> Metric<T> {
    let age = Age {
        age_ms: look.map_or(0, |at| millis(at.elapsed())),
        fresh_ms: millis(fresh),
    };
    match told {
        Metric::Fresh(_) => age.apply(told),
        other => other,
    }
}

/// The good answers, where there is one; else a failure if there is one, else
/// *missing*. A process that ends during the read so spoils nothing.
fn any_good<T>(answers: impl Iterator<Item = ReadResult<T>>) -> ReadResult<Vec<T>> {
    let mut good = Vec::new();
    let mut error = ReadError::Missing;
    for answer in answers {
        match answer {
            Ok(value) => good.push(value),
            Err(ReadError::Missing) => {}
            Err(other) => error = other,
        }
    }
    if good.is_empty() {
        Err(error)
    } else {
        Ok(good)
    }
}

/// Where the root process waits; `-` while it runs. The kernel answers `0` both
/// for a process that waits for nothing and for a reader without the right, so `0`
/// of one that sleeps is a failure.
fn wait_channel(
    file: &mut Kept,
    proc: &Path,
    root: u32,
    member: Option<&MemberReading>,
) -> ReadResult<String> {
    let path = || proc.join(root.to_string()).join("wchan");
    let text = file.read(path, true, str::to_owned)?;
    if !matches!(text.as_str(), "" | "0") {
        return Ok(text);
    }
    match member.map(|m| m.stat.state) {
        Some('S' | 'D' | 'I') => Err(ReadError::text(
            &path(),
            "the kernel does not show it to us",
        )),
        _ => Ok("-".to_owned()),
    }
}

/// Processes besides the root that do not run because of a signal or a tracer.
fn stopped_besides(root: u32, members: &BTreeMap<u32, MemberReading>) -> Vec<u32> {
    let stopped = members
        .iter()
        .filter(|(_, m)| matches!(m.stat.state, 'T' | 't'));
    let pids = stopped.map(|(pid, _)| *pid).filter(|pid| *pid != root);
    pids.take(NAMES).collect()
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
