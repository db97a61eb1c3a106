//! Puts placeholders where private text stands.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use super::own::is_generic;
use super::view::unescaped;
use super::{
    Kind, LITERALS, Redactor, cut, encoded, is_prompt, is_secret, named, patterns, takes_the_next,
};

/// Short texts whose answer is remembered: names of threads, states, wait channels.
const CACHED: usize = 16_384;
const CACHED_BYTES: usize = 64;
/// Escapes within escapes.
const LEVELS: usize = 4;
/// Encodings within encodings: base64 of a URL with base64 in it.
const DEPTH: usize = 2;
/// How often a text is looked at again once something was taken out of it: what stood
/// behind that may be known now by what stands before it.
const PASSES: usize = 4;

/// What we put in ourselves is not private a second time.
static PLACEHOLDERS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"<(?:prompt|data|mac|text|user\d+|(?:home|host)\d*|(?:token|email|ip|id|line|arg|value|path|name|text):\d+)>").ok()
});

impl Redactor {
    /// `text` with placeholders.
    pub fn text(&mut self, text: &str) -> String {
        if text.len() <= CACHED_BYTES {
            if let Some(known) = self.cache.get(text) {
                let Some((replaced, kinds)) = known.clone() else {
                    return text.to_owned();
                };
                for kind in kinds {
                    self.count(kind);
                }
                return replaced;
            }
            let replaced = self.replaced(text);
            if self.cache.len() < CACHED {
                self.cache.insert(text.to_owned(), replaced.clone());
            }
            return replaced.map_or_else(|| text.to_owned(), |r| r.0);
        }
        self.replaced(text).map_or_else(|| text.to_owned(), |r| r.0)
    }

    fn replaced(&mut self, text: &str) -> Option<(String, Vec<Kind>)> {
        let mut all = Vec::new();
        let mut out: Option<String> = None;
        for _ in 0..PASSES {
            let Some((text, kinds)) = self.pass(out.as_deref().unwrap_or(text)) else {
                break;
            };
            all.extend(kinds);
            out = Some(text);
        }
        out.map(|out| (out, all))
    }

    fn pass(&mut self, text: &str) -> Option<(String, Vec<Kind>)> {
        let hits = self.all_hits(text, DEPTH);
        if hits.is_empty() {
            return None;
        }
        let mut out = String::with_capacity(text.len());
        let mut kinds = Vec::new();
        let mut at = 0;
        for hit in merged(hits) {
            out.push_str(&text[at..hit.part.start]);
            let placeholder = self.placeholder(hit.kind, &hit.text);
            out.push_str(&placeholder);
            self.count(hit.kind);
            kinds.push(hit.kind);
            at = hit.part.end;
        }
        out.push_str(&text[at..]);
        Some((out, kinds))
    }

    /// Private parts of a text, and of what its escapes mean. `depth`: encodings within
    /// encodings that are looked into.
    fn all_hits(&self, text: &str, depth: usize) -> Vec<Hit> {
        let mut hits = self.hits(text, depth);
        let mut view = unescaped(text);
        for _ in 0..LEVELS {
            let Some(inner) = &view else { break };
            let further = self.hits(&inner.text, depth);
            hits.extend(further.into_iter().map(|mut hit| {
                hit.part = inner.source(&hit.part);
                hit
            }));
            view = inner.further();
        }
        without_placeholders(text, hits)
    }

    fn count(&mut self, kind: Kind) {
        *self.counts.entry(kind.word().to_owned()).or_default() += 1;
    }

    /// The number of a text among those of its kind; 0: there are too many of them.
    pub(super) fn number(&mut self, kind: Kind, text: &str) -> usize {
        let key = (kind, text.to_lowercase());
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        if self.numbers.len() >= 2 * LITERALS {
            return 0;
        }
        let of_kind = self.numbers.keys().filter(|(k, _)| *k == kind).count();
        self.numbers.insert(key, of_kind + 1);
        of_kind + 1
    }

    fn placeholder(&mut self, kind: Kind, text: &str) -> String {
        let word = kind.word();
        match kind {
            Kind::Prompt | Kind::Data | Kind::Mac => format!("<{word}>"),
            Kind::User => format!("<{word}{}>", self.number(kind, text)),
            Kind::Home | Kind::Host => match self.number(kind, text) {
                1 => format!("<{word}>"),
                n => format!("<{word}{n}>"),
            },
            _ => format!("<{word}:{}>", self.number(kind, text)),
        }
    }

    /// Private parts of a text without escapes.
    fn hits(&self, text: &str, depth: usize) -> Vec<Hit> {
        let mut hits = self.known_in(text, true);
        hits.extend(self.scraps(text));
        let mut add = |part: Range<usize>, kind| {
            hits.push(Hit {
                text: text[part.clone()].to_owned(),
                part,
                kind,
            });
        };
        for (part, kind) in patterns::find(text) {
            add(part, kind);
        }
        for part in patterns::accounts(text) {
            if !is_generic(&text[part.clone()]) {
                add(part, Kind::User);
            }
        }
        if !self.with_prompt {
            for part in patterns::prompts(text) {
                add(part, Kind::Prompt);
            }
            for part in self.prompts.find(text) {
                add(part, Kind::Prompt);
            }
        }
        for part in self.phrases.find(text) {
            add(part, Kind::Token);
        }
        if let Some(depth) = depth.checked_sub(1) {
            let private = encoded::Private {
                known: &|decoded| self.is_known_in(decoded),
                replaced: &|decoded| !self.all_hits(decoded, depth).is_empty(),
            };
            for part in encoded::find(text, &private) {
                add(part, Kind::Data);
            }
        }
        hits
    }

