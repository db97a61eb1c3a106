//! `runs export --with-text` asks on a terminal before free text goes out.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use framepack_tui::record::bundle;

use crate::harness::{BINARY, Home, Start};
use crate::terminal::Terminal;

const LIMIT: Duration = Duration::from_mins(2);
const QUESTION: &str = "Add it to the file? [y/N]";

/// A record with lines and arguments of its own.
fn recorded() -> Home {
    let home = Home::new();
    let run = Start::new(&home).python("print('a crimson sentence', flush=True)");
    run.start().finish(LIMIT).assert_exit(0);
    home
}

fn export(home: &Home, size: (u16, u16)) -> (Terminal, PathBuf) {
    let out = home.out().join("bundle.tgz");
    let words = [BINARY, "runs", "export", "last", "--with-text", "-o"].map(OsString::from);
    let program = [&words[..], &[out.clone().into()]].concat();
    (Terminal::open(home, size, &program), out)
}

fn has_the_line(bundle: &Path) -> bool {
    let events = bundle::open(bundle).unwrap();
    serde_json::to_string(events.events())
        .unwrap()
        .contains("crimson")
}

#[test]
fn what_would_go_out_is_counted_before_the_question_and_only_yes_lets_it_out() {
    let home = recorded();
    for (size, answer, code) in [
        ((80, 24), "n\n", 64),
        ((80, 24), "\n", 64),
        ((40, 60), "yes please\n", 64),
        ((80, 24), "\u{4}", 64),
        ((80, 24), "y\n", 0),
    ] {
        let (mut terminal, out) = export(&home, size);
        terminal.wait_for("[y/N]", LIMIT);
        let text = terminal.text();
        let counted = text.find("console lines").or_else(|| text.find("console"));
        assert!(counted < text.find("[y/N]") && counted.is_some(), "{text}");
        assert!(size.0 < 80 || text.contains(QUESTION), "{text}");
        assert!(!out.exists(), "written before the answer");
        terminal.press(answer);
        terminal.assert_restored(code);
        assert_eq!(out.exists(), code == 0, "{answer:?}");
        assert!(code != 0 || has_the_line(&out));
    }
}

/// A key that was pressed before the question was drawn answers nothing.
#[test]
fn what_was_typed_before_the_question_does_not_answer_it() {
    let home = recorded();
    let (mut terminal, out) = export(&home, (80, 24));
    terminal.press("y\n");
    terminal.wait_for(QUESTION, LIMIT);
    assert!(!out.exists(), "{}", terminal.text());
    terminal.press("n\n");
    terminal.assert_restored(64);
    assert!(!out.exists());
}
