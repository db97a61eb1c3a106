//! The messages of `docs/agent.md`, one JSON object a line.
//!
//! Whoever speaks may be of another version, or no agent of ours at all: what is not
//! understood is left out, text and lists are cut, nothing is ever refused for a field.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::model::agent::{
    AgentBeat, AgentCheck, AgentConv, AgentFinding, AgentHello, AgentMemory, AgentOp, AgentSteps,
    AgentVault, AgentWord,
};
use crate::model::{Bytes, Phase};

/// Version of the messages that this program speaks.
pub const PROTOCOL: u64 = 1;
/// Longest line that is read, in bytes.
pub const LONGEST_LINE: usize = 64 << 10;
/// The same while an answer is awaited: stacks of many threads are long.
pub const LONGEST_ANSWER: usize = 1 << 20;

/// Characters of a sentence at most.
const SENTENCE: usize = 2000;
/// Characters of a name at most.
const WORD: usize = 200;
/// Characters of a digest at most.
const DIGEST: usize = 32;
/// Numbers of a shape at most.
const DIMENSIONS: usize = 16;
/// Members of any other list or table at most.
const MEMBERS: usize = 64;

/// Why a line is no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// No JSON object.
    #[error("it is no JSON object")]
    NoObject,
    /// No `type`.
    #[error("it has no `type`")]
    NoType,
}

/// One message of the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Position in the messages of the process, from 1.
    pub seq: Option<u64>,
    /// What.
    pub said: Said,
}

/// What a message says.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// The first word; what the agent tells of itself.
    Hello(AgentHello),
    /// The heartbeat.
    Beat {
        /// What it says.
        beat: Box<AgentBeat>,
        /// Whether SIGUSR2 still has the stacks written; absent: as `hello` has said.
        stacks_by_signal: Option<bool>,
    },
    /// A phase begins.
    Phase {
        /// A word of the closed list.
        phase: Phase,
        /// Section, from 1.
        section: Option<u32>,
        /// Sections in all.
        sections: Option<u32>,
    },
    /// A bar has been drawn.
    Progress {
        /// Done so far.
        done: f64,
        /// In all.
        total: Option<f64>,
        /// What is counted.
        what: Option<String>,
    },
    /// A job began.
    JobStarted,
    /// It ended well.
    JobEnded,
    /// It failed.
    JobFailed {
        /// The program's words.
        why: Option<String>,
    },
    /// Something for the record.
    Note(AgentWord),
    /// The answer to a command.
    Reply {
        /// Number of the command.
        id: u64,
        /// What it came to, or why it did not.
        result: Result<Value, String>,
    },
    /// The process ends by itself.
    Bye(Box<AgentBeat>),
    /// A type, or a word in it, that this version does not know.
    Unknown {
        /// The type.
        kind: String,
    },
}

/// Reads one line, without its end.
///
/// # Errors
/// When it is no message at all.
pub fn parse(line: &[u8]) -> Result<Message, Malformed> {
    let value: Value = serde_json::from_slice(line).map_err(|_not_json| Malformed::NoObject)?;
    let Value::Object(map) = value else {
        return Err(Malformed::NoObject);
    };
    let m = Fields(&map);
    let kind = m.text("type", WORD).ok_or(Malformed::NoType)?;
    let said = said(&kind, &m).unwrap_or(Said::Unknown { kind });
    Ok(Message {
        seq: m.whole("seq"),
        said,
    })
}

