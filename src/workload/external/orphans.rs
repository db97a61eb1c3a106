//! What is left of a workload whose guardian was killed: its process group, and what
//! left the group but still carries the launch's mark in its environment.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use procfs::process::Process;
use rustix::process::Pid;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::model::event::Survivor;
use crate::model::{Scope, Signal};
use crate::workload::proctree;

/// Variable that marks everything a launch has started.
pub(in crate::workload) const MARK: &str = "FRAMEPACK_TUI_MARK";

/// The environment of a process whose memory map is locked cannot be read: then the
/// look is given up, for the group's sake.
const LOOK: Duration = Duration::from_secs(2);

/// A value of [`MARK`] that no other launch has: our process, told from a later one
/// with the same number by its start time, and a count.
pub(super) fn fresh_mark() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let start = Process::myself()
        .and_then(|p| p.stat())
        .map_or(0, |s| s.starttime);
    let nth = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{start}-{nth}", std::process::id())
}

/// Whom the guardian has left.
#[derive(Debug)]
pub(super) struct Orphans {
    pub(super) group: Option<Pid>,
    pub(super) mark: String,
}

impl Orphans {
    /// Signals the group, and with [`Scope::Tree`] whoever carries the mark. Gives how
    /// many it reached, the group counted as one.
    pub(super) async fn signal(&self, signal: Signal, scope: Scope) -> u32 {
        let reached = proctree::signal_group_blindly(self.group, signal);
        if scope == Scope::Group {
            return reached;
        }
        reached
            + self
                .look(0, move |members| proctree::signal_members(&members, signal))
                .await
    }

    /// Who lives.
    pub(super) async fn survivors(&self) -> Vec<Survivor> {
        let mut all = proctree::group_survivors(self.group);
        all.extend(self.look(Vec::new(), proctree::describe).await);
        all
    }

    async fn look<T: Send + 'static>(
        &self,
        unknown: T,
        act: impl FnOnce(Vec<proctree::Member>) -> T + Send + 'static,
    ) -> T {
        let (mark, group) = (format!("{MARK}={}", self.mark), self.group);
        let looked = spawn_blocking(move || act(proctree::marked(&mark, group)));
        match timeout(LOOK, looked).await {
            Ok(Ok(found)) => found,
            _ => unknown,
        }
    }
}
