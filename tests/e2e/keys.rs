//! Keys that cannot hurt: on the screen of a run, at a usual size and at one that has no room
//! for more than a line of status.

use std::ffi::OsString;
use std::time::Duration;

use framepack_tui::model::{Envelope, Event};

use crate::harness::{BINARY, Card, Home, assert_none_left, python, recorded_text, wait_until};
use crate::terminal::Terminal;

const SOON: Duration = Duration::from_mins(1);
/// A limit of silence, at four times the pace of the clock, on a busy machine.
const LIMIT: Duration = Duration::from_mins(4);
const SIZES: [(u16, u16); 2] = [(80, 24), (30, 8)];

/// `run` of a Python program, the run's clock at this pace.
fn open(home: &Home, card: &Card, size: (u16, u16), scale: u8, text: &str) -> Terminal {
    let mut program: Vec<OsString> = card.enter().into_iter().map(Into::into).collect();
    let scale = format!("FPT_TIME_SCALE={scale}");
    program.extend(
        [
            "env",
            &scale,
            BINARY,
            "run",
            "--profile",
            "generic-amd",
            "--",
        ]
        .map(Into::into),
    );
    program.extend([python().into(), "-c".into(), text.into()]);
    Terminal::open(home, size, &program)
}

/// A word of the screen that a run has at this size.
const fn stands(size: (u16, u16)) -> &'static str {
    if size.1 < 10 { "WATCHING" } else { "[1]Dash" }
}

fn record(home: &Home) -> String {
    recorded_text(&home.record())
}

/// The run was ended by the user, and the terminal is given back; eight rows do not hold what
/// stood there before.
fn ended(terminal: &Terminal) {
    terminal.wait_for("exit 130", SOON);
    assert!(!terminal.full_screen() && !terminal.bracketed_paste());
}

