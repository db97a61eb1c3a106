//! The supervised card: whether it works, by counter and power against its own levels.
//!
//! Readings lie: a busy counter can stay at 100 % after the work has ended, and on an
//! APU it can stay at 0 % during work. So the counter is weighed against the power,
//! and both against what the card showed before the launch.

use crate::model::GpuSample;

/// Busy percent above which a card works, unless its own idle level is higher.
const BUSY_ACTIVE: f64 = 5.0;
/// What a busy counter may exceed its idle level by before it counts.
const BUSY_ABOVE_IDLE: f64 = 10.0;
/// A busy counter at or above this claims full work.
const BUSY_FULL: f64 = 95.0;
/// A busy counter at or above this tells of a workload, not of a small copy.
const BUSY_HARD: f64 = 30.0;
/// Share of the card's own busy power under which "fully busy" is contradictory.
const CONTRADICTION: f64 = 0.4;
/// The same as a share of the board's power limit, for a card that was never seen at
/// work: real work at full load draws more even where memory is its bottleneck.
const CONTRADICTION_OF_CAP: f64 = 0.25;

/// What the card is like when nothing of ours runs, and at work.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CardLevels {
    idle_busy: Option<f64>,
    idle_power: Option<f64>,
    /// Highest smoothed power at which the counter said busy.
    busy_power: Option<f64>,
}

/// One reading, judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CardState {
    /// It works.
    pub(super) active: bool,
    /// It works hard: a model runs on it.
    pub(super) hard: bool,
    /// The counter says full, the power says idle.
    pub(super) contradicts: bool,
}

impl CardLevels {
    /// Before the launch: the card's own idle level.
    pub(super) fn learn_idle(&mut self, card: &GpuSample) {
        if let Some(b) = card.busy.fresh() {
            self.idle_busy = Some(self.idle_busy.map_or(*b, |i| i.midpoint(*b)));
        }
        if let Some(p) = card.power_w.fresh() {
            self.idle_power = Some(self.idle_power.map_or(*p, |i| i.midpoint(*p)));
        }
    }

    /// Whether the card was ever seen at work, so that its level there is known.
    pub(super) const fn knows_work(&self) -> bool {
        self.busy_power.is_some()
    }

    /// Judges a reading; `None`: neither counter nor power could be read.
    pub(super) fn judge(&mut self, card: &GpuSample) -> Option<CardState> {
        let busy = card.busy.fresh().copied();
        let power = card.power_w.fresh().copied();
        if busy.is_none() && power.is_none() {
            return None;
        }
        let contradicts = busy.is_some_and(|b| b >= BUSY_FULL) && self.too_little(card, power);
        if let (false, Some(b), Some(p)) = (contradicts, busy, power)
            && b >= 50.0
        {
            let at_work = self.busy_power.get_or_insert(p);
            // a slow rise: one spike must not set the level of "at work"
            *at_work += (p - *at_work).max(0.0) * 0.2;
        }
        let above = |floor: f64| {
            let idle = self.idle_busy.map_or(floor, |i| i + BUSY_ABOVE_IDLE);
            busy.is_some_and(|b| b > floor.max(idle)) && !contradicts
        };
        let by_power = self.power_active(card, busy, power);
        Some(CardState {
            active: above(BUSY_ACTIVE) || by_power,
            hard: above(BUSY_HARD) || by_power,
            contradicts,
        })
    }

    fn too_little(&self, card: &GpuSample, power: Option<f64>) -> bool {
        let cap = card.power_cap_w.fresh().filter(|_| !card.apu);
        match (power, self.busy_power, cap) {
            (Some(p), Some(at_work), _) => p < CONTRADICTION * at_work,
            (Some(p), None, Some(cap)) => p < CONTRADICTION_OF_CAP * cap,
            _ => false,
        }
    }

    /// Power far above the card's own idle level: work that a busy counter stuck at
    /// 0 hides. An open context alone lifts the level: an H200 that draws 79 W before
    /// the launch draws 123 W of 700 W while a hung program holds its context (read
    /// by us, driver 580), hence the share of the cap. An APU's reading holds the CPU
    /// as well, so there it only speaks when the counter is silent.
    fn power_active(&self, card: &GpuSample, busy: Option<f64>, power: Option<f64>) -> bool {
        let (Some(p), Some(idle)) = (power, self.idle_power) else {
            return false;
        };
        if card.apu && busy.is_some() {
            return false;
        }
        let above = |level: Option<f64>| level.map_or(0.0, |l| (l - idle).max(0.0));
        let at_work = 0.35 * above(self.busy_power);
        let of_cap = 0.25 * above(card.power_cap_w.last().copied());
        p > idle + f64::max(30.0, at_work).max(of_cap)
    }
}
