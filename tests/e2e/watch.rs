//! A run watched in a real terminal, and steered by keys.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use crate::harness::{
    Card, Home, assert_none_left, kill, parent, python, recorded_text, wait_until,
};
use crate::terminal::{Terminal, generation};

/// Start, hang, limit, evidence, kill, restart and a whole generation, on a busy machine.
const WHOLE: Duration = Duration::from_mins(6);
/// Something that follows a key.
const SOON: Duration = Duration::from_secs(30);
const SIZES: [(u16, u16); 2] = [(80, 24), (120, 36)];

/// `run` of a generation whose second decode hangs until this is set.
fn hanging(home: &Home, cure: &str) -> Vec<OsString> {
    generation(home, &[], &["--fault", "hang-idle", "--cured-by", cure])
}

/// `run` of a Python program.
fn program(text: &str) -> Vec<String> {
    let python = python().display().to_string();
    ["--", &python, "-c", text].map(str::to_owned).into()
}

fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim().chars().next()
}

fn events(home: &Home) -> String {
    recorded_text(&home.record())
}

/// Suspicion, the announced kill, evidence, the restart and the end, as a user sees them.
fn a_recovery(size: (u16, u16)) {
    let home = Home::new();
    let mut card = Card::rx7900xtx();
    card.follow(&home, 0);
    let words = hanging(&home, "MIOPEN_FIND_MODE=FAST");
    let mut terminal = Terminal::start(&home, &card, size, &words);
    terminal.wait_for("HEALTHY", WHOLE);
    terminal.wait_for("vae_decode", WHOLE);
    terminal.wait_for("SUSPECT", WHOLE);
    terminal.wait_for("HUNG", WHOLE);
    terminal.wait_for("KILL  in", SOON);
    terminal.wait_for("attempt 2 on fast_find", WHOLE);
    terminal.wait_for("FINISHED", WHOLE);
    terminal.wait_for(".mp4", SOON);
    terminal.press("q");
    terminal.assert_restored(10);
    assert_none_left(&home);
}

#[test]
fn a_recovery_at_80x24() {
    a_recovery(SIZES[0]);
}

#[test]
fn a_recovery_at_120x36() {
    a_recovery(SIZES[1]);
}

