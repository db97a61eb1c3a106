//! Takes out of a text what is nobody else's business.
//!
//! Two passes: [`Redactor::learn`] reads everything once and keeps names, secrets and
//! prompts where something says that they are some (`HF_TOKEN=…`, `--prompt …`,
//! `/home/NAME`); after [`Redactor::seal`] they are found wherever they stand, also
//! escaped as in JSON, a URL or Python's `repr`, and in base64 or hexadecimal digits. What
//! looks private by itself (issued tokens, addresses) needs nobody to name it. The same
//! text has the same placeholder everywhere.

mod encoded;
mod own;
mod patterns;
mod prompts;
#[cfg(test)]
mod tests;
mod view;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::{Map, Value};

pub use own::Own;
use own::is_generic;
use prompts::Prompts;
use view::unescaped;

/// Known texts that are kept at most, and the bytes of one.
const LITERALS: usize = 8192;
const LITERAL_BYTES: usize = 1024;
/// Short texts whose answer is remembered: names of threads, states, wait channels.
const CACHED: usize = 16_384;
const CACHED_BYTES: usize = 64;
/// Escapes within escapes.
const LEVELS: usize = 4;

/// What kind of private text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    Prompt,
    Token,
    Email,
    Ip,
    Mac,
    Id,
    Home,
    User,
    Host,
    Data,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Token => "token",
            Self::Email => "email",
            Self::Ip => "ip",
            Self::Mac => "mac",
            Self::Id => "id",
            Self::Home => "home",
            Self::User => "user",
            Self::Host => "host",
            Self::Data => "data",
        }
    }

    /// Names are words of their own; a secret is one within any text.
    const fn is_name(self) -> bool {
        matches!(self, Self::Home | Self::User | Self::Host)
    }
}

#[derive(Debug)]
struct Matcher {
    search: AhoCorasick,
    known: Vec<(Kind, String)>,
}

/// Finds and replaces private text.
#[derive(Debug)]
pub struct Redactor {
    with_prompt: bool,
    literals: BTreeMap<String, Kind>,
    prompts: Prompts,
    matcher: Option<Matcher>,
    numbers: HashMap<(Kind, String), usize>,
    counts: BTreeMap<String, u64>,
    cache: HashMap<String, Option<(String, Vec<Kind>)>>,
}

impl Redactor {
    /// Knows only this machine's own names; `with_prompt`: prompts stay.
    pub fn new(own: &Own, with_prompt: bool) -> Self {
        let mut this = Self {
            with_prompt,
            literals: BTreeMap::new(),
            prompts: Prompts::default(),
            matcher: None,
            numbers: HashMap::new(),
            counts: BTreeMap::new(),
            cache: HashMap::new(),
        };
        // the first user and host have the first numbers
        own.users.iter().for_each(|u| this.know(Kind::User, u));
        own.homes
            .iter()
            .for_each(|h| this.know(Kind::Home, h.trim_end_matches('/')));
        own.hosts.iter().for_each(|h| this.know(Kind::Host, h));
        own.secrets.iter().for_each(|s| this.know(Kind::Token, s));
        this
    }

    /// How often each kind was replaced so far.
    pub const fn counts(&self) -> &BTreeMap<String, u64> {
        &self.counts
    }

    fn know(&mut self, kind: Kind, text: &str) {
        let text = text.trim();
        let shortest = match kind {
            Kind::User | Kind::Host => 3,
            Kind::Home => 2,
            _ => 6,
        };
        let dull = kind.is_name() && is_generic(text);
        if text.len() < shortest
            || text.len() > LITERAL_BYTES
            || dull
            || self.literals.len() >= LITERALS
        {
            return;
        }
        if !self.literals.contains_key(text) {
            self.literals.insert(text.to_owned(), kind);
            self.number(kind, text);
        }
    }

    fn know_prompt(&mut self, text: &str) {
        self.prompts.learn(text);
        self.prompts.learn_lines(text);
        if let Some(view) = unescaped(text) {
            self.prompts.learn(&view.text);
            self.prompts.learn_lines(&view.text);
        }
    }

    /// Keeps what a text tells about names, secrets and prompts.
    pub fn learn(&mut self, text: &str) {
        for part in patterns::accounts(text) {
            self.know(Kind::User, &text[part]);
        }
        for (part, kind) in patterns::find(text) {
            let found = &text[part];
            if kind == Kind::Token && found.len() >= 8 || kind == Kind::Id {
                self.know(kind, found);
            }
            if kind == Kind::Token {
                // user:password, Basic xyz
                for word in found.split([':', ' ']).filter(|w| w.len() >= 6) {
                    self.know(kind, word);
                }
            }
        }
        if !self.with_prompt {
            for part in patterns::prompts(text) {
                self.know_prompt(&text[part]);
            }
        }
        if let Some(view) = unescaped(text)
            && view.text != text
        {
            self.learn(&view.text);
        }
    }

