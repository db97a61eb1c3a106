//! The tree's part of a card of NVIDIA, from NVML's list of processes.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::super::procfs::Members;
use crate::model::{Bytes, GpuId, Metric, TreeOnCard};

/// What NVML said last of the processes on each card; the source of NVML puts it there.
pub(crate) type NvmlFeed = Arc<Mutex<Vec<NvmlCard>>>;

/// One card.
#[derive(Debug, Clone)]
pub(crate) struct NvmlCard {
    /// The card.
    pub(crate) gpu: GpuId,
    /// When it was asked.
    pub(crate) at: Instant,
    /// Its processes, or why NVML does not tell them.
    pub(crate) processes: Result<Vec<NvmlProcess>, String>,
}

/// One process on one card.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NvmlProcess {
    /// Process id, of the host: in a container with process numbers of its own it
    /// matches none of ours.
    pub(crate) pid: u32,
    /// Memory held; absent where the driver does not tell.
    pub(crate) vram: Option<Bytes>,
    /// Percent of the time in which it used the multiprocessors; absent where the driver does not tell.
    pub(crate) busy: Option<f64>,
}

/// Why none of ours is found in a container.
const FOREIGN: &str = "NVML lists host PIDs; this is a container";

/// What the members of the tree hold on one card. `host`: our numbers of processes are
/// the host's. A failure begins now: the caller knows for how long it has lasted.
pub(super) fn on_card(card: &NvmlCard, members: &Members, host: bool) -> TreeOnCard {
    let failed = |why: &str| {
        let why = why.to_owned();
        let failed = Metric::Failed { why, for_ms: 0 };
        (failed, Metric::Unsupported, 0)
    };
    let (vram, busy, processes) = match &card.processes {
        Ok(all) => match sum(all, members) {
            // a zero would say that all of it is others'
            (_, _, 0) if !host && !all.is_empty() => failed(FOREIGN),
            sum => sum,
        },
        Err(why) => failed(why),
    };
    TreeOnCard {
        gpu: card.gpu.clone(),
        source: "nvml".to_owned(),
        processes,
        vram,
        gtt: Metric::Unsupported,
        evicted: Metric::Unsupported,
        evicted_ms: Metric::Unsupported,
        queues: Metric::Unsupported,
        cu_occupancy: Metric::Unsupported,
        engines: Vec::new(),
        busy,
        compute_note: None,
    }
}

fn sum(all: &[NvmlProcess], members: &Members) -> (Metric<Bytes>, Metric<f64>, u32) {
    let ours: Vec<_> = all
        .iter()
        .filter(|p| members.pids.contains_key(&p.pid))
        .collect();
    let mut vram = Metric::Fresh(Bytes(0));
    for p in &ours {
        vram = match (vram, p.vram) {
            (Metric::Fresh(sum), Some(more)) => Metric::Fresh(Bytes(sum.0.saturating_add(more.0))),
            (other, Some(_)) => other,
            // a sum without it would be too small
            (_, None) => Metric::Unsupported,
        };
    }
    let busy = ours.iter().filter_map(|p| p.busy).reduce(|a, b| a + b);
    let busy = busy.map_or(Metric::Unsupported, |b| Metric::Fresh(b.min(100.0)));
    (vram, busy, u32::try_from(ours.len()).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn process(pid: u32, vram: Option<u64>, busy: Option<f64>) -> NvmlProcess {
        NvmlProcess {
            pid,
            vram: vram.map(Bytes::gib),
            busy,
        }
    }

    fn told(processes: Result<Vec<NvmlProcess>, String>) -> TreeOnCard {
        told_in(processes, true)
    }

    fn told_in(processes: Result<Vec<NvmlProcess>, String>, host: bool) -> TreeOnCard {
        let members = Members {
            of: (Some(7), None),
            pids: BTreeMap::from([(7, 1), (8, 2)]),
        };
        let card = NvmlCard {
            gpu: GpuId("0000:1b:00.0".to_owned()),
            at: Instant::now(),
            processes,
        };
        on_card(&card, &members, host)
    }

    #[test]
    fn members_are_summed_and_strangers_are_not() {
        let on = told(Ok(vec![
            process(7, Some(8), Some(60.0)),
            process(8, Some(1), None),
            process(99, Some(4), Some(30.0)),
        ]));
        assert_eq!(
            (on.vram, on.busy),
            (Metric::Fresh(Bytes::gib(9)), Metric::Fresh(60.0))
        );
        assert_eq!((on.processes, on.source.as_str()), (2, "nvml"));
    }

    #[test]
    fn unknown_failed_and_nothing_are_three_things() {
        let on = told(Ok(vec![process(7, Some(8), None), process(8, None, None)]));
        assert_eq!(
            (on.vram, on.busy),
            (Metric::Unsupported, Metric::Unsupported)
        );
        let on = told(Ok(vec![process(99, Some(8), None)]));
        assert_eq!((on.vram, on.processes), (Metric::Fresh(Bytes(0)), 0));
        // in a container nothing is found because the numbers are others
        let on = told_in(Ok(vec![process(99, Some(8), None)]), false);
        assert!(matches!(on.vram, Metric::Failed { ref why, .. } if why == FOREIGN));
        let on = told_in(Ok(Vec::new()), false);
        assert_eq!(on.vram, Metric::Fresh(Bytes(0)));
        let on = told_in(Ok(vec![process(7, Some(8), None)]), false);
        assert_eq!(on.vram, Metric::Fresh(Bytes::gib(8)));
        let on = told(Err("insufficient permissions".to_owned()));
        assert!(
            matches!(on.vram, Metric::Failed { ref why, .. } if why.starts_with("insufficient"))
        );
    }
}
