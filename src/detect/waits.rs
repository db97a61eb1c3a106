//! Question 3: what does the holder, the thread of the job, wait for?
//!
//! The table is in `docs/judgement.md`. A wait for another process or thread is asked on
//! there; where that cannot be told the answer stays [`WaitsFor::Process`].

use std::time::Duration;

use crate::model::{Mono, Probe, ProbedProcess, ProbedThread, Wait, WaitTarget, Waits, WaitsFor};

use super::probes::{Probes, thread_of};
use super::threads::{ThreadId, ThreadTracker};

/// A sleep that is shorter repeats: it is a poll, which ends by itself.
const SHORT_SLEEP: Duration = Duration::from_secs(10);
/// How many processes a wait is followed through.
const DEEPEST: usize = 8;
/// The thread that a futex waits for stopped about when the waiting one did: one that
/// still runs is a helper.
const SAME_TIME: Duration = Duration::from_secs(10);

/// The share of a core below which a thread that was met running does not spin.
const SPINNING_LOAD: f64 = 0.2;

/// What is known of the holder beside the probe.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HolderContext {
    /// The holder.
    pub(crate) id: ThreadId,
    /// An operation is in flight in it, or the interpreter's lock is held.
    pub(crate) operates: bool,
    /// The phase is one in which something is computed or moved.
    pub(crate) works: bool,
    /// The limit of silence of the phase.
    pub(crate) limit: Duration,
}

/// What the holder waits for at this moment.
pub(crate) fn waits(
    now: Mono,
    holder: HolderContext,
    probes: &Probes,
    threads: &ThreadTracker,
) -> Waits {
    let waited = probes.waited(now, holder.id);
    let load = probes.load(holder.id);
    let ask = |probe| {
        let look = Look {
            now,
            probe,
            holder,
            waited,
            load,
            threads,
        };
        look.follow(holder.id, &mut Vec::new())
    };
    let mut waits = probes.recent(now).map_or_else(|| unknown(holder.id), ask);
    // one probe may fall between two naps: a harmless wait holds until the second probe
    if !is_harmless(waits.answer)
        && let Some(before) = probes.recent_before(now).map(ask)
        && is_harmless(before.answer)
    {
        waits = before;
    }
    waits.for_s = waited.map(|d| d.as_secs_f64());
    waits
}

/// Whether a wait for this ends by itself, or by what others do.
const fn is_harmless(answer: WaitsFor) -> bool {
    matches!(
        answer,
        WaitsFor::Time | WaitsFor::Peer | WaitsFor::Client | WaitsFor::Lock | WaitsFor::Person
    )
}

const fn unknown(id: ThreadId) -> Waits {
    Waits {
        pid: Some(id.0),
        tid: Some(id.1),
        ..Waits::UNKNOWN
    }
}

/// One probe, and what is known beside it.
#[derive(Clone, Copy)]
struct Look<'a> {
    now: Mono,
    probe: &'a Probe,
    holder: HolderContext,
    /// How long the holder has been in its wait.
    waited: Option<Duration>,
    /// The share of a core that the holder uses.
    load: Option<f64>,
    threads: &'a ThreadTracker,
}

