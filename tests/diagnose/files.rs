//! Case folders that are not as they should be.

use std::fs;
use std::path::{Path, PathBuf};

use framepack_tui::diagnose::report::{Report, SourceKind};
use framepack_tui::diagnose::{InputError, Source, diagnose};
use framepack_tui::model::{ActionId, VerdictId};
use proptest::prelude::*;
use tempfile::TempDir;

const HANG: &str = "fp-7900xtx-vae-silent-hang";

/// A copy of a recorded case without its answer.
fn copy(name: &str) -> (TempDir, PathBuf) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cases")
        .join(name);
    let tmp = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap() != "expected.toml" {
            fs::copy(&path, tmp.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    let dir = tmp.path().to_owned();
    (tmp, dir)
}

fn judge(dir: &Path) -> Report {
    diagnose(&Source::at(dir).unwrap()).unwrap()
}

fn told(report: &Report, words: &str) -> bool {
    report.notes.iter().any(|n| n.contains(words))
}

#[test]
fn a_whole_case_needs_no_note_and_names_its_lines() {
    let (_tmp, dir) = copy(HANG);
    let got = judge(&dir);
    assert_eq!(got.verdict, VerdictId::SilentHang);
    assert_eq!(got.notes, Vec::<String>::new());
    assert_eq!(got.source, SourceKind::Case);
    let onset = got.onset_s.unwrap();
    assert!(onset < got.detected_at_s.unwrap());
    let cites = got.findings.iter().flat_map(|f| &f.cites);
    let files: Vec<_> = cites
        .filter_map(|c| Some((c.file.as_deref()?, c.line?)))
        .collect();
    assert!(!files.is_empty());
    assert!(files.iter().all(|(_, line)| *line > 0));
    // the fault is still shown where the recording ends
    assert_eq!(got.history.last().unwrap().verdict, VerdictId::SilentHang);
}

#[test]
fn a_missing_column_is_noted_and_the_rest_judged() {
    let (_tmp, dir) = copy(HANG);
    let path = dir.join("telemetry.csv");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("power_w", "watts_or_so", 1)).unwrap();
    let got = judge(&dir);
    assert_eq!(got.verdict, VerdictId::SilentHang);
    assert!(told(&got, "telemetry.csv:1: there is no column `power_w`"));
    assert!(told(&got, "`watts_or_so` is not known"));
}

#[test]
fn cells_and_bytes_that_are_none_are_noted_with_their_line() {
    let (_tmp, dir) = copy(HANG);
    let path = dir.join("telemetry.csv");
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend(b"\xff\xfe,1,2\n9999,lots,-5,1e400,,,,,,,1\n");
    fs::write(&path, bytes).unwrap();
    let got = judge(&dir);
    assert_eq!(got.verdict, VerdictId::SilentHang);
    assert!(
        told(&got, "`lots` in the column `gpu_busy_pct`"),
        "{:?}",
        got.notes
    );
    assert!(told(&got, "no time, or not later"), "{:?}", got.notes);
}

#[test]
fn without_readings_nothing_is_said_to_hang() {
    let (_tmp, dir) = copy(HANG);
    fs::remove_file(dir.join("telemetry.csv")).unwrap();
    let got = judge(&dir);
    assert!(got.verdict.is_no_fault(), "{}", got.verdict);
    assert!(told(&got, "telemetry.csv is missing"));
}

#[test]
fn without_times_the_console_is_judged_as_text() {
    let (_tmp, dir) = copy("fp-7900xtx-hip-oom-sampling");
    fs::remove_file(dir.join("console.idx")).unwrap();
    let got = judge(&dir);
    assert_eq!(got.source, SourceKind::Log);
    assert_eq!(got.verdict, VerdictId::GpuOom);
    assert!(told(&got, "console.idx is missing"));
    assert_eq!((got.onset_s, got.detected_at_s), (None, None));
}

#[test]
fn an_index_that_is_cut_off_and_one_of_another_file() {
    let (_tmp, dir) = copy("fp-7900xtx-hip-oom-sampling");
    let path = dir.join("console.idx");
    let text = fs::read_to_string(&path).unwrap();
    let half: String = text.split_inclusive('\n').take(10).collect();
    fs::write(&path, half).unwrap();
    assert!(told(&judge(&dir), "the rest of console.log has no times"));
    fs::write(&path, text).unwrap();
    fs::write(dir.join("console.log"), "short\n").unwrap();
    let got = judge(&dir);
    assert!(
        told(&got, "is not whole, or another one"),
        "{:?}",
        got.notes
    );
}

/// A long wait is told, but after the end there is nothing to wait for.
#[test]
fn after_the_end_nobody_is_told_to_wait() {
    let (_tmp, dir) = copy("comfy-6800-first-run-tuning");
    assert_eq!(judge(&dir).action.id, ActionId::Wait);
    let end = "t_s,event,detail\n4000.0,exit,code=0\n";
    fs::write(dir.join("events.csv"), end).unwrap();
    let got = judge(&dir);
    assert_eq!(got.verdict, VerdictId::Finished);
    assert_eq!(got.action.id, ActionId::None);
    assert!(
        got.findings
            .iter()
            .any(|f| f.verdict == VerdictId::CompileWarmup)
    );
}