fn said(kind: &str, m: &Fields<'_>) -> Option<Said> {
    let job_error = || m.text("error", SENTENCE);
    Some(match kind {
        "hello" => Said::Hello(AgentHello {
            protocol: m.whole("protocol")?,
            agent: m.word("agent"),
            python: m.word("python"),
            stacks_by_signal: m.0.get("stacks_signal").is_some_and(by_signal),
            rank: m.small("rank"),
        }),
        "beat" => Said::Beat {
            beat: Box::new(beat(m)),
            stacks_by_signal: m.0.get("stacks_signal").map(by_signal),
        },
        "phase" => Said::Phase {
            phase: m.phase("phase")?,
            section: m.small("section"),
            sections: m.small("sections"),
        },
        "progress" => Said::Progress {
            done: m.number("n")?,
            total: m.number("total"),
            what: m.text("desc", WORD).filter(|d| !d.is_empty()),
        },
        "job" => match m.word("state").as_str() {
            "started" => Said::JobStarted,
            "ended" => Said::JobEnded,
            "failed" => Said::JobFailed { why: job_error() },
            _ => return None,
        },
        "reply" => Said::Reply {
            id: m.whole("id")?,
            result: match m.0.get("ok") {
                Some(Value::Bool(true)) => Ok(m.0.get("value").cloned().unwrap_or(Value::Null)),
                _ => Err(job_error().unwrap_or_else(|| "no reason was given".to_owned())),
            },
        },
        "bye" => Said::Bye(Box::new(beat(m))),
        other => Said::Note(note(other, m)?),
    })
}

fn note(kind: &str, m: &Fields<'_>) -> Option<AgentWord> {
    Some(match kind {
        "conv" => AgentWord::Conv(Box::new(AgentConv {
            what: m.word("event"),
            op: m.word("op"),
            tier: m.word("tier"),
            shape: m.shape("shape"),
            weight: m.shape("weight"),
            dtype: m.word("dtype"),
            device: m.word("device"),
            took_ms: m.seconds("took_s"),
            message: m.text("message", SENTENCE),
        })),
        "finding" => match m.word("verdict").parse() {
            Ok(verdict) => AgentWord::Finding(Box::new(AgentFinding {
                verdict,
                text: m.sentence("text"),
                cure: m.sentence("cure"),
                fixed: m.0.get("fixed") == Some(&Value::Bool(true)),
            })),
            Err(_newer) => AgentWord::Problem {
                text: format!("{}: {}", m.word("verdict"), m.sentence("text")),
            },
        },
        "fix" => AgentWord::Fix {
            what: m.sentence("what"),
            detail: m.rest(&["type", "t", "pid", "seq", "what"]),
        },
        "vault" => AgentWord::Vault(Box::new(AgentVault {
            what: m.word("event"),
            of: m.word("what"),
            // the folder is the user's
            file: m.text("path", 4096).map(|p| {
                let name = p.rsplit('/').next().unwrap_or_default();
                cut(name, WORD)
            }),
            bytes: m.whole("bytes"),
            took_ms: m.seconds("took_s"),
            message: m.text("message", SENTENCE),
        })),
        "preflight" => AgentWord::Preflight { checks: m.checks() },
        "problem" => AgentWord::Problem {
            text: m.sentence("text"),
        },
        "hook_failed" => AgentWord::HookFailed {
            module: m.word("module"),
            hook: m.word("hook"),
            message: m.sentence("message"),
        },
        "error" => AgentWord::Error {
            phase: m.phase("phase"),
            exception: m.word("kind"),
            message: m.sentence("message"),
        },
        "torch" => AgentWord::Torch {
            version: m.word("version"),
            hip: m.text("hip", WORD),
            cuda: m.text("cuda", WORD),
            find_dbs: m.words("find_dbs"),
        },
        "dropped" => AgentWord::Dropped { n: m.whole("n")? },
        _ => return None,
    })
}

/// Whether SIGUSR2 has the stacks written.
fn by_signal(field: &Value) -> bool {
    field.as_str() == Some("SIGUSR2")
}

