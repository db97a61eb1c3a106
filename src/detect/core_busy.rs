//! A core that is busy without a break.

use crate::model::Mono;

use super::thresholds::{Thresholds, secs};

/// Follows the CPU time of the tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CoreBusy {
    /// Since when a core has been busy.
    pub(crate) since: Option<Mono>,
    last: Mono,
    /// Percent of the last 10 s in which some task of the machine waited for a CPU.
    pressure: f64,
}

impl CoreBusy {
    pub(super) const fn new(now: Mono) -> Self {
        Self {
            since: None,
            last: now,
            pressure: 0.0,
        }
    }

    pub(super) const fn set_pressure(&mut self, percent: f64) {
        self.pressure = percent;
    }

    pub(super) const fn cut(&mut self) {
        self.since = None;
    }

    /// A load that stands for a whole core, or a part of one, on this machine at present:
    /// the more tasks wait for a CPU, the less a thread gets.
    pub(crate) fn crowded(&self, percent: f64, t: &Thresholds) -> f64 {
        let crowded = (self.pressure / 100.0).clamp(0.0, 1.0);
        let least = t.core_crowded_pct / t.core_busy_pct;
        percent * (1.0 - (1.0 - least) * crowded)
    }

    /// On a crowded machine a spinning thread gets only its share, so the bound falls
    /// with the pressure on the CPUs; a dip of a moment is no break.
    pub(super) fn observe(&mut self, now: Mono, cpu: f64, t: &Thresholds) {
        let bound = self.crowded(t.core_busy_pct, t);
        if cpu >= bound {
            self.since.get_or_insert(now);
            self.last = now;
        } else if now.since(self.last) > secs(t.core_dip_s) {
            self.since = None;
        }
    }
}