    /// The same for every text of a JSON value; names of fields and places in a list of
    /// arguments tell more.
    pub fn learn_json(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.learn(text),
            Value::Array(list) => {
                let mut option = None;
                for item in list {
                    if let (Some(option), Some(text)) = (option, item.as_str()) {
                        self.learn_field(option, text);
                    }
                    self.learn_json(item);
                    option = item.as_str().filter(|s| takes_the_next(s));
                }
            }
            Value::Object(map) => {
                let named = named(map);
                for (key, value) in map {
                    let name = if key == "value" || key == "overrides" {
                        named
                    } else {
                        None
                    };
                    for name in [Some(key.as_str()), name].into_iter().flatten() {
                        each_text(value, &mut |text| self.learn_field(name, text));
                    }
                    self.learn_json(value);
                }
            }
            _ => {}
        }
    }

    fn learn_field(&mut self, name: &str, text: &str) {
        if is_secret(name) {
            self.know(Kind::Token, text);
        }
        if !self.with_prompt && is_prompt(name) {
            self.know_prompt(text);
        }
    }

    /// What was learned is found from now on. More can be learned and sealed again.
    pub fn seal(&mut self) {
        let known: Vec<(Kind, String)> = self
            .literals
            .iter()
            .map(|(text, kind)| (*kind, text.clone()))
            .collect();
        let search = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .ascii_case_insensitive(true)
            .build(known.iter().map(|(_, text)| text));
        // only too many texts could be refused, and their number is bounded
        self.matcher = search.ok().map(|search| Matcher { search, known });
        self.cache.clear();
    }

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
        let mut hits = self.hits(text);
        let mut view = unescaped(text);
        for _ in 0..LEVELS {
            let Some(inner) = &view else { break };
            let further = self.hits(&inner.text);
            hits.extend(further.into_iter().map(|mut hit| {
                hit.part = inner.source(&hit.part);
                hit
            }));
            view = inner.further();
        }
        if hits.is_empty() {
            return None;
        }
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
        let mut out = String::with_capacity(text.len());
        let mut kinds = Vec::new();
        let mut at = 0;
        for hit in merged {
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

    fn count(&mut self, kind: Kind) {
        *self.counts.entry(kind.word().to_owned()).or_default() += 1;
    }

    /// The number of a text among those of its kind; 0: there are too many of them.
    fn number(&mut self, kind: Kind, text: &str) -> usize {
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
    fn hits(&self, text: &str) -> Vec<Hit> {
        let mut hits = self.known_in(text, true);
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
        for part in encoded::find(text, &|decoded| self.is_private(decoded)) {
            add(part, Kind::Data);
        }
        hits
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

    /// Whether a decoded text holds anything private. Names must be long enough not to
    /// come about by chance.
    fn is_private(&self, decoded: &str) -> bool {
        let inner = unescaped(decoded);
        let texts = [Some(decoded), inner.as_ref().map(|v| v.text.as_str())];
        texts.into_iter().flatten().any(|text| {
            let known = self.known_in(text, false);
            known.iter().any(|h| h.text.len() >= 4)
                || !self.with_prompt && !self.prompts.find(text).is_empty()
                || patterns::find(text)
                    .iter()
                    .any(|(_, k)| matches!(k, Kind::Token | Kind::Email))
                || !patterns::homes(text).is_empty()
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
                            .filter(|n| is_secret(n) || is_prompt(n))
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
            _ if text.is_empty() => None,
            Some(name) if is_secret(name) => Some(Kind::Token),
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

/// Whether an argument is an option whose value may be the next one: `--prompt=…` has its own.
fn takes_the_next(argument: &str) -> bool {
    argument.starts_with('-') && !argument.contains('=')
}

fn stands_alone(text: &str, part: &Range<usize>) -> bool {
    let before = text[..part.start].chars().next_back();
    let after = text[part.end..].chars().next();
    ![before, after]
        .into_iter()
        .flatten()
        .any(char::is_alphanumeric)
}

/// The name in an object of the form `{"name": …, "value": …}`.
fn named(map: &Map<String, Value>) -> Option<&str> {
    let name = map.get("name").or_else(|| map.get("key"))?;
    name.as_str()
}

fn is_secret(name: &str) -> bool {
    // a bare `key` is a word of the stream itself
    name != "key" && patterns::is_secret_name(name)
}

fn is_prompt(name: &str) -> bool {
    patterns::is_prompt_option(name) || patterns::is_prompt_field(name)
}

fn each_text(value: &Value, with: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => with(text),
        Value::Array(list) => list.iter().for_each(|v| each_text(v, with)),
        Value::Object(map) => map.values().for_each(|v| each_text(v, with)),
        _ => {}
    }
}
