//! Learns what phases and steps usually take (R5).

use std::time::Duration;

use crate::model::{Baselines, Mono, Phase};

use super::thresholds::{Thresholds, secs};

/// What was learned, and the stay at hand.
#[derive(Debug, Clone, Default)]
pub(crate) struct Learned {
    pub(super) known: Baselines,
    since: Mono,
    silence: Duration,
    /// Something was not seen in this stay: it is no measure.
    tainted: bool,
}

impl Learned {
    pub(super) fn new(known: Baselines) -> Self {
        Self {
            known,
            ..Self::default()
        }
    }

    /// An attempt begins: what was begun before is no completed observation.
    pub(super) fn begin(&mut self, now: Mono) {
        self.since = now;
        self.silence = Duration::ZERO;
        self.tainted = false;
    }

    /// Something moved, after so long.
    pub(super) fn moved(&mut self, after: Duration) {
        self.silence = self.silence.max(after);
    }

    /// R7: the world stood still.
    pub(super) const fn cut(&mut self) {
        self.tainted = true;
    }

    /// A phase is over.
    pub(super) fn left(&mut self, now: Mono, phase: Phase, in_flight: bool) {
        let a_jobs = in_flight && !matches!(phase, Phase::Idle | Phase::Done | Phase::Unknown);
        if a_jobs && !self.tainted {
            let b = self.known.phases.entry(phase).or_default();
            b.stay.add(now.since(self.since));
            b.silence.add(self.silence);
        }
        self.begin(now);
    }

    /// A step of a bar has ended.
    pub(super) fn step(&mut self, phase: Phase, total: Option<f64>, seconds: f64) {
        let kind = format!("{phase}/{:.0}", total.unwrap_or_default());
        self.known.steps.entry(kind).or_default().add(secs(seconds));
    }

    /// The limit of silence: what was learned may only shorten the prior, never below
    /// the floor, and only after enough completed stays.
    pub(crate) fn silence_limit(&self, phase: Phase, prior: Duration, t: &Thresholds) -> Duration {
        let floor = secs(t.learned_floor_s).min(prior);
        self.enough(phase, t)
            .and_then(|b| b.silence.quantile(99))
            .map_or(prior, |s| s.mul_f64(t.learned_factor).clamp(floor, prior))
    }

    /// The stay that next to none exceeded.
    pub(crate) fn long_stay(&self, phase: Phase, t: &Thresholds) -> Option<Duration> {
        self.enough(phase, t)?.stay.quantile(99)
    }

    fn enough(&self, phase: Phase, t: &Thresholds) -> Option<&crate::model::PhaseBaseline> {
        let b = self.known.phases.get(&phase)?;
        let n = u32::try_from(b.stay.count).unwrap_or(u32::MAX);
        (f64::from(n) >= t.learned_after_count).then_some(b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_learned_from_five_stays_and_never_below_the_floor() {
        let t = Thresholds::DEFAULT;
        let prior = Duration::from_mins(2);
        let limit = |silences: &[u64]| {
            let mut l = Learned::default();
            for s in silences {
                l.moved(Duration::from_secs(*s));
                l.left(Mono::from_secs(100), Phase::MeshPost, true);
            }
            l.silence_limit(Phase::MeshPost, prior, &t).as_secs()
        };
        assert_eq!(limit(&[1, 1, 1, 1]), 120, "too few");
        assert_eq!(limit(&[1, 1, 1, 1, 1]), 45, "the floor");
        assert_eq!(limit(&[1, 12, 3, 1, 1]), 60);
        assert_eq!(limit(&[1, 80, 3, 1, 1]), 120, "never longer than the prior");
    }

    #[test]
    fn a_stay_that_was_not_seen_whole_is_no_observation() {
        let mut l = Learned::default();
        l.cut();
        l.left(Mono::from_secs(10), Phase::Save, true);
        l.left(Mono::from_secs(20), Phase::Save, false);
        l.left(Mono::from_secs(30), Phase::Idle, true);
        assert!(l.known.is_empty());
        l.left(Mono::from_secs(40), Phase::Save, true);
        assert_eq!(l.known.phases[&Phase::Save].stay.count, 1);
    }
}
