//! Which texts of a stream came from outside, by the field that holds them: console lines,
//! arguments, values of variables, paths, names. Typed fields pass, if their value is made of
//! [known words](super::vocabulary); of our own sentences only what they quote is replaced; and
//! a field that is not listed here is free text.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};

use serde_json::{Map, Value};

use super::patterns::is_secret_name;
use super::vocabulary::{is_known, sentence};

/// Texts that are numbered; what comes behind them has the number 0.
const NUMBERED: usize = 1 << 20;
/// A metric that the machine does not offer, whatever field it is.
const UNSUPPORTED: &str = "unsupported";
/// Longest value of a variable or setting that passes.
const VALUE: usize = 64;

/// Beginnings of names of variables whose values say how libraries work.
const LISTED: [&str; 18] = [
    "MIOPEN_",
    "HIP_",
    "HSA_",
    "ROC",
    "PYTORCH_",
    "TORCH_",
    "AMD_",
    "GPU_",
    "CUDA_",
    "NCCL_",
    "RCCL_",
    "OMP_",
    "TENSILE_",
    "TRITON_",
    "FLASH_ATTENTION_",
    "GGML_",
    "HF_HUB_",
    "ROCBLAS_",
];

/// What a text is, where it is not replaced by its words alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Free {
    Line,
    Argument,
    Value,
    Path,
    Name,
    Text,
}

impl Free {
    /// The word of its placeholder, and what it is called for people.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Line => ("line", "console lines"),
            Self::Argument => ("arg", "arguments"),
            Self::Value => ("value", "values of variables and settings"),
            Self::Path => ("path", "paths and addresses"),
            Self::Name => ("name", "names"),
            Self::Text => ("text", "other texts and quotations"),
        }
    }
}

/// How a field is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Treat {
    /// Replaced.
    Free(Free),
    /// Passes if all of it is known.
    Whole(Free),
    /// A sentence of ours.
    Sentence,
    /// Hexadecimal digits that were computed from something.
    Digest,
}

/// Where a text stands.
#[derive(Debug, Clone, Copy)]
struct Field<'a> {
    /// Kind of the event.
    event: &'a str,
    /// Field that holds the object of this field.
    outer: &'a str,
    /// The field.
    key: &'a str,
    /// Whether it is the value of a variable or setting that passes if it is known.
    listed: bool,
    /// `kind` of the object.
    kind: &'a str,
}

/// Fields whose words are of a closed list, or come from a driver, a library or the kernel.
const TYPED: &[&str] = &[
    "action",
    "adapter",
    "agent",
    "allocated",
    "answer",
    "answers",
    "arch",
    "call",
    "card",
    "cause",
    "channel",
    "cite",
    "command",
    "cuda",
    "device",
    "direction",
    "do",
    "dtype",
    "end",
    "engine",
    "exception",
    "exit",
    "find_dbs",
    "first",
    "follows",
    "format",
    "from",
    "gfx",
    "gpu",
    "health",
    "hidden",
    "hip",
    "hook",
    "id",
    "in",
    "in_use",
    "is",
    "key",
    "kind",
    "kinds",
    "layout",
    "level",
    "mark",
    "mode",
    "module",
    "name",
    "network",
    "of",
    "op",
    "origin",
    "outcome",
    "over",
    "perf_level",
    "phase",
    "phases",
    "profile",
    "program",
    "protocol",
    "python",
    "reason",
    "release",
    "run",
    "rung",
    "schema",
    "scope",
    "second",
    "setting",
    "signal",
    "solver",
    "source",
    "state",
    "status",
    "stream",
    "takes",
    "these",
    "throttle",
    "tier",
    "tiers",
    "to",
    "value",
    "vendor",
    "verdict",
    "version",
    "wait_channel",
    "wall_clock",
    "wchan",
    "what",
    "word",
    "worked",
];

/// Fields with a sentence of ours, or one of the kernel's.
const SENTENCES: &[&str] = &[
    "alters_result",
    "compute_note",
    "cost",
    "cure",
    "detail",
    "failed",
    "how",
    "idle",
    "left_out",
    "message",
    "note",
    "problem",
    "profile_why",
    "ruled_out",
    "sentence",
    "summary",
    "text",
    "unavailable",
    "unreadable",
    "why",
];

