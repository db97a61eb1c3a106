//! Takes out of a text what is nobody else's business.
//!
//! Two passes: [`Redactor::learn`] reads everything once and keeps names, secrets and
//! prompts where something says that they are some (`HF_TOKEN=…`, `--prompt …`,
//! `/home/NAME`); after [`Redactor::seal`] they are found wherever they stand, also
//! escaped as in JSON, a URL or Python's `repr`, and in base64 or hexadecimal digits. What
//! looks private by itself (issued tokens, addresses) needs nobody to name it. The same
//! text has the same placeholder everywhere.

mod across;
mod continued;
mod cookies;
mod cut;
mod encoded;
mod given;
mod issued;
mod languages;
mod mask;
mod own;
mod patterns;
mod prompts;
mod prose;
mod replace;
#[cfg(test)]
mod tests;
mod view;
mod vocabulary;

use std::collections::{BTreeMap, HashMap};

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::{Map, Value};

use across::Across;
use cut::Sorted;

pub use mask::Mask;
pub use own::Own;
use own::is_generic;
use prompts::Prompts;
use view::unescaped;

/// Known texts that are kept at most, and the bytes of one.
const LITERALS: usize = 8192;
const LITERAL_BYTES: usize = 1024;
/// Words of a secret that is known by them, whatever stands between.
const PHRASE: usize = 3;

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
    /// Those of which a beginning says enough.
    sorted: Sorted,
}

/// Finds and replaces private text.
#[derive(Debug)]
pub struct Redactor {
    with_prompt: bool,
    literals: BTreeMap<String, Kind>,
    prompts: Prompts,
    /// Secrets of several words.
    phrases: Prompts,
    matcher: Option<Matcher>,
    /// What the lines before say of the next one, for each stream of lines.
    across: HashMap<usize, Across>,
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
            phrases: Prompts::default(),
            matcher: None,
            across: HashMap::new(),
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
        if kind == Kind::Token && text.split_whitespace().count() >= PHRASE {
            self.phrases.learn(text);
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

    /// Keeps what a line tells together with the lines before it in the same stream.
    pub fn learn_next(&mut self, stream: usize, line: &str) {
        let mut across = self.across.remove(&stream).unwrap_or_default();
        for (kind, part) in across.next(line) {
            match kind {
                Kind::Prompt if self.with_prompt => {}
                Kind::Prompt => self.know_prompt(part),
                kind => self.know(kind, part),
            }
        }
        self.across.insert(stream, across);
    }

    /// The next line of this stream has nothing to do with those before.
    pub fn begin_stream(&mut self, stream: usize) {
        self.across.remove(&stream);
    }

    /// Keeps what a text tells about names, secrets and prompts.
    pub fn learn(&mut self, text: &str) {
        for part in patterns::accounts(text) {
            self.know(Kind::User, &text[part]);
        }
        for (part, kind) in patterns::find(text) {
            let found = &text[part];
            let long = match kind {
                Kind::Token => found.len() >= 8,
                // the name of a tunnel, not a word of the language
                Kind::Host => found.len() >= 8 && found.bytes().any(|b| b.is_ascii_digit()),
                Kind::Id | Kind::User => true,
                _ => false,
            };
            if long {
                self.know(kind, found);
            }
            if kind == Kind::Token {
                for word in parts_of(found).filter(|w| w.len() >= 6) {
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
                    if !self.with_prompt
                        && prose::is_arguments(key)
                        && let Value::Array(list) = value
                    {
                        for prompt in prose::among(list) {
                            self.know_prompt(&prompt);
                        }
                    }
                    self.learn_json(value);
                }
            }
            _ => {}
        }
    }

    fn learn_field(&mut self, name: &str, text: &str) {
        if is_secret(name, text) {
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
        let begins = known.iter().enumerate();
        let begins = begins.filter(|(_, (kind, _))| matches!(kind, Kind::Token | Kind::Id));
        let sorted = Sorted::new(begins.map(|(n, (_, text))| (text.clone(), n)));
        self.matcher = search.ok().map(|search| Matcher {
            search,
            known,
            sorted,
        });
        self.cache.clear();
    }
}

/// Whether an argument is an option whose value may be the next one: `--prompt=…` has its own.
fn takes_the_next(argument: &str) -> bool {
    argument.starts_with('-') && !argument.contains('=')
}

/// The name in an object of the form `{"name": …, "value": …}`.
fn named(map: &Map<String, Value>) -> Option<&str> {
    let name = map.get("name").or_else(|| map.get("key"))?;
    name.as_str()
}

fn is_secret(name: &str, text: &str) -> bool {
    // a bare `key` is a word of the stream itself
    name != "key" && patterns::is_secret_name(name) || given::is_login(name, text)
}

/// `user:password`, `Basic xyz`: each part. The words of a phrase are words of any text.
fn parts_of(secret: &str) -> impl Iterator<Item = &str> {
    const SCHEMES: [&str; 4] = ["basic", "bearer", "digest", "token"];
    let scheme = secret
        .split_once(' ')
        .filter(|(first, _)| SCHEMES.iter().any(|s| first.eq_ignore_ascii_case(s)));
    let rest = scheme.map_or(secret, |(_, rest)| rest);
    let whole = rest.len() < secret.len() && !rest.contains(' ');
    let parts = rest
        .split(':')
        .filter(move |part| whole || part.len() < secret.len());
    parts.filter(|part| !part.contains(' '))
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
