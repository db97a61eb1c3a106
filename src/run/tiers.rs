//! Which tiers of the convolution fallback a run has used, for its last words.

use std::collections::BTreeMap;

use crate::model::agent::{AgentNote, AgentWord};

/// Processes whose counts are held.
const PROCESSES: usize = 64;
/// Convolutions on the CPU below this many need no advice.
const FEW: u64 = 10;
/// Nor do they below this share of all, percent.
const SELDOM: u64 = 10;

/// Calls by tier, of every process of the run.
#[derive(Debug, Clone, Default)]
pub(super) struct TierCounts {
    // an agent counts from its own beginning, so its last word has all of its process
    by_process: BTreeMap<u32, BTreeMap<String, u64>>,
}

impl TierCounts {
    pub(super) fn note(&mut self, note: &AgentNote) {
        let AgentWord::Beat(beat) = &note.word else {
            return;
        };
        let known = self.by_process.contains_key(&note.pid);
        if !beat.tiers.is_empty() && (known || self.by_process.len() < PROCESSES) {
            self.by_process.insert(note.pid, beat.tiers.clone());
        }
    }

    /// The tiers that stood in for the native one, in a clause, with advice where the CPU did
    /// it often; absent: none did.
    pub(super) fn words(&self) -> Option<String> {
        let mut done: BTreeMap<&str, u64> = BTreeMap::new();
        let mut failed: BTreeMap<&str, u64> = BTreeMap::new();
        for (name, n) in self.by_process.values().flatten() {
            // `conv3d.split.ok`
            let mut parts = name.split('.').skip(1);
            let (Some(tier), Some(how)) = (parts.next(), parts.next()) else {
                continue;
            };
            let into = match how {
                "ok" => &mut done,
                "failed" => &mut failed,
                _ => continue,
            };
            let sum = into.entry(tier).or_default();
            *sum = sum.saturating_add(*n);
        }
        let all = done.values().fold(0_u64, |a, n| a.saturating_add(*n));
        let lower = ["split", "nocudnn", "cpu"];
        let of =
            |from: &BTreeMap<&str, u64>, tier: &str| from.get(tier).copied().unwrap_or_default();
        let words: Vec<String> = lower
            .iter()
            .filter_map(|tier| match (of(&done, tier), of(&failed, tier)) {
                (0, 0) => None,
                (ok, 0) => Some(format!("{tier} {ok}")),
                (ok, bad) => Some(format!("{tier} {ok} (failed {bad})")),
            })
            .collect();
        if words.is_empty() {
            return None;
        }
        let words = format!("convolutions by lower tiers: {} of {all}", words.join(", "));
        let cpu = of(&done, "cpu");
        let often = cpu >= FEW && cpu.saturating_mul(100) >= all.saturating_mul(SELDOM);
        Some(if often {
            format!(
                "{words}; {cpu} ran on the CPU, many times slower than on the card: smaller tiles (vae_tile) or `conv_tier = \"split\"` from the start may keep them on it"
            )
        } else {
            words
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::agent::AgentBeat;

    fn beat(counts: &mut TierCounts, pid: u32, tiers: &[(&str, u64)]) {
        let tiers = tiers.iter().map(|(name, n)| ((*name).to_owned(), *n));
        let beat = AgentBeat {
            tiers: tiers.collect(),
            ..AgentBeat::default()
        };
        let word = AgentWord::Beat(Box::new(beat));
        counts.note(&AgentNote { pid, word });
    }

    #[test]
    fn the_last_count_of_each_process_is_added_up() {
        let mut counts = TierCounts::default();
        assert_eq!(counts.words(), None);
        beat(&mut counts, 7, &[("conv3d.native.ok", 90)]);
        assert_eq!(counts.words(), None, "nothing stood in");
        beat(
            &mut counts,
            7,
            &[("conv3d.native.ok", 95), ("conv3d.split.ok", 3)],
        );
        beat(
            &mut counts,
            7,
            &[("conv3d.native.ok", 95), ("conv3d.split.ok", 4)],
        );
        beat(
            &mut counts,
            8,
            &[("conv2d.cpu.ok", 1), ("conv2d.nocudnn.failed", 1)],
        );
        assert_eq!(
            counts.words().unwrap(),
            "convolutions by lower tiers: split 4, nocudnn 0 (failed 1), cpu 1 of 100"
        );
    }

    #[test]
    fn the_cpu_is_advised_against_where_it_did_much() {
        let of = |native, cpu| {
            let mut counts = TierCounts::default();
            let tiers = [("conv3d.native.ok", native), ("conv3d.cpu.ok", cpu)];
            beat(&mut counts, 7, &tiers);
            counts.words().unwrap()
        };
        assert!(of(90, 10).contains("10 ran on the CPU"), "{}", of(90, 10));
        assert!(!of(91, 9).contains("ran on the CPU"), "few");
        assert!(!of(1000, 50).contains("ran on the CPU"), "seldom");
    }
}