/// A field whose meaning follows from the event or object that holds it.
fn treat_by_context(place: Field<'_>) -> Option<Treat> {
    let Field {
        event,
        outer,
        key,
        kind,
        ..
    } = place;
    // the words of the program, of exceptions and of libraries
    let theirs: &[&str] = match event {
        "agent" => &["message", "detail"],
        "find" => &["detail", "key"],
        "job" => &["why"],
        _ => &[],
    };
    Some(match key {
        _ if theirs.contains(&key) => Treat::Free(Free::Text),
        "text" if event == "line" || kind == "console" => Treat::Free(Free::Line),
        "command" if event != "command" => Treat::Free(Free::Argument),
        "file" if event == "evidence_taken" => Treat::Whole(Free::Path),
        "detail" if outer == "waits" => Treat::Free(Free::Path),
        _ => return None,
    })
}

fn treat(place: Field<'_>) -> Treat {
    if let Some(treat) = treat_by_context(place) {
        return treat;
    }
    match place.key {
        "argv" | "args" | "setting_args" | "children" => Treat::Free(Free::Argument),
        "cwd" | "path" | "dir" | "weights" | "writes" | "listens" | "address" | "server"
        | "entries" | "entry" | "file" => Treat::Free(Free::Path),
        "stack" | "digest" => Treat::Digest,
        "job" | "prompt" => Treat::Free(Free::Name),
        "value" | "overrides" | "env" | "env_before" | "settings" if place.listed => {
            Treat::Whole(Free::Value)
        }
        "value" | "overrides" | "env" | "env_before" | "settings" => Treat::Free(Free::Value),
        "name" | "profile" | "rung" | "id" => Treat::Whole(Free::Name),
        key if SENTENCES.contains(&key) => Treat::Sentence,
        key if TYPED.contains(&key) => Treat::Whole(Free::Text),
        _ => Treat::Free(Free::Text),
    }
}

/// Replaces free text by placeholders, the same for the same text.
#[derive(Debug, Default)]
pub struct Mask {
    numbers: HashMap<(Free, u64), usize>,
    last: HashMap<Free, usize>,
    hasher: RandomState,
    counts: BTreeMap<&'static str, u64>,
}

impl Mask {
    /// One that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many texts of each kind it has replaced, by their names for people.
    pub const fn counts(&self) -> &BTreeMap<&'static str, u64> {
        &self.counts
    }

    /// An envelope, a manifest or a report of evidence.
    pub fn json(&mut self, value: &Value) -> Value {
        let body = value.get("event").unwrap_or(value);
        let event = body.get("kind").and_then(Value::as_str).unwrap_or_default();
        // reports of evidence are the event without its kind
        let event = if body.get("items").is_some() {
            "evidence_taken"
        } else {
            event
        };
        let place = Field {
            event,
            outer: "",
            key: "",
            listed: false,
            kind: "",
        };
        self.value(value, place)
    }

    /// A sentence of ours.
    pub fn sentence(&mut self, text: &str) -> String {
        match sentence(text) {
            Some(masked) => {
                self.count(Free::Text);
                masked
            }
            None => text.to_owned(),
        }
    }

    /// The name of a file of a run: ours, or a placeholder.
    pub fn file_name(&mut self, name: &str) -> String {
        if is_known(name) {
            name.to_owned()
        } else {
            self.placeholder(Free::Name, name)
        }
    }

    fn value(&mut self, value: &Value, place: Field<'_>) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text, place)),
            Value::Array(list) => list.iter().map(|item| self.value(item, place)).collect(),
            Value::Object(map) => self.object(map, place),
            other => other.clone(),
        }
    }

    fn object(&mut self, map: &Map<String, Value>, place: Field<'_>) -> Value {
        let word = |key: &str| map.get(key).and_then(Value::as_str);
        let named = word("name").or_else(|| word("key"));
        let by_name = matches!(place.key, "env" | "env_before" | "settings");
        let mut out = Map::new();
        for (key, value) in map {
            // a metric has the kind of its field
            let metric = matches!(key.as_str(), "fresh" | "stale")
                || key == "value" && map.contains_key("age_ms");
            let listed = match key.as_str() {
                "value" | "overrides" => named.is_none_or(is_listed),
                _ if by_name => is_listed(key),
                _ => place.listed,
            };
            let inner = Field {
                event: place.event,
                outer: place.key,
                key: if metric || by_name { place.key } else { key },
                listed,
                kind: word("kind").unwrap_or(place.kind),
            };
            let value = self.value(value, inner);
            // one letter says nothing: dimensions have such names
            let key = if key.len() <= 2 || is_known(key) {
                key.clone()
            } else {
                self.placeholder(Free::Name, key)
            };
            out.insert(key, value);
        }
        Value::Object(out)
    }

    fn text(&mut self, text: &str, place: Field<'_>) -> String {
        let hex = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        let (free, passes) = match treat(place) {
            Treat::Sentence => return self.sentence(text),
            Treat::Free(free) => (free, false),
            Treat::Digest => {
                let digest = (8..=64).contains(&text.len()) && text.bytes().all(hex);
                (Free::Text, digest)
            }
            Treat::Whole(free) => {
                let named = free != Free::Name || text.contains(char::is_alphabetic);
                let short = free != Free::Value || text.len() <= VALUE;
                // a state letter is no word
                let letter = text.chars().nth(1).is_none();
                (free, letter || named && short && is_known(text))
            }
        };
        // a metric that the machine does not offer says so in any field
        if passes || text.is_empty() || text == UNSUPPORTED {
            text.to_owned()
        } else {
            self.placeholder(free, text)
        }
    }

    fn placeholder(&mut self, free: Free, text: &str) -> String {
        self.count(free);
        let key = (free, self.hasher.hash_one(text));
        let full = self.numbers.len() >= NUMBERED;
        let number = match self.numbers.get(&key) {
            Some(number) => *number,
            None if full => 0,
            None => {
                let last = self.last.entry(free).or_default();
                *last += 1;
                self.numbers.insert(key, *last);
                *last
            }
        };
        format!("<{}:{number}>", free.words().0)
    }

    fn count(&mut self, free: Free) {
        *self.counts.entry(free.words().1).or_default() += 1;
    }
}

