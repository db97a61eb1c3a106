//! The processes that belong to the workload.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use procfs::process::all_processes;

/// Processes that are looked at; a broken workload may have forked without end.
const MAX_PROCESSES: usize = 256;

/// Whom to look at.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) pids: Vec<u32>,
    pub(super) guardian: Option<u32>,
}

/// One process of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) pid: u32,
    pub(super) parent: u32,
    pub(super) name: String,
    pub(super) state: char,
    /// Process group.
    pub(super) group: i32,
}

impl Member {
    /// `/proc/P/name`.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.pid))
    }

    /// `1234 python (parent 1230, S)`.
    pub(super) fn title(&self) -> String {
        format!(
            "process {} {} (parent {}, {})",
            self.pid, self.name, self.parent, self.state
        )
    }
}

impl Target {
    /// The processes and all their descendants that live now, in the order in
    /// which they were found, the root first.
    pub(super) fn members(&self) -> Result<Vec<Member>, String> {
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut all = BTreeMap::new();
        // A process that ends while we look is left out.
        for stat in all_processes()
            .map_err(|e| format!("read /proc: {e}"))?
            .filter_map(|p| p.and_then(|p| p.stat()).ok())
        {
            let (Ok(pid), Ok(parent)) = (u32::try_from(stat.pid), u32::try_from(stat.ppid)) else {
                continue;
            };
            children.entry(parent).or_default().push(pid);
            all.insert(
                pid,
                Member {
                    pid,
                    parent,
                    name: stat.comm,
                    state: stat.state,
                    group: stat.pgrp,
                },
            );
        }
        let ours = std::process::id();
        let mut seen = BTreeSet::new();
        let mut found = Vec::new();
        let of_guardian = self.guardian.and_then(|g| children.get(&g));
        let mut next: Vec<u32> = of_guardian.into_iter().flatten().rev().copied().collect();
        next.extend(self.pids.iter().rev());
        while let Some(pid) = next.pop() {
            if pid == ours || Some(pid) == self.guardian || !seen.insert(pid) {
                continue;
            }
            if let Some(member) = all.remove(&pid) {
                found.push(member);
            }
            if found.len() >= MAX_PROCESSES {
                break;
            }
            next.extend(children.get(&pid).into_iter().flatten().rev());
        }
        if found.is_empty() {
            Err("no process of the attempt is left".to_owned())
        } else {
            Ok(found)
        }
    }
}
