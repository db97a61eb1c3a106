//! The descendants of a process, and signals to them.

use std::collections::{HashMap, HashSet};
use std::io::Read;

use procfs::process::{Process, Stat};
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

use super::protocol::MAX_SURVIVORS;
use crate::model::event::Survivor;
use crate::model::{Scope, Signal};

/// Rounds of scanning and signalling: processes may be born between two of them.
const ROUNDS: u32 = 8;

/// One process, as far as it matters here.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) pid: i32,
    pgrp: i32,
    start: u64,
    pub(super) name: String,
    pub(super) state: char,
}

impl From<Stat> for Member {
    fn from(stat: Stat) -> Self {
        Self {
            pid: stat.pid,
            pgrp: stat.pgrp,
            start: stat.starttime,
            name: stat.comm,
            state: stat.state,
        }
    }
}

/// Whether it has ended and only waits for its parent to notice. A main thread can end
/// before the others: then the process lives.
const fn is_dead(s: &Stat) -> bool {
    matches!(s.state, 'X' | 'x') || (s.state == 'Z' && s.num_threads <= 1)
}

/// Living descendants of `root`, nearest first; none where `/proc` cannot be read.
pub(super) fn descendants(root: i32) -> Option<Vec<Member>> {
    let mut children: HashMap<i32, Vec<Stat>> = HashMap::new();
    let mut seen = false;
    for process in procfs::process::all_processes().ok()? {
        // A process may vanish while it is read.
        if let Ok(stat) = process.and_then(|p| p.stat()) {
            seen |= stat.pid == root;
            children.entry(stat.ppid).or_default().push(stat);
        }
    }
    if !seen {
        return None;
    }
    let mut found = Vec::new();
    let mut queue = vec![root];
    while let Some(parent) = queue.pop() {
        for stat in children.remove(&parent).unwrap_or_default() {
            queue.push(stat.pid);
            if !is_dead(&stat) {
                found.push(Member::from(stat));
            }
        }
    }
    Some(found)
}

/// Sends `signal` to the descendants of `root` (to those in group `pgid`, or to all).
/// Gives how many living processes it reached. A signal that asks is followed by
/// SIGCONT, for a stopped process cannot act on it.
pub(super) fn signal(root: i32, pgid: Option<Pid>, signal: Signal, scope: Scope) -> u32 {
    let Some(_) = descendants(root) else {
        return signal_group_blindly(pgid, signal);
    };
    let mut done: HashSet<(i32, u64)> = HashSet::new();
    let mut reached = 0;
    for _ in 0..ROUNDS {
        let fresh: Vec<Member> = descendants(root)
            .unwrap_or_default()
            .into_iter()
            .filter(|m| scope == Scope::Tree || pgid.is_some_and(|g| g.as_raw_pid() == m.pgrp))
            .filter(|m| !done.contains(&(m.pid, m.start)))
            .collect();
        if fresh.is_empty() {
            break;
        }
        for m in fresh {
            done.insert((m.pid, m.start));
            reached += u32::from(send(&m, signal));
        }
        // A process born after SIGTERM may be part of an orderly end.
        if signal != Signal::Kill {
            break;
        }
    }
    reached
}

/// The process `root` that began at `start`, if it lives, and its living descendants.
pub(super) fn tree(root: i32, start: u64) -> Vec<Member> {
    let own = Process::new(root)
        .and_then(|p| p.stat())
        .ok()
        .filter(|s| s.starttime == start);
    // without it the number may be another's, and so would be its descendants
    let Some(own) = own else {
        return Vec::new();
    };
    let mut all: Vec<Member> = (!is_dead(&own)).then(|| own.into()).into_iter().collect();
    all.extend(descendants(root).unwrap_or_default());
    all
}

/// Signals a tree; whom it reached. SIGKILL goes on until nobody new is found.
pub(super) fn signal_tree(root: i32, start: u64, signal: Signal) -> Vec<Member> {
    let mut reached: Vec<Member> = Vec::new();
    let mut done: HashSet<(i32, u64)> = HashSet::new();
    for _ in 0..ROUNDS {
        // one that is killed vanishes, and its children have another parent then: all are
        // looked up before the first is signalled
        let fresh: Vec<Member> = tree(root, start)
            .into_iter()
            .filter(|m| done.insert((m.pid, m.start)))
            .collect();
        if fresh.is_empty() {
            break;
        }
        reached.extend(fresh.into_iter().filter(|m| send(m, signal)));
        if signal != Signal::Kill {
            break;
        }
    }
    reached
}

/// Those of the members that still live.
pub(super) fn alive(members: &[Member]) -> Vec<Member> {
    let lives = |m: &Member| {
        let stat = Process::new(m.pid).and_then(|p| p.stat()).ok()?;
        (stat.starttime == m.start && !is_dead(&stat)).then(|| Member::from(stat))
    };
    members.iter().filter_map(lives).collect()
}

const fn number(signal: Signal) -> rustix::process::Signal {
    match signal {
        Signal::Int => rustix::process::Signal::INT,
        Signal::Term => rustix::process::Signal::TERM,
        Signal::Kill => rustix::process::Signal::KILL,
    }
}

