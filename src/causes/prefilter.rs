//! Many patterns at once. Each needs one of its literals, and one automaton looks for the literals
//! of all: a pattern is compiled when a line has one of its literals for the first time.

use std::sync::OnceLock;

use aho_corasick::AhoCorasick;
use regex::bytes::Regex;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

use super::entry::pattern;

/// Shortest literal that tells lines apart.
const SHORTEST: usize = 3;
/// Most texts that a part of a pattern is spelled out into.
const MOST: usize = 48;

/// See the module.
#[derive(Debug)]
pub(crate) struct Patterns {
    prefilter: Prefilter,
    all: Vec<(String, OnceLock<Option<Regex>>)>,
}

impl Patterns {
    /// Of these texts: bytes, ASCII classes. An error: a text is no pattern.
    pub(crate) fn new<'t>(texts: impl Iterator<Item = &'t str> + Clone) -> Result<Self, String> {
        Ok(Self {
            prefilter: Prefilter::new(texts.clone())?,
            all: texts.map(|t| (t.to_owned(), OnceLock::new())).collect(),
        })
    }

    /// No patterns.
    pub(super) const fn empty() -> Self {
        Self {
            prefilter: Prefilter::empty(),
            all: Vec::new(),
        }
    }

    /// A pattern by its place.
    pub(crate) fn regex(&self, place: usize) -> Option<&Regex> {
        let (text, compiled) = self.all.get(place)?;
        compiled.get_or_init(|| pattern(text).ok()).as_ref()
    }

    /// The places of the patterns that a line matches, in their order.
    pub(crate) fn matches(&self, line: &[u8]) -> Vec<usize> {
        let mut places = self.prefilter.candidates(line);
        places.retain(|place| self.regex(*place).is_some_and(|r| r.is_match(line)));
        places
    }

    /// Whether a line matches any of them.
    pub(crate) fn match_any(&self, line: &[u8]) -> bool {
        let places = self.prefilter.candidates(line);
        let mut found = places.into_iter().filter_map(|place| self.regex(place));
        found.any(|r| r.is_match(line))
    }
}

/// A line may match only some patterns.
#[derive(Debug)]
struct Prefilter {
    literals: Option<AhoCorasick>,
    /// For each literal the patterns that need it.
    needed_by: Vec<Vec<usize>>,
    /// Patterns without a literal: any line may match them.
    always: Vec<usize>,
}

impl Prefilter {
    /// For patterns by their places.
    fn new<'t>(patterns: impl Iterator<Item = &'t str>) -> Result<Self, String> {
        let mut words: Vec<String> = Vec::new();
        let mut needed_by: Vec<Vec<usize>> = Vec::new();
        let mut always = Vec::new();
        let mut known = std::collections::BTreeMap::new();
        for (place, pattern) in patterns.enumerate() {
            let Some(literals) = required(pattern)? else {
                always.push(place);
                continue;
            };
            for literal in literals {
                let n = *known.entry(literal.clone()).or_insert_with(|| {
                    words.push(literal);
                    needed_by.push(Vec::new());
                    words.len() - 1
                });
                if let Some(list) = needed_by.get_mut(n) {
                    list.push(place);
                }
            }
        }
        let built = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(&words);
        Ok(Self {
            literals: Some(built.map_err(|e| e.to_string())?),
            needed_by,
            always,
        })
    }

    const fn empty() -> Self {
        Self {
            literals: None,
            needed_by: Vec::new(),
            always: Vec::new(),
        }
    }

    /// The places of the patterns that a line may match, in their order.
    fn candidates(&self, line: &[u8]) -> Vec<usize> {
        let mut places = self.always.clone();
        if let Some(literals) = &self.literals {
            for found in literals.find_overlapping_iter(line) {
                let list = self.needed_by.get(found.pattern().as_usize());
                places.extend(list.into_iter().flatten());
            }
        }
        places.sort_unstable();
        places.dedup();
        places
    }
}

/// Texts in lower case of which one is in every match of a pattern; none: nothing is sure.
fn required(pattern: &str) -> Result<Option<Vec<String>>, String> {
    let mut parser = ParserBuilder::new().unicode(false).utf8(false).build();
    let hir = parser.parse(pattern).map_err(|e| e.to_string())?;
    let parts = Parts::of(&hir);
    let best = parts.exact.filter(|e| is_good(e)).or(parts.required);
    Ok(best.filter(|b| is_good(b)))
}

fn is_good(texts: &[String]) -> bool {
    !texts.is_empty() && shortest(texts) >= SHORTEST
}

fn shortest(texts: &[String]) -> usize {
    texts.iter().map(String::len).min().unwrap_or(0)
}

/// What a part of a pattern matches.
struct Parts {
    /// All that it matches, if that is little.
    exact: Option<Vec<String>>,
    /// Texts of which one is in each match.
    required: Option<Vec<String>>,
}

