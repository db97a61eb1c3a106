//! The program alone: the start screen in a real terminal, and its plain text.

use std::ffi::OsString;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{BINARY, Card, Home, Start, assert_none_left, python, wait_until, workload};
use crate::terminal::Terminal;

const LIMIT: Duration = Duration::from_mins(1);
const SMALL: (u16, u16) = (80, 24);
const LARGE: (u16, u16) = (120, 36);

/// `framepack-tui` without a word, at this card.
fn alone(home: &Home, card: &Card, size: (u16, u16)) -> Terminal {
    let mut program: Vec<OsString> = card.enter().into_iter().map(Into::into).collect();
    program.push(BINARY.into());
    Terminal::open(home, size, &program)
}

/// A process that no run of ours supervises; ended at the end of the test.
struct Foreign(Child);

impl Foreign {
    /// A tiny FramePack generation that takes longer than the test.
    fn framepack(home: &Home) -> Self {
        let mut command = Command::new(python());
        command.arg(workload("tiny_framepack.py")).arg("--out");
        command.arg(home.out()).args(["--step-seconds", "30"]);
        home.dress(&mut command);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.stderr(Stdio::null()).spawn().unwrap())
    }

    fn end(&mut self) {
        // Only fails when it has already ended.
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.end();
    }
}

/// Moves the mark of the list onto the line with this word. Generations of other tests
/// come into the list and leave it meanwhile, so each press waits for what it did and
/// goes where the line is then; a line that is not shown is looked for down and up.
fn mark(terminal: &mut Terminal, word: &str) {
    let place = |t: &Terminal| {
        let text = t.text();
        let lines = || text.lines().enumerate();
        // the title of the list has the same sign
        let at = lines().find(|(_, l)| l.contains("▶") && l.contains("pid "));
        let wanted = lines().find(|(_, l)| l.contains(word) && l.contains("FramePack"));
        (at.map(|(i, _)| i), wanted.map(|(i, _)| i))
    };
    let until = Instant::now() + LIMIT;
    let mut seek = ["j", "k"];
    loop {
        let key = match place(terminal) {
            (Some(at), Some(wanted)) if at == wanted => return,
            (Some(at), Some(wanted)) if wanted < at => "k",
            (_, Some(_)) => "j",
            _ => seek[0],
        };
        assert!(Instant::now() < until, "not marked: {}", terminal.text());
        let before = place(terminal);
        terminal.press(key);
        if !wait_until(Duration::from_secs(2), || place(terminal) != before) {
            seek.reverse();
        }
    }
}

/// The card, a generation that somebody else started, looked at until it ends.
fn look_at_a_running_generation(size: (u16, u16)) {
    let home = Home::new();
    let card = Card::rx7900xtx();
    card.set("busy=97 power_w=280 vram_used=17G");
    let mut foreign = Foreign::framepack(&home);
    let mut terminal = alone(&home, &card, size);
    for word in ["7900 XTX", "17.0/24.0 GiB", "97 %", "no run is recorded"] {
        terminal.wait_for(word, LIMIT);
    }
    mark(&mut terminal, &format!("pid {} ", foreign.0.id()));
    terminal.press("\r");
    terminal.wait_for("READ-ONLY", LIMIT);
    terminal.wait_for("nothing is judged", LIMIT);
    terminal.press("k");
    terminal.wait_for("k: not our process", LIMIT);
    terminal.press("s");
    terminal.wait_for("s: not our process", LIMIT);
    foreign.end();
    terminal.wait_for("The process has ended", LIMIT);
    terminal.press("\x1b");
    terminal.wait_for("Recent runs", LIMIT);
    terminal.press("q");
    terminal.assert_restored(0);
    assert_none_left(&home);
}

#[test]
fn a_running_generation_is_looked_at_80x24() {
    look_at_a_running_generation(SMALL);
}

#[test]
fn a_running_generation_is_looked_at_120x36() {
    look_at_a_running_generation(LARGE);
}

/// Nothing was ever done here, and there is nowhere to keep anything.
#[test]
fn without_a_home_and_runs_it_is_friendly() {
    for size in [SMALL, LARGE] {
        let home = Home::new();
        let words = [
            "env",
            "HOME=/nonexistent",
            "XDG_STATE_HOME=/nonexistent/state",
            "XDG_CONFIG_HOME=",
            BINARY,
        ];
        let mut terminal = Terminal::open(&home, size, &words.map(OsString::from));
        terminal.wait_for("type the command of your generation", LIMIT);
        terminal.wait_for("cpu-only", LIMIT);
        terminal.press("o?");
        terminal.wait_for("show this list", LIMIT);
        terminal.press("\x1b");
        assert!(wait_until(LIMIT, || !terminal
            .text()
            .contains("show this list")));
        terminal.press("\x03");
        terminal.assert_restored(0);
    }
}

