//! The host: memory, pressure, load, network, and the OOM killer in our cgroup.

use std::path::{Path, PathBuf};

use sysinfo::{MemoryRefreshKind, RefreshKind, System};

use super::file::{self, ReadError, ReadResult};
use super::source::{Answer, Source, SourceError};
use super::track::Tracker;
use crate::model::{Bytes, HostSample};

/// Where the host's memory is read.
enum MemorySource {
    /// The machine that this runs on.
    Machine(Option<Box<System>>),
    /// The `meminfo` of a chosen root.
    File(PathBuf),
}

/// Reads the host.
pub(crate) struct Host {
    proc: PathBuf,
    sys: PathBuf,
    memory: MemorySource,
    tracker: Tracker,
}

impl Host {
    /// A reader over the folders that have `proc` and `sys` in them.
    pub(crate) fn new(proc_root: &Path, sys_root: &Path) -> Self {
        let proc = proc_root.join("proc");
        let memory = if proc_root == Path::new("/") {
            let kind = RefreshKind::nothing().with_memory(MemoryRefreshKind::everything());
            MemorySource::Machine(System::new_with_specifics(kind).ok().map(Box::new))
        } else {
            MemorySource::File(proc.join("meminfo"))
        };
        Self {
            proc,
            sys: sys_root.join("sys"),
            memory,
            tracker: Tracker::default(),
        }
    }

    /// Memory total, memory available, swap total, swap used.
    fn memory(&mut self) -> ReadResult<[u64; 4]> {
        let system = match &mut self.memory {
            MemorySource::Machine(system) => system.as_mut().ok_or(ReadError::Missing)?,
            MemorySource::File(path) => {
                let text = file::read_text(path)?;
                return meminfo(&text).ok_or_else(|| ReadError::text(path, "not the usual table"));
            }
        };
        system.refresh_memory();
        // The crate answers zeros where it could not read.
        match system.total_memory() {
            0 => Err(ReadError::text(Path::new("meminfo"), "not readable")),
            total => Ok([
                total,
                system.available_memory(),
                system.total_swap(),
                system.used_swap(),
            ]),
        }
    }

    fn pressure(&self, kind: &str) -> ReadResult<f64> {
        let path = self.proc.join("pressure").join(kind);
        avg10(&file::read_text(&path)?)
            .ok_or_else(|| ReadError::text(&path, "no `some avg10` in it"))
    }

    fn load1(&self) -> ReadResult<f64> {
        let path = self.proc.join("loadavg");
        load1(&file::read_text(&path)?).ok_or_else(|| ReadError::text(&path, "no load in it"))
    }

    fn received(&self) -> ReadResult<u64> {
        let path = self.proc.join("net/dev");
        received(&file::read_text(&path)?)
            .ok_or_else(|| ReadError::text(&path, "not the usual table"))
    }

    /// `memory.events` of our own cgroup. The root cgroup has no such file, nor
    /// has a machine with cgroup v1.
    fn oom_kills(&self) -> ReadResult<u64> {
        let text = file::read_text(&self.proc.join("self/cgroup"))?;
        let group = own_cgroup(&text).ok_or(ReadError::Missing)?;
        let path = self.sys.join("fs/cgroup").join(group).join("memory.events");
        oom_kills(&file::read_text(&path)?)
            .ok_or_else(|| ReadError::text(&path, "no `oom_kill` in it"))
    }
}

impl Source for Host {
    type Reading = HostSample;

    fn name(&self) -> String {
        "host".to_owned()
    }

    fn read(&mut self) -> Result<Answer<HostSample>, SourceError> {
        let memory = self.memory();
        let part = |n: usize| memory.clone().map(|m| Bytes(m[n]));
        let (psi_cpu, psi_io, psi_mem) = (
            self.pressure("cpu"),
            self.pressure("io"),
            self.pressure("memory"),
        );
        let (load1, received, oom) = (self.load1(), self.received(), self.oom_kills());
        let t = &mut self.tracker;
        Ok(Answer::good(HostSample {
            mem_total: t.settle("memory", part(0)),
            mem_available: t.settle("available memory", part(1)),
            swap_total: t.settle("swap", part(2)),
            swap_used: t.settle("used swap", part(3)),
            psi_cpu: t.settle("pressure/cpu", psi_cpu),
            psi_io: t.settle("pressure/io", psi_io),
            psi_mem: t.settle("pressure/memory", psi_mem),
            load1: t.settle("loadavg", load1),
            net_rx_bytes: t.settle("net/dev", received),
            oom_kills: t.settle("memory.events", oom),
        }))
    }
}

/// Memory total, memory available, swap total and swap used of a `meminfo`.
fn meminfo(text: &str) -> Option<[u64; 4]> {
    let bytes = |name: &str| {
        let of_line = |line: &str| {
            line.strip_prefix(name)?
                .strip_prefix(':')
                .map(str::to_owned)
        };
        let value = text.lines().find_map(of_line)?;
        let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kib.checked_mul(1024)
    };
    let swap = bytes("SwapTotal")?;
    Some([
        bytes("MemTotal")?,
        bytes("MemAvailable")?,
        swap,
        swap.saturating_sub(bytes("SwapFree")?),
    ])
}

