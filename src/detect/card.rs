//! The supervised card: whether it works, by counter and power against its own levels.
//!
//! Readings lie: a busy counter can stay at 100 % after the work has ended, and on an
//! APU it can stay at 0 % during work. So the counter is weighed against the power,
//! and both against what the card showed before the launch. A counter that claimed
//! work while nothing worked is not asked again in the run, neither for work nor for
//! rest: power and the memory controller tell instead.

use crate::model::{BusyTrust, GpuSample, IdleBaseline, Mono, Vendor, is_suspended};

use super::rest::{Spell, holds_little};
use super::thresholds::Thresholds;
use super::trust::{Doing, Reading, Trust};
use super::wake::Wake;

/// What the card is like when nothing of ours runs, and at work.
#[derive(Debug, Clone, Default)]
pub(super) struct CardLevels {
    idle: Option<IdleBaseline>,
    /// Readings since the last attempt, or before the first.
    spell: Spell,
    launched: bool,
    /// Highest smoothed power at which the counter said busy.
    busy_power: Option<f64>,
    /// Highest power in the run.
    most_power: f64,
    /// Highest power while the program waited and the counter was not believed: what the
    /// card draws at rest since then.
    waits_at: Option<f64>,
    trust: Trust,
    wake: Wake,
}

/// One reading, judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CardState {
    /// It works.
    pub(super) active: bool,
    /// It works hard: a model runs on it.
    pub(super) hard: bool,
    /// The counter says full, the power says idle.
    pub(super) contradicts: bool,
}

impl CardLevels {
    /// A reading while no process of ours lives: the card's own level at rest.
    pub(super) fn rest(&mut self, now: Mono, card: &GpuSample, t: &Thresholds) {
        let woken = self.wake.observe(now, card);
        let reading = self.reading(card, Doing::Nothing, woken, t);
        self.trust.observe(now, Doing::Nothing, reading, t);
        if woken {
            return;
        }
        // a claim may be a lie: it is neither a level nor another's work
        let claims = matches!(reading, Reading::Claims(..));
        self.spell.add(card, !claims);
        let lies = claims || self.trust.state().is_untrusted();
        let Some(level) = self.spell.level(card, lies) else {
            return;
        };
        // what was read before stands until there is better
        let rests = level.in_use.is_none();
        let knows_rest = self.rest_level().is_some();
        if !self.launched || (self.spell.is_enough() && (rests || !knows_rest)) {
            self.idle = Some(level);
        }
    }

    /// A launch: what is read from now on is no rest.
    pub(super) fn begin(&mut self) {
        self.launched = true;
        self.spell = Spell::default();
        self.trust.begin();
    }

    /// A window in which nothing was seen.
    pub(super) fn cut(&mut self) {
        self.trust.cut();
    }

    /// What the card reads at rest, as far as known.
    pub(super) const fn idle(&self) -> Option<&IdleBaseline> {
        self.idle.as_ref()
    }

    /// Whether the level at rest is known as well as it will be before a launch.
    pub(super) const fn idle_is_settled(&self) -> bool {
        self.spell.is_enough()
    }

    /// Whether the busy counter is believed.
    pub(super) const fn trust(&self) -> &BusyTrust {
        self.trust.state()
    }

    /// Whether the card was ever seen at work, so that its level there is known.
    pub(super) const fn knows_work(&self) -> bool {
        self.busy_power.is_some()
    }

