//! Probes of the tree: where every thread waits, and what its processes have open.
//!
//! It is a source of its own: descriptors and memory of a wedged process can block a
//! reader. It reads nothing until somebody asks.

mod call;
mod call_table;
mod descriptors;
mod diag;
mod files;
pub(super) mod fuzzing;
mod locks;
mod memory;
mod network;
mod process;
mod reader;
mod request;
mod sockets;
mod source;
mod targets;
mod text;
mod thread;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use self::source::{Latest, ProbeSource};
use super::procfs::{Members, Target};
use super::source::{self as sources, Pace, Slot, lock};
use crate::model::{Probe, SourceState, SourceStatus};

/// Time between two probes.
const PERIOD: Duration = Duration::from_secs(2);

/// The running source.
#[derive(Debug)]
pub(crate) struct Probes {
    slot: Arc<Slot<()>>,
    target: Arc<Mutex<Target>>,
    latest: Arc<Mutex<Option<Latest>>>,
}

impl Probes {
    /// Starts the source over the folder that has `proc` in it. It reads while the target
    /// asks for detail; `members` are the processes of the tree.
    pub(crate) fn start(
        proc_root: &Path,
        target: &Arc<Mutex<Target>>,
        members: Arc<Mutex<Members>>,
        pace: &Arc<Pace>,
    ) -> Self {
        let latest = Arc::default();
        let source = ProbeSource::new(proc_root, Arc::clone(target), members, Arc::clone(&latest));
        Self {
            slot: sources::spawn(source, PERIOD, Arc::clone(pace)),
            target: Arc::clone(target),
            latest,
        }
    }

    /// The last probe, once, while its target is still the one that is watched.
    pub(crate) fn take(&self) -> Option<Probe> {
        let target = *lock(&self.target);
        let latest = lock(&self.latest).take()?;
        (target.detail && latest.of == (target.pid, target.reaper)).then_some(latest.probe)
    }

    /// Whether a probe was taken that nobody has got yet.
    #[cfg(test)]
    pub(super) fn is_waiting(&self) -> bool {
        lock(&self.latest).is_some()
    }

    /// How the source is doing; none while nobody asks for probes and none is under way.
    pub(crate) fn status(&self, now: Instant) -> Option<SourceStatus> {
        let status = self.slot.view(now).status;
        let stuck = matches!(status.state, SourceState::Stale | SourceState::Lost);
        (lock(&self.target).detail || stuck).then_some(status)
    }
}
