//! The Find that is open, with the lines that speak of it.

use crate::forecast::{Card, FindView};
use crate::model::{Bytes, Cite, FindMark, FindState, GpuSample, Mono, Vendor};

use super::channels::Channels;
use super::{Detector, Life};

/// An open Find, by MIOpen's own lines.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OpenFind {
    pub(crate) state: FindState,
    /// What opened it and the last word about it.
    pub(crate) cites: (Cite, Cite),
}

impl OpenFind {
    /// Folds a mark in; `cite` is the line that it was read from.
    pub(super) fn fold(open: &mut Option<Self>, now: Mono, cite: Cite, mark: &FindMark) {
        let (mut state, cites) = match open.take() {
            Some(find) => (Some(find.state), Some(find.cites)),
            None => (None, None),
        };
        FindState::fold(&mut state, now, mark);
        let begins = matches!(mark, FindMark::Opened { .. });
        let speaks = matches!(mark, FindMark::Solver { .. } | FindMark::Advance { .. });
        *open = state.map(|state| {
            let cites = match cites.filter(|_| !begins) {
                Some((first, _)) if speaks => (first, cite),
                Some(both) => both,
                None => (cite.clone(), cite),
            };
            Self { state, cites }
        });
    }

    /// Its last advance. A search that only warnings told of has no last line: a model
    /// that runs on the card says that it is over.
    pub(super) fn advanced(&self, channels: &Channels) -> Mono {
        if self.state.key == FindMark::UNNAMED {
            self.state.advanced.max(channels.model_ran)
        } else {
            self.state.advanced
        }
    }
}

/// What a reading tells of the card that the forecast needs. The memory of an APU is not
/// what HIP calls its memory.
pub(super) fn card(sample: &GpuSample) -> Card {
    let vram = sample.vram_total.last().filter(|v| **v > Bytes(0)).copied();
    Card {
        arch: sample.arch.clone().filter(|_| sample.vendor == Vendor::Amd),
        vram: vram.filter(|_| !sample.apu),
    }
}

impl Detector {
    /// The Find that is open in the running attempt, with what follows from it.
    pub fn find(&self) -> Option<FindView> {
        let open = self.context.find.as_ref();
        let open = open.filter(|_| self.life == Life::Running)?;
        // see `advanced`; a naive kernel that is timed runs as long as a model does
        let over = open.advanced(&self.channels) > open.state.advanced && !open.state.is_naive();
        (!over).then(|| FindView::of(open.state.clone(), self.context.release, &self.card))
    }
}
