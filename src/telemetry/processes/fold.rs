//! Which processes are told, and which belong to one that is: pure.

use std::collections::{HashMap, HashSet};

use super::super::clients::DrmClient;
use super::memory;
use crate::model::{CardMemory, FoundProcess};

/// One process as it was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Seen {
    pub(super) pid: u32,
    pub(super) parent: u32,
    pub(super) start: u64,
    pub(super) name: String,
    pub(super) argv: Vec<String>,
    pub(super) kind: Option<&'static str>,
    pub(super) clients: Vec<DrmClient>,
    /// What other sources than its descriptors tell.
    pub(super) told: Vec<CardMemory>,
    pub(super) hidden: Option<String>,
    pub(super) cpu_percent: Option<f64>,
    pub(super) age_ms: Option<u64>,
}

impl Seen {
    fn holds_memory(&self) -> bool {
        !self.told.is_empty() || !memory::by_card(&self.clients).is_empty()
    }
}

/// Most processes that are told.
const MOST: usize = 64;
/// Longest chain of parents that is followed.
const DEEPEST: usize = 64;

/// What is worth telling, the most interesting first. A process that belongs to a
/// generation above it, or to a supervised one, is told with it. `own` and the
/// supervisors themselves are left out.
pub(super) fn fold(seen: &[Seen], own: u32, supervisors: &[u32]) -> Vec<FoundProcess> {
    let by_pid: HashMap<u32, &Seen> = seen.iter().map(|s| (s.pid, s)).collect();
    let ours = |pid: u32| pid == own || supervisors.contains(&pid);
    let mut groups: HashMap<u32, Group> = HashMap::new();
    for s in seen.iter().filter(|s| !ours(s.pid)) {
        if s.kind.is_none() && !s.holds_memory() {
            continue;
        }
        let (root, supervisor) = place(s, &by_pid, &ours);
        if supervisor == Some(own) {
            continue;
        }
        // a supervised run is one thing, whatever its processes look like
        let key = supervisor.unwrap_or(root);
        let group = groups.entry(key).or_insert(Group {
            root,
            supervisor,
            members: Vec::new(),
        });
        if is_above(root, group.root, &by_pid) {
            group.root = root;
        }
        group.members.push(s.pid);
    }
    let mut found: Vec<FoundProcess> = groups
        .values()
        .filter_map(|g| told(g, &by_pid, seen))
        .collect();
    found.sort_by_key(|f| {
        let held: u64 = f.memory.iter().filter_map(|m| m.vram).map(|b| b.0).sum();
        (f.kind.is_none(), std::cmp::Reverse(held), f.pid)
    });
    found.truncate(MOST);
    found
}

struct Group {
    root: u32,
    supervisor: Option<u32>,
    members: Vec<u32>,
}

/// Its chain of parents, itself first.
fn chain<'a>(pid: u32, by_pid: &'a HashMap<u32, &'a Seen>) -> impl Iterator<Item = &'a Seen> {
    std::iter::successors(by_pid.get(&pid).copied(), move |s| {
        by_pid.get(&s.parent).copied().filter(|p| p.pid != s.pid)
    })
    .take(DEEPEST)
}

/// The topmost generation that a process belongs to (a terminal that holds GPU memory
/// is none), and the supervisor above it.
fn place(
    s: &Seen,
    by_pid: &HashMap<u32, &Seen>,
    ours: &impl Fn(u32) -> bool,
) -> (u32, Option<u32>) {
    let mut root = s.pid;
    for above in chain(s.pid, by_pid) {
        if ours(above.pid) {
            return (root, Some(above.pid));
        }
        if above.kind.is_some() {
            root = above.pid;
        }
    }
    (root, None)
}

fn is_above(pid: u32, other: u32, by_pid: &HashMap<u32, &Seen>) -> bool {
    pid != other && chain(other, by_pid).any(|s| s.pid == pid)
}

