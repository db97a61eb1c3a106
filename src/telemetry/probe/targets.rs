//! From the arguments of a call to what it waits on.

use std::cell::OnceCell;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::super::procfs::{parse, read_once};
use super::descriptors::{self, Access, Descriptors};
use super::files;
use super::locks::{self, FileLock};
use super::network::Network;
use super::process::Process;
use super::request::{MOST_DESCRIPTORS, Subject};
use super::text;
use crate::model::WaitTarget;

/// Longest `/proc/locks` that is read, and locks of it.
const LOCKS: u64 = 1 << 20;
const MOST_LOCKS: usize = 8192;

/// Finds what is behind descriptors; knows the whole tree.
pub(super) struct Targets<'a> {
    proc: &'a Path,
    processes: &'a [Process],
    network: &'a Network,
    locks: OnceCell<Vec<FileLock>>,
}

impl<'a> Targets<'a> {
    /// Over these processes and their sockets.
    pub(super) const fn new(
        proc: &'a Path,
        processes: &'a [Process],
        network: &'a Network,
    ) -> Self {
        Self {
            proc,
            processes,
            network,
            locks: OnceCell::new(),
        }
    }

    /// What a call of `process` waits on.
    pub(super) fn of(&self, process: &Process, subject: &Subject) -> Vec<WaitTarget> {
        let descriptors = process.descriptors.as_ref().ok();
        match subject {
            Subject::Nothing => Vec::new(),
            Subject::Child(pid) => vec![WaitTarget::Process { pid: *pid }],
            Subject::Lock(number) => descriptors
                .and_then(|d| self.lock(process, d, *number))
                .into_iter()
                .collect(),
            Subject::Descriptors(numbers) => descriptors.map_or_else(Vec::new, |d| {
                let each = numbers
                    .iter()
                    .flat_map(|n| self.behind(process, d, *n, true));
                each.take(MOST_DESCRIPTORS).collect()
            }),
            Subject::Epoll(number) => {
                descriptors.map_or_else(Vec::new, |d| self.behind(process, d, *number, true))
            }
        }
    }

    /// What is behind a descriptor: one thing, or those that an epoll watches.
    fn behind(
        &self,
        process: &Process,
        descriptors: &Descriptors,
        number: u32,
        open_epoll: bool,
    ) -> Vec<WaitTarget> {
        let Some(link) = descriptors.link(number) else {
            return Vec::new();
        };
        if open_epoll && descriptors::anonymous(link) == Some("eventpoll") {
            let watched = descriptors.info(number);
            let watched = watched.map_or_else(Vec::new, |info| descriptors::watched(&info));
            let each = watched
                .iter()
                .flat_map(|n| self.behind(process, descriptors, *n, false));
            return each.take(MOST_DESCRIPTORS).collect();
        }
        vec![self.target(process, descriptors, number, link)]
    }

    fn target(
        &self,
        process: &Process,
        descriptors: &Descriptors,
        number: u32,
        link: &str,
    ) -> WaitTarget {
        let other = || WaitTarget::Other {
            what: link.to_owned(),
        };
        if let Some(inode) = descriptors::socket_inode(link) {
            return self
                .network
                .target(process.pid, inode)
                .unwrap_or_else(other);
        }
        if link.starts_with("pipe:[") {
            return self.pipe(process, descriptors, number, link);
        }
        if let Some(kind) = descriptors::anonymous(link) {
            return match kind {
                "pidfd" => {
                    let info = descriptors.info(number);
                    WaitTarget::Process {
                        pid: info.and_then(|info| descriptors::pidfd(&info)),
                    }
                }
                "eventfd" | "timerfd" | "signalfd" | "inotify" | "fanotify" => WaitTarget::Event {
                    what: kind.to_owned(),
                },
                _ => other(),
            };
        }
        // a stat of a card's node asks no driver, but nothing is gained by it
        if files::is_card(link) {
            return WaitTarget::Card {
                device: link.to_owned(),
            };
        }
        if files::is_terminal(link) {
            return WaitTarget::Terminal;
        }
        match descriptors.metadata(number).map(|m| m.file_type()) {
            Some(kind) if kind.is_fifo() => self.pipe(process, descriptors, number, link),
            Some(kind) if kind.is_file() || kind.is_dir() || kind.is_block_device() => {
                WaitTarget::File {
                    path: link.to_owned(),
                }
            }
            _ => other(),
        }
    }

    /// Processes that have the same pipe open the other way round. The waiting one is
    /// named only where no other has: then one of its own threads is to write.
    fn pipe(
        &self,
        process: &Process,
        descriptors: &Descriptors,
        number: u32,
        link: &str,
    ) -> WaitTarget {
        let own = descriptors.access(number);
        let holds_other_end = |candidate: &Process| {
            let Ok(theirs) = &candidate.descriptors else {
                return false;
            };
            let mut same = theirs.links().filter(|(_, to)| *to == link);
            same.any(|(n, _)| is_other_end(own, theirs.access(n)))
        };
        let all = self
            .processes
            .iter()
            .filter(|p| holds_other_end(p))
            .map(|p| p.pid);
        let (itself, others): (Vec<u32>, Vec<u32>) = all.partition(|pid| *pid == process.pid);
        WaitTarget::Pipe {
            ends: if others.is_empty() { itself } else { others },
        }
    }

    fn lock(
        &self,
        process: &Process,
        descriptors: &Descriptors,
        number: u32,
    ) -> Option<WaitTarget> {
        let path = descriptors.link(number)?.to_owned();
        let locks = self.locks.get_or_init(|| {
            let text = text::limited(&self.proc.join("locks"), LOCKS).unwrap_or_default();
            locks::parse(&text, MOST_LOCKS)
        });
        let file = descriptors.metadata(number).map(|m| {
            let device = m.dev();
            (
                rustix::fs::major(device),
                rustix::fs::minor(device),
                m.ino(),
            )
        });
        let holder = locks::holder(locks, process.pid, file).flatten();
        Some(WaitTarget::Lock {
            path,
            holder,
            holder_is_dead: holder.is_some_and(|pid| self.is_dead(pid)),
        })
    }

    fn is_dead(&self, pid: u32) -> bool {
        let stat = read_once(&self.proc.join(pid.to_string()).join("stat"));
        let stat = stat.ok().and_then(|text| parse::stat(&text));
        stat.is_none_or(|stat| matches!(stat.state, 'Z' | 'X' | 'x'))
    }
}

/// Whether two descriptors of a pipe are its two ends; one that is open both ways is
/// either, and what the kernel does not tell may be.
const fn is_other_end(own: Option<Access>, other: Option<Access>) -> bool {
    !matches!(
        (own, other),
        (Some(Access::Read), Some(Access::Read)) | (Some(Access::Write), Some(Access::Write))
    )
}
