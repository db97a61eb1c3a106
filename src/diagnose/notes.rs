//! What was missing, repaired or not usable, in words; each kind a few times.

use std::collections::BTreeMap;

/// Notes of a kind that are told one by one.
const EACH: u64 = 3;
/// Kinds that are kept.
const KINDS: usize = 100;

/// Notes, bounded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Notes {
    list: Vec<String>,
    counts: BTreeMap<String, u64>,
}

impl Notes {
    /// A note that stands for itself.
    pub(super) fn say(&mut self, text: impl Into<String>) {
        if self.list.len() < KINDS {
            self.list.push(text.into());
        }
    }

    /// A note that may come often; `kind` names what is counted.
    pub(super) fn often(&mut self, kind: &str, text: impl FnOnce() -> String) {
        if self.counts.len() >= KINDS && !self.counts.contains_key(kind) {
            return;
        }
        let count = self.counts.entry(kind.to_owned()).or_default();
        *count += 1;
        if *count <= EACH {
            let text = text();
            self.say(text);
        }
    }

    /// All of them; what was only counted is told at the end.
    pub(super) fn into_list(mut self) -> Vec<String> {
        for (kind, count) in &self.counts {
            if *count > EACH {
                self.list.push(format!("{kind}: {} more", count - EACH));
            }
        }
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_often_is_counted() {
        let mut notes = Notes::default();
        notes.say("one");
        for n in 0..10 {
            notes.often("bad cells", || format!("cell {n}"));
        }
        assert_eq!(
            notes.into_list(),
            ["one", "cell 0", "cell 1", "cell 2", "bad cells: 7 more"]
        );
    }
}
