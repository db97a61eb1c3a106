//! The cases of `tests/corpus`, made anew by its seeded generator.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use framepack_tui::model::VerdictId;

use crate::case::{self, Case};
use crate::{judge, player};

/// Cases that are not answered rightly yet, and what is missing. One that is must leave
/// this list.
const NOT_YET: &[(&str, &str)] = &[
    (
        "comfy-4090m-node-failed",
        "phase: `got prompt` alone is taken for model_load",
    ),
    (
        "forge-7600xt-truncated-weights",
        "phase: a server that does not announce its job is idle by its lines",
    ),
    (
        "hunyuan-mi100-cgroup-kill",
        "phase: `Loading torch model` of a logger is not recognised",
    ),
    (
        "hy3d-6700xt-tensile",
        "phase: a server that does not announce its job is idle by its lines",
    ),
    (
        "kohya-7900xtx-bitsandbytes-missing",
        "phase: what comes after `loading model` is still model_load",
    ),
    (
        "numpy-780m-array-too-large",
        "phase: frames are counted, and the phase is still model_load",
    ),
    (
        "script-rx6800-dots",
        "phase: `sampling ....` without a line end",
    ),
    (
        "sdnext-7600xt-database-timeout",
        "phase: SD.Next announces its job and no phase",
    ),
    (
        "sdnext-rx6800-half-float",
        "phase: SD.Next announces its job and no phase",
    ),
    (
        "wan-7800xt-tiles-crawl",
        "phase: a bar `tiles:` after the loading bar is still model_load",
    ),
    (
        "wan-9070xt-no-space-for-video",
        "phase: the ffmpeg subprocess that fails belongs to save",
    ),
];

/// Every case, in the order of their names.
pub(crate) fn cases() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(|| {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        let made =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("corpus-{:016x}", source(&tests)));
        if !made.is_dir() {
            // several tests may make it at once; the first to be done is kept
            let out = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
            let run = Command::new("python3")
                .arg("-B")
                .arg(tests.join("corpus/generate.py"))
                .arg(out.path())
                .output();
            let run = run.expect("python3 makes the cases");
            let said = String::from_utf8_lossy(&run.stderr);
            assert!(run.status.success(), "{said}");
            let _ = std::fs::rename(out.path(), &made);
        }
        folder(&made)
    })
}

/// What the cases are made by, as a number: another source, another folder.
fn source(tests: &Path) -> u64 {
    let mut hash = DefaultHasher::new();
    let mut files = vec![tests.join("cases/casegen.py")];
    let own = std::fs::read_dir(tests.join("corpus")).unwrap();
    files.extend(own.map(|e| e.unwrap().path()));
    files.sort();
    for f in files
        .iter()
        .filter(|f| f.extension().is_some_and(|e| e == "py"))
    {
        std::fs::read(f).unwrap().hash(&mut hash);
    }
    hash.finish()
}

/// The cases in a folder.
pub(crate) fn folder(root: &Path) -> Vec<Case> {
    let mut dirs: Vec<_> = std::fs::read_dir(root)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.join("expected.toml").is_file())
        .collect();
    dirs.sort();
    dirs.iter().map(|d| case::read(d)).collect()
}

#[test]
fn every_case_of_our_own_is_judged_rightly() {
    let mut failed = String::new();
    let mut right = 0;
    for case in cases() {
        let got = player::play(case);
        let mut bad = judge::never(case, &got);
        bad.extend(judge::answer(case, &got));
        let listed = NOT_YET.iter().find(|(name, _)| *name == case.name);
        right += usize::from(bad.is_empty());
        match listed {
            Some((_, why)) if bad.is_empty() => {
                bad.push(format!("is right now; take it off the list ({why})"));
            }
            Some(_) => bad.clear(),
            None => {}
        }
        if !bad.is_empty() {
            let list = bad.join("\n  ");
            write!(failed, "{}\n  {list}\n{}", case.name, got.story()).unwrap();
        }
    }
    println!("{right} of {} cases are judged rightly", cases().len());
    assert!(failed.is_empty(), "{failed}");
}

#[test]
fn the_list_of_what_is_missing_names_cases() {
    let names: BTreeSet<_> = cases().iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names.len(), cases().len());
    for (name, why) in NOT_YET {
        assert!(names.contains(name), "{name} is no case");
        assert!(!why.is_empty(), "{name}: why?");
    }
}

#[test]
fn every_verdict_is_asked_for() {
    let asked: BTreeSet<_> = cases().iter().map(|c| c.expected.verdict).collect();
    // a recording has no probes, which say what a thread waits for, no files and no link of the
    // card: live programs show these (tests/proof, tests/core), and quiet is the state before any
    // sign of a job
    let live = [
        VerdictId::RemoteWait,
        VerdictId::NotEnded,
        VerdictId::Quiet,
        VerdictId::SlowLink,
    ];
    let missing: Vec<_> = VerdictId::ALL
        .iter()
        .filter(|v| !asked.contains(v) && !live.contains(v))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
