//! One kind of failure in several programs: each cure names the switch, the command or the part
//! of the program that ran.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;

use crate::examples::judge;

#[derive(Deserialize)]
struct File {
    /// Lines by which a program is known.
    header: BTreeMap<String, String>,
    kind: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    name: String,
    log: Vec<Log>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Log {
    program: String,
    verdict: String,
    cause: String,
    /// All of them stand in the cure.
    cure: Vec<String>,
    text: String,
}

fn file() -> File {
    toml::from_str(include_str!("switches.toml")).unwrap()
}

/// The causes that these inputs show.
pub(crate) fn causes() -> Vec<String> {
    let logs = file().kind.into_iter().flat_map(|k| k.log);
    logs.map(|log| log.cause).collect()
}

#[test]
fn a_cure_names_the_switch_of_the_program_that_ran() {
    let file = file();
    let mut wrong = String::new();
    for kind in &file.kind {
        assert!(
            kind.log.len() >= 5,
            "{}: five inputs for each kind",
            kind.name
        );
        for log in &kind.log {
            let got = judge(&format!("{}{}", file.header[&log.program], log.text));
            let cause = got.cause.as_ref().map_or("none", |c| c.id.as_str());
            let cure = &got.action.why;
            let named = log.cure.iter().all(|word| cure.contains(word));
            if got.verdict.as_str() != log.verdict || cause != log.cause || !named {
                let _ = writeln!(
                    wrong,
                    "{} ({}): {} by {cause}, not {} by {}: {} -- {cure}",
                    kind.name, log.program, got.verdict, log.verdict, log.cause, got.sentence
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
