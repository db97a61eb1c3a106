//! Takes a probe of the tree.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::super::file::{ReadError, ReadResult};
use super::super::track::Tracker;
use super::call::Place;
use super::files::Mapped;
use super::network::Network;
use super::process::Process;
use super::request::{self, Clocks};
use super::targets::Targets;
use super::text;
use super::thread::{Task, Whereabouts};
use super::{call_table, memory};
use crate::model::{PeerTraffic, Probe, ProbedProcess, ProbedThread, Wait};

/// `maps` is long and changes slowly: of each process it is read this often.
const MAPS_PERIOD: Duration = Duration::from_secs(10);

/// Reads probes, and remembers what does not change between them.
#[derive(Debug)]
pub(super) struct Reader {
    proc: PathBuf,
    tick_ns: u64,
    remembered: HashMap<u32, Remembered>,
    tracker: Tracker,
}

/// What is remembered of a process.
#[derive(Debug)]
struct Remembered {
    start: u64,
    mapped: Option<(Instant, Mapped)>,
    /// What its descriptors showed when they could last be read.
    shown: Shown,
}

/// What the descriptors of a process show.
#[derive(Debug, Clone, Default)]
struct Shown {
    card: bool,
    weights: Option<String>,
    listens: Vec<String>,
    writes: Vec<String>,
}

impl Reader {
    /// Over the folder that has `proc` in it.
    pub(super) fn new(root: &Path) -> Self {
        Self {
            proc: root.join("proc"),
            tick_ns: 1_000_000_000 / ::procfs::ticks_per_second().max(1),
            remembered: HashMap::new(),
            tracker: Tracker::default(),
        }
    }

    /// Looks at the processes with these numbers and start times, the root first.
    pub(super) fn probe(&mut self, root: u32, members: &BTreeMap<u32, u64>) -> Probe {
        let begun = Instant::now();
        self.remembered
            .retain(|pid, r| members.get(pid) == Some(&r.start));
        let (processes, left_out) = self.processes(root, members);
        let network = Network::read(&self.proc, &processes);
        let traffic = traffic(&network, &processes);
        let traffic = self.tracker.settle("sock_diag", traffic);
        let facts: Vec<(Shown, Mapped)> = processes
            .iter()
            .map(|process| self.facts(process, &network))
            .collect();
        let look = Look {
            proc: &self.proc,
            tick_ns: self.tick_ns,
            yama: yama(&self.proc),
            clocks: Clocks::now(),
            targets: Targets::new(&self.proc, &processes, &network),
        };
        let probed = processes
            .iter()
            .zip(facts)
            .map(|(process, facts)| look.process(process, facts));
        Probe {
            processes: probed.collect(),
            left_out,
            threads_left_out: processes.iter().map(|p| p.left_out).sum(),
            network: traffic,
            took_us: u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX),
        }
    }

    /// The processes that still live, within the bounds of a probe.
    fn processes(&self, root: u32, members: &BTreeMap<u32, u64>) -> (Vec<Process>, u32) {
        let yama = yama(&self.proc);
        let mut order: Vec<(u32, u64)> =
            members.iter().map(|(pid, start)| (*pid, *start)).collect();
        order.sort_by_key(|(pid, _)| (*pid != root, *pid));
        let beyond = order.len().saturating_sub(Probe::MOST_PROCESSES);
        let mut threads = Probe::MOST_THREADS;
        let mut processes = Vec::new();
        for member in order.into_iter().take(Probe::MOST_PROCESSES) {
            let refusal = |dir: &Path| text::refusal(dir, yama);
            let process = Process::read(&self.proc, member, threads, refusal);
            threads -= process.as_ref().map_or(0, |p| p.tasks.len());
            processes.extend(process);
        }
        (processes, u32::try_from(beyond).unwrap_or(u32::MAX))
    }

    /// What a process has open and mapped: of one that cannot be looked at now, what the
    /// last look showed.
    fn facts(&mut self, process: &Process, network: &Network) -> (Shown, Mapped) {
        let entry = self.remembered.entry(process.pid);
        let remembered = entry.or_insert_with(|| Remembered {
            start: process.stat.start,
            mapped: None,
            shown: Shown::default(),
        });
        let old = remembered.mapped.as_ref();
        if old.is_none_or(|(at, _)| at.elapsed() >= MAPS_PERIOD)
            && let Some(mapped) = process.mapped()
        {
            remembered.mapped = Some((Instant::now(), mapped));
        }
        if process.descriptors.is_ok() {
            remembered.shown = Shown {
                card: process.has_card(),
                weights: process.open_weights(),
                listens: network.listens(process),
                writes: process.open_results(),
            };
        }
        let mapped = remembered.mapped.as_ref().map(|(_, mapped)| mapped.clone());
        (remembered.shown.clone(), mapped.unwrap_or_default())
    }
}