impl Look<'_> {
    /// The answer of one thread, followed through the processes that it waits for.
    fn follow(self, id: ThreadId, asked: &mut Vec<ThreadId>) -> Waits {
        asked.push(id);
        let Some((process, thread)) = thread_of(self.probe, id) else {
            return unknown(id);
        };
        let own = self.answer(process, thread);
        if own.answer != WaitsFor::Process || asked.len() >= DEEPEST {
            return own;
        }
        let mut next = processes_behind(&thread.wait)
            .filter_map(|pid| self.holder_of(pid))
            .filter(|id| !asked.contains(id));
        if let Some(next) = next.next() {
            let there = self.follow(next, asked);
            // a process that waits for this one in turn says nothing
            if there.answer != WaitsFor::Process {
                return there;
            }
            return own;
        }
        self.thread_behind(id, asked).unwrap_or(own)
    }

    /// The thread of the same process that a futex may wait for: one that stopped when this
    /// one did and whose wait names somebody outside.
    fn thread_behind(self, id: ThreadId, asked: &[ThreadId]) -> Option<Waits> {
        let stopped = self.threads.ran(id)?;
        let (process, _) = thread_of(self.probe, id)?;
        let others = process.threads.iter().map(|t| ((process.pid, t.tid), t));
        let mut outside = others
            .filter(|(other, _)| !asked.contains(other))
            .filter(|(other, _)| {
                let ran = self.threads.ran(*other);
                ran.is_some_and(|at| {
                    let together = at.since(stopped) <= SAME_TIME && stopped.since(at) <= SAME_TIME;
                    together && self.now.since(at) >= SAME_TIME
                })
            })
            .map(|(_, t)| self.answer(process, t))
            .filter(|w| matches!(w.answer, WaitsFor::Peer | WaitsFor::Lock | WaitsFor::Person));
        outside.next()
    }

    /// The thread that stands for a process: the one that worked last, else its main thread.
    fn holder_of(self, pid: u32) -> Option<ThreadId> {
        let process = self.probe.process(pid)?;
        let ids = process.threads.iter().map(|t| (pid, t.tid));
        let worked = ids.filter_map(|id| Some((self.threads.worked(id)?, id)));
        let last = worked.max_by_key(|(at, id)| (*at, std::cmp::Reverse(*id)));
        last.map(|(_, id)| id)
            .or_else(|| process.main().map(|t| (pid, t.tid)))
    }

    /// The answer of a thread by itself.
    fn answer(self, process: &ProbedProcess, thread: &ProbedThread) -> Waits {
        let is_holder = self.holder.id == (process.pid, thread.tid);
        let waited = self.waited.filter(|_| is_holder);
        let load = self.load.filter(|_| is_holder);
        let (answer, within, detail) = match &thread.wait {
            _ if thread.state == 'D' => {
                let (call, channel) = names(&thread.wait);
                (WaitsFor::Kernel, channel.or(call), None)
            }
            // who only wakes up for a moment was met by chance
            Wait::Running if load.is_some_and(|load| load < SPINNING_LOAD) => {
                (WaitsFor::Unknown, Some("running"), None)
            }
            Wait::Running => (WaitsFor::Itself, Some("running"), None),
            Wait::Blocked { channel } => (WaitsFor::Kernel, channel.as_deref(), None),
            Wait::Unreadable { channel, .. } => {
                let by_channel = channel.as_deref().and_then(|c| by_channel(c, self.holder));
                let answer = by_channel.unwrap_or(WaitsFor::Unknown);
                (answer, channel.as_deref(), None)
            }
            Wait::Call {
                call,
                timeout_ms,
                on,
                channel,
            } => {
                let channel = channel.as_deref();
                let (answer, detail) = by_call(self.holder, call, *timeout_ms, on, channel, waited);
                (answer, Some(call.as_str()), detail)
            }
        };
        Waits {
            answer,
            pid: Some(process.pid),
            tid: Some(thread.tid),
            within: within.map(str::to_owned),
            detail,
            for_s: None,
        }
    }
}

/// Processes of the tree that a wait names.
fn processes_behind(wait: &Wait) -> impl Iterator<Item = u32> {
    let on: &[WaitTarget] = match wait {
        Wait::Call { on, .. } => on,
        Wait::Running | Wait::Blocked { .. } | Wait::Unreadable { .. } => &[],
    };
    on.iter().flat_map(|target| match target {
        WaitTarget::Pipe { ends } => ends.clone(),
        WaitTarget::Peer { inside, .. } => inside.iter().copied().collect(),
        WaitTarget::Process { pid } => pid.iter().copied().collect(),
        _ => Vec::new(),
    })
}

fn names(wait: &Wait) -> (Option<&str>, Option<&str>) {
    match wait {
        Wait::Running => (None, None),
        Wait::Blocked { channel } | Wait::Unreadable { channel, .. } => (None, channel.as_deref()),
        Wait::Call { call, channel, .. } => (Some(call), channel.as_deref()),
    }
}

