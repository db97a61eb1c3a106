//! `docs/doctor.md` against the code.

use std::collections::BTreeSet;

use serde_json::Value;

use super::finding::{Group, Id, Severity};
use super::judge::testing::healthy;
use super::report::{Report, SCHEMA};

const DOC: &str = include_str!("../../docs/doctor.md");

/// Names of fields, but not names of variables, packages, architectures, nor what
/// `docs/events.md` describes.
fn fields(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                into.insert(key.clone());
                let of_others = ["environment", "packages", "archs", "cards", "host"];
                if !of_others.contains(&key.as_str()) {
                    fields(value, into);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|v| fields(v, into)),
        _ => {}
    }
}

#[test]
fn the_document_names_every_finding_and_no_other() {
    let ids: BTreeSet<&str> = Id::ALL.iter().map(|id| id.word()).collect();
    for group in Group::ALL {
        assert!(DOC.contains(&format!("### {}", group.word())), "{group:?}");
    }
    let section = DOC.split("## Findings").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let listed: BTreeSet<&str> = section
        .lines()
        .filter_map(|l| l.strip_prefix("| `")?.split('`').next())
        .collect();
    assert_eq!(listed, ids);
}

#[test]
fn the_document_names_every_field() {
    let mut facts = healthy();
    facts.system_mut().container = Some("docker".to_owned());
    let report = Report::of(facts);
    let mut names = BTreeSet::new();
    fields(&serde_json::to_value(&report).unwrap(), &mut names);
    let missing: Vec<_> = names
        .iter()
        .filter(|f| !DOC.contains(&format!("`{f}`")))
        .collect();
    assert_eq!(missing, Vec::<&String>::new());
    assert!(DOC.contains(&format!("version {SCHEMA}")));
}

/// Names at the beginning of the rows of the table after `heading`.
fn rows(heading: &str) -> BTreeSet<&'static str> {
    let table = DOC.split(heading).nth(1).unwrap().trim_start();
    let rows = table
        .lines()
        .skip_while(|l| !l.starts_with("| `"))
        .take_while(|l| l.starts_with("| `"));
    let names = rows.flat_map(|l| l.split('|').nth(1).unwrap().split(", "));
    names.map(|n| n.trim().trim_matches('`')).collect()
}

#[test]
fn the_tables_of_facts_have_a_row_for_each_field_and_no_other() {
    let report = serde_json::to_value(Report::of(healthy())).unwrap();
    let keys = |value: &Value| -> BTreeSet<String> {
        value.as_object().unwrap().keys().cloned().collect()
    };
    let told =
        |heading| -> BTreeSet<String> { rows(heading).into_iter().map(str::to_owned).collect() };
    let facts = &report["facts"];
    assert_eq!(told("### Facts\n"), keys(facts));
    let answered = &facts["python"]["outcome"]["answered"];
    assert_eq!(told("`answered` of `python`:\n"), keys(answered));
}

#[test]
fn the_worst_makes_the_exit_code() {
    assert_eq!(Report::of(healthy()).exit_code, 0);
    let warned = Report::of(healthy().with("MIOPEN_FIND_MODE", "NORMAL"));
    assert_eq!((warned.exit_code, warned.summary.warnings), (1, 1));
    let failed = Report::of(
        healthy()
            .with("MIOPEN_FIND_MODE", "NORMAL")
            .with("MIOPEN_FIND_ENFORCE", "DB_ONLY"),
    );
    assert_eq!(failed.exit_code, 2);
    assert_eq!(failed.findings[0].severity, Severity::Error, "worst first");
    let total = failed.summary;
    assert_eq!(
        total.ok + total.notes + total.warnings + total.errors,
        failed.findings.len()
    );
}