fn beat(m: &Fields<'_>) -> AgentBeat {
    let ops = match m.0.get("ops") {
        Some(Value::Array(list)) => &list[..],
        _ => &[],
    };
    let oldest = ops
        .iter()
        .take(MEMBERS)
        .filter_map(Value::as_object)
        .map(|op| op_of(&Fields(op)))
        .max_by_key(|op| op.age_ms);
    let tiers = match m.0.get("tiers") {
        Some(Value::Object(map)) => map
            .iter()
            .take(MEMBERS)
            .filter_map(|(name, n)| Some((cut(name, WORD), n.as_u64()?)))
            .collect(),
        _ => BTreeMap::new(),
    };
    let memory = m.0.get("memory").and_then(Value::as_object).map(Fields);
    AgentBeat {
        phase: m.phase("phase"),
        op: oldest,
        ops: u32::try_from(ops.len()).unwrap_or(u32::MAX),
        calls: m.whole("calls").unwrap_or(0),
        tiers,
        memory: memory.and_then(|m| {
            Some(AgentMemory {
                device: m.small("device").unwrap_or(0),
                allocated: Bytes(m.whole("allocated")?),
                reserved: Bytes(m.whole("reserved")?),
                peak: Bytes(m.whole("peak")?),
            })
        }),
        cpu_ms: m.seconds("cpu_s").unwrap_or(0),
        job: match m.0.get("job").and_then(Value::as_str) {
            Some("running") => Some(true),
            Some("idle") => Some(false),
            _ => None,
        },
        holder: m.small("holder"),
        stack: m.text("stack", DIGEST),
        steps: m.0.get("steps").and_then(Value::as_object).and_then(steps),
    }
}

fn steps(map: &Map<String, Value>) -> Option<AgentSteps> {
    let m = Fields(map);
    Some(AgentSteps {
        tid: m.small("tid"),
        total: m.number("total")?,
        left: m.0.get("left").and_then(Value::as_bool),
    })
}

fn op_of(m: &Fields<'_>) -> AgentOp {
    AgentOp {
        name: m.word("name"),
        shape: m.shape("shape"),
        weight: m.shape("weight"),
        dtype: m.word("dtype"),
        device: m.word("device"),
        tier: m.word("tier"),
        age_ms: m.seconds("age_s").unwrap_or(0),
        tid: m.small("tid"),
    }
}

/// The fields of an object, read with patience.
struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn text(&self, key: &str, most: usize) -> Option<String> {
        self.0.get(key)?.as_str().map(|t| cut(t, most))
    }

    fn word(&self, key: &str) -> String {
        self.text(key, WORD).unwrap_or_default()
    }

    fn words(&self, key: &str) -> Option<Vec<String>> {
        let list = self.0.get(key)?.as_array()?.iter().take(MEMBERS);
        Some(
            list.filter_map(Value::as_str)
                .map(|w| cut(w, WORD))
                .collect(),
        )
    }

    fn sentence(&self, key: &str) -> String {
        self.text(key, SENTENCE).unwrap_or_default()
    }

    fn number(&self, key: &str) -> Option<f64> {
        self.0.get(key)?.as_f64().filter(|n| n.is_finite())
    }

    /// A whole number, also where it is written as `3.0`.
    fn whole(&self, key: &str) -> Option<u64> {
        let value = self.0.get(key)?;
        value.as_u64().or_else(|| whole(value.as_f64()?))
    }

    fn small(&self, key: &str) -> Option<u32> {
        u32::try_from(self.whole(key)?).ok()
    }

    /// Seconds as milliseconds.
    fn seconds(&self, key: &str) -> Option<u64> {
        whole((self.number(key)? * 1000.0).round())
    }

    fn phase(&self, key: &str) -> Option<Phase> {
        self.0.get(key)?.as_str()?.parse().ok()
    }

    fn shape(&self, key: &str) -> Vec<u64> {
        match self.0.get(key) {
            Some(Value::Array(list)) => list
                .iter()
                .take(DIMENSIONS)
                .filter_map(Value::as_u64)
                .collect(),
            _ => Vec::new(),
        }
    }

    fn checks(&self) -> Vec<AgentCheck> {
        let Some(Value::Array(list)) = self.0.get("checks") else {
            return Vec::new();
        };
        let objects = list.iter().take(MEMBERS).filter_map(Value::as_object);
        objects
            .map(Fields)
            .map(|c| AgentCheck {
                name: c.word("name"),
                ok: c.0.get("ok").and_then(Value::as_bool),
                value: c.0.get("value").filter(|v| !v.is_null()).map(plain),
                text: c.sentence("text"),
                cure: c.text("cure", SENTENCE),
            })
            .collect()
    }

    /// Every other field as `name=value`.
    fn rest(&self, but: &[&str]) -> String {
        let others = self.0.iter().filter(|(k, _)| !but.contains(&k.as_str()));
        let words: Vec<String> = others
            .take(MEMBERS)
            .map(|(k, v)| format!("{}={}", cut(k, WORD), plain(v)))
            .collect();
        cut(&words.join(", "), SENTENCE)
    }
}

