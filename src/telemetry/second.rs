//! The second opinion put beside the readings of each card.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::aging::{self, Age, Fail};
use super::amdgpu::Identity;
use super::attention::Attention;
use super::opinion::Comparison;
use super::rocm_smi::{Candidate, RocmSmi, Spoken};
use super::sampler::CardSlots;
use super::source::{self, Pace, Slot, View, lock};
use crate::model::time::millis;
use crate::model::{GpuId, GpuSample, Metric, SourceState, SourceStatus, Vendor};

/// The running source, and what it was compared with.
#[derive(Debug)]
pub(crate) struct Second {
    slot: Arc<Slot<Vec<Spoken>>>,
    compared: Mutex<HashMap<GpuId, Compared>>,
}

#[derive(Debug, Default)]
struct Compared {
    comparison: Comparison,
    /// The answer that was compared last.
    at: Option<Instant>,
}

impl Second {
    /// Starts the source; `scan` and `cards` are those of sysfs.
    pub(crate) fn start(
        reader: PathBuf,
        attention: &Arc<Attention>,
        (scan, cards): (&Arc<Slot<Vec<Identity>>>, &CardSlots),
        period: Duration,
        pace: &Arc<Pace>,
    ) -> Self {
        let (scan, cards) = (Arc::clone(scan), Arc::clone(cards));
        let known = Box::new(move || candidates(&scan, &cards));
        let source = RocmSmi::new(reader, Arc::clone(attention), known);
        Self {
            slot: source::spawn(source, period, Arc::clone(pace)),
            compared: Mutex::default(),
        }
    }

    /// Puts the opinions beside the readings, and says how the source is doing. What
    /// is older than `fresh` is stale.
    pub(crate) fn join(
        &self,
        gpus: &mut [GpuSample],
        now: Instant,
        fresh: Duration,
    ) -> SourceStatus {
        let view = self.slot.view(now);
        let mut compared = lock(&self.compared);
        for gpu in gpus.iter_mut().filter(|g| g.vendor == Vendor::Amd) {
            let said = view.reading.iter().flat_map(|(_, all)| all);
            let Some(spoken) = said.into_iter().find(|s| s.id == gpu.id) else {
                continue;
            };
            let compared = compared.entry(gpu.id.clone()).or_default();
            join_one(gpu, spoken, &view, compared, (now, fresh));
        }
        view.status
    }
}

fn join_one(
    gpu: &mut GpuSample,
    spoken: &Spoken,
    view: &View<Vec<Spoken>>,
    compared: &mut Compared,
    (now, fresh): (Instant, Duration),
) {
    let age = Age {
        age_ms: millis(now.saturating_duration_since(spoken.at)),
        fresh_ms: millis(fresh),
    };
    let mut opinion = aging::opinion(spoken.opinion.clone(), &age);
    if let Some((why, since)) = &view.failure {
        let fail = Fail {
            why,
            for_ms: millis(*since),
            unread: false,
        };
        opinion = aging::opinion(opinion, &fail);
    }
    let new = compared.at != Some(spoken.at);
    compared.at = Some(spoken.at);
    gpu.disagreements = compared.comparison.of(gpu, &opinion, new);
    gpu.second = Some(Box::new(opinion));
}

/// The cards that sysfs knows, once it has read each; none before.
fn candidates(scan: &Slot<Vec<Identity>>, cards: &CardSlots) -> Option<Vec<Candidate>> {
    if !scan.answered() {
        return None;
    }
    let cards = lock(cards);
    let now = Instant::now();
    let known = cards.iter().map(|(id, (_, slot))| {
        let View {
            reading, status, ..
        } = slot.view(now);
        // a read that blocks would block the library as well
        let blocks = matches!(status.state, SourceState::Stale | SourceState::Lost);
        let state = reading.map(|(_, sample)| sample.state);
        Candidate {
            id: id.clone(),
            awake: !blocks && state.is_some_and(|s| is_awake(&s)),
        }
    });
    let known: Vec<Candidate> = known.collect();
    cards
        .values()
        .all(|(_, slot)| slot.answered())
        .then_some(known)
}

/// By its runtime status; kernels without power management have none.
fn is_awake(state: &Metric<String>) -> bool {
    match state {
        Metric::Unsupported => true,
        Metric::Fresh(state) => state == "active",
        Metric::Stale { .. } | Metric::Failed { .. } => false,
    }
}