/// Signals one process and no other that has got its number meanwhile.
fn send(member: &Member, signal: Signal) -> bool {
    let Some(pid) = Pid::from_raw(member.pid) else {
        return false;
    };
    let same = || {
        Process::new(member.pid)
            .and_then(|p| p.stat())
            .is_ok_and(|s| s.starttime == member.start)
    };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(fd) if same() => {
            let sent = pidfd_send_signal(&fd, number(signal)).is_ok();
            if sent && signal != Signal::Kill {
                let _ = pidfd_send_signal(&fd, rustix::process::Signal::CONT);
            }
            sent
        }
        Err(rustix::io::Errno::NOSYS) if same() => {
            rustix::process::kill_process(pid, number(signal)).is_ok()
        }
        _ => false,
    }
}

/// Without `/proc`: the process group is all that can be reached. Gives 1 if there was one.
pub(super) fn signal_group_blindly(pgid: Option<Pid>, signal: Signal) -> u32 {
    let Some(pgid) = pgid else {
        return 0;
    };
    let sent = rustix::process::kill_process_group(pgid, number(signal)).is_ok();
    if sent && signal != Signal::Kill {
        let _ = rustix::process::kill_process_group(pgid, rustix::process::Signal::CONT);
    }
    u32::from(sent)
}

/// The living descendants of `root` as they are told to the user.
pub(super) fn survivors(root: i32) -> Vec<Survivor> {
    describe(descendants(root).unwrap_or_default())
}

/// The living members of a process group, whoever their parent is.
pub(super) fn group_survivors(pgid: Option<Pid>) -> Vec<Survivor> {
    let Some(pgid) = pgid else {
        return Vec::new();
    };
    let members = procfs::process::all_processes()
        .into_iter()
        .flatten()
        .filter_map(|p| p.and_then(|p| p.stat()).ok())
        .filter(|s| s.pgrp == pgid.as_raw_pid() && !is_dead(s))
        .map(Member::from)
        .collect();
    describe(members)
}

/// A process can make its environment as long as its memory; what we set stands in the first
/// part of it, which the kernel bounds.
const MOST_ENVIRON: u64 = 8 << 20;

/// Living processes with `mark` (`NAME=value`) in the environment they were started
/// with, but for those of the group `besides` and ourselves.
pub(super) fn marked(mark: &str, besides: Option<Pid>) -> Vec<Member> {
    let ours = rustix::process::getpid().as_raw_pid();
    let carries = |stat: &Stat| {
        environ(stat.pid).is_some_and(|env| env.split(|b| *b == 0).any(|v| v == mark.as_bytes()))
    };
    procfs::process::all_processes()
        .into_iter()
        .flatten()
        .filter_map(|p| p.and_then(|p| p.stat()).ok())
        .filter(|s| s.pid != ours && !is_dead(s))
        .filter(|s| besides.is_none_or(|g| g.as_raw_pid() != s.pgrp))
        .filter(carries)
        .map(Member::from)
        .collect()
}

/// Living processes other than ourselves that have the variable `name` in the environment they
/// were started with, and its value.
pub(super) fn with_variable(name: &str) -> Vec<(Member, String)> {
    let ours = rustix::process::getpid().as_raw_pid();
    let value = |stat: &Stat| {
        let env = environ(stat.pid)?;
        env.split(|b| *b == 0)
            .find_map(|v| v.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
            .map(|v| String::from_utf8_lossy(v).into_owned())
    };
    procfs::process::all_processes()
        .into_iter()
        .flatten()
        .filter_map(|p| p.and_then(|p| p.stat()).ok())
        .filter(|s| s.pid != ours && !is_dead(s))
        .filter_map(|s| value(&s).map(|v| (Member::from(s), v)))
        .collect()
}

fn environ(pid: i32) -> Option<Vec<u8>> {
    let mut env = Vec::new();
    let file = std::fs::File::open(format!("/proc/{pid}/environ")).ok()?;
    file.take(MOST_ENVIRON).read_to_end(&mut env).ok()?;
    Some(env)
}

/// Whether the supervisor `pid` that began at `start` (clock ticks since boot) lives. Its loop is its
/// main thread: once that is a zombie, a kill is under way and other threads only have not ended
/// yet. Without `start`: any process with that number.
pub fn supervisor_lives(pid: u32, start: Option<u64>) -> bool {
    let found = i32::try_from(pid)
        .ok()
        .and_then(|pid| Process::new(pid).and_then(|p| p.stat()).ok());
    found.is_some_and(|s| {
        !matches!(s.state, 'Z' | 'X' | 'x') && start.is_none_or(|start| s.starttime == start)
    })
}

/// Signals these; gives how many it reached.
pub(super) fn signal_members(members: &[Member], signal: Signal) -> u32 {
    members.iter().map(|m| u32::from(send(m, signal))).sum()
}

pub(super) fn describe(members: Vec<Member>) -> Vec<Survivor> {
    members
        .into_iter()
        .take(MAX_SURVIVORS)
        .filter_map(|m| {
            Some(Survivor {
                pid: u32::try_from(m.pid).ok()?,
                wchan: Process::new(m.pid)
                    .and_then(|p| p.wchan())
                    .ok()
                    .filter(|w| !w.is_empty() && w != "0"),
                name: m.name,
                state: m.state,
            })
        })
        .collect()
}
