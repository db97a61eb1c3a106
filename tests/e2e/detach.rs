//! A run on a terminal is its screen alone: what becomes of the run when the screen is left,
//! closed or killed, and what keys do on a screen that was attached again.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use rustix::process::Signal;

use crate::harness::{
    BINARY, Card, Home, Start, assert_none_left, kill, parent, python, recorded_text, session,
    wait_until,
};
use crate::terminal::Terminal;

const SOON: Duration = Duration::from_mins(2);
const SIZES: [(u16, u16); 2] = [(80, 24), (30, 8)];

/// A program that goes on until it is ended, or until this file is there.
fn program(home: &Home) -> [OsString; 3] {
    let text = format!(
        "
import os, time
print('re' + 'ady', flush=True)
while not os.path.exists({:?}):
    time.sleep(0.1)
print('done', flush=True)
",
        home.path("gate")
    );
    [python().into(), "-c".into(), text.into()]
}

/// `framepack-tui run` of that program, under way.
fn run(home: &Home, card: &Card, size: (u16, u16)) -> Terminal {
    let mut words: Vec<OsString> = vec!["--profile".into(), "generic-amd".into(), "--".into()];
    words.extend(program(home));
    let terminal = Terminal::start(home, card, size, &words);
    terminal.wait_for(stands(size), SOON);
    recorded(home, r#""text":"ready""#);
    terminal
}

/// `framepack-tui follow` in another terminal.
fn follow(home: &Home, size: (u16, u16)) -> Terminal {
    let terminal = Terminal::open(home, size, &[BINARY, "follow"].map(OsString::from));
    terminal.wait_for(stands(size), SOON);
    if size.1 > 10 {
        // the record has been read that far
        terminal.wait_for("ready", SOON);
    }
    terminal
}

/// A word of the screen that a run has at this size.
const fn stands(size: (u16, u16)) -> &'static str {
    if size.1 < 10 { "WATCHING" } else { "[1]Dash" }
}

fn record(home: &Home) -> String {
    recorded_text(&home.record())
}

fn recorded(home: &Home, what: &str) {
    let seen = wait_until(SOON, || record(home).contains(what));
    assert!(seen, "`{what}` is not recorded:\n{}", record(home));
}

fn times(home: &Home, what: &str) -> usize {
    record(home).matches(what).count()
}

fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|s| !s.contains(") Z "))
}

const LOST: &str = r#""command":"terminal_lost""#;
const ATTACHED: &str = r#""command":"screen_attached""#;