/// A recorded run is opened, and leaving it comes back.
#[test]
fn a_recorded_run_is_opened_and_left() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let words = ["sh", "-c", "say() { echo $1 word; }; say only"];
    Start::new(&home)
        .command(&words)
        .start()
        .finish(LIMIT)
        .assert_exit(0);
    for size in [SMALL, LARGE] {
        let mut terminal = alone(&home, &card, size);
        terminal.wait_for("finished", LIMIT);
        terminal.press("o");
        terminal.wait_for("only word", LIMIT);
        terminal.wait_for("ENDED 0", LIMIT);
        // the profiles can be read, though nothing can be switched here
        terminal.press("3\x1b[D");
        terminal.wait_for("rx7900xtx-safe", LIMIT);
        terminal.press("1q");
        terminal.wait_for("Recent runs", LIMIT);
        terminal.press("q");
        terminal.assert_restored(0);
    }
}

/// A line with an open quote is kept; mended, the run takes over, and its exit code is
/// ours.
fn type_a_command(size: (u16, u16)) {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let mut terminal = alone(&home, &card, size);
    terminal.wait_for("7900 XTX", LIMIT);
    terminal.press("r");
    terminal.wait_for("options of run go before it", LIMIT);
    // pasted: its characters are kept, and enter is a key of its own
    terminal.press("--profile generic-amd -- sh -c 'echo typed $((6*7)); exit 7");
    terminal.wait_for("exit 7", LIMIT);
    terminal.press("\r");
    terminal.wait_for("a quote is open", LIMIT);
    terminal.press("'");
    terminal.wait_for("exit 7'", LIMIT);
    terminal.press("\r");
    terminal.wait_for("typed 42", LIMIT);
    terminal.wait_for("generic-amd", LIMIT);
    terminal.wait_for("ENDED 20", LIMIT);
    terminal.press("q");
    terminal.assert_restored(20);
    let manifest = std::fs::read_to_string(home.record().join("manifest.json")).unwrap();
    assert!(manifest.contains("echo typed"), "{manifest}");
    assert_none_left(&home);
}

#[test]
fn a_command_is_typed_and_run_80x24() {
    type_a_command(SMALL);
}

#[test]
fn a_command_is_typed_and_run_120x36() {
    type_a_command(LARGE);
}

/// What only the setup finds wrong comes back to the line as it was typed; mended, it
/// runs.
#[test]
fn a_command_that_is_refused_comes_back_to_the_line() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let mut terminal = alone(&home, &card, SMALL);
    terminal.wait_for("7900 XTX", LIMIT);
    terminal.press("r");
    terminal.wait_for("options of run go before it", LIMIT);
    terminal.press("--profile nosuch -- sh -c 'echo typed $((6*7))'");
    terminal.wait_for("6*7))'", LIMIT);
    terminal.press("\r");
    terminal.wait_for("not started: no profile is called", LIMIT);
    terminal.wait_for("--profile nosuch -- sh", LIMIT);
    terminal.press("\x15--cap 99TiB -- sh -c 'echo typed $((6*7))'");
    terminal.wait_for("99TiB -- sh", LIMIT);
    terminal.press("\r");
    // found after the card was looked at, with the screen of the run already up
    terminal.wait_for("not started: the VRAM cap", LIMIT);
    terminal.press("\x15sh -c 'echo typed $((6*7))'");
    terminal.wait_for("run: sh -c", LIMIT);
    terminal.press("\r");
    terminal.wait_for("typed 42", LIMIT);
    terminal.wait_for("ENDED", LIMIT);
    terminal.press("q");
    terminal.assert_restored(0);
    assert_none_left(&home);
}

/// What a screen reader is given, and what is said where there is nothing to draw on.
#[test]
fn plain_text_and_no_terminal() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let mut foreign = Foreign::framepack(&home);
    let output = |words: &[&str]| {
        let mut command = card.inside(BINARY);
        command.args(words).current_dir(home.dir());
        home.dress(&mut command);
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
        )
    };
    let (code, text, said) = output(&["--plain", "--ascii"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(text.is_ascii() && !text.contains('\x1b'), "{text}");
    let pid = format!("pid {}", foreign.0.id());
    for word in [
        "7900 XTX",
        "no run is recorded",
        "generic-amd",
        &pid,
        "to start:",
    ] {
        assert!(text.contains(word), "no `{word}` in:\n{text}");
    }
    foreign.end();
    let (code, text, said) = output(&[]);
    assert_eq!((code, text.as_str()), (Some(64), ""));
    assert!(said.contains("--plain") && said.contains("run"), "{said}");
    let (code, _, said) = output(&["--plain", "run", "--", "true"]);
    assert_eq!(code, Some(64), "{said}");
}
