//! What a diagnosis says: plain data; `docs/diagnose.md` has every field.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::{
    ActionId, Cause, CiteKind, Considered, Health, Phase, Questions, Severity, VerdictId,
};

/// Version of the JSON form: major.minor, as in `docs/diagnose.md`.
pub const SCHEMA: &str = "1.4";

/// What was diagnosed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// A case folder: console with times, readings, kernel log.
    Case,
    /// The record of a run.
    Record,
    /// A file that was exported from a record.
    Bundle,
    /// Text of a console without readings: what it says is all there is.
    Log,
}

impl SourceKind {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Case => "case",
            Self::Record => "record",
            Self::Bundle => "bundle",
            Self::Log => "log",
        }
    }
}

/// The program and the machine, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Workload {
    /// Family whose wording was read: `framepack`, `comfyui`, `diffusers`, `generic`.
    pub adapter: String,
    /// Command line; empty: not known.
    pub argv: Vec<String>,
    /// Name of the card.
    pub gpu: Option<String>,
    /// Its architecture.
    pub arch: Option<String>,
    /// The process that was watched, where it was not started by framepack-tui.
    pub watch: Option<u32>,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Action {
    /// The action.
    pub id: ActionId,
    /// What it gives up, 0 to 4.
    pub tier: u8,
    /// Whether a supervisor may restart by itself for it.
    pub auto_restart: bool,
    /// Environment that a restart needs.
    pub env: BTreeMap<String, String>,
    /// In a sentence.
    pub why: String,
}

/// A piece of evidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cited {
    /// What it is.
    pub kind: CiteKind,
    /// File where it stands; absent: not known.
    pub file: Option<String>,
    /// Line of that file, from 1.
    pub line: Option<u64>,
    /// Seconds since the program started; absent: not known.
    pub t_s: Option<f64>,
    /// Its words; for readings the numbers.
    pub text: String,
}

/// A statement with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Found {
    /// The verdict it speaks for.
    pub verdict: VerdictId,
    /// A sentence.
    pub text: String,
    /// How often it was seen.
    pub count: u64,
    /// What it rests on.
    pub cites: Vec<Cited>,
}

/// A change of what is shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Seconds since the program started.
    pub t_s: f64,
    /// What is shown from then on.
    pub verdict: VerdictId,
    /// How far along.
    pub health: Health,
    /// Where.
    pub phase: Phase,
    /// In a sentence.
    pub sentence: String,
}

/// A search of MIOpen that is open where the recording ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OpenSearch {
    /// The convolution, in MIOpen's words.
    pub key: String,
    /// The solver that was being tried last.
    pub solver: Option<String>,
    /// How far it had come, in MIOpen's figures.
    pub detail: Option<String>,
    /// Line of the console that told of it last.
    pub line: Option<u64>,
}

/// A line of the console.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Words {
    /// Its number, from 1; absent: not known.
    pub line: Option<u64>,
    /// Its text.
    pub text: String,
}

/// A part of a text that was read as the log of one program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReadPart {
    /// Its first line, from 1.
    pub from_line: u64,
    /// Its last line.
    pub to_line: u64,
    /// The program whose log it is, as far as its lines tell; else the wording that it was
    /// read by.
    pub program: String,
}

/// How much was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Stats {
    /// Lines of the console; each state of a bar counts.
    pub lines: u64,
    /// Rows or samples of readings.
    pub rows: u64,
    /// Lines of the kernel log.
    pub kernel_lines: u64,
    /// What was recorded as dropped.
    pub dropped: u64,
    /// Seconds that the recording covers; absent: it has no times.
    pub duration_s: Option<f64>,
}

/// The whole answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Version of this program.
    pub program: &'static str,
    /// What was diagnosed.
    pub source: SourceKind,
    /// Its name, as it was asked for.
    pub path: String,
    /// The main answer: the most severe verdict that held; among those that are no faults
    /// the last.
    pub verdict: VerdictId,
    /// How far along it was.
    pub health: Health,
    /// How bad it is.
    pub severity: Severity,
    /// 0 to 1; absent: not judged, see `notes`.
    pub confidence: Option<f64>,
    /// Where it happened; for what is no fault, where it stood at the end.
    pub phase: Phase,
    /// Section of a section-wise generation.
    pub section: Option<u32>,
    /// In a sentence.
    pub sentence: String,
    /// When the trouble began, seconds since the program started; absent: no trouble, or
    /// no times.
    pub onset_s: Option<f64>,
    /// When it could be told.
    pub detected_at_s: Option<f64>,
    /// How the run was brought to its end, with the exit code; absent: it has none, or the
    /// recording does not say.
    pub ended: Option<String>,
    /// What to do.
    pub action: Action,
    /// Why it happened; absent: the evidence does not say.
    pub cause: Option<Cause>,
    /// What it rests on, the main verdict's first.
    pub findings: Vec<Found>,
    /// The three questions and their answers at the main verdict; absent: nothing ran, or the
    /// recording has no times.
    pub questions: Option<Questions>,
    /// Look-alikes and why they are not it.
    pub ruled_out: Vec<String>,
    /// Rules that were asked, and their answers.
    pub considered: Vec<Considered>,
    /// Each change of what is shown.
    pub history: Vec<Change>,
    /// What was suspected for a while; no verdicts.
    pub suspicions: Vec<Change>,
    /// An open search of MIOpen.
    pub find: Option<OpenSearch>,
    /// The last lines of the console, oldest first.
    pub last_words: Vec<Words>,
    /// Which lines of a pasted text were read; empty of anything else.
    pub read: Vec<ReadPart>,
    /// Program and machine.
    pub workload: Workload,
    /// What was missing, repaired, or could not be judged.
    pub notes: Vec<String>,
    /// How much was read.
    pub stats: Stats,
}

/// A judgement or an instruction as a sentence. Those of a cause are written as such, and may
/// begin with the name of a program.
pub(super) fn sentence_case(text: String, of_cause: bool) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) if !of_cause && first.is_ascii_lowercase() => {
            let end = if text.ends_with(['.', '!', '?']) {
                ""
            } else {
                "."
            };
            format!("{}{}{end}", first.to_ascii_uppercase(), letters.as_str())
        }
        _ => text,
    }
}
