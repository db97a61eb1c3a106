//! Conditions that a definition wants looked at with every sample of the supervised card, and
//! for how long each has held. A rule then needs no state of its own in the detector.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::model::{GpuSample, Mono, VerdictId};

use super::facts::Facts;

/// Whether the condition holds by this sample; absent: the sample says nothing of it.
pub(crate) type Watch = fn(&Facts<'_>, &GpuSample) -> Option<bool>;

/// Between two samples that are further apart nothing is known.
const LONGEST_GAP: Duration = Duration::from_secs(5);

/// How long each condition has held in this attempt.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watches {
    last: Option<Mono>,
    card: Option<GpuSample>,
    held: BTreeMap<VerdictId, Duration>,
}

impl Watches {
    /// Time in which it held, what lies between not counted; absent: by the last word it
    /// does not hold.
    pub(crate) fn held(&self, id: VerdictId) -> Option<Duration> {
        self.held.get(&id).copied()
    }

    /// The last sample of the supervised card.
    pub(crate) fn card(&self) -> Option<&GpuSample> {
        self.card.as_ref()
    }

    pub(super) fn observe_card(&mut self, card: &GpuSample) {
        match &mut self.card {
            Some(known) => known.clone_from(card),
            None => self.card = Some(card.clone()),
        }
    }

    /// Takes the answers to one sample.
    pub(super) fn observe(&mut self, now: Mono, answers: &[(VerdictId, Option<bool>)]) {
        let gap = self.last.map(|last| now.since(last));
        let step = gap.filter(|gap| *gap <= LONGEST_GAP).unwrap_or_default();
        self.last = Some(now);
        for (id, answer) in answers {
            match answer {
                Some(true) => *self.held.entry(*id).or_default() += step,
                Some(false) => {
                    self.held.remove(id);
                }
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: VerdictId = VerdictId::Thrash;

    fn held(answers: &[(u64, Option<bool>)]) -> Option<u64> {
        let mut watches = Watches::default();
        for (at, answer) in answers {
            watches.observe(Mono::from_secs(*at), &[(ID, *answer)]);
        }
        watches.held(ID).map(|d| d.as_secs())
    }

    #[test]
    fn time_counts_while_the_condition_holds() {
        let yes = Some(true);
        assert_eq!(held(&[]), None);
        assert_eq!(held(&[(1, yes), (2, yes), (4, yes)]), Some(3));
        let with_a_pause = [(1, yes), (2, yes), (3, None), (4, None), (5, yes)];
        assert_eq!(held(&with_a_pause), Some(2));
        assert_eq!(held(&[(1, yes), (2, yes), (3, Some(false))]), None);
        assert_eq!(held(&[(1, yes), (60, yes), (61, yes)]), Some(1), "a gap");
    }
}
