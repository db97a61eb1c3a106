//! What the lines of an attempt have shown so far: which patterns matched, where, and with
//! which words.

use std::collections::BTreeMap;

use super::catalogue::{Catalogue, catalogue};
use super::facts::Facts;
use crate::model::{Cite, Mono, VerdictId};

/// Longest word that is taken out of a line.
const LONGEST_WORD: usize = 120;

/// A pattern that matched: the first line of it, and the words in its named places.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub(super) cite: Cite,
    pub(super) words: Vec<(String, String)>,
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// Signs since the job began or last went on.
    signs: BTreeMap<usize, Shown>,
    /// Patterns that may stand anywhere, since the attempt began.
    context: BTreeMap<usize, Shown>,
    facts: Facts,
}

impl Evidence {
    /// Takes a line. `reports`: whether the words at that place of the line report an error.
    pub fn observe(&mut self, text: &str, cite: &Cite, reports: impl Fn(usize) -> bool) {
        self.facts.observe(text);
        let all = catalogue();
        for place in all.matches(text) {
            let Some((regex, sign)) = all.pattern(place) else {
                continue;
            };
            let seen = if sign {
                &mut self.signs
            } else {
                &mut self.context
            };
            if seen.contains_key(&place) {
                continue;
            }
            let Some(found) = regex.captures(text.as_bytes()) else {
                continue;
            };
            let start = found.get(0).map_or(0, |m| m.start());
            if sign && !reports(start) {
                continue;
            }
            let names = regex.capture_names().flatten();
            let words = names.filter_map(|name| {
                let word = String::from_utf8_lossy(found.name(name)?.as_bytes());
                let word: String = word.trim().chars().take(LONGEST_WORD).collect();
                Some((name.to_owned(), word))
            });
            let shown = Shown {
                cite: cite.clone(),
                words: words.collect(),
            };
            seen.insert(place, shown);
        }
    }

    /// What the text tells of the machine.
    pub const fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(super) fn sign(&self, place: usize) -> Option<&Shown> {
        self.signs.get(&place)
    }

    pub(super) fn context(&self, place: usize) -> Option<&Shown> {
        self.context.get(&place)
    }

    /// The job went on after what was reported. A black picture is saved as well as any.
    pub fn survived(&mut self) {
        self.keep(catalogue(), |_| false);
        self.facts.forget_failure();
    }

    /// A new job: what was before is no matter of its, but for the line that tells of it.
    pub fn clear_but(&mut self, line: Option<u64>) {
        self.signs.retain(|_, s| Some(s.cite.seq) == line);
        self.facts.forget_failure();
    }

    /// The job entered another step: what came with it may have led to it.
    pub fn outlived(&mut self, since: Mono) {
        self.keep(catalogue(), |s| s.cite.at >= since);
    }

    fn keep(&mut self, all: &Catalogue, fresh: impl Fn(&Shown) -> bool) {
        self.signs
            .retain(|place, s| fresh(s) || all.is_sign_of(*place, VerdictId::NanOutput));
    }
}
