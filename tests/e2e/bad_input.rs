//! Bad input: one clear message, its exit code, no child, no backtrace.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use framepack_tui::model::Event;

use crate::decode::{files, latents, model, refused, words};
use crate::harness::{BINARY, Card, Finished, Home, Start};

const LIMIT: Duration = Duration::from_mins(1);

/// The exit code is `code`, the message names every one of `words`, nothing was launched.
fn assert_refused(run: &Finished, code: u8, words: &[&str]) {
    run.assert_exit(code);
    let launched = run.all(|e| matches!(e, Event::Spawned { .. }).then_some(()));
    assert!(launched.is_empty(), "launched all the same{}", run.digest());
    let mut said = run.stderr.clone();
    for text in run.all(message) {
        said.push('\n');
        said.push_str(&text);
    }
    for word in words {
        assert!(said.contains(word), "`{word}` is not named in:\n{said}");
    }
}

fn message(event: &Event) -> Option<String> {
    match event {
        Event::Notice { text, .. } => Some(text.clone()),
        Event::SpawnFailed { why, .. } => Some(why.clone()),
        Event::RunFinished { summary, .. } => Some(summary.clone()),
        _ => None,
    }
}

#[test]
fn a_time_scale_outside_its_bounds() {
    for factor in [0, 5] {
        let home = Home::new();
        let start = Start::new(&home).time_scale(factor).command(&["true"]);
        assert_refused(&start.start().finish(LIMIT), 64, &["FPT_TIME_SCALE"]);
    }
}

#[test]
fn missing_command() {
    let home = Home::new();
    let run = Start::new(&home).start().finish(LIMIT);
    assert_refused(&run, 64, &["--"]);
}

#[test]
fn unknown_option() {
    let home = Home::new();
    let start = Start::new(&home).options(&["--hedless"]).command(&["true"]);
    assert_refused(&start.start().finish(LIMIT), 64, &["--hedless"]);
}

#[test]
fn command_not_found() {
    let home = Home::new();
    let start = Start::new(&home).command(&["no-such-program-anywhere"]);
    assert_refused(
        &start.start().finish(LIMIT),
        66,
        &["no-such-program-anywhere"],
    );
}

/// What a shell says of a program that it cannot run: 66 where there is none, 20 where it is
/// broken.
#[test]
fn commands_that_are_no_programs() {
    let home = Home::new();
    let file = |name: &str, bytes: &[u8]| {
        let path = home.path(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path.display().to_string()
    };
    let folder = home.path("out").display().to_string();
    let orphan = file("orphan", b"#!/nowhere/python3\nprint(1)\n");
    let broken = file("broken", b"\x7fELF\x02\x01\x01\0 not a program");
    for (word, code, said) in [
        (&folder, 66, "it is a folder"),
        (&orphan, 66, "/nowhere/python3"),
        (&broken, 20, "damaged"),
    ] {
        let start = Start::new(&home).command(&[word]);
        assert_refused(&start.start().finish(LIMIT), code, &[said]);
    }
}

#[test]
fn a_script_without_its_first_line_runs_as_in_a_shell() {
    let home = Home::new();
    let script = home.path("gen");
    std::fs::write(&script, "echo \"one $1\"; exit 0\n").unwrap();
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    let start = Start::new(&home).command(&[script.to_str().unwrap(), "two words"]);
    let mut run = start.start();
    run.wait_for_line("one two words", LIMIT);
    run.finish(LIMIT).assert_exit(0);
}

#[test]
fn arguments_that_are_no_text_arrive_as_they_are() {
    let home = Home::new();
    let word = OsStr::from_bytes(b"caf\xe9-\xff.png");
    let (python, code) = (
        "python3",
        "import os, sys; print(os.fsencode(sys.argv[1]).hex())",
    );
    let start =
        Start::new(&home).command(&[OsStr::new(python), OsStr::new("-c"), OsStr::new(code), word]);
    let mut run = start.start();
    run.wait_for_line("636166e92dff2e706e67", LIMIT);
    run.finish(LIMIT).assert_exit(0);
}

/// What `TZ` names is read to no end by whoever reads it without a bound.
#[test]
fn a_time_zone_without_an_end() {
    let home = Home::new();
    for (name, value) in [("TZ", ":/dev/zero"), ("TZ", "/dev/zero")] {
        let limited = "ulimit -v 4000000; exec \"$@\"";
        let mut command = Command::new("timeout");
        command.args([
            "30", "sh", "-c", limited, "sh", BINARY, "run", "--plain", "--", "true",
        ]);
        home.dress(&mut command);
        let output = command.env(name, value).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
    }
}

/// With no descriptor left it is no bug of ours, and is never called one.
#[test]
fn a_full_table_of_descriptors() {
    for limit in [4, 6, 10, 16, 24, 40, 50, 54, 60] {
        let home = Home::new();
        let limited = format!("ulimit -n {limit}; exec \"$@\"");
        let mut command = Command::new("timeout");
        command.args([
            "30", "sh", "-c", &limited, "sh", BINARY, "run", "--plain", "--", "true",
        ]);
        home.dress(&mut command);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let code = output.status.code();
        assert!(
            !matches!(code, Some(70 | 101 | 124) | None),
            "{limit}: {code:?} {said}"
        );
    }
}

#[test]
fn a_profile_with_a_zero_byte() {
    let home = Home::new();
    let file = home.path("zero.toml");
    let text = "schema = 1\n[profile]\nid = \"zero\"\nversion = \"1.0.0\"\ntitle = \"x\"\n\
                [env.set]\nMIOPEN_USER_DB_PATH = \"{attempt_dir}/a\\u0000b\"\n";
    std::fs::write(&file, text).unwrap();
    let start = Start::new(&home)
        .options(&["--profile", file.to_str().unwrap()])
        .command(&["true"]);
    assert_refused(
        &start.start().finish(LIMIT),
        65,
        &["zero.toml", "zero byte"],
    );
}

#[test]
fn profile_not_found() {
    let home = Home::new();
    let start = Start::new(&home)
        .options(&["--profile", "generic-adm"])
        .command(&["true"]);
    // With the nearest name that exists.
    assert_refused(
        &start.start().finish(LIMIT),
        66,
        &["generic-adm", "generic-amd"],
    );
}

#[test]
fn profile_that_is_no_toml() {
    let home = Home::new();
    let file = home.path("broken.toml");
    std::fs::write(&file, "schema = 1\n[profile\nid = \"broken\"\n").unwrap();
    let start = Start::new(&home)
        .options(&["--profile", file.to_str().unwrap()])
        .command(&["true"]);
    assert_refused(&start.start().finish(LIMIT), 65, &["broken.toml"]);
}

#[test]
fn profile_with_an_unknown_key() {
    let home = Home::new();
    let file = home.path("typo.toml");
    let text = "schema = 1\n[profile]\nid = \"typo-example\"\nversion = \"1.0.0\"\n\
                title = \"A typing error\"\n[limits]\nvram_cpa = \"20 GiB\"\n";
    std::fs::write(&file, text).unwrap();
    let start = Start::new(&home)
        .options(&["--profile", file.to_str().unwrap()])
        .command(&["true"]);
    assert_refused(
        &start.start().finish(LIMIT),
        65,
        &["typo.toml", "vram_cpa", "vram_cap"],
    );
}

#[test]
fn cap_that_is_no_size() {
    let home = Home::new();
    let start = Start::new(&home)
        .options(&["--cap", "twenty"])
        .command(&["true"]);
    assert_refused(&start.start().finish(LIMIT), 64, &["twenty"]);
}

#[test]
fn cap_above_the_card() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let start = Start::new(&home)
        .card(&card)
        .options(&["--cap", "48GiB"])
        .command(&["true"]);
    assert_refused(&start.start().finish(LIMIT), 73, &["48", "24"]);
}

