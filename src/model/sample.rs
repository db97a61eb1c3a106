//! Readings of the machine: cards, the supervised process tree, the host.
//!
//! *Absent*, *failed* and *zero* are three different things: see [`Metric`].

use serde::{Deserialize, Serialize};

use super::gpu::{GpuId, GpuSample};
use super::units::Bytes;

/// One value that a source may or may not have.
///
/// JSON: `{"fresh": 98}`, `{"stale": {"value": 98, "age_ms": 4000}}`,
/// `{"failed": {"why": "…", "for_ms": 1500}}`, `"unsupported"`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric<T> {
    /// Read just now.
    Fresh(T),
    /// The last good value; the source has not answered since.
    Stale {
        /// The last value that was read.
        value: T,
        /// How old it is, in milliseconds.
        age_ms: u64,
    },
    /// The source answered with an error. Never to be taken for zero.
    Failed {
        /// The error in words.
        why: String,
        /// For how long it has been failing, in milliseconds.
        for_ms: u64,
    },
    /// This machine, driver or card does not offer the value.
    #[default]
    Unsupported,
}

impl<T> Metric<T> {
    /// The value if it was read just now.
    pub const fn fresh(&self) -> Option<&T> {
        match self {
            Self::Fresh(v) => Some(v),
            _ => None,
        }
    }

    /// The value, fresh or stale.
    pub const fn last(&self) -> Option<&T> {
        match self {
            Self::Fresh(value) | Self::Stale { value, .. } => Some(value),
            _ => None,
        }
    }

    /// Whether the value is offered at all (it may be stale or failing now).
    pub const fn is_supported(&self) -> bool {
        !matches!(self, Self::Unsupported)
    }

    /// The same state with another value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Metric<U> {
        match self {
            Self::Fresh(v) => Metric::Fresh(f(v)),
            Self::Stale { value, age_ms } => Metric::Stale {
                value: f(value),
                age_ms,
            },
            Self::Failed { why, for_ms } => Metric::Failed { why, for_ms },
            Self::Unsupported => Metric::Unsupported,
        }
    }
}

/// The supervised process tree, summed. Counters are totals since each process
/// began; those of processes that have ended are kept, so they never fall.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcSample {
    /// Process that the workload's command became.
    pub pid: u32,
    /// Processes alive in the tree.
    pub processes: u32,
    /// Threads alive in the tree.
    pub threads: u32,
    /// Names (`comm`) of the child processes, without the root, at most 16.
    pub children: Vec<String>,
    /// State letter of the root process (`R`, `S`, `D`, `T`, `t`, `Z`, …).
    pub state: Metric<char>,
    /// Whether a debugger or tracer is attached to any process of the tree.
    pub traced: bool,
    /// Processes of the tree besides the root that a signal or a tracer has stopped, at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<u32>,
    /// CPU time of the tree, nanoseconds (user + system).
    pub cpu_ns: Metric<u64>,
    /// Minor page faults.
    pub minor_faults: Metric<u64>,
    /// Major page faults (mmap'd weights show here).
    pub major_faults: Metric<u64>,
    /// Bytes fetched from storage.
    pub read_bytes: Metric<u64>,
    /// Bytes sent to storage.
    pub write_bytes: Metric<u64>,
    /// Bytes through read calls, page cache and pipes included.
    pub read_chars: Metric<u64>,
    /// Bytes through write calls.
    pub write_chars: Metric<u64>,
    /// Voluntary and involuntary context switches.
    pub switches: Metric<u64>,
    /// Threads in uninterruptible sleep.
    pub d_state: Metric<u32>,
    /// Kernel function in which the root process waits.
    pub wait_channel: Metric<String>,
    /// Resident memory of the tree.
    pub rss: Metric<Bytes>,
    /// Swapped-out memory of the tree.
    pub swap: Metric<Bytes>,
    /// Threads one by one; empty unless the sampler was asked for them or it is
    /// time for the slow round (every 5 s).
    pub per_thread: Vec<ThreadSample>,
    /// What the tree holds and does on each card, by PCI address. A card that none of
    /// its processes has opened is listed with zero processes and zeros, so that all
    /// that is used there is known to be others'. A card of which nothing can be told is
    /// not listed, and the source `clients` (`nvml` for NVIDIA) says why.
    #[serde(default)]
    pub on_cards: Vec<TreeOnCard>,
}

