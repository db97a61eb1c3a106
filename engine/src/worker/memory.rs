//! The memory of the host that this process can still have: what is free, and what its limits leave of it.
//!
//! Limits are those of its control groups (both versions; a group's own and those of all groups above it, as far as they
//! are mounted here) and of its address space (`ulimit -v`). The one that leaves least decides. What they grant in all is the
//! most that any work can ever have.

mod groups;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::Place;

/// What there is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    /// Bytes; absent: nobody knows.
    pub(super) left: Option<u64>,
    /// What leaves less than is free, in words; absent: nothing does.
    pub(super) limit: Option<String>,
    /// What cannot be read or understood, a sentence each.
    pub(super) problems: Vec<String>,
}

impl Memory {
    /// By what this process is told of itself.
    pub(super) fn now() -> Self {
        Self::by(Path::new("/proc"))
    }

    fn by(proc: &Path) -> Self {
        let mut memory = Self::default();
        let free = memory.read(&proc.join("meminfo"), &|text| {
            kib(text, "MemAvailable:").map(Some)
        });
        memory.left = free;
        let groups = groups::of(&proc.join("self"), &mut memory);
        let space = memory.address_space(&proc.join("self"));
        for (left, words) in groups.into_iter().chain(space) {
            let left = beside(left);
            if memory.left.is_none_or(|least| left < least) {
                memory.left = Some(left);
                memory.limit = Some(words);
            }
        }
        memory
    }

    /// What the limit of the address space leaves, and the words for it.
    fn address_space(&mut self, own: &Path) -> Option<(u64, String)> {
        let limit = self.read(&own.join("limits"), &address_space)?;
        // what threads take for themselves is taken before it is counted
        rayon::broadcast(|_| drop(std::hint::black_box(vec![0_u8; 64])));
        let mapped = self.read(&own.join("status"), &|text| kib(text, "VmSize:").map(Some))?;
        Some((
            limit.saturating_sub(mapped),
            format!(
                "the limit of the address space (ulimit -v) of {} MiB",
                limit >> 20
            ),
        ))
    }

    /// What a small text of the kernel says. Absent: there is no such file, or it says that there is nothing, or it cannot be
    /// read or understood (`parse` gives none), which is a problem.
    fn read<T>(&mut self, path: &Path, parse: &dyn Fn(&[u8]) -> Option<Option<T>>) -> Option<T> {
        let text = match std::fs::read(path) {
            Ok(text) => text,
            // as if there were none: a group is removed when its last process goes elsewhere
            Err(e) if e.kind() == ErrorKind::NotFound => return None,
            Err(e) => {
                self.problems.push(problem(path, &e.to_string()));
                return None;
            }
        };
        let Some(parsed) = parse(&text) else {
            self.problems.push(problem(path, "not as it is known"));
            return None;
        };
        parsed
    }
}

/// What is kept free below a limit for what is none of the planner's: the program itself, what is lost between blocks, the
/// supervisor in the same group. Where the whole machine is short something goes to the swap; a limit ends the process.
const RESERVE: u64 = 64 << 20;
/// The same as a share: predictions are within it.
const SHARE: u64 = 20;

/// What of a limit is left to the planner.
fn beside(left: u64) -> u64 {
    left.saturating_sub(left / SHARE + RESERVE)
}

fn problem(path: &Path, why: &str) -> String {
    format!(
        "{}: {why}: a limit that it names is not heeded",
        path.display()
    )
}

/// Bytes of memory and swap that this machine has.
pub(super) fn machine() -> Option<u64> {
    machine_by(Path::new("/proc"))
}

fn machine_by(proc: &Path) -> Option<u64> {
    let text = std::fs::read(proc.join("meminfo")).ok()?;
    kib(&text, "MemTotal:")?.checked_add(kib(&text, "SwapTotal:")?)
}

/// The most memory that a process can ever have here, however much is free: the machine's, or what the tightest limit
/// grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Most {
    pub(super) bytes: u64,
    /// What there is no more than, a clause.
    pub(super) words: String,
}

impl Most {
    /// For work of this process, and of those that it starts, at this place; absent: nobody knows.
    pub(super) fn at(place: Place) -> Option<Self> {
        Self::by(Path::new("/proc"), place)
    }

    fn by(proc: &Path, place: Place) -> Option<Self> {
        let machine = machine_by(proc).map(|bytes| Self {
            bytes,
            words: format!("this machine has {} MiB with its swap", bytes >> 20),
        });
        // of the memory of a card the limits of a process tell nothing
        if place != Place::Cpu {
            return machine;
        }
        // what cannot be read or understood is told where a way is chosen
        let mut memory = Memory::default();
        let own = proc.join("self");
        let swap = memory
            .read(&proc.join("meminfo"), &|text| {
                kib(text, "SwapTotal:").map(Some)
            })
            .unwrap_or(0);
        let groups = groups::granted(&own, swap, &mut memory).into_iter();
        let groups = groups.map(|(bytes, limit)| Self {
            bytes,
            words: format!("{limit} grants {} MiB with swap", bytes >> 20),
        });
        let space = memory.read(&own.join("limits"), &address_space);
        let space = space.map(|bytes| Self {
            bytes,
            words: format!(
                "the limit of the address space (ulimit -v) is {} MiB",
                bytes >> 20
            ),
        });
        let all = machine.into_iter().chain(groups).chain(space);
        all.min_by_key(|most| most.bytes)
    }
}

/// `MemAvailable:   12345 kB` in bytes.
fn kib(text: &[u8], name: &str) -> Option<u64> {
    let mut lines = text.split(|byte| *byte == b'\n');
    let rest = lines.find_map(|line| line.strip_prefix(name.as_bytes()))?;
    let rest = std::str::from_utf8(rest).ok()?;
    let kib: u64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The soft limit of the address space in `limits`; the inner one is absent where there is none.
#[expect(clippy::option_option, reason = "not understood, no limit, a limit")]
fn address_space(text: &[u8]) -> Option<Option<u64>> {
    let mut lines = text.split(|byte| *byte == b'\n');
    let rest = lines.find_map(|line| line.strip_prefix(b"Max address space"))?;
    let soft = std::str::from_utf8(rest).ok()?.split_whitespace().next()?;
    match soft {
        "unlimited" => Some(None),
        number => number.parse().ok().map(Some),
    }
}

/// A path of a group, or where it is mounted, as bytes.
fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests;