#[test]
fn card_that_was_asked_for_is_not_there() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let start = Start::new(&home)
        .card(&card)
        .options(&["--gpu", "0000:99:00.0"])
        .command(&["true"]);
    assert_refused(&start.start().finish(LIMIT), 69, &["0000:99:00.0"]);
}

/// MIOpen does not know this word and would silently search as by default.
#[test]
fn exported_value_that_miopen_does_not_know() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let run = Start::new(&home)
        .card(&card)
        .options(&["--profile", "generic-amd"])
        .env("MIOPEN_FIND_MODE", "DYNAMIC")
        .command(&["true"])
        .start()
        .finish(LIMIT);
    let code = run
        .status
        .code()
        .and_then(|c| u8::try_from(c).ok())
        .unwrap();
    assert!([64, 65].contains(&code), "exit code {code}");
    assert_refused(&run, code, &["MIOPEN_FIND_MODE", "DYNAMIC"]);
}

/// A folder that cannot hold a record: said, and the run goes on.
#[test]
fn record_that_cannot_be_written() {
    let home = Home::new();
    let file = home.path("no-folder");
    std::fs::write(&file, "").unwrap();
    let run = Start::new(&home)
        .env("XDG_STATE_HOME", &file)
        .command(&["true"])
        .start()
        .finish(LIMIT);
    run.assert_exit(0);
}

/// What the help of both says of the model's folder, and that it is so.
#[test]
fn the_help_of_decode_and_encode_says_that_nothing_is_written_in_the_models_folder() {
    let home = Home::new();
    for verb in ["decode", "encode"] {
        let help = Command::new(BINARY).args([verb, "--help"]).output();
        let help = String::from_utf8(help.unwrap().stdout).unwrap();
        for words in [
            "in the model's folder (the one with",
            "not in the model's folder",
        ] {
            assert!(help.contains(words), "{verb}: {help}");
        }
    }
    let folder = home.path("vae");
    std::fs::create_dir(&folder).unwrap();
    for (name, bytes) in files(&model()) {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
    let before = files(&folder);
    let file = latents(&home, "l.safetensors", [16, 2, 4, 4]);
    let output = folder.join("o.gif");
    let (code, text) = refused(&home, "decode", &words(&file, &folder, &output), &[]);
    assert_eq!(code, 64, "{text}");
    assert!(text.contains("lies in the model"), "{text}");
    assert!(files(&folder) == before, "the folder is another");
}
