//! What KFD, the kernel's side of ROCm, tells of a process:
//! `/sys/class/kfd/kfd/proc/PID`. Anyone may read it.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::super::file::{self, ReadError, ReadResult};
use super::super::pci::PciAddress;
use crate::model::{Bytes, GpuId};

/// Cards are looked for again this often while a process uses an unknown one.
const AGAIN: Duration = Duration::from_secs(10);
/// Queues of a process that are looked at.
const QUEUES: usize = 1024;

/// A process on one card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::telemetry) struct OnCard {
    pub(in crate::telemetry) gpu: GpuId,
    /// VRAM that it allocated through KFD.
    pub(in crate::telemetry) vram: ReadResult<Bytes>,
    /// Queues; missing where the kernel does not list them.
    pub(super) queues: ReadResult<u32>,
    pub(super) cu_occupancy: ReadResult<u32>,
    pub(super) evicted_ms: ReadResult<u64>,
}

impl OnCard {
    /// KFD lists every card for every process; it uses those on which it holds
    /// something.
    pub(in crate::telemetry) fn in_use(&self) -> bool {
        let holds = |r: &ReadResult<Bytes>| r.as_ref().is_ok_and(|b| b.0 > 0);
        holds(&self.vram) || self.queues.as_ref().is_ok_and(|n| *n > 0)
    }
}

/// The folder of KFD.
#[derive(Debug)]
pub(in crate::telemetry) struct Kfd {
    dir: PathBuf,
    /// Cards by KFD's number.
    cards: HashMap<u32, GpuId>,
    looked: Option<Instant>,
}

impl Kfd {
    /// Below the folder that has `sys` in it.
    pub(in crate::telemetry) fn new(root: &Path) -> Self {
        Self {
            dir: root.join("sys/class/kfd/kfd"),
            cards: HashMap::new(),
            looked: None,
        }
    }

    /// Whether there is one.
    pub(super) fn is_there(&self) -> bool {
        self.dir.join("proc").is_dir()
    }

    /// What a process does on each card; missing: KFD does not know the process.
    pub(in crate::telemetry) fn process(&mut self, pid: u32) -> ReadResult<Vec<OnCard>> {
        let dir = self.dir.join("proc").join(pid.to_string());
        let listed = fs::read_dir(&dir).map_err(|e| ReadError::os(&dir, &e))?;
        let numbers: Vec<u32> = listed
            .flatten()
            .filter_map(|e| e.file_name().to_str()?.strip_prefix("vram_")?.parse().ok())
            .collect();
        let queues = queues(&dir.join("queues"));
        let mut out: Vec<OnCard> = Vec::new();
        for number in numbers {
            // a node that our cgroup hides is a card that is not ours to see
            let Some(gpu) = self.card(number) else {
                continue;
            };
            let stats = dir.join(format!("stats_{number}"));
            let on = OnCard {
                gpu,
                vram: file::read_number(&dir.join(format!("vram_{number}"))).map(Bytes),
                queues: queues.as_ref().map_err(Clone::clone).map(|all| {
                    let here = all.iter().filter(|gpu| **gpu == number).count();
                    u32::try_from(here).unwrap_or(u32::MAX)
                }),
                cu_occupancy: file::read_number(&stats.join("cu_occupancy")),
                evicted_ms: file::read_number(&stats.join("evicted_ms")),
            };
            out.push(on);
        }
        Ok(out)
    }

    fn card(&mut self, number: u32) -> Option<GpuId> {
        let due = self.looked.is_none_or(|at| at.elapsed() >= AGAIN);
        if due && !self.cards.contains_key(&number) {
            self.looked = Some(Instant::now());
            self.cards = cards(&self.dir.join("topology/nodes"));
        }
        self.cards.get(&number).cloned()
    }
}

/// The card of each queue.
fn queues(dir: &Path) -> ReadResult<Vec<u32>> {
    let listed = fs::read_dir(dir).map_err(|e| ReadError::os(dir, &e))?;
    // one that was closed meanwhile is left out
    Ok(listed
        .flatten()
        .take(QUEUES)
        .filter_map(|queue| file::read_number(&queue.path().join("gpuid")).ok())
        .collect())
}

