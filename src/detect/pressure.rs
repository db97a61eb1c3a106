//! Memory, heat and the card's own words: what explains that a job is slow.

use std::time::Duration;

use crate::model::{GpuSample, HostSample, Mono, ProcSample, ThrottleReason, Vendor};

use super::card::CardState;
use super::channels::{Figures, mib};
use super::thresholds::{Thresholds, secs};

/// A state that lasts, dips of a moment included.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Lasting {
    /// Since when; absent: it does not hold.
    pub(crate) since: Option<Mono>,
    last: Mono,
}

impl Lasting {
    fn see(&mut self, now: Mono, holds: bool, dip: Duration) {
        if holds {
            self.since.get_or_insert(now);
            self.last = now;
        } else if now.since(self.last) > dip {
            self.since = None;
        }
    }
}

/// What is used of what there is, in MiB.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Pool {
    pub(crate) used: f64,
    pub(crate) total: f64,
}

impl Pool {
    /// Part in use.
    pub(crate) fn share(self) -> f64 {
        if self.total > 0.0 {
            self.used / self.total
        } else {
            0.0
        }
    }
}

/// Readings of one attempt.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pressure {
    pub(crate) amd: bool,
    pub(crate) apu: bool,
    pub(crate) vram: Option<Pool>,
    pub(crate) gtt: Option<Pool>,
    /// VRAM of the card, MiB, also where what is used cannot be read.
    pub(crate) vram_total: Option<f64>,
    /// In use when the attempt began, MiB.
    vram_before: Option<f64>,
    gtt_before: Option<f64>,
    /// When all but nothing of the VRAM was last free.
    pub(crate) vram_full_at: Option<Mono>,
    /// Watts.
    pub(crate) cap: Option<f64>,
    pub(crate) temp: Option<f64>,
    pub(crate) reasons: Vec<ThrottleReason>,
    /// Since when heat or the board, not a routine limit, hold the clocks down.
    pub(crate) held_down: Lasting,
    /// Full work claimed at little power.
    pub(crate) contradiction: Lasting,
    /// Whether the card worked in this attempt at all.
    pub(crate) card_worked: bool,
    /// The CPU does the work of a card.
    pub(crate) cpu_busy: Lasting,
    pub(crate) thrash: Lasting,
    pub(crate) d_state: Option<f64>,
    /// Percent of time in which tasks waited for memory.
    pub(crate) psi_mem: Option<f64>,
}

impl Pressure {
    /// An attempt begins: what is in use now is not its own.
    pub(super) fn begin(&self) -> Self {
        Self {
            amd: self.amd,
            apu: self.apu,
            vram_before: self.vram.map(|p| p.used),
            gtt_before: self.gtt.map(|p| p.used),
            vram: self.vram,
            vram_total: self.vram_total,
            gtt: self.gtt,
            cap: self.cap,
            ..Self::default()
        }
    }

    /// R7: what lasted has not been seen lasting.
    pub(super) fn cut(&mut self) {
        self.held_down = Lasting::default();
        self.contradiction = Lasting::default();
        self.cpu_busy = Lasting::default();
        self.thrash = Lasting::default();
    }

    pub(super) fn card(&mut self, now: Mono, card: &GpuSample, does: CardState, t: &Thresholds) {
        self.amd = card.vendor == Vendor::Amd;
        self.apu = card.apu;
        let pool = |used: &crate::model::Metric<crate::model::Bytes>,
                    total: &crate::model::Metric<crate::model::Bytes>| {
            Some(Pool {
                used: mib(used.fresh()?.0),
                total: mib(total.last()?.0),
            })
        };
        self.vram = pool(&card.vram_used, &card.vram_total);
        self.vram_total = card.vram_total.last().map(|b| mib(b.0));
        if self.vram.is_some_and(|p| p.share() >= t.full_share) {
            self.vram_full_at = Some(now);
        }
        self.gtt = pool(&card.gtt_used, &card.gtt_total);
        self.vram_before = self.vram_before.or(self.vram.map(|p| p.used));
        self.gtt_before = self.gtt_before.or(self.gtt.map(|p| p.used));
        self.cap = card.power_cap_w.last().copied().or(self.cap);
        let junction = card.temp_junction.fresh();
        self.temp = junction.or_else(|| card.temp_edge.fresh()).copied();
        self.reasons = card.throttle.fresh().cloned().unwrap_or_default();
        // a card at full load is at its power limit by right
        let held = self.reasons.iter().any(|r| {
            matches!(
                r,
                ThrottleReason::Thermal | ThrottleReason::External | ThrottleReason::Current
            )
        });
        let dip = secs(t.thrash_dip_s);
        self.held_down.see(now, held, dip);
        self.contradiction.see(now, does.contradicts, dip);
        self.card_worked |= does.active && !does.contradicts;
    }

    pub(super) fn process(
        &mut self,
        now: Mono,
        p: &ProcSample,
        host: &HostSample,
        figures: &Figures,
        card_works: bool,
        t: &Thresholds,
    ) {
        self.d_state = p.d_state.fresh().map(|d| f64::from(*d));
        self.psi_mem = host.psi_mem.fresh().copied();
        let cpu = figures.cpu_percent;
        let dip = secs(t.thrash_dip_s);
        let much = |bps: Option<f64>| bps.is_some_and(|b| b >= t.thrash_io_bps);
        let by_io = much(figures.read_bps)
            && much(figures.write_bps)
            && self.d_state.is_some_and(|d| d >= t.thrash_threads_count);
        // pages go to swap past the process's own counters
        let by_pressure = self.psi_mem.is_some_and(|p| p >= t.thrash_psi_pct);
        let little = cpu.is_some_and(|c| c < t.thrash_cpu_pct) && !card_works;
        self.thrash.see(now, (by_io || by_pressure) && little, dip);
        self.cpu_busy.see(
            now,
            cpu.is_some_and(|c| c >= t.fallback_cpu_pct) && !card_works,
            dip,
        );
    }

    /// Whether next to nothing of the VRAM is left.
    pub(crate) fn vram_is_full(&self, t: &Thresholds) -> bool {
        !self.apu && self.vram.is_some_and(|v| v.share() >= t.spill_vram_share)
    }

    /// VRAM taken since the attempt began, MiB.
    pub(crate) fn vram_taken(&self) -> Option<f64> {
        Some(self.vram?.used - self.vram_before?)
    }

    /// System memory mapped for the card since then, MiB.
    pub(crate) fn gtt_taken(&self) -> Option<f64> {
        Some(self.gtt?.used - self.gtt_before?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dip_is_no_break() {
        let mut l = Lasting::default();
        let dip = Duration::from_secs(6);
        for s in 10..20 {
            l.see(Mono::from_secs(s), s != 13 && s != 14, dip);
        }
        assert_eq!(l.since, Some(Mono::from_secs(10)));
        for s in 20..30 {
            l.see(Mono::from_secs(s), false, dip);
        }
        assert_eq!(l.since, None);
    }
}
