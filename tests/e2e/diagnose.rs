//! The diagnosis of a hang on the screen of the real binary.

use std::time::Duration;

use crate::harness::{Card, Home, assert_none_left};
use crate::terminal::{Terminal, generation};

/// A decode that hangs without a word: the verdict, what it rests on and the countdown are
/// on the screen; a false alarm spares the run and says which limit was raised.
fn a_hang_is_explained(size: (u16, u16)) {
    let home = Home::new();
    let mut card = Card::rx7900xtx();
    card.follow(&home, 0);
    let words = generation(&home, &[], &["--fault", "hang-idle"]);
    let mut terminal = Terminal::start(&home, &card, size, &words);
    terminal.wait_for("HEALTHY", Duration::from_mins(2));
    terminal.press("d");
    terminal.wait_for("Findings and rules", Duration::from_secs(10));
    terminal.wait_for("SUSPECT", Duration::from_mins(3));
    terminal.wait_for("KILL  in ", Duration::from_mins(3));
    // a minute more, so that the screen can be read
    terminal.press("w");
    terminal.wait_for("60 s more", Duration::from_secs(10));
    let text = terminal.text();
    for word in [
        "HUNG",
        "find_stall",
        "in vae_decode",
        "matched",
        "KILL  in ",
        "marks",
        "[2]Diag",
    ] {
        assert!(
            text.contains(word),
            "`{word}` is not on the screen:\n{text}"
        );
    }
    // what a finding rests on
    terminal.press("\x1b[B\r");
    terminal.wait_for("Events behind it", Duration::from_secs(10));
    terminal.press("q");
    terminal.press("f");
    terminal.wait_for("find_stall: limit ", Duration::from_secs(10));
    terminal.wait_for(" for this run", Duration::from_secs(10));
    // the raised limit comes first where there are few rows
    let before = if size.1 < 30 {
        "you called it a false alarm"
    } else {
        "p: the marks before"
    };
    terminal.wait_for(before, Duration::from_secs(20));
    terminal.press("\x03");
    terminal.assert_restored(130);
    assert_none_left(&home);
}

#[test]
fn a_hang_is_explained_at_80x24() {
    a_hang_is_explained((80, 24));
}

#[test]
fn a_hang_is_explained_at_120x36() {
    a_hang_is_explained((120, 36));
}
