//! Hysteresis of what is told while the job lives: it appears at its limit and goes
//! after as many calm assessments as a suspicion (R6). It never hides a hang.

use crate::model::Mono;

use super::alarm::next_calm;
use super::rule::{Grade, Signs};
use super::thresholds::Thresholds;

/// What stands, if anything does.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Warning {
    standing: Option<Standing>,
}

#[derive(Debug, Clone, PartialEq)]
struct Standing {
    signs: Signs,
    calm: u8,
    calm_at: Mono,
}

impl Warning {
    /// Folds the rules that match in, most specific first.
    pub(crate) fn step<'a>(
        &mut self,
        now: Mono,
        matching: impl Iterator<Item = &'a Signs>,
        t: &Thresholds,
    ) {
        let mut best: Option<&Signs> = None;
        for signs in matching {
            let stands = self
                .standing
                .as_ref()
                .is_some_and(|s| s.signs.verdict == signs.verdict);
            let better = match best {
                None => true,
                // of two that are as grave what stands goes on
                Some(b) => signs.grade > b.grade || (signs.grade == b.grade && stands),
            };
            if better {
                best = Some(signs);
            }
        }
        if let Some(signs) = best {
            self.standing = Some(Standing {
                signs: signs.clone(),
                calm: 0,
                calm_at: now,
            });
        } else if let Some(s) = self.standing.take() {
            self.standing = next_calm(s.calm, s.calm_at, now, t).map(|(calm, calm_at)| Standing {
                calm,
                calm_at,
                ..s
            });
        }
    }

    /// What stands.
    pub(crate) fn signs(&self) -> Option<&Signs> {
        self.standing.as_ref().map(|s| &s.signs)
    }

    /// Whether it must be answered.
    pub(crate) fn is_fault(&self) -> bool {
        self.signs().is_some_and(|s| s.grade == Grade::Fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::VerdictId;
    use std::time::Duration;

    fn signs(verdict: VerdictId, grade: Grade) -> Signs {
        Signs {
            verdict,
            grade,
            since: Mono::ZERO,
            limit: Duration::ZERO,
            sentence: String::new(),
            numbers: Vec::new(),
            ruled_out: Vec::new(),
            confidence: 1.0,
            cites: Vec::new(),
        }
    }

    #[test]
    fn it_goes_after_three_calm_samples_and_the_graver_one_is_told() {
        let t = Thresholds::DEFAULT;
        let crawl = signs(VerdictId::Crawl, Grade::Slow);
        let heat = signs(VerdictId::Throttled, Grade::Slow);
        let spill = signs(VerdictId::VramSpill, Grade::Fault);
        let mut w = Warning::default();
        let told = |w: &Warning| w.signs().map(|s| s.verdict);
        w.step(Mono(0), [&crawl].into_iter(), &t);
        w.step(Mono(500), [&heat, &crawl].into_iter(), &t);
        assert_eq!(told(&w), Some(VerdictId::Crawl), "what stands goes on");
        w.step(Mono(1000), [&spill, &heat, &crawl].into_iter(), &t);
        assert_eq!(told(&w), Some(VerdictId::VramSpill));
        assert!(w.is_fault());
        for at in [1500, 2000] {
            w.step(Mono(at), [].into_iter(), &t);
            assert_eq!(told(&w), Some(VerdictId::VramSpill), "{at}");
        }
        w.step(Mono(2500), [].into_iter(), &t);
        assert_eq!(told(&w), None);
    }
}