fn by_call(
    holder: HolderContext,
    call: &str,
    timeout_ms: Option<u64>,
    on: &[WaitTarget],
    channel: Option<&str>,
    waited: Option<Duration>,
) -> (WaitsFor, Option<String>) {
    let timeout = timeout_ms.map(Duration::from_millis);
    match call {
        "accept" | "accept4" => (WaitsFor::Client, on.first().map(describe)),
        "pause" | "rt_sigsuspend" | "rt_sigtimedwait" => {
            (WaitsFor::Card, Some("nothing ends this wait".to_owned()))
        }
        "futex" | "futex_waitv" => (futex(holder), None),
        "nanosleep" | "clock_nanosleep" => (sleep(holder, timeout, waited), None),
        "wait4" | "waitid" => (WaitsFor::Process, on.first().map(describe)),
        "sched_yield" => (WaitsFor::Itself, None),
        "fsync" | "fdatasync" | "msync" | "sync_file_range" | "io_getevents" => {
            (WaitsFor::Kernel, on.first().map(describe))
        }
        _ if !on.is_empty() => by_target(holder, timeout, on, waited),
        // a select or poll of no descriptor is a sleep
        "poll" | "ppoll" | "select" | "pselect6" | "epoll_wait" | "epoll_pwait"
        | "epoll_pwait2"
            if timeout.is_some() =>
        {
            (sleep(holder, timeout, waited), None)
        }
        _ => {
            let by_channel = channel.and_then(|c| by_channel(c, holder));
            (by_channel.unwrap_or(WaitsFor::Unknown), None)
        }
    }
}

/// A lock of the card's library while an operation is in flight, else another thread.
const fn futex(holder: HolderContext) -> WaitsFor {
    if holder.operates {
        WaitsFor::Card
    } else {
        WaitsFor::Process
    }
}

/// A short sleep repeats and is a poll. One that is longer than the limit ends by itself,
/// too, but not within an operation or a phase that computes.
fn sleep(holder: HolderContext, timeout: Option<Duration>, waited: Option<Duration>) -> WaitsFor {
    let long = waited.is_some_and(|w| w >= holder.limit.max(SHORT_SLEEP))
        || timeout.is_some_and(|t| t >= holder.limit.max(SHORT_SLEEP));
    if long && (holder.operates || holder.works) {
        WaitsFor::Itself
    } else {
        WaitsFor::Time
    }
}

/// The targets of a wait, the one that tells most first.
fn by_target(
    holder: HolderContext,
    timeout: Option<Duration>,
    on: &[WaitTarget],
    waited: Option<Duration>,
) -> (WaitsFor, Option<String>) {
    let rank = |target: &WaitTarget| match target {
        WaitTarget::Lock { .. } => 0,
        WaitTarget::Listener { .. } => 1,
        WaitTarget::Peer {
            inside: None,
            accepted: true,
            ..
        } => 2,
        WaitTarget::Peer { inside: None, .. } => 3,
        WaitTarget::Card { .. } => 4,
        WaitTarget::Terminal => 5,
        WaitTarget::Pipe { .. } | WaitTarget::Peer { .. } | WaitTarget::Process { .. } => 6,
        WaitTarget::File { .. } => 7,
        WaitTarget::Event { .. } => 8,
        WaitTarget::Other { .. } => 9,
    };
    let Some(target) = on.iter().min_by_key(|t| rank(t)) else {
        return (WaitsFor::Unknown, None);
    };
    let answer = match target {
        WaitTarget::Lock { .. } => WaitsFor::Lock,
        WaitTarget::Listener { .. }
        | WaitTarget::Peer {
            inside: None,
            accepted: true,
            ..
        } => WaitsFor::Client,
        WaitTarget::Peer { inside: None, .. } => WaitsFor::Peer,
        WaitTarget::Card { .. } => WaitsFor::Card,
        WaitTarget::Terminal => WaitsFor::Person,
        // the other end lies outside the tree: that of our own pipe, or of a shell's
        WaitTarget::Pipe { ends } if ends.is_empty() => WaitsFor::Unknown,
        WaitTarget::Pipe { .. } | WaitTarget::Peer { .. } | WaitTarget::Process { .. } => {
            WaitsFor::Process
        }
        WaitTarget::File { .. } => WaitsFor::Kernel,
        WaitTarget::Event { what } if what.starts_with("timer") => WaitsFor::Time,
        // an event is set by another thread; with a time limit it is a poll as well
        WaitTarget::Event { .. } if timeout.is_some_and(|t| t < SHORT_SLEEP) => {
            sleep(holder, timeout, waited)
        }
        WaitTarget::Event { .. } => futex(holder),
        WaitTarget::Other { .. } => WaitsFor::Unknown,
    };
    (answer, Some(describe(target)))
}

