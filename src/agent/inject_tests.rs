//! Tests of the way into a command.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Default)]
struct Disk {
    heads: BTreeMap<String, Vec<u8>>,
    pth: Vec<String>,
}

impl Disk {
    fn with(files: &[(&str, &str)]) -> Self {
        let heads = files.iter();
        Self {
            heads: heads
                .map(|(k, v)| ((*k).to_owned(), v.as_bytes().to_vec()))
                .collect(),
            pth: Vec::new(),
        }
    }
}

impl Look for Disk {
    fn head(&self, program: &str) -> Option<Vec<u8>> {
        self.heads.get(program).cloned()
    }
    fn has_pth(&self, interpreter: &str) -> bool {
        self.pth.iter().any(|p| p == interpreter)
    }
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn of(line: &str, disk: &Disk) -> Way {
    way(&words(line), Path::new("/a"), disk)
}

#[test]
fn python_and_what_starts_it_are_left_as_they_are() {
    let disk = Disk::with(&[
        ("./run.sh", "#!/bin/sh\nexec python x.py"),
        ("./app", "#!/usr/bin/env python3\n"),
        ("./tool", "#!/opt/venv/bin/python -u\n"),
    ]);
    for line in [
        "python demo.py",
        "/v/bin/python3.11 -u -s -W ignore -X dev demo.py --x -I",
        "env A=1 B=2 nice -n 5 python -m app",
        "timeout -k 5 60 python -c code",
        "uv run app.py",
        "accelerate launch train.py",
        "./run.sh --port 1",
        "./app x",
        "./tool x",
        "bash start.sh",
    ] {
        let way = of(line, &disk);
        assert_eq!((way.argv, way.launcher), (words(line), false), "{line}");
        assert_eq!(way.python, Ok(()), "{line}");
    }
}

#[test]
fn the_launcher_comes_between_the_flags_and_the_program() {
    let disk = Disk {
        pth: vec!["./embed/python".to_owned()],
        ..Disk::with(&[("./iso", "#!/usr/bin/python3 -I\n")])
    };
    for (line, want) in [
        ("python -I x.py a", "python -I /a/fpt_run.py x.py a"),
        (
            "nice python -s -E -u x.py",
            "nice python -s -E -u /a/fpt_run.py x.py",
        ),
        (
            "python -uS -m app --x",
            "python -uS /a/fpt_run.py -m app --x",
        ),
        ("python -Ic code a", "python -I /a/fpt_run.py -c code a"),
        ("python -Im app", "python -I /a/fpt_run.py -m app"),
        ("python -I -mapp b", "python -I /a/fpt_run.py -m app b"),
        ("python -IX dev x.py", "python -IX dev /a/fpt_run.py x.py"),
        (
            "./embed/python main.py",
            "./embed/python /a/fpt_run.py main.py",
        ),
        ("./iso a b", "/usr/bin/python3 -I /a/fpt_run.py ./iso a b"),
        (
            "env -u PYTHONPATH python x.py",
            "env -u PYTHONPATH python /a/fpt_run.py x.py",
        ),
    ] {
        let way = of(line, &disk);
        assert_eq!(way.argv.join(" "), want, "{line}");
        assert!(way.launcher && way.python.is_ok(), "{line}");
    }
}

#[test]
fn a_path_that_the_command_sets_is_added_to() {
    let disk = Disk::default();
    let way = of("env PYTHONPATH=/mine python x.py", &disk);
    assert_eq!(way.argv.join(" "), "env PYTHONPATH=/a:/mine python x.py");
    assert!(!way.launcher);
    assert_eq!(python_path("/a", Some("")), "/a");
    assert_eq!(python_path("/a", None), "/a");
}

#[test]
fn no_agent_is_expected_of_other_programs_and_none_is_forced_in() {
    let disk = Disk::with(&[("./prog", "\u{7f}ELF")]);
    for line in [
        "sleep 60",
        "./prog",
        "docker run x",
        "python -I -",
        "python -E",
        "env -i python x.py",
    ] {
        let way = of(line, &disk);
        assert!(way.python.is_err(), "{line}");
        assert_eq!((way.argv, way.launcher), (words(line), false), "{line}");
    }
    let told = |text: &str| {
        let argv = ["sh", "-c", text].map(str::to_owned);
        way(&argv, Path::new("/a"), &disk).python.is_ok()
    };
    assert!(told("exec python3 x.py") && told("cd x && uv run y"));
    assert!(!told("sleep 5; echo done"));
}

proptest! {
    /// Whatever the command, its words are all there in their order; the launcher at most
    /// is new, and a word that joins a flag and `-c` is cut in two.
    #[test]
    fn no_word_is_lost(line in proptest::collection::vec(
        "(env|nice|-n|5|-i|-u|A=1|python|python3|-I|-E|-Ic|-m|-W|-X|-|--|x[.]py|sh|-c|\\PC{0,4})", 0..8,
    )) {
        let disk = Disk { pth: vec!["python3".to_owned()], ..Disk::default() };
        let way = way(&line, Path::new("/a"), &disk);
        if way.launcher {
            let at = way.argv.iter().rposition(|w| w == "/a/fpt_run.py");
            prop_assert!(at.is_some());
            let glued: String = way.argv.iter().filter(|w| *w != "/a/fpt_run.py")
                .map(|w| w.replace('-', "")).collect();
            let before: String = line.iter().map(|w| w.replace('-', "")).collect();
            prop_assert_eq!(glued, before);
        } else {
            prop_assert_eq!(&way.argv, &line);
        }
    }
}
