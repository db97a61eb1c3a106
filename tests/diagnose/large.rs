//! The program itself: exit codes, and memory that does not grow with the files.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_framepack-tui");
const MIB: u64 = 1 << 20;
/// What the program may take. Patterns are compiled as lines need them.
const MOST_KIB: u64 = 96 * 1024;

/// Writes a console of this size: long lines (what a line holds beyond 8 KiB is cut, so they
/// are quick), bars, a line without an end.
fn console(path: &Path, size: u64) -> u64 {
    let mut out = BufWriter::new(File::create(path).unwrap());
    let mut written = 0;
    let mut n = 0_u64;
    writeln!(
        out,
        "To see the GUI go to: http://127.0.0.1:8188\ngot prompt"
    )
    .unwrap();
    while written < size {
        n += 1;
        let text = if n.is_multiple_of(7) {
            format!("\r {n}%|####      | {n}/900000 [00:19<00:26, 1.57s/it]\n")
        } else {
            format!("{n} {}\n", "word ".repeat(12_000))
        };
        out.write_all(text.as_bytes()).unwrap();
        written += text.len() as u64;
    }
    out.write_all(&vec![b'y'; 8 * 1024 * 1024]).unwrap();
    out.flush().unwrap();
    fs::metadata(path).unwrap().len()
}

/// Answer and peak memory in KiB of `diagnose --json PATH`.
fn measured(path: &Path) -> (serde_json::Value, u64) {
    let out = tempfile::NamedTempFile::new().unwrap();
    let mut child = Command::new(PROGRAM)
        .args(["diagnose", "--json"])
        .arg(path)
        .stdout(Stdio::from(out.reopen().unwrap()))
        .spawn()
        .unwrap();
    let mut peak = 0;
    let status = loop {
        let text = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
        let kib = line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok());
        peak = kib.unwrap_or(0).max(peak);
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(status.success());
    let text = fs::read_to_string(out.path()).unwrap();
    (serde_json::from_str(&text).unwrap(), peak)
}

#[test]
fn a_log_of_64_mib_takes_no_more_memory_than_a_small_one() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("big.log");
    console(&path, 64 * MIB);
    let (answer, peak) = measured(&path);
    assert_eq!(answer["source"], "log");
    assert!(answer["stats"]["lines"].as_u64().unwrap() > 1000);
    assert!(peak > 0 && peak < MOST_KIB, "{peak} KiB");
}

#[test]
fn so_does_one_of_many_short_lines() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("short.log");
    let mut out = BufWriter::new(File::create(&path).unwrap());
    writeln!(
        out,
        "To see the GUI go to: http://127.0.0.1:8188\ngot prompt"
    )
    .unwrap();
    let lines = 16 * MIB / 80;
    for n in 0..lines {
        writeln!(out, "{n:09} {}", "word ".repeat(14)).unwrap();
    }
    out.flush().unwrap();
    drop(out);
    let (answer, peak) = measured(&path);
    assert!(answer["stats"]["lines"].as_u64().unwrap() > lines);
    assert!(peak > 0 && peak < MOST_KIB, "{peak} KiB");
}

#[test]
fn so_does_a_case_with_such_a_console() {
    let tmp = tempfile::tempdir().unwrap();
    let length = console(&tmp.path().join("console.log"), 16 * MIB);
    fs::write(
        tmp.path().join("console.idx"),
        format!("t_s,byte_start,byte_end\n1.5,0,{length}\n"),
    )
    .unwrap();
    let (answer, peak) = measured(tmp.path());
    assert_eq!(answer["source"], "case");
    assert!(peak > 0 && peak < MOST_KIB, "{peak} KiB");
}

fn code(args: &[&str]) -> (i32, String) {
    let out = Command::new(PROGRAM)
        .arg("diagnose")
        .args(args)
        .env("XDG_STATE_HOME", "/nonexistent")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    (out.status.code().unwrap(), said)
}

#[test]
fn exit_codes_are_those_of_the_contract() {
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/fp-7900xtx-vae-silent-hang");
    let (ok, _) = code(&[case.to_str().unwrap()]);
    assert_eq!(ok, 0, "also where a fault was found");
    assert_eq!(code(&[]).0, 64);
    assert_eq!(code(&["-"]).0, 65, "nothing was pasted");
    assert_eq!(code(&["./no/such/file"]).0, 66);
    assert_eq!(code(&["20260101-0000-abcd"]).0, 66);
    let (broken, said) = code(&[PROGRAM]);
    assert_eq!(broken, 65);
    assert!(said.contains("no text"), "{said}");
}