    /// Judges a reading of an attempt; `None`: nothing tells whether the card works.
    pub(super) fn judge(
        &mut self,
        now: Mono,
        card: &GpuSample,
        doing: Doing,
        t: &Thresholds,
    ) -> Option<CardState> {
        if sleeps(card) {
            // nothing else of it is read then; a program at work keeps its card awake
            return Some(CardState {
                active: false,
                hard: false,
                contradicts: false,
            });
        }
        let told = card.busy.fresh().copied();
        let power = card.power_w.fresh().copied();
        self.most_power = self.most_power.max(power.unwrap_or(0.0));
        let woken = self.wake.observe(now, card);
        let reading = self.reading(card, doing, woken, t);
        self.trust.observe(now, doing, reading, t);
        let believed = !self.trust.state().is_untrusted();
        if let (Doing::Waiting, false, Some(p)) = (doing, believed, power) {
            self.waits_at = Some(self.waits_at.map_or(p, |w| w.max(p)));
        }
        let busy = told.filter(|_| believed);
        let traffic = card.mem_busy.fresh().copied().filter(|_| !believed);
        let power_tells = power.is_some() && (self.rest_power().is_some() || self.knows_work());
        if busy.is_none() && traffic.is_none() && !power_tells {
            return None;
        }
        // NVIDIA's counter tells the time in which any kernel ran, however little of the card it used
        let may_lie = believed && card.vendor != Vendor::Nvidia;
        let contradicts = may_lie && self.claims(card, t).is_some();
        if let (false, Some(b)) = (contradicts || woken, busy) {
            self.learn_work(b, power, doing, t);
        }
        let rest_busy = self.rest_level().and_then(|l| l.busy);
        let above = |floor: f64| {
            let idle = rest_busy.map_or(floor, |i| i + t.busy_above_idle_pct);
            busy.is_some_and(|b| b > floor.max(idle)) && !contradicts
        };
        let by_power = self.power_active(card, busy, power, t);
        let by_traffic = |floor: f64| traffic.is_some_and(|busy| busy > floor);
        Some(CardState {
            active: above(t.busy_active_pct) || by_power || by_traffic(t.traffic_pct),
            hard: above(t.busy_hard_pct) || by_power || by_traffic(t.busy_hard_pct),
            contradicts,
        })
    }

    /// The counter says that the card works.
    fn learn_work(&mut self, busy: f64, power: Option<f64>, doing: Doing, t: &Thresholds) {
        if busy < t.busy_at_work_pct {
            return;
        }
        if let Some(p) = power {
            let at_work = self.busy_power.get_or_insert(p);
            // a slow rise: one spike must not set the level of "at work"
            *at_work += (p - *at_work).max(0.0) * 0.2;
        }
        let was_low = self.rest_level().and_then(|l| l.busy);
        if doing == Doing::Job && was_low.is_some_and(|b| b < t.busy_hard_pct) {
            self.trust.confirm();
        }
    }

    /// The level at rest, unless another program worked on the card then.
    fn rest_level(&self) -> Option<&IdleBaseline> {
        self.idle.as_ref().filter(|l| l.in_use.is_none())
    }

    fn rest_power(&self) -> Option<f64> {
        self.rest_level().and_then(|l| l.power_w)
    }

    /// What a reading says of the counter. `woken`: the card has just woken.
    fn reading(&self, card: &GpuSample, doing: Doing, woken: bool, t: &Thresholds) -> Reading {
        let Some(busy) = card.busy.fresh().filter(|_| !woken) else {
            return Reading::Silent;
        };
        if *busy < t.busy_full_pct {
            return Reading::Honest;
        }
        let nothing_works = matches!(doing, Doing::Nothing | Doing::Waiting);
        // a program that holds much may compute at little power
        let may_compute = matches!(doing, Doing::Nothing | Doing::Starting) && !holds_little(card);
        match self.claims(card, t) {
            Some(_) if may_compute => Reading::Silent,
            Some((busy, power)) => Reading::Claims(busy, power),
            // an APU draws at rest what it draws at work while the processor is busy
            None if doing == Doing::Waiting && card.apu => {
                Reading::Claims(*busy, card.power_w.fresh().copied().unwrap_or_default())
            }
            None if nothing_works && card.power_w.fresh().is_some() => Reading::Honest,
            None => Reading::Silent,
        }
    }

