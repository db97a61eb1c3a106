//! Logs modelled on public reports: the verdict and the cure that `answers.toml` names.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use framepack_tui::diagnose::report::Report;
use framepack_tui::diagnose::{Source, diagnose};
use framepack_tui::model::Severity;
use serde::Deserialize;

#[derive(Deserialize)]
struct Answers {
    log: Vec<Answer>,
}

/// See `reports/README.md`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    file: String,
    verdict: String,
    #[serde(default)]
    accept: Vec<String>,
    #[serde(default)]
    must_not: Vec<String>,
    action: String,
    #[serde(default)]
    accept_action: Vec<String>,
    #[serde(default)]
    cure_any: Vec<String>,
    #[serde(default)]
    sentence_any: Vec<String>,
    cause: Option<String>,
    #[serde(default)]
    control: bool,
    /// Not all of the text is read.
    #[serde(default)]
    read: bool,
    #[expect(dead_code, reason = "for people")]
    source: String,
    #[expect(dead_code, reason = "for people")]
    note: String,
}

fn any(words: &[String], text: &str) -> bool {
    let text = text.to_lowercase();
    words.is_empty() || words.iter().any(|w| text.contains(&w.to_lowercase()))
}

/// What is wrong with an answer.
fn faults(want: &Answer, got: &Report, lines: u64) -> Vec<String> {
    let mut wrong = Vec::new();
    let verdict = got.verdict.as_str().to_owned();
    if verdict != want.verdict && !want.accept.contains(&verdict) {
        wrong.push(format!("verdict {verdict}, expected {}", want.verdict));
    }
    for found in got.findings.iter().map(|f| f.verdict).chain([got.verdict]) {
        if want.must_not.iter().any(|w| w == found.as_str()) {
            wrong.push(format!("must not say {found}"));
        }
    }
    let action = got.action.id.as_str().to_owned();
    if action != want.action && !want.accept_action.contains(&action) {
        wrong.push(format!("action {action}, expected {}", want.action));
    }
    if !any(&want.cure_any, &got.action.why) {
        wrong.push(format!("cure: {}", got.action.why));
    }
    if !any(&want.sentence_any, &got.sentence) {
        wrong.push(format!("sentence: {}", got.sentence));
    }
    let cause = got.cause.as_ref().map(|c| c.id.as_str());
    if want.cause.is_some() && want.cause.as_deref() != cause {
        wrong.push(format!("cause {cause:?}, expected {:?}", want.cause));
    }
    if want.control && got.severity >= Severity::Error {
        wrong.push("alarm in a control".to_owned());
    }
    let read: u64 = got.read.iter().map(|p| p.to_line + 1 - p.from_line).sum();
    if want.read && read >= lines {
        wrong.push("the prose is read".to_owned());
    }
    wrong
}

#[test]
fn reports_get_their_verdict_and_their_cure() {
    score("tests/diagnose/reports", 80);
}

#[test]
fn lines_at_the_level_of_an_error_decide_only_where_nothing_survives_them() {
    score("tests/diagnose/levels", 20);
}

fn answers(folder: &Path) -> Answers {
    let text = fs::read_to_string(folder.join("answers.toml")).unwrap();
    toml::from_str(&text).unwrap()
}

/// The causes that the reports show.
pub(crate) fn causes() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnose/reports");
    let logs = answers(&folder).log.into_iter();
    logs.filter_map(|a| a.cause).collect()
}

/// Every log of a folder against its answers.
fn score(folder: &str, least: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let answers = answers(&folder);
    assert!(answers.log.len() >= least);
    let (mut table, mut right) = (String::new(), 0);
    for want in &answers.log {
        let path = folder.join(&want.file);
        let got = diagnose(&Source::at(&path).unwrap()).unwrap();
        let lines = fs::read_to_string(&path).unwrap().lines().count() as u64;
        let wrong = faults(want, &got, lines);
        right += usize::from(wrong.is_empty());
        for what in wrong {
            let _ = writeln!(table, "{}: {what}", want.file);
        }
    }
    assert!(
        table.is_empty(),
        "{right} of {} right\n{table}",
        answers.log.len()
    );
}