/// `avg10` of the line `some` of a pressure file.
fn avg10(text: &str) -> Option<f64> {
    text.lines()
        .find_map(|line| line.strip_prefix("some "))?
        .split_whitespace()
        .find_map(|word| word.strip_prefix("avg10="))?
        .parse()
        .ok()
        .filter(|v: &f64| v.is_finite())
}

/// Load over one minute.
fn load1(text: &str) -> Option<f64> {
    text.split_whitespace()
        .next()?
        .parse()
        .ok()
        .filter(|v: &f64| v.is_finite())
}

/// Bytes received over all interfaces but loopback.
fn received(text: &str) -> Option<u64> {
    let rows: Vec<_> = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .collect();
    if rows.is_empty() {
        return None;
    }
    rows.iter()
        .filter(|(name, _)| name.trim() != "lo")
        .try_fold(0_u64, |sum, (_, row)| {
            let bytes: u64 = row.split_whitespace().next()?.parse().ok()?;
            Some(sum.saturating_add(bytes))
        })
}

/// Path of our cgroup (v2), relative to the mount point; none for the root.
fn own_cgroup(text: &str) -> Option<&str> {
    text.lines()
        .find_map(|line| line.strip_prefix("0::/"))
        .filter(|path| !path.is_empty() && !path.split('/').any(|part| part == ".."))
}

/// `oom_kill` of `memory.events`.
fn oom_kills(text: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix("oom_kill "))?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::Tree;
    use super::*;
    use crate::model::Metric;

    const NET: &str = "Inter-|   Receive  |  Transmit\n face |bytes packets|bytes\n    lo: 900 1 0\n  eth0: 1200 3 0\nwlan0:34 1 0\n";

    fn read(tree: &Tree) -> HostSample {
        Host::new(tree.root(), tree.root()).read().unwrap().reading
    }

    #[test]
    fn what_the_host_shows_is_read_and_the_rest_is_unsupported() {
        let tree = Tree::new();
        tree.write(
            "proc/pressure/cpu",
            "some avg10=1.50 avg60=0.00 avg300=0.00 total=3\n",
        );
        tree.write("proc/pressure/io", "garbage\n");
        tree.write("proc/loadavg", "0.52 0.58 0.59 1/389 12345\n");
        tree.write("proc/net/dev", NET);
        tree.write("proc/self/cgroup", "4:memory:/x\n0::/user.slice/run\n");
        tree.write(
            "sys/fs/cgroup/user.slice/run/memory.events",
            "oom 3\noom_kill 2\n",
        );
        let sample = read(&tree);
        assert_eq!(sample.psi_cpu, Metric::Fresh(1.5));
        assert!(matches!(&sample.psi_io, Metric::Failed { why, .. } if why.starts_with("io:")));
        assert_eq!(sample.psi_mem, Metric::Unsupported);
        assert_eq!(sample.load1, Metric::Fresh(0.52));
        assert_eq!(sample.net_rx_bytes, Metric::Fresh(1234));
        assert_eq!(sample.oom_kills, Metric::Fresh(2));
    }

    #[test]
    fn memory_is_that_of_the_chosen_root() {
        let tree = Tree::new();
        assert_eq!(read(&tree).mem_total, Metric::Unsupported);
        tree.write(
            "proc/meminfo",
            "MemTotal:  2048 kB\nMemFree: 1 kB\nMemAvailable: 1024 kB\nSwapTotal: 8 kB\nSwapFree: 3 kB\n",
        );
        let sample = read(&tree);
        let bytes = |kib: u64| Metric::Fresh(Bytes(kib * 1024));
        assert_eq!(sample.mem_total, bytes(2048));
        assert_eq!(sample.mem_available, bytes(1024));
        assert_eq!((sample.swap_total, sample.swap_used), (bytes(8), bytes(5)));
        tree.write("proc/meminfo", "MemTotal:  18446744073709551615 kB\n");
        assert!(matches!(read(&tree).mem_total, Metric::Failed { .. }));
    }

    #[test]
    fn this_machine_has_memory() {
        let root = Path::new("/");
        let sample = Host::new(root, root).read().unwrap().reading;
        let total = *sample.mem_total.fresh().unwrap();
        assert!(total > Bytes::mib(64));
        assert!(*sample.mem_available.fresh().unwrap() <= total);
        assert!(sample.load1.fresh().is_some());
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(.*\n){0,6}") {
            let _ = (avg10(&text), load1(&text), received(&text), own_cgroup(&text));
            let _ = (oom_kills(&text), meminfo(&text));
        }

        #[test]
        fn counters_are_read_back(rx: u32, kills: u64) {
            prop_assert_eq!(received(&format!("lo: 5 1\neth0: {rx} 2")), Some(u64::from(rx)));
            prop_assert_eq!(oom_kills(&format!("oom 1\noom_kill {kills}\n")), Some(kills));
        }
    }
}
