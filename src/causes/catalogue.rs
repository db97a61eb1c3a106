//! All causes, and which of their patterns a line matches.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::entry::{self, Cause, Strength};
use super::files::FILES;
use super::prefilter::Patterns;
use crate::model::VerdictId;

/// Every cause with its patterns. Each pattern is there once, whoever asks for it.
#[derive(Debug)]
pub struct Catalogue {
    causes: Vec<Cause>,
    patterns: Patterns,
    /// For each pattern whether it must stand in a line that reports an error.
    signs: Vec<bool>,
    /// For each pattern the verdict that it makes whatever else is known.
    decides: Vec<Option<(VerdictId, Strength)>>,
    /// For each cause its patterns: signs, with, without.
    places: Vec<Places>,
}

/// Where the patterns of a cause stand in the list of all.
#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    pub(super) signs: Vec<usize>,
    pub(super) with: Vec<usize>,
    pub(super) without: Vec<usize>,
}

static ALL: LazyLock<Catalogue> = LazyLock::new(|| {
    // a file that is wrong fails the tests; a program that runs goes on without causes
    Catalogue::of_files(FILES, entry::read).unwrap_or_else(|_| Catalogue::empty())
});

/// The causes that are compiled in.
pub fn catalogue() -> &'static Catalogue {
    &ALL
}

impl Catalogue {
    /// Reads files of causes: names and texts. Each pattern is compiled to check it.
    pub fn read(files: &[(&str, &str)]) -> Result<Self, String> {
        Self::of_files(files, entry::read_checked)
    }

    fn of_files(
        files: &[(&str, &str)],
        read: fn(&str, &str) -> Result<Vec<Cause>, String>,
    ) -> Result<Self, String> {
        let mut causes = Vec::new();
        for (name, text) in files {
            causes.extend(read(name, text)?);
        }
        let mut ids: Vec<&str> = causes.iter().map(|c| c.id.as_str()).collect();
        ids.sort_unstable();
        let twice = ids.iter().zip(ids.iter().skip(1)).find(|(a, b)| a == b);
        if let Some((id, _)) = twice {
            return Err(format!("two causes are called {id}"));
        }
        Self::of(causes)
    }

    /// The files that are compiled in, with what is wrong with them.
    pub fn check() -> Result<Self, String> {
        Self::read(FILES)
    }

    const fn empty() -> Self {
        Self {
            causes: Vec::new(),
            patterns: Patterns::empty(),
            signs: Vec::new(),
            decides: Vec::new(),
            places: Vec::new(),
        }
    }

    fn of(causes: Vec<Cause>) -> Result<Self, String> {
        let mut texts = Texts::default();
        let mut decides: BTreeMap<usize, (VerdictId, Strength)> = BTreeMap::new();
        let mut places = Vec::with_capacity(causes.len());
        for cause in &causes {
            let signs: Vec<usize> = cause.signs.iter().map(|s| texts.place(s, true)).collect();
            // what else it asks for is not to be seen in a line
            let alone = cause.with.is_empty() && cause.needs.count() == 0;
            if let Some(strength) = cause.decides.filter(|_| alone) {
                for sign in &signs {
                    decides.entry(*sign).or_insert((cause.verdict, strength));
                }
            }
            places.push(Places {
                signs,
                with: cause.with.iter().map(|s| texts.place(s, false)).collect(),
                without: cause
                    .without
                    .iter()
                    .map(|s| texts.place(s, false))
                    .collect(),
            });
        }
        let patterns = Patterns::new(texts.list.iter().map(|(text, _)| text.as_str()))?;
        let decides = (0..texts.list.len()).map(|i| decides.get(&i).copied());
        Ok(Self {
            patterns,
            decides: decides.collect(),
            signs: texts.list.iter().map(|(_, sign)| *sign).collect(),
            causes,
            places,
        })
    }

    /// Every cause, in the order of their files.
    pub fn causes(&self) -> &[Cause] {
        &self.causes
    }

    /// Each cause of a verdict with the places of its patterns.
    pub(super) fn of_verdict(
        &self,
        verdict: VerdictId,
    ) -> impl Iterator<Item = (usize, &Cause, &Places)> {
        let all = self.causes.iter().zip(&self.places).enumerate();
        all.filter(move |(_, (c, _))| c.verdict == verdict)
            .map(|(n, (c, p))| (n, c, p))
    }

    /// Each cause that makes its verdict only where something else is there as well.
    pub(super) fn conditional(&self) -> impl Iterator<Item = (&Cause, &Places)> {
        let asks = |c: &Cause| !c.with.is_empty() || c.needs.count() > 0;
        let all = self.causes.iter().zip(&self.places);
        all.filter(move |(c, _)| c.decides.is_some() && asks(c))
    }

    /// The patterns that a line matches.
    pub(super) fn matches(&self, line: &str) -> Vec<usize> {
        self.patterns.matches(line.as_bytes())
    }

    /// A pattern, and whether it must stand in a line that reports an error.
    pub(super) fn pattern(&self, place: usize) -> Option<(&Regex, bool)> {
        Some((self.patterns.regex(place)?, *self.signs.get(place)?))
    }

    /// Whether a pattern is a sign of a cause of that verdict.
    pub(super) fn is_sign_of(&self, place: usize, verdict: VerdictId) -> bool {
        let mut causes = self.of_verdict(verdict);
        causes.any(|(_, _, p)| p.signs.contains(&place))
    }

    /// The verdicts that a line makes whatever else is known, with where in the line each sign begins.
    pub fn decided(&self, line: &str) -> Vec<(VerdictId, Strength, usize)> {
        let bytes = line.as_bytes();
        let decided = self.matches(line).into_iter().filter_map(|place| {
            let (verdict, strength) = self.decides.get(place).copied()??;
            let start = self.patterns.regex(place)?.find(bytes)?.start();
            Some((verdict, strength, start))
        });
        decided.collect()
    }
}

/// Patterns, each once. A sign and a pattern that may stand anywhere are two.
#[derive(Default)]
struct Texts {
    list: Vec<(String, bool)>,
    known: BTreeMap<(String, bool), usize>,
}

impl Texts {
    fn place(&mut self, text: &str, sign: bool) -> usize {
        let key = (text.to_owned(), sign);
        *self.known.entry(key.clone()).or_insert_with(|| {
            self.list.push(key);
            self.list.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compiled_in_is_right() {
        let all = Catalogue::check().unwrap();
        assert!(!all.causes().is_empty());
    }

    #[test]
    fn ids_are_unique() {
        let one =
            "[[cause]]\nid = \"a\"\nsigns = ['x']\ncure = \"c\"\nsource = \"https://e.org\"\n";
        let e = Catalogue::read(&[("app_error", one), ("gpu_oom", one)]).unwrap_err();
        assert!(e.contains("two causes"), "{e}");
    }
}