    /// Beginnings of secrets that were cut off.
    fn scraps(&self, text: &str) -> Vec<Hit> {
        let Some(matcher) = &self.matcher else {
            return Vec::new();
        };
        let of = |end| {
            cut::beginnings(text, end).find_map(|part| {
                let n = matcher.sorted.beginning(&text[part.clone()])?;
                let (kind, known) = &matcher.known[n];
                Some(Hit {
                    part,
                    kind: *kind,
                    text: known.clone(),
                })
            })
        };
        cut::ellipses(text).filter_map(of).collect()
    }

    /// Texts that were learned; `names`: only as words of their own.
    fn known_in(&self, text: &str, names: bool) -> Vec<Hit> {
        let Some(matcher) = &self.matcher else {
            return Vec::new();
        };
        let found = matcher.search.find_iter(text).filter_map(|m| {
            let (kind, known) = &matcher.known[m.pattern().as_usize()];
            let free = !kind.is_name() || !names || stands_alone(text, &m.range());
            free.then(|| Hit {
                part: m.range(),
                kind: *kind,
                text: known.clone(),
            })
        });
        found.collect()
    }

    /// Whether a decoded text, which may be anything, holds a known one. Names must be long
    /// enough not to come about by chance.
    fn is_known_in(&self, decoded: &str) -> bool {
        let inner = unescaped(decoded);
        let texts = [Some(decoded), inner.as_ref().map(|v| v.text.as_str())];
        texts.into_iter().flatten().any(|text| {
            let known = self.known_in(text, false);
            known.iter().any(|h| h.text.len() >= 4) || !self.phrases.find(text).is_empty()
        })
    }

    /// A JSON value with placeholders in every text.
    pub fn json(&mut self, value: &Value) -> Value {
        self.value(value, None)
    }

    /// `name`: of the field or option that holds it.
    fn value(&mut self, value: &Value, name: Option<&str>) -> Value {
        match value {
            Value::String(text) => Value::String(self.field(text, name)),
            Value::Array(list) => {
                let mut option = name;
                let mut out = Vec::with_capacity(list.len());
                for item in list {
                    out.push(self.value(item, option));
                    option = item.as_str().filter(|s| takes_the_next(s)).or(name);
                }
                Value::Array(out)
            }
            Value::Object(map) => {
                let named = named(map);
                let mut out = Map::new();
                for (key, value) in map {
                    let inner = match key.as_str() {
                        "value" | "overrides" => named.or(name),
                        // what a field holds is told by its own name first
                        other => Some(other)
                            .filter(|n| is_prompt(n) || is_secret(n, ""))
                            .or(name),
                    };
                    let redacted = self.value(value, inner);
                    out.insert(self.key(key), redacted);
                }
                Value::Object(out)
            }
            other => other.clone(),
        }
    }

    fn field(&mut self, text: &str, name: Option<&str>) -> String {
        let kind = match name {
            _ if text.is_empty() || is_placeholder(text) => None,
            Some(name) if is_secret(name, text) => Some(Kind::Token),
            Some(name) if !self.with_prompt && is_prompt(name) => Some(Kind::Prompt),
            _ => None,
        };
        match kind {
            Some(kind) => {
                self.count(kind);
                self.placeholder(kind, text)
            }
            None => self.text(text),
        }
    }

    /// Fields of ours are lower-case words; others may be named after anything.
    fn key(&mut self, key: &str) -> String {
        let ours = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if key.chars().all(ours) {
            key.to_owned()
        } else {
            self.text(key)
        }
    }
}

/// A private part.
#[derive(Debug)]
struct Hit {
    part: Range<usize>,
    kind: Kind,
    /// By which its placeholder is numbered.
    text: String,
}

/// Hits in order; those that overlap are one.
fn merged(mut hits: Vec<Hit>) -> Vec<Hit> {
    hits.sort_by_key(|h| (h.part.start, std::cmp::Reverse(h.part.end)));
    let mut merged: Vec<Hit> = Vec::new();
    for hit in hits {
        match merged.last_mut() {
            Some(last) if hit.part.start < last.part.end => {
                last.part.end = last.part.end.max(hit.part.end);
                if hit.kind < last.kind {
                    (last.kind, last.text) = (hit.kind, hit.text);
                }
            }
            _ => merged.push(hit),
        }
    }
    merged
}

/// What is left of the hits beside placeholders that are there already.
fn without_placeholders(text: &str, hits: Vec<Hit>) -> Vec<Hit> {
    let there: Vec<Range<usize>> = match &*PLACEHOLDERS {
        Some(regex) if text.contains('<') => regex.find_iter(text).map(|m| m.range()).collect(),
        _ => Vec::new(),
    };
    let mut left = Vec::with_capacity(hits.len());
    for hit in hits {
        let first = there.partition_point(|p| p.end <= hit.part.start);
        let within = there[first..].iter().take_while(|p| p.start < hit.part.end);
        let within: Vec<_> = within.cloned().collect();
        if within.is_empty() {
            left.push(hit);
            continue;
        }
        let mut from = hit.part.start;
        for gap in within
            .into_iter()
            .chain(std::iter::once(hit.part.end..hit.part.end))
        {
            if from < gap.start && text[from..gap.start].contains(char::is_alphanumeric) {
                left.push(Hit {
                    part: from..gap.start,
                    kind: hit.kind,
                    text: hit.text.clone(),
                });
            }
            from = gap.end;
        }
    }
    left
}

fn is_placeholder(text: &str) -> bool {
    let found = PLACEHOLDERS.as_ref().and_then(|r| r.find(text));
    found.is_some_and(|m| m.len() == text.len())
}

fn stands_alone(text: &str, part: &Range<usize>) -> bool {
    let before = text[..part.start].chars().next_back();
    let after = text[part.end..].chars().next();
    ![before, after]
        .into_iter()
        .flatten()
        .any(char::is_alphanumeric)
}
