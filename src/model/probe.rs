//! A probe: one deep look at the processes of the tree.
//!
//! It is taken only while nothing of the job was seen to move, because it reads every
//! descriptor and the system call of every thread. The core judges it; the record keeps
//! it, so that replay repeats the judgement.

use serde::{Deserialize, Serialize};

use super::sample::Metric;
use super::units::Bytes;

/// What was read in one look.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// Processes of the tree, the root first, at most [`Probe::MOST_PROCESSES`].
    pub processes: Vec<ProbedProcess>,
    /// Processes beyond that bound.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u32,
    /// Threads beyond [`Probe::MOST_THREADS`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub threads_left_out: u32,
    /// Bytes over connections that the tree opened to peers outside it.
    pub network: Metric<PeerTraffic>,
    /// How long the look took, in microseconds.
    pub took_us: u64,
}

impl Probe {
    /// Processes of a probe.
    pub const MOST_PROCESSES: usize = 64;
    /// Threads of a probe, over all processes.
    pub const MOST_THREADS: usize = 1024;

    /// The process with this number.
    pub fn process(&self, pid: u32) -> Option<&ProbedProcess> {
        self.processes.iter().find(|p| p.pid == pid)
    }

    /// Every thread with its process.
    pub fn threads(&self) -> impl Iterator<Item = (&ProbedProcess, &ProbedThread)> {
        let all = self.processes.iter();
        all.flat_map(|p| p.threads.iter().map(move |t| (p, t)))
    }
}

/// The TCP connections between the tree and peers outside it that exist now: totals of those
/// that the tree has opened, and requests of clients. A connection that closes takes its bytes
/// along, so a total can fall.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerTraffic {
    /// Bytes received (`tcpi_bytes_received`).
    pub received: u64,
    /// Bytes that the peer has acknowledged (`tcpi_bytes_acked`).
    pub sent: u64,
    /// Connections.
    pub connections: u32,
    /// Connections without byte counts: Unix sockets, UDP, another network namespace, and
    /// each process whose descriptors cannot be read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncounted: u32,
    /// Age, in milliseconds, of each request of a client that has not been answered by a byte:
    /// how long ago its last data came (`tcpi_last_data_recv`), where nothing was sent since.
    /// The oldest first, at most [`PeerTraffic::MOST_REQUESTS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unanswered_ms: Vec<u64>,
}

impl PeerTraffic {
    /// Requests of a probe.
    pub const MOST_REQUESTS: usize = 16;
}

/// One process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbedProcess {
    /// Its number.
    pub pid: u32,
    /// Its parent.
    pub parent: u32,
    /// Its name (`comm`).
    pub name: String,
    /// A device node of a card is open: `/dev/kfd`, `/dev/dri/renderD*`, `/dev/nvidia*`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub card: bool,
    /// A library of PyTorch is mapped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub torch: bool,
    /// A weight file of at least 64 MiB that is open or mapped: its path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<String>,
    /// Addresses of its listening sockets: `tcp 127.0.0.1:7860`, `unix /run/app.sock`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listens: Vec<String>,
    /// Results (videos, images, latents) that are open for writing: their paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// The process that traces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracer: Option<Tracer>,
    /// Why its descriptors could not be read; absent: they could. What they showed in an
    /// earlier probe is then repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// Its threads, the main thread first.
    pub threads: Vec<ProbedThread>,
}

impl ProbedProcess {
    /// The main thread.
    pub fn main(&self) -> Option<&ProbedThread> {
        self.threads.iter().find(|t| t.tid == self.pid)
    }
}

/// A process that traces another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tracer {
    /// Its number.
    pub pid: u32,
    /// Its name; empty where it cannot be read.
    pub name: String,
}

/// One thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbedThread {
    /// Its number.
    pub tid: u32,
    /// Its name (`comm`).
    pub name: String,
    /// State letter.
    pub state: char,
    /// Time on a CPU, nanoseconds, since the thread began.
    pub run_ns: u64,
    /// Bytes through read calls and from storage, the greater of both; absent: not readable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Bytes>,
    /// The same of write calls and to storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Bytes>,
    /// Major page faults since the thread began.
    pub major_faults: u64,
    /// Minor page faults since the thread began.
    pub minor_faults: u64,
    /// What it waits in.
    pub wait: Wait,
}

/// What a thread waits in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Wait {
    /// It runs, or is ready to run.
    Running,
    /// It is blocked outside a system call: a page fault, a stop.
    Blocked {
        /// Kernel function, where readable.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<String>,
    },
    /// A system call.
    Call {
        /// Its name: `futex`, `epoll_wait`, `ioctl`; `syscall_N` where it is not known by name.
        call: String,
        /// Its time limit in milliseconds, where it has one; of a limit that is a moment, the
        /// time left. Absent: it waits for ever, or the limit cannot be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        /// What it waits on; empty where the call names no descriptor or it cannot be read.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        on: Vec<WaitTarget>,
        /// Kernel function, where readable.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<String>,
    },
    /// The system call cannot be read (no right to trace, or no such file).
    Unreadable {
        /// Why.
        why: String,
        /// Kernel function, where readable.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<String>,
    },
}

/// What a system call waits on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum WaitTarget {
    /// A device node of a card.
    Card {
        /// Its path.
        device: String,
    },
    /// A socket that listens.
    Listener {
        /// Its address, as in [`ProbedProcess::listens`].
        address: String,
    },
    /// A connected socket.
    Peer {
        /// `tcp`, `udp`, `unix`.
        network: String,
        /// Address of the peer; empty where it cannot be read.
        address: String,
        /// The process of the tree that holds the other end; absent: it is outside the
        /// tree, or cannot be told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inside: Option<u32>,
        /// The tree accepted the connection from a peer: that is a client.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        accepted: bool,
    },
    /// A pipe or FIFO.
    Pipe {
        /// Processes of the tree that hold the other end. The waiting one is named only
        /// where no other holds it: then one of its own threads is at the other end.
        ends: Vec<u32>,
    },
    /// A terminal, or standard input that is one.
    Terminal,
    /// A lock on a file (flock, fcntl).
    Lock {
        /// The file.
        path: String,
        /// Who holds it; absent: it cannot be told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holder: Option<u32>,
        /// The holder does not live any more.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        holder_is_dead: bool,
    },
    /// A child process that is waited for; absent: any.
    Process {
        /// Its number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<u32>,
    },
    /// A file on a disk.
    File {
        /// Its path.
        path: String,
    },
    /// An eventfd, timerfd, signalfd, inotify or pidfd.
    Event {
        /// Which: `eventfd`, `timerfd`.
        what: String,
    },
    /// Something else: the text of its link in `/proc/PID/fd`.
    Other {
        /// That text.
        what: String,
    },
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
const fn is_zero(n: &u32) -> bool {
    *n == 0
}
