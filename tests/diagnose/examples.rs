//! Each cause with logs that it explains, and the table of all causes in the documentation.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use framepack_tui::causes::{Cause, catalogue};
use framepack_tui::diagnose::report::Report;
use framepack_tui::diagnose::{Source, diagnose};
use framepack_tui::model::{ActionId, VerdictId};
use serde::Deserialize;

/// Causes that no text alone shows: they need readings of a run. `src/causes/choice.rs`
/// tests them.
const BY_READINGS: &[&str] = &[
    "gtt_limit_of_the_kernel",
    "launch_failed_at_full_memory",
    "launch_failed_at_full_memory_in_decode",
];

#[derive(Deserialize)]
struct File {
    log: Vec<Example>,
}

#[derive(Deserialize)]
struct Example {
    cause: String,
    text: String,
}

/// Judges a pasted text.
pub(crate) fn judge(text: &str) -> Report {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("pasted.txt");
    fs::write(&path, text).unwrap();
    diagnose(&Source::at(&path).unwrap()).unwrap()
}

/// The examples by the verdict that their file is named after.
fn examples() -> BTreeMap<VerdictId, Vec<Example>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnose/causes");
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let verdict = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
        let file: File = toml::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        all.insert(verdict, file.log);
    }
    all
}

#[test]
fn each_cause_has_an_example_that_it_explains() {
    let mut wrong = String::new();
    let mut shown = BTreeSet::new();
    for (verdict, logs) in examples() {
        for log in logs {
            let got = judge(&log.text);
            let cause = got.cause.as_ref().map(|c| c.id.as_str());
            if got.verdict != verdict || cause != Some(log.cause.as_str()) {
                let _ = writeln!(
                    wrong,
                    "{}: {} by {cause:?}, not {verdict}: {}",
                    log.cause, got.verdict, got.sentence
                );
            }
            shown.insert(log.cause);
        }
    }
    shown.extend(crate::switches::causes());
    shown.extend(crate::reports::causes());
    for cause in catalogue().causes() {
        let known = shown.contains(&cause.id) || BY_READINGS.contains(&cause.id.as_str());
        if !known {
            let _ = writeln!(wrong, "{} has no example", cause.id);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn there_are_enough_causes_and_their_words_agree() {
    let all = catalogue().causes();
    assert!(all.len() >= 80, "{}", all.len());
    for cause in all {
        let reboots = cause.action == Some(ActionId::RebootHost);
        let cure = cause.cure.to_lowercase();
        if cause.verdict == VerdictId::GpuUnavailable && !reboots {
            assert!(!cure.starts_with("reboot"), "{}", cause.id);
        }
        if reboots {
            assert!(
                cure.contains("reboot") || cure.contains("off and on"),
                "{}",
                cause.id
            );
        }
        for cure in cause.variants.iter().map(|v| &v.cure).chain([&cause.cure]) {
            // a person reads it in one breath
            assert!(cure.len() < 420, "{}: {}", cause.id, cure.len());
            assert!(cure.ends_with(['.', ')']), "{}: {cure}", cause.id);
        }
        let sentence = cause.sentence.as_deref().unwrap_or(".");
        assert!(sentence.ends_with('.'), "{}", cause.id);
    }
}

/// A cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// What shows a cause, in words.
fn shown_by(cause: &Cause) -> String {
    let patterns = cause.signs.len();
    let mut parts = Vec::new();
    if patterns > 0 {
        parts.push(format!(
            "{patterns} sign{}",
            if patterns == 1 { "" } else { "s" }
        ));
    }
    if !cause.with.is_empty() {
        parts.push("further words".to_owned());
    }
    if cause.needs.count() > 0 {
        parts.push("facts".to_owned());
    }
    if cause.decides.is_some() {
        parts.push("decides".to_owned());
    }
    parts.join(", ")
}

fn table() -> String {
    let mut text = format!(
        "# Causes\n\nMade from the files in `causes/` by the test `the_table_is_up_to_date` (`UPDATE_DOCS=1 cargo test --test diagnose the_table` writes it anew).\n\
         A verdict says what kind of failure it was, a cause says why and what to do. {} causes.\n\
         `docs/decisions/0019-causes-are-data.md` says how they are written.\n",
        catalogue().causes().len()
    );
    let mut last = None;
    for cause in catalogue().causes() {
        if last != Some(cause.verdict) {
            last = Some(cause.verdict);
            let _ = write!(
                text,
                "\n## `{}`\n\n| cause | what happened | what to do | shown by | source |\n| --- | --- | --- | --- | --- |\n",
                cause.verdict
            );
        }
        let action = cause
            .action
            .map_or_else(String::new, |a| format!(" (`{a}`)"));
        let variants: Vec<String> = cause
            .variants
            .iter()
            .map(|v| {
                let programs = v.needs.program.join(", ");
                let place = if programs.is_empty() {
                    "with more known".to_owned()
                } else {
                    programs
                };
                format!("<br>*{place}:* {}", v.cure)
            })
            .collect();
        let cure = format!("{}{}", cause.cure, variants.concat());
        let _ = writeln!(
            text,
            "| `{}` | {} | {}{action} | {} | <{}> |",
            cause.id,
            cell(cause.sentence.as_deref().unwrap_or("as the verdict says")),
            cell(&cure.replace("[[", "").replace("]]", "")),
            shown_by(cause),
            cause.source
        );
    }
    text
}

#[test]
fn the_table_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/causes.md");
    let made = table();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == made,
        "docs/causes.md is out of date: UPDATE_DOCS=1 cargo test --test diagnose the_table"
    );
}
