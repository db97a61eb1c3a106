//! Readings of the supervised card that fail, or that two sources dispute.

use super::super::card;
use std::time::Duration;

use crate::model::{GpuId, Mono, Sample};

/// Shortest time between two lines: a sensor that comes and goes is not told each time.
const WAIT: Duration = Duration::from_secs(10);

/// What was told last: how many fail, and which are disputed. Numbers are left out, for
/// they change with every reading.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Trouble {
    failing: usize,
    disputed: Vec<String>,
    told: Option<Mono>,
}

impl Trouble {
    /// A sentence where something else fails or is disputed than before.
    pub(super) fn news(
        &mut self,
        at: Mono,
        gpu: Option<&GpuId>,
        sample: &Sample,
    ) -> Option<String> {
        if self.told.is_some_and(|told| at.since(told) < WAIT) {
            return None;
        }
        let card = sample.gpus.iter().find(|g| Some(&g.id) == gpu)?;
        let now = Self {
            failing: card::failing(card),
            disputed: card.disagreements.iter().map(|d| d.value.clone()).collect(),
            told: self.told,
        };
        if now == *self {
            return None;
        }
        *self = Self {
            told: Some(at),
            ..now
        };
        let mut parts = Vec::new();
        match self.failing {
            0 => {}
            1 => parts.push("one of the card fails".to_owned()),
            n => parts.push(format!("{n} of the card fail")),
        }
        let disputed = card.disagreements.iter();
        parts.extend(disputed.map(|d| card::disagreement(card, d)));
        if parts.is_empty() {
            parts.push("none of the card fails or is disputed any more".to_owned());
        }
        Some(parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::cards::disagreeing;
    use super::*;
    use crate::model::Metric;

    #[test]
    fn what_fails_or_is_disputed_is_told_once_and_its_end_too() {
        let mut trouble = Trouble::default();
        let mut card = disagreeing();
        let id = card.id.clone();
        let mut at = 0;
        let mut news = |card: &crate::model::GpuSample| {
            at += 10;
            let sample = Sample {
                gpus: vec![card.clone()],
                ..Sample::default()
            };
            trouble.news(Mono::from_secs(at), Some(&id), &sample)
        };
        let told = news(&card).unwrap();
        assert!(told.contains("busy: sysfs 97 %, rocm-smi 0 %"), "{told}");
        assert_eq!(news(&card), None);
        card.disagreements[0].first = "98 %".to_owned();
        assert_eq!(news(&card), None, "another number is no news");
        card.disagreements.clear();
        card.power_w = Metric::Failed {
            why: "power1_average: Input/output error".to_owned(),
            for_ms: 5_000,
        };
        assert_eq!(news(&card).as_deref(), Some("one of the card fails"));
        card.power_w = Metric::Fresh(100.0);
        let told = news(&card).unwrap();
        assert!(told.contains("any more"), "{told}");
        assert_eq!(news(&card), None);
    }
}
