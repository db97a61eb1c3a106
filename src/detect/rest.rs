//! The card at rest: what it reads while nothing of the run's lives.

use std::collections::VecDeque;

use crate::model::{Bytes, GpuSample, IdleBaseline};

/// Readings that are kept, the last ones.
const KEPT: usize = 20;
/// Readings that make a level: one that is off does not move their median.
pub(super) const ENOUGH: u32 = 3;
/// A card that is this busy works for somebody.
const BUSY: f64 = 50.0;
/// Share of the board's power limit above which it works for somebody, whatever the
/// counter says. Several screens alone lift an idle card above a quarter.
const DRAWS_MUCH: f64 = 0.4;
/// Memory that a desktop holds; more is held by a program that computes.
const DESKTOP: Bytes = Bytes::gib(2);

/// Readings of one spell without a process of ours.
#[derive(Debug, Clone, Default)]
pub(super) struct Spell {
    busy: VecDeque<f64>,
    power: VecDeque<f64>,
    readings: u32,
}

impl Spell {
    /// Adds a reading; one that tells neither counter nor power is none. `credible`:
    /// the counter may be right; else only the power counts.
    pub(super) fn add(&mut self, card: &GpuSample, credible: bool) {
        let busy = card.busy.fresh().copied().filter(|_| credible);
        let power = card.power_w.fresh().copied();
        if busy.is_none() && power.is_none() {
            return;
        }
        self.readings = self.readings.saturating_add(1);
        for (list, value) in [(&mut self.busy, busy), (&mut self.power, power)] {
            if list.len() == KEPT {
                list.pop_front();
            }
            list.extend(value);
        }
    }

    /// The level by these readings. `lies`: the counter was found to be wrong, so that
    /// it says nothing, neither about rest nor about another program.
    pub(super) fn level(&self, card: &GpuSample, lies: bool) -> Option<IdleBaseline> {
        (self.readings > 0).then(|| {
            let busy = median(&self.busy).filter(|_| !lies);
            let power_w = median(&self.power);
            IdleBaseline {
                busy,
                power_w,
                samples: self.readings,
                in_use: in_use(card, busy, power_w),
            }
        })
    }

    /// Whether there are enough readings for a level.
    pub(super) const fn is_enough(&self) -> bool {
        self.readings >= ENOUGH
    }
}

/// Whether a desktop alone may hold what is held of the card's memory.
pub(super) fn holds_little(card: &GpuSample) -> bool {
    card.pool().is_none_or(|(used, _)| used <= DESKTOP)
}

fn in_use(card: &GpuSample, busy: Option<f64>, power: Option<f64>) -> Option<String> {
    let cap = card.power_cap_w.last().filter(|_| !card.apu);
    let draws_much = power.zip(cap).is_some_and(|(p, cap)| p >= DRAWS_MUCH * cap);
    if !draws_much && busy.is_none_or(|b| b < BUSY) {
        return None;
    }
    let mut words: Vec<String> = Vec::new();
    words.extend(busy.map(|b| format!("{b:.0} % busy")));
    words.extend(power.map(|p| format!("{p:.0} W")));
    let held = card.pool().map(|(used, _)| used);
    words.extend(held.map(|used| format!("{used} held")));
    Some(format!("another program works on it: {}", words.join(", ")))
}

/// The middle one; of an even number the lower.
fn median(values: &VecDeque<f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{GpuId, Metric, Vendor};

    fn card(busy: f64, power: f64) -> GpuSample {
        let mut g = GpuSample::unread(
            GpuId("a".to_owned()),
            0,
            Vendor::Amd,
            "card".to_owned(),
            "script",
        );
        g.busy = Metric::Fresh(busy);
        g.power_w = Metric::Fresh(power);
        g.power_cap_w = Metric::Fresh(300.0);
        g.vram_used = Metric::Fresh(Bytes::gib(9));
        g.vram_total = Metric::Fresh(Bytes::gib(24));
        g
    }

    fn level(readings: &[GpuSample]) -> IdleBaseline {
        let mut spell = Spell::default();
        for reading in readings {
            spell.add(reading, true);
        }
        spell.level(readings.last().unwrap(), false).unwrap()
    }

    #[test]
    fn one_spike_does_not_move_the_level() {
        let l = level(&[card(0.0, 22.0), card(99.0, 180.0), card(1.0, 24.0)]);
        assert_eq!((l.busy, l.power_w, l.samples), (Some(1.0), Some(24.0), 3));
        assert_eq!(l.in_use, None);
    }

    #[test]
    fn the_job_of_another_is_no_rest_and_several_screens_are() {
        let l = level(&[card(87.0, 210.0), card(90.0, 214.0), card(88.0, 212.0)]);
        assert_eq!(
            l.in_use.as_deref(),
            Some("another program works on it: 88 % busy, 212 W, 9.0 GiB held")
        );
        // the counter is stuck at 0 while another works
        assert!(level(&[card(0.0, 212.0)]).in_use.is_some());
        assert_eq!(level(&[card(12.0, 95.0)]).in_use, None);
    }

    #[test]
    fn what_cannot_be_read_is_no_reading() {
        let mut unread = card(0.0, 0.0);
        unread.busy = Metric::Unsupported;
        unread.power_w = Metric::Failed {
            why: "EPERM".to_owned(),
            for_ms: 10,
        };
        let mut spell = Spell::default();
        spell.add(&unread, true);
        assert_eq!(spell.level(&unread, false), None);
        unread.power_w = Metric::Fresh(20.0);
        let l = level(&[unread]);
        assert_eq!((l.busy, l.power_w), (None, Some(20.0)));
    }
}
