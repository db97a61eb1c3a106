//! What the supervised tree holds and does on each card: KFD and the descriptors of its
//! processes for the cards of AMD, NVML for those of NVIDIA.
//!
//! It is a source of its own, because a descriptor of a wedged card can block a reader
//! that the counters of `/proc/PID` do not.

mod descriptors;
mod fdinfo;
mod kfd;
mod nvml;
mod source;
mod sum;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(crate) use descriptors::Descriptors;
#[cfg(test)]
pub(in crate::telemetry) use fdinfo::tests as texts;
pub use fdinfo::{DrmClient, drm_client};
pub(in crate::telemetry) use kfd::Kfd;
pub(crate) use nvml::NvmlFeed;
#[cfg(feature = "nvml")]
pub(crate) use nvml::{NvmlCard, NvmlProcess};
use source::{ClientsReading, ClientsSource};

use super::aging::{self, Age, Fail};
use super::namespace;
use super::procfs::{Members, Target};
use super::source::{self as sources, Pace, Slot, lock};
use crate::model::time::millis;
use crate::model::{GpuId, GpuSample, Metric, SourceState, SourceStatus, TreeOnCard, Vendor};

/// Name of the source.
const SOURCE: &str = "clients";

/// The running source, and what NVML tells beside it.
#[derive(Debug)]
pub(crate) struct Clients {
    slot: Arc<Slot<ClientsReading>>,
    members: Arc<Mutex<Members>>,
    nvml: NvmlFeed,
    /// Since when NVML has told nothing of a card.
    silent: Mutex<HashMap<GpuId, Instant>>,
    /// Our numbers of processes are the host's.
    host: bool,
    fresh: Duration,
}

impl Clients {
    /// Starts the source. `members` are the processes of the tree, kept by the source of
    /// `/proc`; `nvml` is filled by the source of NVML; a reading is fresh for `fresh`.
    pub(crate) fn start(
        (proc_root, sys_root): (&Path, &Path),
        (members, nvml): (Arc<Mutex<Members>>, NvmlFeed),
        (period, fresh): (Duration, Duration),
        pace: &Arc<Pace>,
    ) -> Self {
        let source = ClientsSource::new(proc_root, sys_root, Arc::clone(&members));
        Self {
            slot: sources::spawn(source, period, Arc::clone(pace)),
            members,
            nvml,
            silent: Mutex::default(),
            host: namespace::is_host(&proc_root.join("proc")),
            fresh,
        }
    }

    /// How the source is doing.
    pub(crate) fn status(&self, now: Instant) -> SourceStatus {
        self.slot.view(now).status
    }

    /// What the tree of `target` holds on each card, by PCI address. Every card of
    /// `gpus` is listed of which that is known or has failed: one that the tree has not
    /// opened with zeros, so that all that is used there is known to be others'.
    pub(crate) fn on_cards(
        &self,
        now: Instant,
        target: Target,
        gpus: &[GpuSample],
    ) -> Vec<TreeOnCard> {
        let of = (target.pid, target.reaper);
        let age = |age: Duration| Age {
            age_ms: millis(age),
            fresh_ms: millis(self.fresh),
        };
        let mut out = Vec::new();
        let view = self.slot.view(now);
        let answers = view.status.state != SourceState::Absent;
        if let Some((since, reading)) = view.reading.filter(|(_, r)| answers && r.of == of) {
            let amds = gpus.iter().filter(|g| g.vendor == Vendor::Amd);
            let mut ids: Vec<_> = amds.map(|g| &g.id).chain(reading.open()).collect();
            ids.sort();
            ids.dedup();
            for id in ids {
                let on = aging::on_card(reading.on(id), &age(since));
                out.push(match &view.failure {
                    Some((why, since)) => {
                        let fail = Fail {
                            why,
                            for_ms: millis(*since),
                            unread: false,
                        };
                        aging::on_card(on, &fail)
                    }
                    None => on,
                });
            }
        }
        let members = lock(&self.members);
        if members.of == of {
            for told in lock(&self.nvml).iter() {
                let since = now.saturating_duration_since(told.at);
                let on = nvml::on_card(told, &members, self.host);
                out.push(self.lasting(aging::on_card(on, &age(since)), now));
            }
        }
        out.sort_by(|a, b| a.gpu.cmp(&b.gpu));
        out
    }

    /// Says for how long what NVML tells of a card has failed.
    fn lasting(&self, mut on: TreeOnCard, now: Instant) -> TreeOnCard {
        let mut silent = lock(&self.silent);
        if let Metric::Failed { for_ms, .. } = &mut on.vram {
            let since = *silent.entry(on.gpu.clone()).or_insert(now);
            *for_ms = (*for_ms).max(millis(now.saturating_duration_since(since)));
        } else {
            silent.remove(&on.gpu);
        }
        on
    }
}
