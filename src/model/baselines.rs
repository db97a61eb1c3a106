//! What phases and steps of a workload usually take, learned in its runs.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::vocab::Phase;

/// Values of one kind that are kept, the last ones.
const KEPT: usize = 64;

/// Completed observations of one thing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// How many there were in all.
    pub count: u64,
    /// The last of them, in milliseconds, at most 64, oldest first.
    pub last_ms: VecDeque<u64>,
}

impl Observed {
    /// One more.
    pub fn add(&mut self, took: Duration) {
        self.count = self.count.saturating_add(1);
        while self.last_ms.len() >= KEPT {
            self.last_ms.pop_front();
        }
        self.last_ms.push_back(super::time::millis(took));
    }

    /// The value that so many percent of the last ones do not exceed; none were made:
    /// `None`.
    pub fn quantile(&self, percent: usize) -> Option<Duration> {
        let mut sorted: Vec<u64> = self.last_ms.iter().copied().collect();
        sorted.sort_unstable();
        let at = (sorted.len() * percent / 100).min(sorted.len().checked_sub(1)?);
        sorted.get(at).copied().map(Duration::from_millis)
    }
}

/// One phase.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseBaseline {
    /// How long a stay in it lasted.
    pub stay: Observed,
    /// The longest silence on every channel in each stay.
    pub silence: Observed,
}

/// What a workload usually does, by its own earlier phases and steps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baselines {
    /// Phases of jobs.
    pub phases: BTreeMap<Phase, PhaseBaseline>,
    /// Steps of bars: phase and total (`sampling/25`).
    pub steps: BTreeMap<String, Observed>,
}

impl Baselines {
    /// Whether nothing was learned.
    pub fn is_empty(&self) -> bool {
        self.phases.is_empty() && self.steps.is_empty()
    }
}

/// Which runs are alike enough to learn from each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Profile id.
    pub profile: String,
    /// Architecture or name of the card; empty: no card.
    pub card: String,
    /// Adapter.
    pub adapter: String,
    /// Shape of the workload: its command.
    pub shape: Vec<String>,
}

impl Fingerprint {
    /// A name for a file: two that differ have different ones, as good as always.
    pub fn key(&self) -> String {
        // FNV-1a, 64 bits: the same in every version of this program
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let parts = [&self.profile, &self.card, &self.adapter];
        for part in parts.into_iter().chain(&self.shape) {
            for byte in part.bytes().chain([0]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
        format!("{hash:016x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_last_values() {
        let mut o = Observed::default();
        assert_eq!(o.quantile(50), None);
        for s in 0..100 {
            o.add(Duration::from_secs(s));
        }
        assert_eq!((o.count, o.last_ms.len()), (100, 64));
        assert_eq!(o.quantile(0), Some(Duration::from_secs(36)));
        assert_eq!(o.quantile(50), Some(Duration::from_secs(68)));
        assert_eq!(o.quantile(99), Some(Duration::from_secs(99)));
    }

    #[test]
    fn fingerprints_that_differ_have_different_keys() {
        let f = |profile: &str, shape: &[&str]| Fingerprint {
            profile: profile.to_owned(),
            card: "gfx1100".to_owned(),
            adapter: "comfyui".to_owned(),
            shape: shape.iter().map(|s| (*s).to_owned()).collect(),
        };
        let keys = [
            f("a", &["x", "y"]).key(),
            f("a", &["xy"]).key(),
            f("a", &["x"]).key(),
            f("b", &["x"]).key(),
        ];
        let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
        assert_eq!(keys[0], f("a", &["x", "y"]).key());
    }
}