/// Whether the value of a variable or setting of this name passes if it is known.
fn is_listed(name: &str) -> bool {
    let variable = name.strip_prefix("env.").unwrap_or(name);
    let upper = variable.bytes().any(|b| b.is_ascii_uppercase());
    let free = [
        "arg", "command", "prompt", "path", "dir", "folder", "program",
    ];
    is_known(variable)
        && !is_secret_name(variable)
        && if upper {
            LISTED.iter().any(|l| variable.starts_with(l))
        } else {
            !free.iter().any(|f| variable.contains(f))
        }
}

#[cfg(test)]
mod tests {
    use crate::model::Event;
    use crate::record::tests::samples::one_of_each;

    use super::*;

    /// Fields of the samples that hold what came from outside.
    const FREE: &[&str] = &[
        ".argv",
        ".args",
        ".cwd",
        ".path",
        ".dir",
        ".weights",
        ".writes",
        ".listens",
        ".address",
        ".server",
        ".entries",
        ".entry",
        ".file",
        ".job",
        ".prompt",
        ".command",
        ".children",
        "line.text",
        "find.key",
        ".solver",
        ".message",
        ".detail",
        ".cure",
        "agent.text",
        ".checks.text",
        ".checks.value",
        "job.why",
        "command.id",
        "profile_saved.id",
        ".waits.detail",
        ".setting_args.vae_dtype.float32",
    ];

    fn differing(a: &Value, b: &Value, at: &str, found: &mut Vec<String>) {
        match (a, b) {
            (Value::Object(a), Value::Object(b)) => {
                for ((key, a), (_, b)) in a.iter().zip(b) {
                    differing(a, b, &format!("{at}.{key}"), found);
                }
            }
            (Value::Array(a), Value::Array(b)) => {
                a.iter()
                    .zip(b)
                    .for_each(|(a, b)| differing(a, b, at, found));
            }
            _ if a != b => found.push(format!("{at} {a} {b}")),
            _ => {}
        }
    }

    #[test]
    fn every_event_stays_one_and_keeps_its_typed_fields() {
        let mut mask = Mask::new();
        let mut found = Vec::new();
        for event in one_of_each() {
            let value = serde_json::to_value(&event).unwrap();
            let masked = mask.json(&serde_json::json!({"seq": 1, "at": 1, "event": value}));
            let masked = &masked["event"];
            let again: Result<Event, _> = serde_json::from_value(masked.clone());
            let kind = value["kind"].as_str().unwrap().to_owned();
            if let Err(e) = again {
                found.push(format!("{kind} is none any more: {e}"));
            }
            differing(&value, masked, &kind, &mut found);
        }
        let free = |line: &&String| {
            let place = line.split(' ').next().unwrap_or_default();
            FREE.iter().any(|f| place.ends_with(f))
        };
        let (expected, unexpected): (Vec<_>, Vec<_>) = found.iter().partition(free);
        assert!(unexpected.is_empty(), "{unexpected:#?}");
        assert!(expected.len() > 20, "{expected:#?}");
    }
}
