//! Readings of the machine: cards, the supervised process tree, the host.
//!
//! *Absent*, *failed* and *zero* are three different things: see [`Metric`].

use std::fmt;

use serde::{Deserialize, Serialize};

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

/// A card, by its PCI address (`0000:0c:00.0`): card and hwmon numbers change
/// between boots, the address does not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GpuId(pub String);

impl fmt::Display for GpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Who made a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vendor {
    /// AMD, read through amdgpu's sysfs.
    Amd,
    /// NVIDIA, read through NVML.
    Nvidia,
}

/// One reading of one card. All values are the card's, over all processes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuSample {
    /// PCI address.
    pub id: GpuId,
    /// Position in the list of cards, by PCI address, from 0.
    pub index: u32,
    /// Maker.
    pub vendor: Vendor,
    /// Marketing name where known, else vendor and device id.
    pub name: String,
    /// Architecture: `gfx1100`, `sm_90`; absent where it cannot be told.
    pub arch: Option<String>,
    /// Whether VRAM is (a part of) the host's memory.
    pub apu: bool,
    /// Which source gave the values: `sysfs`, `nvml`, `script`.
    pub source: String,
    /// `active`, `suspended`, …: amdgpu's runtime status.
    pub state: Metric<String>,
    /// Percent of time that the graphics or compute engine was busy.
    pub busy: Metric<f64>,
    /// Percent of time that the memory controller was busy.
    pub mem_busy: Metric<f64>,
    /// Watts. On an APU the whole package.
    pub power_w: Metric<f64>,
    /// Watts: the limit in force.
    pub power_cap_w: Metric<f64>,
    /// VRAM in use.
    pub vram_used: Metric<Bytes>,
    /// VRAM of the card.
    pub vram_total: Metric<Bytes>,
    /// System memory mapped for the GPU, in use.
    pub gtt_used: Metric<Bytes>,
    /// Limit of the above.
    pub gtt_total: Metric<Bytes>,
    /// Edge temperature, °C.
    pub temp_edge: Metric<f64>,
    /// Junction (hot spot) temperature, °C.
    pub temp_junction: Metric<f64>,
    /// Memory temperature, °C.
    pub temp_mem: Metric<f64>,
    /// Shader clock, MHz.
    pub sclk_mhz: Metric<f64>,
    /// Memory clock, MHz.
    pub mclk_mhz: Metric<f64>,
    /// Fan: revolutions a minute.
    pub fan_rpm: Metric<f64>,
}

impl GpuSample {
    /// A sample of a card of which nothing is known yet but its identity.
    pub fn unread(id: GpuId, index: u32, vendor: Vendor, name: String, source: &str) -> Self {
        Self {
            id,
            index,
            vendor,
            name,
            arch: None,
            apu: false,
            source: source.to_owned(),
            state: Metric::Unsupported,
            busy: Metric::Unsupported,
            mem_busy: Metric::Unsupported,
            power_w: Metric::Unsupported,
            power_cap_w: Metric::Unsupported,
            vram_used: Metric::Unsupported,
            vram_total: Metric::Unsupported,
            gtt_used: Metric::Unsupported,
            gtt_total: Metric::Unsupported,
            temp_edge: Metric::Unsupported,
            temp_junction: Metric::Unsupported,
            temp_mem: Metric::Unsupported,
            sclk_mhz: Metric::Unsupported,
            mclk_mhz: Metric::Unsupported,
            fan_rpm: Metric::Unsupported,
        }
    }

    /// The pool that counts for models: VRAM, or on an APU the larger of VRAM and
    /// GTT (the kernel allocates from the larger one; never their sum). Returns
    /// (used, total) where both were ever read.
    pub fn pool(&self) -> Option<(Bytes, Bytes)> {
        let vram = self
            .vram_used
            .last()
            .copied()
            .zip(self.vram_total.last().copied());
        let gtt = self
            .gtt_used
            .last()
            .copied()
            .zip(self.gtt_total.last().copied());
        match (self.apu, vram, gtt) {
            (true, Some(v), Some(g)) => Some(if g.1 > v.1 { g } else { v }),
            (true, None, Some(g)) => Some(g),
            (_, v, _) => v,
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
    /// `sysfs 0000:0c:00.0`, `nvml`, `proc`, `host`, `kernel log`.
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
