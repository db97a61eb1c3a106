//! The table of system calls: what a thread waits for by its call, its time limit and the
//! targets of the call, or by the kernel function where the call cannot be read.

use std::time::Duration;

use crate::model::{Probe, Wait, WaitTarget, WaitsFor};

use super::{HolderContext, LONGEST_PAUSE, SHORT_SLEEP};

/// Said of a wait that only a signal ends.
pub(crate) const NOTHING_ENDS_IT: &str = "nothing ends this wait";

/// Whether a wait is over within moments and begins again: a thread that looks now and then.
pub(crate) fn is_poll(wait: &Wait) -> bool {
    let Wait::Call {
        call,
        timeout_ms: Some(left),
        on,
        ..
    } = wait
    else {
        return false;
    };
    let naps = call.starts_with("futex") || call.ends_with("nanosleep") || on.is_empty();
    naps && Duration::from_millis(*left) < SHORT_SLEEP
}

pub(super) fn by_call(
    holder: HolderContext,
    call: &str,
    timeout: Option<Duration>,
    on: &[WaitTarget],
    channel: Option<&str>,
    tree: &Probe,
    waited: Option<Duration>,
) -> (WaitsFor, Option<String>) {
    match call {
        "accept" | "accept4" if holder.owes_answer => (WaitsFor::Process, Some(owed())),
        "accept" | "accept4" => (WaitsFor::Client, on.first().map(describe)),
        "rt_sigtimedwait" if holder.between => (WaitsFor::Client, Some("a signal".to_owned())),
        "pause" | "rt_sigsuspend" | "rt_sigtimedwait" => {
            (WaitsFor::Card, Some(NOTHING_ENDS_IT.to_owned()))
        }
        "poll" | "ppoll" | "select" | "pselect6" if on.is_empty() && timeout.is_none() => {
            (WaitsFor::Card, Some(NOTHING_ENDS_IT.to_owned()))
        }
        "msgrcv" | "mq_timedreceive" if holder.between => (
            WaitsFor::Client,
            Some("a message of another program".to_owned()),
        ),
        // others of the job, where one of its phases goes on
        "semop" | "semtimedop" | "open" | "openat" | "openat2" if holder.works => {
            (WaitsFor::Process, None)
        }
        // only a named pipe keeps it, until somebody opens the other end
        "open" | "openat" | "openat2" if holder.between => (
            WaitsFor::Client,
            Some("the other end of a named pipe".to_owned()),
        ),
        "futex" | "futex_waitv" => (
            if is_pause(holder, timeout) {
                WaitsFor::Time
            } else {
                futex(holder)
            },
            None,
        ),
        "nanosleep" | "clock_nanosleep" => (sleep(holder, timeout, waited), None),
        "wait4" | "waitid" => (WaitsFor::Process, on.first().map(describe)),
        "sched_yield" => (WaitsFor::Itself, None),
        "fsync" | "fdatasync" | "msync" | "sync_file_range" | "io_getevents" => {
            (WaitsFor::Kernel, on.first().map(describe))
        }
        _ if !on.is_empty() => by_target(holder, timeout, on, tree, waited),
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

/// Whether a wait between phases ends by its own time limit: one of more than a poll, and
/// within some minutes.
pub(super) fn is_pause(holder: HolderContext, timeout: Option<Duration>) -> bool {
    holder.between && timeout.is_some_and(|t| t > SHORT_SLEEP && t <= LONGEST_PAUSE)
}

/// Whether a time limit is longer than a poll's, and its end known and near.
fn ends_soon(timeout: Option<Duration>) -> bool {
    timeout.is_some_and(|t| (SHORT_SLEEP..=LONGEST_PAUSE).contains(&t))
}

/// A short sleep repeats and is a poll, and one whose end is known and near is a pause. Any
/// other that is longer than the limit ends by itself, too, but not within an operation or a
/// phase that computes.
pub(super) fn sleep(
    holder: HolderContext,
    timeout: Option<Duration>,
    waited: Option<Duration>,
) -> WaitsFor {
    if holder.bereft && timeout.is_some_and(|t| t < SHORT_SLEEP) {
        // a poll of what that thread was to do
        return WaitsFor::Process;
    }
    if ends_soon(timeout) && !holder.operates {
        return WaitsFor::Time;
    }
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
    tree: &Probe,
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
    let goes_on = |target: &&WaitTarget| !(holder.owes_answer && is_client(target));
    let Some(target) = on.iter().filter(goes_on).min_by_key(|t| rank(t)) else {
        return if ends_soon(timeout) {
            (WaitsFor::Time, None)
        } else {
            (WaitsFor::Process, Some(owed()))
        };
    };
    let answer = match target {
        // held in the tree: asked on there, or, where it holds it itself, for ever
        WaitTarget::Lock {
            holder: Some(pid), ..
        } if tree.process(*pid).is_some() => WaitsFor::Process,
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
        WaitTarget::Pipe { ends }
            if ends.is_empty() && timeout.is_some_and(|t| t < SHORT_SLEEP) =>
        {
            sleep(holder, timeout, waited)
        }
        WaitTarget::Pipe { ends } if ends.is_empty() => WaitsFor::Unknown,
        // an event loop that sleeps until its next task
        WaitTarget::Pipe { .. } | WaitTarget::Peer { .. } if is_pause(holder, timeout) => {
            WaitsFor::Time
        }
        WaitTarget::Pipe { .. } | WaitTarget::Peer { .. } | WaitTarget::Process { .. } => {
            WaitsFor::Process
        }
        WaitTarget::File { .. } => WaitsFor::Kernel,
        WaitTarget::Event { what } if what.starts_with("timer") => WaitsFor::Time,
        // between phases: what others do with files, or a signal of theirs, is the next order
        WaitTarget::Event { what } if holder.between && is_order(what) => WaitsFor::Client,
        // an event is set by another thread; with a time limit it is a poll as well
        WaitTarget::Event { .. } if timeout.is_some_and(|t| t < SHORT_SLEEP) => {
            sleep(holder, timeout, waited)
        }
        WaitTarget::Event { .. } if is_pause(holder, timeout) => WaitsFor::Time,
        WaitTarget::Event { .. } => futex(holder),
        // a datagram from anybody
        WaitTarget::Other { what } if holder.between && what.ends_with("socket without a peer") => {
            WaitsFor::Client
        }
        WaitTarget::Other { .. } => WaitsFor::Unknown,
    };
    (answer, Some(describe(target)))
}

/// Whether a target stands for the next client, or for what one sends.
const fn is_client(target: &WaitTarget) -> bool {
    matches!(
        target,
        WaitTarget::Listener { .. }
            | WaitTarget::Peer {
                inside: None,
                accepted: true,
                ..
            }
    )
}

fn owed() -> String {
    "a client waits for the answer".to_owned()
}

/// Whether an event comes from outside the process: `eventfd` and `timerfd` do not.
fn is_order(what: &str) -> bool {
    matches!(what, "inotify" | "fanotify" | "signalfd")
}

/// A target in words.
pub(super) fn describe(target: &WaitTarget) -> String {
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
        WaitTarget::Event { what } if what.ends_with("notify") => {
            format!("changes of files ({what})")
        }
        WaitTarget::Event { what } | WaitTarget::Other { what } => what.clone(),
    }
}

/// By the kernel function, where the system call cannot be read.
pub(super) fn by_channel(channel: &str, holder: HolderContext) -> Option<WaitsFor> {
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
