//! The recorded cases of `tests/cases`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use crate::{case, judge, player};

/// Cases whose verdict is built later, and what is missing. A case that is answered
/// rightly must leave this list.
const NOT_YET: &[(&str, &str)] = &[];

#[test]
fn every_recorded_case_is_judged_rightly() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut dirs: Vec<_> = std::fs::read_dir(&root)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.join("expected.toml").is_file())
        .collect();
    dirs.sort();
    assert!(dirs.len() >= 16, "the corpus is there");

    let mut failed = String::new();
    let mut names = BTreeSet::new();
    for dir in dirs {
        let case = case::read(&dir);
        let got = player::play(&case);
        let mut bad = judge::never(&case, &got);
        let wrong = judge::answer(&case, &got);
        match NOT_YET.iter().find(|(name, _)| *name == case.name) {
            None => bad.extend(wrong),
            Some((_, why)) if wrong.is_empty() && bad.is_empty() => {
                bad.push(format!("is right now; take it off the list ({why})"));
            }
            Some(_) => {}
        }
        if !bad.is_empty() {
            let list = bad.join("\n  ");
            write!(failed, "{}\n  {list}\n{}", case.name, got.story()).unwrap();
        }
        names.insert(case.name);
    }
    for (name, _) in NOT_YET {
        assert!(names.contains(*name), "{name} is no case");
    }
    assert!(failed.is_empty(), "{failed}");
}