/// Decisions of this kind in the record.
fn decided(home: &Home, what: &str) -> usize {
    record(home).matches(&format!(r#""do":"{what}""#)).count()
}

/// What only asks, what is refused, and what ends the run.
fn what_ends_asks(size: (u16, u16)) {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let text = "import time\nprint('up', flush=True)\ntime.sleep(600)";
    let mut terminal = open(&home, &card, size, 1, text);
    terminal.wait_for(stands(size), SOON);
    assert!(wait_until(SOON, || record(&home).contains(r#""text":"up""#)));
    assert!(terminal.bracketed_paste(), "pasted text is told from keys");
    for (key, question) in [("k", "Kill the run?"), ("s", "Stop the run?")] {
        terminal.press(key);
        terminal.wait_for(question, SOON);
        terminal.press("n");
        assert!(wait_until(SOON, || !terminal.text().contains(question)));
    }
    // a question and its answer in one breath: the answer was to nothing that could be read
    terminal.press("ky");
    terminal.wait_for("Kill the run?", SOON);
    terminal.press("\x1b");
    assert!(wait_until(SOON, || !terminal
        .text()
        .contains("Kill the run?")));
    // a pasted text, then a key that shows that it has been read
    terminal.press("\x1b[200~sky\x1b[201~k");
    terminal.wait_for("Kill the run?", SOON);
    terminal.press("n");
    assert!(wait_until(SOON, || !terminal
        .text()
        .contains("Kill the run?")));
    let so_far = record(&home);
    assert!(!so_far.contains(r#""kind":"command""#), "{so_far}");
    terminal.press("s");
    terminal.wait_for("Stop the run?", SOON);
    terminal.press("y");
    terminal.wait_for("STOPPED", SOON);
    // the last screen stays until it is left, whatever else is pressed
    terminal.press("x\r y\tk1n\x1b[C5");
    assert!(!wait_until(Duration::from_secs(3), || !terminal.full_screen()));
    assert!(!terminal.text().contains("HEALTHY"), "{}", terminal.text());
    terminal.press("q");
    ended(&terminal);
    assert_none_left(&home);
}

#[test]
fn what_ends_asks_at_80x24() {
    what_ends_asks(SIZES[0]);
}

#[test]
fn what_ends_asks_at_30x8() {
    what_ends_asks(SIZES[1]);
}

/// Words that are no commands run nothing; what cannot be drawn is not typed into.
#[test]
fn a_word_that_is_no_command_runs_nothing() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let text = "import time\nprint('up', flush=True)\ntime.sleep(600)";
    let mut terminal = open(&home, &card, SIZES[0], 1, text);
    terminal.wait_for(stands(SIZES[0]), SOON);
    for word in ["theme", "gpu", "kil", "verify"] {
        terminal.press(":");
        terminal.wait_for(":_", SOON);
        terminal.press(word);
        terminal.wait_for(&format!(":{word}_"), SOON);
        terminal.press("\r");
        // Enter has done nothing to it, and Esc closes it
        terminal.press("x");
        terminal.wait_for(&format!(":{word}x_"), SOON);
        terminal.press("\x1b");
        assert!(wait_until(SOON, || !terminal.text().contains("Commands")));
    }
    terminal.press(":");
    terminal.wait_for(":_", SOON);
    terminal.press("settings");
    terminal.wait_for(":settings_", SOON);
    terminal.press("\r");
    terminal.wait_for("[3]Prof", SOON);
    terminal.resize(SIZES[1]);
    terminal.wait_for(stands(SIZES[1]), SOON);
    // a palette that nobody sees would take the next keys as text
    terminal.press(":");
    assert!(wait_until(SOON, || {
        terminal.press("k");
        terminal.text().contains("Kill the run?")
    }));
    terminal.press("n");
    assert!(!record(&home).contains(r#""kind":"command""#));
    terminal.press("\x03");
    ended(&terminal);
    assert_none_left(&home);
}

/// Steps, and then nothing at all.
const HANGS: &str = "
import sys, threading, time
for n in range(4):
    sys.stderr.write('\\r %d%%|###  | %d/8 [00:0%d<00:04,  1.00it/s]' % (n * 12, n, n))
    sys.stderr.flush()
    time.sleep(1)
threading.Event().wait()
";

/// When the first event came that this is in, on the run's clock.
fn first(home: &Home, what: &[&str]) -> Option<u64> {
    record(home).lines().find_map(|line| {
        let event: serde_json::Value = serde_json::from_str(line).ok()?;
        what.iter()
            .any(|w| line.contains(w))
            .then(|| event["at"].as_u64())?
    })
}

/// A minute more in a countdown is one: the kill comes after it, and no sooner.
fn a_minute_more_in_a_countdown_is_one(size: (u16, u16)) {
    const DECIDED: [&str; 2] = [r#""do":"restart""#, r#""do":"give_up""#];
    const KILL: [&str; 1] = [r#""kind":"signal_sent""#];
    let home = Home::new();
    let card = Card::rx7900xtx();
    let mut terminal = open(&home, &card, size, 4, HANGS);
    terminal.wait_for(stands(size), SOON);
    assert!(wait_until(LIMIT, || first(&home, &DECIDED).is_some()));
    terminal.press("w");
    assert!(wait_until(SOON, || record(&home).contains(r#""command":"wait""#)));
    // a person has 10 s on the run's clock; a machine that stalls may have missed them
    let asked = first(&home, &[r#""command":"wait""#]).unwrap();
    assert!(first(&home, &KILL).is_none_or(|killed| killed > asked));
    assert!(wait_until(LIMIT, || first(&home, &KILL).is_some()));
    let decided = first(&home, &DECIDED).unwrap();
    let killed = first(&home, &KILL).unwrap();
    assert!(
        killed >= decided + 70_000,
        "decided at {decided}, asked to wait at {asked}, killed at {killed}"
    );
    terminal.press("\x03");
    terminal.press("\x03");
    assert!(wait_until(SOON, || !terminal.full_screen() || {
        terminal.press("q");
        false
    }));
    assert_none_left(&home);
}

#[test]
fn a_minute_more_in_a_countdown_is_one_at_80x24() {
    a_minute_more_in_a_countdown_is_one(SIZES[0]);
}

#[test]
fn a_minute_more_in_a_countdown_is_one_at_30x8() {
    a_minute_more_in_a_countdown_is_one(SIZES[1]);
}

/// A minute more at a suspicion is one, and a false alarm in the countdown stays obeyed.
fn an_alarm_is_called_off(size: (u16, u16)) {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let mut terminal = open(&home, &card, size, 4, HANGS);
    terminal.wait_for("SUSPECT", LIMIT);
    let narrow = size.1 < 10;
    if !narrow {
        terminal.wait_for(", then ", SOON);
    }
    terminal.press("w");
    assert!(wait_until(SOON, || record(&home).contains(r#""command":"wait""#)));
    terminal.wait_for("HUNG", LIMIT);
    assert!(wait_until(SOON, || decided(&home, "restart")
        + decided(&home, "give_up")
        == 1));
    terminal.press("f");
    assert!(wait_until(SOON, || record(&home)
        .contains(r#""command":"false_alarm""#)));
    terminal.wait_for("SUSPECT", SOON);
    if !narrow {
        terminal.wait_for("you called it a false alarm", SOON);
    }
    // twice the time between two changes of what is shown, in which it was decided again
    std::thread::sleep(Duration::from_secs(4));
    let text = terminal.text();
    assert!(!text.contains("HEALTHY"), "nothing has moved:\n{text}");
    assert_eq!(decided(&home, "restart") + decided(&home, "give_up"), 1);
    assert_eq!(decided(&home, "resume"), 1);
    terminal.press("\x03");
    ended(&terminal);
    let record = record(&home);
    assert_eq!(record.matches(r#""kind":"evidence_taken""#).count(), 1);
    assert!(!record.contains(r#""signal":"SIGKILL""#), "{record}");
    assert_none_left(&home);
}

#[test]
fn an_alarm_is_called_off_at_80x24() {
    an_alarm_is_called_off(SIZES[0]);
}

#[test]
fn an_alarm_is_called_off_at_30x8() {
    an_alarm_is_called_off(SIZES[1]);
}

/// A card that is found late: no profile is judged, marked or chosen before.
#[test]
fn the_start_screen_waits_for_the_card() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    card.break_file("vendor", "stall");
    card.break_file("uevent", "stall");
    let mut program: Vec<OsString> = card.enter().into_iter().map(Into::into).collect();
    program.push(BINARY.into());
    let mut terminal = Terminal::open(&home, SIZES[0], &program);
    terminal.wait_for("looking for profiles", SOON);
    assert!(!terminal.text().contains("cpu-only"), "{}", terminal.text());
    terminal.press("\t\tp");
    terminal.press("r");
    terminal.wait_for("options of run go before it", SOON);
    terminal.press("\x03");
    terminal.wait_for("with the profile that matches best", SOON);
    assert!(!terminal.text().contains("chosen"), "{}", terminal.text());
    terminal.press("q");
    terminal.assert_restored(0);
}

/// Every line of a flood is in the record, and what the screen does not show is marked there.
#[test]
fn a_flood_is_recorded_whole_and_its_gaps_are_marked() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let text = "
import sys, time
began = time.monotonic()
for n in range(40000):
    print('line', n, 'of a program that tells of each tensor')
    if n % 500 == 0:
        sys.stdout.flush()
        time.sleep(max(0, n / 5000 - (time.monotonic() - began)))
";
    let mut terminal = open(&home, &card, SIZES[0], 1, text);
    terminal.wait_for("ENDED 0", LIMIT);
    terminal.press("5");
    terminal.wait_for("[5]Log", SOON);
    // above the last lines of the flood
    let marked = wait_until(SOON, || {
        terminal.press("\x1b[5~");
        terminal.text().contains(" lines not shown")
    });
    assert!(marked, "{}", terminal.text());
    terminal.press("q");
    terminal.assert_restored(0);
    let mut lines = 0_u64;
    let mut lost = 0_u64;
    for text in record(&home).lines() {
        let envelope: Envelope = serde_json::from_str(text).unwrap();
        match envelope.event {
            Event::Line(line) if line.text.starts_with("line ") => lines += 1,
            Event::Flood(flood) => {
                lines += flood.lines - flood.lost();
                lost += flood.lost();
            }
            Event::Dropped { what, n } if what == "lines" => lost += n,
            _ => {}
        }
    }
    assert_eq!(lines + lost, 40_000, "every line is counted");
    assert!(lost < 2_000, "a busy machine may lose some: {lost}");
    assert_none_left(&home);
}