/// A value as people write it.
fn plain(value: &Value) -> String {
    match value {
        Value::String(s) => cut(s, WORD),
        other => cut(&other.to_string(), WORD),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked"
)]
fn whole(n: f64) -> Option<u64> {
    (n.fract() == 0.0 && (0.0..9e15).contains(&n)).then_some(n as u64)
}

/// The beginning, without control characters: it goes to terminals.
fn cut(text: &str, most: usize) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(most)
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::VerdictId;

    fn said(line: &str) -> Said {
        parse(line.as_bytes()).unwrap().said
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "one message after the other")]
    fn the_messages_of_the_document_are_understood() {
        let hello = r#"{"type":"hello","t":1.5,"protocol":1,"agent":"0.1.0","ppid":7,"python":"3.11.4",
            "executable":"/p","argv":["p"],"run":"r","attempt":1,"rank":3,"stacks_signal":"SIGUSR2","seq":1,"pid":9}"#;
        let told = parse(hello.as_bytes()).unwrap();
        assert_eq!(told.seq, Some(1));
        let Said::Hello(h) = told.said else { panic!() };
        assert_eq!((h.protocol, h.stacks_by_signal), (1, true));
        assert_eq!(h.rank, Some(3));

        let Said::Beat {
            beat: b,
            stacks_by_signal: None,
        } = said(
            r#"{"type":"beat","phase":"vae_decode","ops":[
              {"name":"conv3d","shape":[1,16,9,64,64],"weight":[128,16,3,3,3],"dtype":"float16","device":"cuda:0","tier":"native","age_s":12.5,"thread":1,"tid":71},
              {"name":"conv2d","shape":[1],"weight":[],"dtype":"x","device":"cpu","tier":"cpu","age_s":0.5}],
              "calls":7,"tiers":{"conv3d.native.ok":7},"memory":{"device":0,"allocated":1,"reserved":2,"peak":3},"cpu_s":1.25,"holder":71,"stack":"a1b2c3d4"}"#,
        )
        else {
            panic!()
        };
        for (field, want) in [("null", false), (r#""SIGUSR2""#, true)] {
            let told = said(&format!(r#"{{"type":"beat","stacks_signal":{field}}}"#));
            assert!(
                matches!(told, Said::Beat { stacks_by_signal: Some(by), .. } if by == want),
                "{field}"
            );
        }
        for (field, want) in [
            ("null", None),
            (r#""idle""#, Some(false)),
            (r#""running""#, Some(true)),
            (r#""later""#, None),
        ] {
            let told = said(&format!(r#"{{"type":"beat","job":{field}}}"#));
            assert!(
                matches!(told, Said::Beat { beat, .. } if beat.job == want),
                "{field}"
            );
        }
        assert_eq!((b.holder, b.stack.as_deref()), (Some(71), Some("a1b2c3d4")));
        assert_eq!(b.steps, None);
        for (field, want) in [
            ("null", None),
            (r#"{"tid":7}"#, None),
            (
                r#"{"tid":7,"total":20.0,"left":true}"#,
                Some((Some(7), Some(true))),
            ),
            (r#"{"tid":null,"total":20,"left":null}"#, Some((None, None))),
        ] {
            let told = said(&format!(r#"{{"type":"beat","steps":{field}}}"#));
            let Said::Beat { beat, .. } = told else {
                panic!()
            };
            assert_eq!(beat.steps.map(|s| (s.tid, s.left)), want, "{field}");
        }
        let op = b.op.unwrap();
        assert_eq!(op.tid, Some(71));
        assert_eq!((op.age_ms, b.ops, b.calls, b.cpu_ms), (12_500, 2, 7, 1250));
        assert_eq!(
            op.words(),
            "conv3d 1x16x9x64x64, weight 128x16x3x3x3, float16 on cuda:0"
        );
        assert!(op.is_on_card() && op.is_convolution());

        assert_eq!(
            said(r#"{"type":"phase","phase":"sampling","section":2,"sections":3,"new":[]}"#),
            Said::Phase {
                phase: Phase::Sampling,
                section: Some(2),
                sections: Some(3)
            }
        );
        assert_eq!(
            said(r#"{"type":"progress","n":3.0,"total":null,"desc":"","unit":"it"}"#),
            Said::Progress {
                done: 3.0,
                total: None,
                what: None
            }
        );
        let Said::Note(AgentWord::Finding(f)) = said(
            r#"{"type":"finding","verdict":"device_mismatch","text":"a","cure":"b","fixed":true}"#,
        ) else {
            panic!()
        };
        assert_eq!((f.verdict, f.fixed), (VerdictId::DeviceMismatch, true));
        let Said::Note(AgentWord::Vault(v)) = said(
            r#"{"type":"vault","event":"saved","what":"latents","path":"/home/me/vault/a.safetensors","bytes":12}"#,
        ) else {
            panic!()
        };
        assert_eq!(v.file.as_deref(), Some("a.safetensors"));
        assert_eq!(
            said(r#"{"type":"fix","what":"tiles","vae_tile":256,"t":1}"#),
            Said::Note(AgentWord::Fix {
                what: "tiles".to_owned(),
                detail: "vae_tile=256".to_owned()
            })
        );
    }

    #[test]
    fn what_is_newer_is_left_out_and_what_is_no_message_is_refused() {
        for (line, kind) in [
            (r#"{"type":"weather","t":1}"#, "weather"),
            (r#"{"type":"phase","phase":"dreaming"}"#, "phase"),
            (r#"{"type":"job","state":"postponed"}"#, "job"),
        ] {
            let kind = kind.to_owned();
            assert_eq!(said(line), Said::Unknown { kind }, "{line}");
        }
        assert_eq!(
            said(r#"{"type":"finding","verdict":"boredom","text":"x"}"#),
            Said::Note(AgentWord::Problem {
                text: "boredom: x".to_owned()
            })
        );
        assert_eq!(parse(b"[1]"), Err(Malformed::NoObject));
        assert_eq!(parse(b"{\"t\":1}"), Err(Malformed::NoType));
        assert_eq!(parse(b"\xff\xfe"), Err(Malformed::NoObject));
    }

    #[test]
    fn nothing_reaches_a_terminal_that_moves_its_cursor() {
        let Said::Note(AgentWord::Problem { text }) =
            said(r#"{"type":"problem","text":"a\u001b[2Jb\nc"}"#)
        else {
            panic!()
        };
        assert_eq!(text, "a [2Jb c");
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
            "(sampling|cuda:0|SIGUSR2|failed|device_mismatch)".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                proptest::collection::btree_map(name(), inner, 0..4)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    fn name() -> impl Strategy<Value = String> {
        "(seq|pid|t|protocol|phase|n|total|ops|shape|weight|age_s|memory|allocated|tiers|state|error|id|ok|value|verdict|text|fixed|checks|name|path|bytes|[a-z]{1,3})"
    }

    proptest! {
        /// Any object of any type is read, and no list or text grows.
        #[test]
        fn any_fields_are_survived(
            kind in "(hello|beat|phase|progress|job|conv|finding|fix|vault|preflight|error|hooked|hook_failed|problem|torch|dropped|reply|bye|[a-z]{0,5})",
            fields in proptest::collection::btree_map(name(), json(), 0..8),
        ) {
            let mut map: Map<String, Value> = fields.into_iter().collect();
            map.insert("type".to_owned(), Value::from(kind));
            let line = serde_json::to_vec(&Value::Object(map)).unwrap();
            let told = parse(&line).unwrap();
            if let Said::Note(word) = told.said {
                let text = serde_json::to_string(&word).unwrap();
                prop_assert!(text.len() < 64 * 8 * SENTENCE);
                let back: AgentWord = serde_json::from_str(&text).unwrap();
                prop_assert_eq!(back, word);
            }
        }

        /// Foreign bytes do no harm.
        #[test]
        fn any_bytes_are_survived(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _outcome = parse(&line);
        }
    }
}