    /// Full work (percent) at little power (watts), where the counter says so.
    fn claims(&self, card: &GpuSample, t: &Thresholds) -> Option<(f64, f64)> {
        let busy = *card.busy.fresh().filter(|b| **b >= t.busy_full_pct)?;
        let power = *card.power_w.fresh()?;
        let cap = card.power_cap_w.fresh().filter(|_| !card.apu);
        let little = match (self.busy_power, cap) {
            (Some(at_work), _) => power < t.contradiction_share * at_work,
            (None, Some(cap)) => power < t.contradiction_cap_share * cap,
            (None, None) => self.draws_next_to_nothing(busy, power, t),
        };
        little.then_some((busy, power))
    }

    /// Power per busy percent against the card's own level at rest. Before the launch
    /// there is no such level yet.
    fn draws_next_to_nothing(&self, busy: f64, power: f64, t: &Thresholds) -> bool {
        let (factor, watts) = (t.power_moves_factor, t.power_moves_w);
        self.launched
            && self.rest_power().is_some_and(|idle| {
                let moves = self.most_power > idle * factor + watts;
                moves && (power - idle).max(0.0) / busy < t.next_to_nothing_w
            })
    }

    /// Power far above the card's own idle level: work that a busy counter stuck at
    /// 0 hides. An open context alone lifts the level: an H200 that draws 79 W before
    /// the launch draws 123 W of 700 W while a hung program holds its context (read
    /// by us, driver 580), hence the share of the cap. An APU's reading holds the CPU
    /// as well, so there it only speaks when the counter is silent.
    fn power_active(
        &self,
        card: &GpuSample,
        busy: Option<f64>,
        power: Option<f64>,
        t: &Thresholds,
    ) -> bool {
        let Some(p) = power else {
            return false;
        };
        if card.apu && busy.is_some() {
            return false;
        }
        let rest = self.rest_power().map(|r| r.max(self.waits_at.unwrap_or(r)));
        let Some(idle) = rest.or(self.waits_at) else {
            // only the level at work is known
            let at_work = self.busy_power.filter(|_| busy.is_none());
            return at_work.is_some_and(|w| p >= t.contradiction_share * w);
        };
        let above = |level: Option<f64>| level.map_or(0.0, |l| (l - idle).max(0.0));
        let at_work = t.power_active_work_share * above(self.busy_power);
        let of_cap = t.power_active_cap_share * above(card.power_cap_w.last().copied());
        p > idle + f64::max(t.power_active_w, at_work).max(of_cap)
    }
}

/// Whether the card is suspended, or on its way there.
fn sleeps(card: &GpuSample) -> bool {
    card.state.fresh().is_some_and(|s| is_suspended(s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{GpuId, Metric, Vendor};

    #[test]
    fn a_card_that_sleeps_does_not_work_and_one_that_cannot_be_read_tells_nothing() {
        let id = GpuId("0000:03:00.0".to_owned());
        let mut card = GpuSample::unread(id, 0, Vendor::Amd, "card".to_owned(), "sysfs");
        let judged = |card: &GpuSample| {
            let state =
                CardLevels::default().judge(Mono::ZERO, card, Doing::Job, &Thresholds::DEFAULT);
            state.map(|s| (s.active, s.hard, s.contradicts))
        };
        assert_eq!(judged(&card), None);
        card.state = Metric::Fresh("suspended".to_owned());
        assert_eq!(judged(&card), Some((false, false, false)));
    }

    /// NVIDIA's counter reads full for a kernel on one of a hundred multiprocessors.
    #[test]
    fn full_work_at_little_power_is_a_contradiction_on_amd_alone() {
        let contradicts = |vendor| {
            let id = GpuId("0000:03:00.0".to_owned());
            let mut card = GpuSample::unread(id, 0, vendor, "card".to_owned(), "sysfs");
            card.busy = Metric::Fresh(100.0);
            card.power_w = Metric::Fresh(60.0);
            card.power_cap_w = Metric::Fresh(700.0);
            let t = &Thresholds::DEFAULT;
            let state = CardLevels::default().judge(Mono::ZERO, &card, Doing::Job, t);
            state.map(|s| (s.active, s.contradicts))
        };
        assert_eq!(contradicts(Vendor::Amd), Some((false, true)));
        assert_eq!(contradicts(Vendor::Nvidia), Some((true, false)));
    }
}