/// Every card of the topology by KFD's number.
fn cards(nodes: &Path) -> HashMap<u32, GpuId> {
    let Ok(listed) = fs::read_dir(nodes) else {
        return HashMap::new();
    };
    let one = |node: PathBuf| {
        let number = file::read_number(&node.join("gpu_id"))
            .ok()
            .filter(|n| *n != 0)?;
        let properties = file::read_text(&node.join("properties")).ok()?;
        Some((number, address(&properties)?.id()))
    };
    listed.flatten().filter_map(|e| one(e.path())).collect()
}

/// Where the card of a node is: `location_id` and, on newer kernels, `domain`.
fn address(properties: &str) -> Option<PciAddress> {
    let value = |key: &str| {
        let line = properties
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?;
        line.trim().parse::<u32>().ok()
    };
    let location = value("location_id")?;
    PciAddress::at(value("domain").unwrap_or(0), location)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::testing::Tree;
    use super::*;

    #[test]
    fn a_node_has_an_address() {
        let at = |text| address(text).map(|a| a.id().0);
        assert_eq!(
            at("location_id 768\ndomain 0\n").as_deref(),
            Some("0000:03:00.0")
        );
        assert_eq!(
            at("domain 1\nlocation_id 3082\n").as_deref(),
            Some("0001:0c:01.2")
        );
        assert_eq!(at("location_id 768\n").as_deref(), Some("0000:03:00.0"));
        assert_eq!(at("location_id_x 768\n"), None);
        assert_eq!(at("location_id 4294967295\n"), None);
    }

    #[test]
    fn values_of_a_process_card_by_card() {
        let tree = Tree::new();
        let mut kfd = Kfd::new(tree.root());
        assert!(!kfd.is_there());
        let put = |path: &str, text: &str| tree.write(&format!("sys/class/kfd/kfd/{path}"), text);
        put("topology/nodes/0/gpu_id", "0\n");
        put("topology/nodes/1/gpu_id", "21432\n");
        put("topology/nodes/1/properties", "location_id 768\ndomain 0\n");
        put("proc/41/vram_21432", "8589934592\n");
        put("proc/41/vram_999", "1\n");
        put("proc/41/queues/0/gpuid", "21432\n");
        put("proc/41/queues/1/gpuid", "21432\n");
        put("proc/41/queues/2/gpuid", "999\n");
        put("proc/41/stats_21432/evicted_ms", "12\n");
        assert!(kfd.is_there());
        assert_eq!(kfd.process(42), Err(ReadError::Missing));
        let on = kfd.process(41).unwrap();
        assert_eq!(on.len(), 1, "{on:?}");
        assert_eq!(on[0].gpu.0, "0000:03:00.0");
        assert_eq!(on[0].vram, Ok(Bytes::gib(8)));
        assert_eq!((&on[0].queues, &on[0].evicted_ms), (&Ok(2), &Ok(12)));
        assert_eq!(on[0].cu_occupancy, Err(ReadError::Missing));
        assert!(on[0].in_use());
        put("proc/41/vram_21432", "lots\n");
        std::fs::remove_dir_all(tree.root().join("sys/class/kfd/kfd/proc/41/queues")).unwrap();
        let on = kfd.process(41).unwrap();
        assert!(matches!(on[0].vram, Err(ReadError::Text { .. })));
        assert_eq!(on[0].queues, Err(ReadError::Missing));
        assert!(!on[0].in_use());
    }

    proptest! {
        #[test]
        fn any_properties_are_survived(text in "(.*\n){0,8}", location: u32, domain: u32) {
            let _ = address(&text);
            let known = address(&format!("location_id {location}\ndomain {domain}\n"));
            if let Some(a) = known {
                prop_assert_eq!((a.location(), a.domain), (location, domain));
            }
        }
    }
}