/// Totals of the network. A process whose descriptors are hidden may have connections.
fn traffic(network: &Network, processes: &[Process]) -> ReadResult<PeerTraffic> {
    const EPROTONOSUPPORT: i32 = 93;
    let hidden = processes.iter().filter(|p| p.descriptors.is_err()).count();
    let first = processes.iter().find_map(|p| p.descriptors.as_ref().err());
    if let (true, Some(why)) = (hidden == processes.len(), first) {
        return Err(ReadError::text(Path::new("descriptors"), why.clone()));
    }
    let mut traffic = network.traffic().map_err(|e| match e.raw_os_error() {
        Some(EPROTONOSUPPORT) => ReadError::Missing,
        _ => ReadError::os(Path::new("sock_diag"), &e),
    })?;
    let hidden = u32::try_from(hidden).unwrap_or(u32::MAX);
    traffic.uncounted = traffic.uncounted.saturating_add(hidden);
    Ok(traffic)
}

/// The kernel's rule who may trace whom; none where it has no such rule.
fn yama(proc: &Path) -> Option<u32> {
    super::super::file::read_number(&proc.join("sys/kernel/yama/ptrace_scope")).ok()
}

/// One look, with what every thread of it needs.
struct Look<'a> {
    proc: &'a Path,
    tick_ns: u64,
    yama: Option<u32>,
    clocks: Clocks,
    targets: Targets<'a>,
}

impl Look<'_> {
    fn process(&self, process: &Process, (shown, mapped): (Shown, Mapped)) -> ProbedProcess {
        ProbedProcess {
            pid: process.pid,
            parent: process.stat.ppid,
            name: process.stat.comm.clone(),
            card: shown.card,
            torch: mapped.torch,
            weights: shown.weights.or(mapped.weights),
            listens: shown.listens,
            writes: shown.writes,
            tracer: process.tracer(self.proc),
            unreadable: process.descriptors.as_ref().err().cloned(),
            threads: process
                .tasks
                .iter()
                .filter_map(|task| self.thread(process, task))
                .collect(),
        }
    }

    /// None: it has ended since.
    fn thread(&self, process: &Process, task: &Task) -> Option<ProbedThread> {
        let refusal = || text::refusal(&process.dir, self.yama);
        let wait = match task.whereabouts(refusal) {
            Whereabouts::Ended => return None,
            Whereabouts::Unreadable(why) => Wait::Unreadable {
                why,
                channel: task.channel(),
            },
            Whereabouts::Place(Place::Running) => Wait::Running,
            Whereabouts::Place(Place::Outside) => Wait::Blocked {
                channel: task.channel(),
            },
            Whereabouts::Place(Place::Call { number, args }) => {
                let call = call_table::name(number);
                let memory: &dyn memory::Memory = if process.is_blocked() {
                    &(0_u64, &[] as &[u8])
                } else {
                    &process.memory
                };
                let request = request::decode(&call, &args, memory, self.clocks);
                Wait::Call {
                    on: self.targets.of(process, &request.subject),
                    timeout_ms: request.timeout_ms,
                    channel: task.channel(),
                    call,
                }
            }
        };
        Some(task.probed(self.tick_ns, wait))
    }
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod live_tests;
#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