/// A target in words.
fn describe(target: &WaitTarget) -> String {
    match target {
        WaitTarget::Card { device } => device.clone(),
        WaitTarget::Listener { address } => format!("listening on {address}"),
        WaitTarget::Peer {
            network, address, ..
        } if address.is_empty() => format!("a {network} socket"),
        WaitTarget::Peer {
            network, address, ..
        } => format!("{network} {address}"),
        WaitTarget::Pipe { ends } => match ends.first() {
            Some(pid) => format!("a pipe of process {pid}"),
            None => "a pipe".to_owned(),
        },
        WaitTarget::Terminal => "a terminal".to_owned(),
        WaitTarget::Lock { path, holder, .. } => match holder {
            Some(pid) => format!("{path}, locked by process {pid}"),
            None => path.clone(),
        },
        WaitTarget::Process { pid: Some(pid) } => format!("process {pid}"),
        WaitTarget::Process { pid: None } => "a child process".to_owned(),
        WaitTarget::File { path } => path.clone(),
        WaitTarget::Event { what } | WaitTarget::Other { what } => what.clone(),
    }
}

/// By the kernel function, where the system call cannot be read.
fn by_channel(channel: &str, holder: HolderContext) -> Option<WaitsFor> {
    let has = |words: &[&str]| words.iter().any(|w| channel.contains(w));
    Some(
        if has(&["kfd", "amdgpu", "drm_", "dma_fence", "nvidia", "nv_"]) {
            WaitsFor::Card
        } else if has(&["futex"]) {
            futex(holder)
        } else if has(&["nanosleep"]) {
            WaitsFor::Time
        } else if has(&["csk_accept", "unix_accept"]) {
            WaitsFor::Client
        } else if has(&[
            "sk_wait_data",
            "tcp_recvmsg",
            "skb_wait_for_more",
            "inet_wait",
        ]) {
            WaitsFor::Peer
        } else if has(&["pipe_read", "pipe_write", "do_wait", "unix_stream"]) {
            WaitsFor::Process
        } else if has(&["sys_pause", "sigsuspend", "sigtimedwait"]) {
            WaitsFor::Card
        } else if has(&["locks_lock", "flock_lock"]) {
            WaitsFor::Lock
        } else if has(&["n_tty_read", "tty_"]) {
            WaitsFor::Person
        } else {
            return None;
        },
    )
}

/// Whether the lock that a thread waits for is held by nobody who lives.
pub(crate) fn lock_is_orphaned(wait: &Wait) -> bool {
    match wait {
        Wait::Call { on, .. } => on.iter().any(|t| {
            matches!(
                t,
                WaitTarget::Lock {
                    holder_is_dead: true,
                    ..
                }
            )
        }),
        Wait::Running | Wait::Blocked { .. } | Wait::Unreadable { .. } => false,
    }
}

/// Whether the bytes of the peer that a thread waits for cannot be counted.
pub(crate) fn peer_is_uncounted(wait: &Wait) -> bool {
    match wait {
        Wait::Call { on, .. } => on.iter().any(
            |t| matches!(t, WaitTarget::Peer { network, inside: None, .. } if network != "tcp"),
        ),
        Wait::Running | Wait::Blocked { .. } | Wait::Unreadable { .. } => false,
    }
}

#[cfg(test)]
#[path = "waits_tests.rs"]
mod tests;