fn told(group: &Group, by_pid: &HashMap<u32, &Seen>, seen: &[Seen]) -> Option<FoundProcess> {
    let root = by_pid.get(&group.root)?;
    let members: Vec<&Seen> = group
        .members
        .iter()
        .filter_map(|p| by_pid.get(p).copied())
        .collect();
    let mut held = memory::by_card(members.iter().flat_map(|m| &m.clients));
    for m in members.iter().flat_map(|m| &m.told) {
        memory::add(&mut held, &m.gpu, m.vram, m.gtt);
    }
    held.sort_by(|a, b| a.gpu.cmp(&b.gpu));
    // of a terminal or a desktop that draws with the card, what runs in it is no part
    let whole = root.kind.is_some() || group.supervisor.is_some();
    let belongs = |s: &Seen| {
        s.pid == root.pid || whole && chain(s.pid, by_pid).any(|above| above.pid == root.pid)
    };
    let tree: Vec<&Seen> = seen.iter().filter(|s| belongs(s)).collect();
    let cpu: Vec<f64> = tree.iter().filter_map(|s| s.cpu_percent).collect();
    let others: HashSet<u32> = tree
        .iter()
        .map(|s| s.pid)
        .chain(group.members.iter().copied())
        .filter(|pid| *pid != root.pid)
        .collect();
    Some(FoundProcess {
        pid: root.pid,
        start: root.start,
        kind: root.kind.map(str::to_owned),
        name: root.name.clone(),
        argv: root.argv.clone(),
        memory: held,
        hidden: members.iter().find_map(|m| m.hidden.clone()),
        cpu_percent: root.cpu_percent.map(|_known| cpu.iter().sum()),
        age_ms: root.age_ms,
        others: u32::try_from(others.len()).unwrap_or(u32::MAX),
        supervisor: group.supervisor,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{Bytes, GpuId};

    fn seen(pid: u32, parent: u32, kind: Option<&'static str>, mib: u64) -> Seen {
        let client = DrmClient {
            gpu: GpuId("0000:03:00.0".to_owned()),
            id: pid.into(),
            vram: Some(Bytes::mib(mib)),
            gtt: None,
            evicted: None,
            engines: Vec::new(),
        };
        Seen {
            pid,
            parent,
            kind,
            clients: if mib > 0 { vec![client] } else { Vec::new() },
            cpu_percent: Some(10.0),
            ..Seen::default()
        }
    }

    fn short(found: &[FoundProcess]) -> Vec<(u32, u64, u32, Option<u32>)> {
        let one = |f: &FoundProcess| {
            let held = f.memory.iter().filter_map(|m| m.vram).map(|b| b.0 >> 20);
            (f.pid, held.sum(), f.others, f.supervisor)
        };
        found.iter().map(one).collect()
    }

    #[test]
    fn children_are_told_with_their_generation() {
        let all = [
            // a terminal that draws with the GPU, a shell, a generation, its helpers
            seen(2, 1, None, 90),
            seen(3, 2, None, 0),
            seen(4, 3, Some("framepack"), 17_000),
            seen(5, 4, Some("diffusers"), 500),
            seen(6, 4, None, 0),
        ];
        let found = fold(&all, 99, &[]);
        assert_eq!(short(&found), [(4, 17_500, 2, None), (2, 90, 0, None)]);
        assert_eq!(found[0].cpu_percent, Some(30.0));
    }

    #[test]
    fn a_supervised_generation_is_one_and_says_by_whom() {
        let all = [
            seen(10, 1, None, 0),
            seen(11, 10, None, 0),
            seen(12, 11, Some("comfyui"), 100),
            seen(13, 11, None, 7),
            seen(20, 1, Some("framepack"), 0),
        ];
        assert_eq!(
            short(&fold(&all, 99, &[10])),
            [(12, 107, 1, Some(10)), (20, 0, 0, None)]
        );
        // what we ourselves started is none of these
        assert_eq!(short(&fold(&all, 10, &[])), [(20, 0, 0, None)]);
    }

    #[test]
    fn a_client_inherited_by_a_child_counts_once() {
        let mut all = [seen(4, 1, Some("framepack"), 64), seen(5, 4, None, 64)];
        all[1].clients[0].id = 4;
        assert_eq!(short(&fold(&all, 99, &[])), [(4, 64, 1, None)]);
    }

    proptest! {
        #[test]
        fn circles_end_and_nobody_is_told_twice(
            edges in prop::collection::vec((0u32..12, any::<bool>(), 0u64..3), 0..12),
            own in 0u32..12, supervisor in 0u32..12,
        ) {
            let all: Vec<Seen> = edges.iter().enumerate().map(|(pid, (parent, kind, mib))| {
                seen(u32::try_from(pid).unwrap(), *parent, kind.then_some("framepack"), *mib)
            }).collect();
            let found = fold(&all, own, &[supervisor]);
            let mut pids: Vec<u32> = found.iter().map(|f| f.pid).collect();
            prop_assert!(!pids.contains(&own) && !pids.contains(&supervisor));
            pids.sort_unstable();
            pids.dedup();
            prop_assert_eq!(pids.len(), found.len());
        }
    }
}