/// A command that no signal stands for.
fn choose_a_cap(home: &Home, screen: &mut Terminal) {
    screen.press(":");
    screen.wait_for(":_", SOON);
    screen.press("cap 21G");
    screen.wait_for(":cap 21G_", SOON);
    screen.press("\r");
    recorded(home, r#""command":"set""#);
    recorded(home, r#""kind":"replanned""#);
}

/// Left by its key, attached again, held to ask, ended by a key.
fn detach_and_attach(size: (u16, u16)) {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let mut first = run(&home, &card, size);
    let pid = home.supervisor();
    assert_eq!(session(pid), pid, "it leads a session of its own");
    let socket = home.record().join("control.sock");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&socket) & 0o777, 0o600);
    assert_eq!(mode(&home.record()) & 0o777, 0o700);
    first.press("q");
    first.wait_for("detach", SOON);
    first.press("2");
    first.wait_for("exit 0", SOON);
    let id = home.manifest()["run"].as_str().unwrap().to_owned();
    if size.1 > 10 {
        // the last line, to be copied
        first.assert_restored(0);
        let text = first.text();
        let before_exit: Vec<_> = text
            .lines()
            .take_while(|l| !l.starts_with("exit "))
            .collect();
        assert_eq!(
            *before_exit.last().unwrap(),
            format!("framepack-tui follow {id}")
        );
    } else {
        first.wait_for(&id, SOON);
        assert!(!first.full_screen());
    }
    recorded(&home, LOST);
    assert!(is_alive(pid));
    assert!(!record(&home).contains("run_finished"));

    let mut second = follow(&home, size);
    recorded(&home, ATTACHED);
    second.press("k");
    second.wait_for("Kill the run?", SOON);
    second.press("n");
    assert!(wait_until(SOON, || !second
        .text()
        .contains("Kill the run?")));
    if size.1 > 10 {
        choose_a_cap(&home, &mut second);
    }
    second.press("s");
    second.wait_for("Stop the run?", SOON);
    second.press("y");
    second.wait_for("STOPPED", SOON);
    recorded(&home, r#""exit_code":130"#);
    second.press("q");
    second.wait_for("exit 0", SOON);
    assert_eq!(times(&home, ATTACHED), 1);
    assert_none_left(&home);
    assert!(!socket.exists(), "the socket goes with its supervisor");
}

#[test]
fn detach_and_attach_at_80x24() {
    detach_and_attach(SIZES[0]);
}

#[test]
fn detach_and_attach_at_30x8() {
    detach_and_attach(SIZES[1]);
}

/// The terminal is closed, then another screen is killed: the run goes on to its own end.
fn closed_and_killed(size: (u16, u16)) {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let first = run(&home, &card, size);
    let pid = home.supervisor();
    first.close();
    recorded(&home, LOST);
    assert!(is_alive(pid));

    let second = follow(&home, size);
    recorded(&home, ATTACHED);
    kill(second.program(), Signal::KILL).unwrap();
    assert!(
        wait_until(SOON, || times(&home, LOST) == 2),
        "{}",
        record(&home)
    );
    assert!(is_alive(pid));
    std::fs::write(home.path("gate"), "").unwrap();
    recorded(&home, r#""exit_code":0"#);
    assert!(record(&home).contains(r#""text":"done""#));
    assert!(!record(&home).contains(r#""kind":"signal_sent""#));
    assert_none_left(&home);
}

#[test]
fn closed_and_killed_at_80x24() {
    closed_and_killed(SIZES[0]);
}

#[test]
fn closed_and_killed_at_30x8() {
    closed_and_killed(SIZES[1]);
}

/// SIGKILL takes the process that was started, and nothing of the run.
#[test]
fn the_screen_that_started_the_run_is_killed() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let terminal = run(&home, &card, SIZES[0]);
    let pid = home.supervisor();
    kill(parent(pid), Signal::KILL).unwrap();
    terminal.wait_for("exit 137", SOON);
    recorded(&home, LOST);
    assert!(is_alive(pid));
    std::fs::write(home.path("gate"), "").unwrap();
    recorded(&home, r#""exit_code":0"#);
    assert_none_left(&home);
}

/// What one screen does the other one shows, and a question that has settled itself is closed.
#[test]
fn two_screens_show_the_same_run() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let mut one = run(&home, &card, SIZES[0]);
    let mut two = follow(&home, SIZES[0]);
    two.press("e");
    recorded(&home, r#""command":"evidence""#);
    one.wait_for("evidence 1 in", SOON);
    two.wait_for("evidence 1 in", SOON);
    two.press("k");
    two.wait_for("Kill the run?", SOON);
    one.press("s");
    one.wait_for("Stop the run?", SOON);
    one.press("y");
    one.wait_for("STOPPED", SOON);
    two.wait_for("STOPPED", SOON);
    assert!(!two.text().contains("Kill the run?"), "{}", two.text());
    one.press("q");
    one.assert_restored(130);
    two.press("q");
    two.assert_restored(0);
    assert_eq!(times(&home, ATTACHED), 0, "a person was there all the time");
    assert_eq!(times(&home, r#""command":"kill""#), 0);
    assert_none_left(&home);
}

/// The exit code is the run's, whether it ends by itself or by a signal to the screen.
#[test]
fn the_exit_code_passes_through() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    for (text, signal, code) in [
        ("raise SystemExit(0)", None, 0),
        ("import sys; sys.exit('no luck')", None, 20),
        (
            "import time; print('up', flush=True); time.sleep(600)",
            Some(Signal::TERM),
            143,
        ),
        (
            "import time; print('up', flush=True); time.sleep(600)",
            Some(Signal::INT),
            130,
        ),
    ] {
        let home = if code == 0 { &home } else { &Home::new() };
        let mut words: Vec<OsString> = vec!["--".into(), python().into(), "-c".into()];
        words.push(text.into());
        let mut terminal = Terminal::start(home, &card, SIZES[0], &words);
        if let Some(signal) = signal {
            terminal.wait_for(stands(SIZES[0]), SOON);
            recorded(home, r#""text":"up""#);
            kill(parent(home.supervisor()), signal).unwrap();
        } else {
            terminal.wait_for(&format!("ENDED {code}"), SOON);
            terminal.press("q");
        }
        terminal.assert_restored(code);
        assert_none_left(home);
    }
}

/// A supervisor that is killed takes the program with it, and the screen says so.
#[test]
fn a_supervisor_that_is_killed_is_missed() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let mut terminal = run(&home, &card, SIZES[0]);
    kill(home.supervisor(), Signal::KILL).unwrap();
    terminal.wait_for("the supervisor of this run has ended", SOON);
    terminal.assert_restored(70);
    assert!(terminal.text().contains("signal: 9"), "{}", terminal.text());
    assert_none_left(&home);
}

/// A run without a terminal takes keys from a screen that attaches to it as well.
#[test]
fn a_run_without_a_screen_gets_one() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let run = Start::new(&home).card(&card).command(&program(&home));
    let run = run.start();
    assert!(wait_until(SOON, || home
        .path("state/framepack-tui/runs")
        .exists()));
    recorded(&home, r#""text":"ready""#);
    let mut screen = follow(&home, SIZES[0]);
    recorded(&home, ATTACHED);
    // the recorder hands on what it has within a second: until then the screen is behind
    screen.wait_for("LIVE", SOON);
    choose_a_cap(&home, &mut screen);
    screen.press("q");
    screen.assert_restored(0);
    recorded(&home, LOST);
    std::fs::write(home.path("gate"), "").unwrap();
    run.finish(SOON).assert_exit(0);
}