/// An announced kill is held, another rung is put in its place, and it goes ahead when
/// it is released: the run comes home on the user's rung.
fn held_and_overridden(size: (u16, u16)) {
    let home = Home::new();
    let mut card = Card::rx7900xtx();
    card.follow(&home, 0);
    let words = hanging(&home, "MIOPEN_DEBUG_FORCE_IMMED_MODE_FALLBACK=1");
    let mut terminal = Terminal::start(&home, &card, size, &words);
    terminal.wait_for("KILL  in", WHOLE);
    terminal.press("h");
    terminal.wait_for("HELD", SOON);
    // longer than the countdown
    std::thread::sleep(Duration::from_secs(12));
    let record = events(&home);
    assert!(!record.contains(r#""kind":"signal_sent""#), "{record}");
    terminal.press("o");
    terminal.wait_for("Which rung follows?", SOON);
    for _ in 0..20 {
        if marked(&terminal).contains("immediate_naive") {
            break;
        }
        terminal.press("\x1b[B");
        std::thread::sleep(Duration::from_millis(200));
    }
    // nothing is ended by it, so nothing is asked
    terminal.press("\r");
    terminal.wait_for("restart on rung immediate_naive", SOON);
    terminal.press("h");
    terminal.wait_for("attempt 2 on immediate_naive", WHOLE);
    terminal.wait_for("FINISHED", WHOLE);
    terminal.press("q");
    terminal.assert_restored(10);
    let record = events(&home);
    assert!(record.contains(r#""rung":"immediate_naive""#));
    assert!(!record.contains(r#""number":3"#), "one restart");
    assert_none_left(&home);
}

/// The marked row of a list.
fn marked(terminal: &Terminal) -> String {
    let text = terminal.text();
    let row = text.lines().find(|l| l.contains('›'));
    row.unwrap_or_default().to_owned()
}

#[test]
fn held_and_overridden_at_80x24() {
    held_and_overridden(SIZES[0]);
}

#[test]
fn held_and_overridden_at_120x36() {
    held_and_overridden(SIZES[1]);
}

/// A size a frame, down to one cell and up again; the run and the screen go on.
#[test]
fn a_resize_storm_changes_nothing() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let words = program(
        "import time\nfor i in range(10000): print('line', i, flush=True); time.sleep(0.01)",
    );
    let mut terminal = Terminal::start(&home, &card, (80, 24), &words);
    terminal.wait_for("line 1", SOON);
    let mut seed = 7_u32;
    for _ in 0..200 {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let size = |shift: u32, most: u32| u16::try_from((seed >> shift) % most + 1).unwrap();
        terminal.resize((size(8, 300), size(16, 100)));
        std::thread::sleep(Duration::from_millis(7));
    }
    for size in SIZES {
        terminal.resize(size);
        terminal.wait_for("[1]Dash", SOON);
        // the footer stands in the last row, and the header in the first
        let drawn = || {
            let text = terminal.text();
            let rows: Vec<&str> = text.lines().collect();
            rows.len() == usize::from(size.1)
                && rows.first().is_some_and(|r| r.contains("[1]Dash"))
                && rows.last().is_some_and(|r| r.contains("? help"))
        };
        assert!(wait_until(SOON, drawn), "{}", terminal.text());
    }
    terminal.press("\x03");
    // what stood on the terminal before is lost with the emulator's old size
    terminal.wait_for("exit 130", SOON);
    assert!(!terminal.full_screen());
    assert_none_left(&home);
}

/// Ctrl-Z stops us and gives the terminal back; the program works on, and is watched
/// again when we go on.
#[test]
fn a_stop_of_the_screen_is_none_of_the_run() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let ticks = home.path("ticks");
    let text = format!(
        "import time\nwhile True:\n    open({:?}, 'a').write('x')\n    print('tick', flush=True)\n    time.sleep(0.2)",
        ticks.display().to_string()
    );
    let mut terminal = Terminal::start(&home, &card, (80, 24), &program(&text));
    terminal.wait_for("tick", SOON);
    let screen = parent(home.supervisor());
    terminal.press("\x1a");
    assert!(
        wait_until(SOON, || state(screen) == Some('T')),
        "not stopped"
    );
    // the test's own reader of the terminal may be a moment behind the process
    let given_back = wait_until(SOON, || !terminal.full_screen());
    assert!(given_back, "the terminal was not given back");
    let grown = |path: &Path| std::fs::metadata(path).map_or(0, |m| m.len());
    let before = grown(&ticks);
    assert!(
        wait_until(SOON, || grown(&ticks) > before + 10),
        "the program stopped as well"
    );
    let samples = || events(&home).matches(r#""kind":"sample""#).count();
    let so_far = samples();
    assert!(
        wait_until(SOON, || samples() > so_far + 10),
        "nobody watches the run"
    );
    kill(screen, Signal::CONT).unwrap();
    assert!(
        wait_until(SOON, || terminal.full_screen()),
        "no screen after the stop"
    );
    terminal.wait_for("tick", SOON);
    terminal.press("\x03");
    terminal.assert_restored(130);
    let record = events(&home);
    assert!(
        !record.contains(r#""health":"hung""#),
        "the stop was taken for a hang"
    );
    assert_none_left(&home);
}

/// The first Ctrl-C asks, the second kills.
#[test]
fn the_second_interrupt_kills_what_ignores_the_first() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let text = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\ntime.sleep(600)";
    let mut terminal = Terminal::start(&home, &card, (120, 36), &program(text));
    terminal.wait_for("deaf", SOON);
    terminal.press("\x03");
    terminal.wait_for("Ctrl-C again kills", SOON);
    assert!(wait_until(SOON, || events(&home).contains(r#""signal":"SIGTERM""#)));
    terminal.press("\x03");
    terminal.assert_restored(130);
    let record = events(&home);
    assert!(record.contains(r#""signal":"SIGKILL""#), "{record}");
    assert_none_left(&home);
}