impl ProcSample {
    /// What the tree holds on a card; `None`: that is not known.
    pub fn on_card(&self, gpu: &GpuId) -> Option<&TreeOnCard> {
        self.on_cards.iter().find(|c| c.gpu == *gpu)
    }
}

/// The supervised tree on one card, summed over its processes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TreeOnCard {
    /// The card.
    pub gpu: GpuId,
    /// Which source told the memory: `kfd`, `fdinfo`, `fdinfo+kfd` (of some processes the
    /// one, of others the other), `nvml`.
    pub source: String,
    /// Processes of the tree that have the card open; 0: none has.
    pub processes: u32,
    /// VRAM held.
    pub vram: Metric<Bytes>,
    /// System memory mapped for the card.
    pub gtt: Metric<Bytes>,
    /// VRAM that was moved out to make room, for lack of it.
    pub evicted: Metric<Bytes>,
    /// Time for which KFD kept the queues of the processes alive off the card, total, in
    /// milliseconds: memory pressure between processes.
    pub evicted_ms: Metric<u64>,
    /// Compute queues (KFD) open on the card. One that stays while the card is idle is
    /// work accepted and not done.
    pub queues: Metric<u32>,
    /// Compute units occupied, where the part tells.
    pub cu_occupancy: Metric<u32>,
    /// Time of each engine, total of the processes alive, nanoseconds. ROCm's work passes by the engines that
    /// fdinfo counts, so zero there is no idleness: see `compute_note`.
    pub engines: Vec<EngineTime>,
    /// Percent of the card's multiprocessors used by the tree, where the driver tells it process by process (NVML).
    pub busy: Metric<f64>,
    /// Why `busy` and `engines` do not tell the compute load, in words; absent where they do.
    pub compute_note: Option<String>,
}

/// Time that one engine of a card spent for a process tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineTime {
    /// `gfx`, `compute`, `dma`, `dec`, `enc`, `jpeg`.
    pub engine: String,
    /// Nanoseconds, total.
    pub ns: u64,
}

/// One thread of the tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadSample {
    /// Process of the thread.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Name (`comm`).
    pub name: String,
    /// State letter.
    pub state: char,
    /// Time on a CPU, nanoseconds, since the thread began.
    pub run_ns: u64,
    /// Times it was put on a CPU since it began (from schedstat), or context
    /// switches where schedstat is missing.
    pub switches: u64,
    /// Kernel function it waits in, where readable.
    pub wchan: Option<String>,
}

/// The host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostSample {
    /// Memory of the machine.
    pub mem_total: Metric<Bytes>,
    /// Memory that could be had without swapping.
    pub mem_available: Metric<Bytes>,
    /// Swap space.
    pub swap_total: Metric<Bytes>,
    /// Swap in use.
    pub swap_used: Metric<Bytes>,
    /// Pressure, percent of the last 10 s in which some task waited for CPU.
    pub psi_cpu: Metric<f64>,
    /// The same for I/O.
    pub psi_io: Metric<f64>,
    /// The same for memory.
    pub psi_mem: Metric<f64>,
    /// Load average over one minute.
    pub load1: Metric<f64>,
    /// Bytes received from the network, total, without loopback.
    pub net_rx_bytes: Metric<u64>,
    /// Processes that the kernel's OOM killer ended in our cgroup, total.
    pub oom_kills: Metric<u64>,
}

/// How a source is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceState {
    /// No answer yet.
    Starting,
    /// Answers in time.
    Ok,
    /// Answers with an error.
    Failing,
    /// No answer for 2 s.
    Stale,
    /// No answer for 30 s; the read blocks.
    Lost,
    /// Not there on this machine.
    Absent,
}

/// State of one source at the time of a sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourceStatus {
    /// `sysfs 0000:0c:00.0`, `nvml`, `rocm-smi`, `proc`, `clients`, `host`, `kernel log`.
    pub name: String,
    /// How it is doing.
    pub state: SourceState,
    /// Milliseconds since its last good answer.
    pub age_ms: u64,
    /// Why it is not `Ok`, in words.
    pub why: Option<String>,
}

/// Everything that was read in one period (500 ms).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Every card, by PCI address.
    pub gpus: Vec<GpuSample>,
    /// The supervised tree; absent while no child lives.
    pub process: Option<ProcSample>,
    /// The host.
    pub host: HostSample,
    /// The sources behind the above.
    pub sources: Vec<SourceStatus>,
}