/// As `<(zcat log.gz)` or /dev/stdin: it can be read once.
#[test]
fn a_pipe_with_a_name_is_read_once() {
    let text = format!(
        "got prompt\n{}\n",
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB."
    );
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut writer, text.as_bytes()).unwrap();
    drop(writer);
    let fd = std::os::fd::AsRawFd::as_raw_fd(&reader);
    let path = std::path::PathBuf::from(format!("/dev/fd/{fd}"));
    let source = Source::at(&path).unwrap();
    assert_eq!(source, Source::Log(path));
    let got = diagnose(&source).unwrap();
    assert_eq!((got.verdict, got.stats.lines), (VerdictId::GpuOom, 2));
}

#[test]
fn broken_meta_is_a_note_with_its_line() {
    let (_tmp, dir) = copy(HANG);
    let path = dir.join("meta.toml");
    fs::write(&path, "vendor = \"amd\"\nargv = 7\n").unwrap();
    let got = judge(&dir);
    assert_eq!(got.verdict, VerdictId::SilentHang);
    assert!(told(&got, "meta.toml is broken"), "{:?}", got.notes);
    assert!(told(&got, "line 2"), "{:?}", got.notes);
    assert!(!told(&got, "`vendor` is missing"), "{:?}", got.notes);
    fs::write(&path, b"vendor = \xff = \"amd").unwrap();
    assert!(told(&judge(&dir), "meta.toml is broken"));
    // only where there is nothing beside it
    let tmp = tempfile::tempdir().unwrap();
    fs::write(tmp.path().join("console.log"), "").unwrap();
    fs::write(tmp.path().join("meta.toml"), "app = \n").unwrap();
    let error = diagnose(&Source::Case(tmp.path().to_owned())).unwrap_err();
    assert!(!error.is_missing());
    assert!(error.to_string().contains("line 1"), "{error}");
    fs::remove_file(&path).unwrap();
    let got = judge(&dir);
    assert!(told(&got, "meta.toml is missing"));
    assert_eq!(got.workload.adapter, "framepack", "by its lines");
}

#[test]
fn readings_of_a_card_of_unknown_make_are_used() {
    for (case, verdict) in [
        (HANG, VerdictId::SilentHang),
        ("fp-7900xtx-busy-counter-after-job", VerdictId::IdleWaiting),
    ] {
        let (_tmp, dir) = copy(case);
        fs::remove_file(dir.join("meta.toml")).unwrap();
        let got = judge(&dir);
        assert_eq!(got.verdict, verdict, "{case}: {:#?}", got.considered);
        assert!(told(&got, "maker, memory and limits of the card"));
        let said = format!("{:?}", got.considered);
        assert!(!said.contains("no reading of a card"), "{said}");
    }
}

#[test]
fn a_folder_without_anything() {
    let tmp = tempfile::tempdir().unwrap();
    let error = Source::at(tmp.path()).unwrap_err();
    assert!(matches!(error, InputError::NothingThere { .. }));
    assert!(error.is_missing());
    assert!(error.to_string().contains("console.log"), "{error}");
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        any::<u8>(),
        Just(b','),
        Just(b'\n'),
        Just(b'\r'),
        b'0'..=b'9',
        Just(b'['),
        Just(b']')
    ];
    proptest::collection::vec(byte, 0..most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_files_are_judged_or_refused(
        console in bytes(300),
        index in bytes(200),
        rows in bytes(300),
        kernel in bytes(100),
        events in bytes(100),
        headed in any::<bool>(),
    ) {
        let tmp = tempfile::tempdir().unwrap();
        let write = |name: &str, head: &str, body: &[u8]| {
            let mut all = if headed { head.as_bytes().to_vec() } else { Vec::new() };
            all.extend(body);
            fs::write(tmp.path().join(name), all).unwrap();
        };
        write("console.log", "", &console);
        write("console.idx", "t_s,byte_start,byte_end\n0,0,3\n", &index);
        write("telemetry.csv", "t_s,gpu_busy_pct,power_w,cpu_pct,proc_alive\n0,1,2,3,1\n", &rows);
        write("kernel.log", "[1.0] x\n", &kernel);
        write("events.csv", "t_s,event,detail\n", &events);
        fs::write(
            tmp.path().join("meta.toml"),
            "vendor = \"amd\"\nargv = [\"python3\", \"x.py\"]\nkernel_t0 = 0.0\n",
        ).unwrap();
        if let Ok(report) = diagnose(&Source::Case(tmp.path().to_owned())) {
            let times = report.history.iter().map(|c| c.t_s);
            let sorted = times.clone().zip(times.skip(1)).all(|(a, b)| a <= b);
            prop_assert!(sorted, "{:?}", report.history);
        }
    }
}
