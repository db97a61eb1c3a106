//! The last screen of a run that is over: it stays until it is left, and holds nothing of the run.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;

use crate::harness::{BINARY, Card, Home, Start, assert_none_left, python, wait_until};
use crate::terminal::Terminal;

const SOON: Duration = Duration::from_mins(2);

/// A run of this program on a terminal.
fn run(home: &Home, card: &Card, text: &str) -> Terminal {
    let words: Vec<OsString> = ["--profile", "generic-amd", "--"].map(Into::into).to_vec();
    let program = [python().into(), "-c".into(), text.into()];
    let words: Vec<OsString> = words.into_iter().chain(program).collect();
    Terminal::start(home, card, (80, 24), &words)
}

/// Names of the threads of a process.
fn threads(pid: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    let mut names: Vec<String> = names.map(|n| n.trim().to_owned()).collect();
    names.sort();
    names
}

/// What `runs list` says of the run of this home.
fn listed(home: &Home) -> serde_json::Value {
    let mut command = std::process::Command::new(BINARY);
    command.args(["runs", "list", "--json"]);
    home.dress(&mut command);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(text.lines().next().unwrap()).unwrap()
}

/// While it stands, its supervisor reads no card any more, the record is whole, and another run
/// has the card; no key but those that leave it ends it.
#[test]
fn the_last_screen_holds_nothing_of_the_run() {
    let (home, other) = (Home::new(), Home::new());
    let card = Card::rx7900xtx();
    let mut terminal = run(&home, &card, "print('done', flush=True)");
    terminal.wait_for("ENDED 0", SOON);
    let supervisor = home.supervisor();
    let rests = ["hard deadline", "record", "card", "kernel"];
    let resting = || {
        let names = threads(supervisor);
        !names
            .iter()
            .any(|name| rests.iter().any(|r| name.contains(r)))
    };
    assert!(wait_until(SOON, resting), "{:?}", threads(supervisor));
    assert_eq!(listed(&home)["state"], "finished", "{}", listed(&home));
    // the lock lies in a folder that both homes share
    let next = Start::new(&other)
        .card(&card)
        .env("XDG_RUNTIME_DIR", home.path("runtime"));
    let next = next
        .python("print('the next one runs', flush=True)")
        .start();
    next.finish(SOON).assert_exit(0);
    assert!(terminal.full_screen(), "{}", terminal.text());
    // every key that is pressed by accident
    for key in [
        "x", "\r", " ", "\x1b", "y", "n", "s", "k", "1", "2", "3", "5", "\t", "h", "f", "w", "a",
        "o",
    ] {
        terminal.press(key);
    }
    terminal.press("\x1b[200~qqq\x1b[201~");
    // many letters in one read are taken for a pasted text: until the list of keys stands
    assert!(wait_until(SOON, || {
        terminal.press("?");
        terminal.text().contains("filter:")
    }));
    terminal.press("\x1b");
    assert!(wait_until(SOON, || terminal.text().contains("filter: _")
        || {
            terminal.press("\x7f");
            false
        }));
    terminal.press("lea");
    terminal.wait_for("leave this screen; the run is over", SOON);
    assert!(wait_until(SOON, || {
        terminal.press("\x1b");
        !terminal.text().contains("filter:")
    }));
    // Esc and a letter in one read are another key: until the log stands
    assert!(wait_until(SOON, || {
        terminal.press("5");
        terminal.text().contains("[5]Log")
    }));
    terminal.wait_for("ENDED 0", SOON);
    assert!(terminal.full_screen());
    terminal.press("q");
    terminal.assert_restored(0);
    assert_none_left(&home);
}

/// A screen that was attached sees the end, and its supervisor leaves with it.
#[test]
fn an_attached_screen_shows_the_end_and_lets_the_supervisor_go() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let gate = home.path("gate");
    let text = format!(
        "import os, time\nprint('re' + 'ady', flush=True)\nwhile not os.path.exists({gate:?}): time.sleep(0.1)"
    );
    let mut first = run(&home, &card, &text);
    first.wait_for("ready", SOON);
    first.press("q");
    first.wait_for("detach", SOON);
    first.press("2");
    first.assert_restored(0);
    let mut second = Terminal::open(&home, (80, 24), &[BINARY, "follow"].map(OsString::from));
    second.wait_for("ready", SOON);
    std::fs::write(&gate, "").unwrap();
    second.wait_for("ENDED 0", SOON);
    assert_eq!(listed(&home)["state"], "finished", "{}", listed(&home));
    assert!(second.full_screen());
    second.press("q");
    second.assert_restored(0);
    assert_none_left(&home);
}