impl Parts {
    fn of(hir: &Hir) -> Self {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => Self::exactly(vec![String::new()]),
            HirKind::Literal(literal) => Self::exactly(vec![lower(&literal.0)]),
            HirKind::Class(class) => Self {
                exact: letters(class),
                required: None,
            },
            HirKind::Capture(capture) => Self::of(&capture.sub),
            HirKind::Repetition(repeats) => {
                let sub = Self::of(&repeats.sub);
                match (repeats.min, repeats.max) {
                    (1, Some(1)) => sub,
                    (0, Some(1)) => Self {
                        exact: sub.exact.map(|mut e| {
                            e.push(String::new());
                            e
                        }),
                        required: None,
                    },
                    (0, _) => Self::unknown(),
                    _ => Self {
                        exact: None,
                        required: sub.exact.filter(|e| is_good(e)).or(sub.required),
                    },
                }
            }
            HirKind::Alternation(all) => Self::one_of(all),
            HirKind::Concat(all) => Self::one_after_the_other(all),
        }
    }

    const fn unknown() -> Self {
        Self {
            exact: None,
            required: None,
        }
    }

    const fn exactly(texts: Vec<String>) -> Self {
        Self {
            exact: Some(texts),
            required: None,
        }
    }

    fn one_of(all: &[Hir]) -> Self {
        let (mut exact, mut required) = (Some(Vec::new()), Some(Vec::new()));
        for part in all.iter().map(Self::of) {
            let texts = part.exact.clone().filter(|e| is_good(e)).or(part.required);
            exact = both(exact, part.exact);
            required = both(required, texts);
        }
        Self { exact, required }
    }

    fn one_after_the_other(all: &[Hir]) -> Self {
        let mut run = vec![String::new()];
        let mut best: Option<Vec<String>> = None;
        let mut whole = true;
        let mut better = |texts: Vec<String>| {
            let key = |t: &[String]| (shortest(t).min(12), std::cmp::Reverse(t.len()));
            if is_good(&texts) && best.as_ref().is_none_or(|b| key(&texts) > key(b)) {
                best = Some(texts);
            }
        };
        for part in all.iter().map(Self::of) {
            let fits = |e: &Vec<String>| e.len() * run.len() <= MOST;
            if let Some(exact) = part.exact.as_ref().filter(|e| fits(e)) {
                run = run
                    .iter()
                    .flat_map(|a| exact.iter().map(move |b| format!("{a}{b}")))
                    .collect();
            } else {
                whole = false;
                better(std::mem::replace(&mut run, vec![String::new()]));
                if let Some(exact) = part.exact {
                    better(exact);
                }
            }
            if let Some(texts) = part.required {
                better(texts);
            }
        }
        if whole {
            better(run.clone());
            return Self {
                exact: Some(run),
                required: best,
            };
        }
        better(run);
        Self {
            exact: None,
            required: best,
        }
    }
}

/// The texts of both, if they are known and few.
fn both(a: Option<Vec<String>>, b: Option<Vec<String>>) -> Option<Vec<String>> {
    let mut all = a?;
    all.extend(b?);
    (all.len() <= 4 * MOST).then_some(all)
}

fn lower(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).to_ascii_lowercase()
}

/// The letters of a small class, upper and lower case as one.
fn letters(class: &Class) -> Option<Vec<String>> {
    let mut all: Vec<String> = Vec::new();
    let ranges: Vec<(u32, u32)> = match class {
        Class::Bytes(c) => c
            .ranges()
            .iter()
            .map(|r| (r.start().into(), r.end().into()))
            .collect(),
        Class::Unicode(c) => c
            .ranges()
            .iter()
            .map(|r| (r.start().into(), r.end().into()))
            .collect(),
    };
    for (from, to) in ranges {
        if to >= 128 || to - from > 9 {
            return None;
        }
        all.extend(
            (from..=to)
                .filter_map(char::from_u32)
                .map(|c| c.to_ascii_lowercase().to_string()),
        );
    }
    all.sort_unstable();
    all.dedup();
    (!all.is_empty() && all.len() <= 10).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_literals_of_a_pattern() {
        let of = |p: &str| required(p).unwrap();
        assert_eq!(
            of(r"(?i)\bout of memory\b"),
            Some(vec!["out of memory".to_owned()])
        );
        assert_eq!(
            of(r"(?i)\b(?:hip|cuda)ErrorLaunch\w+"),
            Some(vec![
                "hiperrorlaunch".to_owned(),
                "cudaerrorlaunch".to_owned()
            ])
        );
        assert_eq!(of(r"x{0,3}\w+"), None);
        assert_eq!(of(r"(?:abc)?\d+"), None);
        assert!(required("(").is_err());
    }

    #[test]
    fn no_match_is_lost() {
        let patterns = [
            r"(?i)\bno (?:HIP|CUDA)[- ]?GPUs\b",
            r"^\s*exitcode\s*: -9\b",
            r"\d+%",
            r"(?:^|\W)(?:3221225477|-1073741819)\b",
        ];
        let all = Prefilter::new(patterns.into_iter()).unwrap();
        for (line, want) in [
            ("RuntimeError: No HIP GPUs are available", 0),
            ("  exitcode  : -9 (pid: 7)", 1),
            ("50%", 2),
            ("exit code 3221225477", 3),
        ] {
            assert!(all.candidates(line.as_bytes()).contains(&want), "{line}");
        }
        assert_eq!(all.candidates(b"got prompt"), [2]);
    }
}
