//! The screen on a real terminal. The test binary runs itself on a pty; `child` is
//! what runs there, and does nothing in an ordinary test run.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::unbounded_channel;

use super::{Theme, TuiOptions, spawn};
use crate::model::{Command, Request};
use crate::ui::slot::SnapshotSlot;
use crate::ui::testing;

const MODE: &str = "FRAMEPACK_TUI_TEST_SCREEN";
const NOTES: &str = "FRAMEPACK_TUI_TEST_NOTES";
/// Longest wait for anything; a slow machine needs far less.
const PATIENCE: Duration = Duration::from_secs(20);

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn child() {
    let (Ok(mode), Ok(notes)) = (std::env::var(MODE), std::env::var(NOTES)) else {
        return;
    };
    let note = |text: &str| {
        let mut file = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(&notes)
            .unwrap();
        writeln!(file, "{text}").unwrap();
    };
    // As the real program does: a hang-up is no end.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let _context = runtime.enter();
    let _hangup = signal(SignalKind::hangup()).unwrap();
    let slot = SnapshotSlot::new();
    let (send, mut commands) = unbounded_channel();
    let theme = Theme {
        ascii: false,
        color: true,
    };
    let options = TuiOptions {
        watches: false,
        theme,
        leave_at_end: mode == "end",
        follows: false,
        clipboard: super::Clipboard::Osc52 { tmux: false },
    };
    let screen = spawn(options, slot.clone(), send).unwrap();
    slot.publish(Arc::new(testing::hung()));
    match mode.as_str() {
        "panic" => {
            std::thread::sleep(Duration::from_millis(500));
            panic!("planted");
        }
        "blocked" => {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_secs(2) {
                slot.publish(Arc::new(testing::finished()));
                std::thread::sleep(Duration::from_millis(60));
                slot.publish(Arc::new(testing::hung()));
                std::thread::sleep(Duration::from_millis(60));
            }
            let begun = Instant::now();
            screen.finish();
            note(if begun.elapsed() < Duration::from_millis(1500) {
                "in time"
            } else {
                "late"
            });
            std::process::exit(0);
        }
        "end" => slot.publish(Arc::new(testing::finished())),
        _ => {}
    }
    let begun = Instant::now();
    while screen.is_alive() && begun.elapsed() < PATIENCE {
        screen.wait(Duration::from_millis(20));
        while let Ok(Request { command, .. }) = commands.try_recv() {
            note(&format!("{command:?}"));
            if command == Command::Stop {
                slot.publish(Arc::new(testing::finished()));
            }
        }
    }
    while let Ok(Request { command, .. }) = commands.try_recv() {
        note(&format!("{command:?}"));
    }
    screen.finish();
    note("left");
    std::process::exit(0);
}

struct Tty {
    master: Option<Box<dyn MasterPty + Send>>,
    keys: Option<Box<dyn Write + Send>>,
    child: Box<dyn Child + Send + Sync>,
    seen: Arc<Mutex<(vt100::Parser, Vec<u8>)>>,
    notes: PathBuf,
    _dir: tempfile::TempDir,
}

impl Tty {
    fn open(mode: &str, read: bool) -> Self {
        let size = PtySize {
            rows: 24,
            cols: 80,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pty = native_pty_system().openpty(size).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let notes = dir.path().join("notes");
        let mut command = CommandBuilder::new(std::env::current_exe().unwrap());
        command.args(["--exact", "ui::tui::pty_tests::child", "--nocapture"]);
        command.env("RUST_BACKTRACE", "0");
        command.env(MODE, mode);
        command.env(NOTES, &notes);
        let child = pty.slave.spawn_command(command).unwrap();
        drop(pty.slave);
        let seen = Arc::new(Mutex::new((vt100::Parser::new(24, 80, 0), Vec::new())));
        if read {
            let mut reader = pty.master.try_clone_reader().unwrap();
            let sink = Arc::clone(&seen);
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(n @ 1..) = reader.read(&mut buffer) {
                    let mut seen = sink.lock().unwrap();
                    seen.0.process(&buffer[..n]);
                    seen.1.extend_from_slice(&buffer[..n]);
                }
            });
        }
        let keys = Some(pty.master.take_writer().unwrap());
        Self {
            master: Some(pty.master),
            keys,
            child,
            seen,
            notes,
            _dir: dir,
        }
    }

    fn screen(&self) -> String {
        self.seen.lock().unwrap().0.screen().contents()
    }

    fn alternate(&self) -> bool {
        self.seen.lock().unwrap().0.screen().alternate_screen()
    }

    fn shows(&self, text: &str) {
        until(text, || self.screen().contains(text));
    }

    fn noted(&self, text: &str) {
        until(text, || self.notes().contains(text));
    }

    fn notes(&self) -> String {
        fs::read_to_string(&self.notes).unwrap_or_default()
    }

    fn press(&mut self, keys: &[u8]) {
        let writer = self.keys.as_mut().unwrap();
        writer.write_all(keys).unwrap();
        writer.flush().unwrap();
    }

    fn resize(&self, cols: u16, rows: u16) {
        let size = PtySize {
            rows,
            cols,
            pixel_width: 0,
            pixel_height: 0,
        };
        self.seen
            .lock()
            .unwrap()
            .0
            .screen_mut()
            .set_size(rows, cols);
        self.master.as_ref().unwrap().resize(size).unwrap();
    }

    fn pid(&self) -> Pid {
        let pid = i32::try_from(self.child.process_id().unwrap()).unwrap();
        Pid::from_raw(pid).unwrap()
    }

    fn state(&self) -> char {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid().as_raw_nonzero()));
        let stat = stat.unwrap_or_default();
        stat.rsplit(") ")
            .next()
            .and_then(|rest| rest.chars().next())
            .unwrap_or('?')
    }

    fn ends(&mut self) {
        let child = &mut self.child;
        until("the end", || child.try_wait().unwrap().is_some());
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn screens_search_and_palette_by_key() {
    let mut tty = Tty::open("run", true);
    tty.shows("[1]Dash");
    tty.press(b"5");
    tty.shows("[5]Log");
    tty.press(b"/");
    // What comes in one read with more than typing could send was pasted.
    tty.shows("/_");
    tty.press(b"loading");
    tty.shows("/loading_");
    tty.shows("\u{25b6} 00:12:11");
    tty.press(b"\x1b");
    tty.shows("Log  follow");
    tty.press(b"\t");
    tty.shows("[1]Dash");
    tty.press(b"z");
    tty.press(b":");
    tty.shows(":_");
    tty.press(b"false alarm");
    tty.shows(":false alarm_");
    assert_eq!(tty.notes(), "", "typed letters are no commands");
    tty.press(b"\r");
    tty.noted("FalseAlarm");
    tty.press(b"q");
    tty.shows("detach");
    tty.press(b"2");
    tty.ends();
    assert_eq!(tty.notes(), "FalseAlarm\nTerminalLost\nleft\n");
}

#[test]
fn keys_become_commands_and_the_terminal_comes_back() {
    let mut tty = Tty::open("run", true);
    tty.shows("HUNG");
    tty.shows("then restart on rung fast_find");
    assert!(tty.alternate());
    tty.press(b"h");
    tty.noted("Hold");
    tty.shows("held: nothing happens");
    tty.resize(40, 12);
    tty.shows("HUNG");
    tty.resize(120, 36);
    tty.shows("Process, host, sources");
    tty.press(b"k");
    tty.shows("Kill the run?");
    tty.press(b"\r");
    until("the answer", || !tty.screen().contains("Kill the run?"));
    // who interrupts wants the shell again
    tty.press(&[3]);
    tty.noted("Stop");
    tty.ends();
    assert_eq!(
        tty.notes(),
        "Hold\nStop\nleft\n",
        "enter killed nothing, nothing was lost"
    );
    let raw = String::from_utf8_lossy(&tty.seen.lock().unwrap().1).into_owned();
    assert!(!raw.contains("Failed to"), "{raw:?}");
    assert!(!tty.alternate() && !tty.seen.lock().unwrap().0.screen().hide_cursor());
}

#[test]
fn a_question_is_answered_only_after_it_was_drawn() {
    for (columns, rows) in [(80, 24), (30, 8)] {
        let mut tty = Tty::open("run", true);
        tty.shows("HUNG");
        tty.resize(columns, rows);
        tty.press(b"ky");
        tty.shows("Kill the run?");
        tty.press(b"n");
        until("the answer", || !tty.screen().contains("Kill the run?"));
        // closed and open again in one breath: it was seen before, but not this time
        tty.press(b"k");
        tty.shows("Kill the run?");
        tty.press(b"nky");
        until("the answer", || {
            tty.press(b"n");
            !tty.screen().contains("Kill the run?")
        });
        assert_eq!(tty.notes(), "", "nothing was killed");
        tty.press(b"k");
        tty.shows("Kill the run?");
        tty.press(b"y");
        tty.noted("Kill");
    }
}

#[test]
fn pasted_text_presses_no_keys() {
    let mut tty = Tty::open("run", true);
    tty.shows("HUNG");
    let bracketed = |tty: &Tty| tty.seen.lock().unwrap().0.screen().bracketed_paste();
    assert!(bracketed(&tty));
    for text in ["s", "sky", "q2", "k\ry", "\x03\x03\x03"] {
        tty.press(format!("\x1b[200~{text}\x1b[201~").as_bytes());
    }
    // as long as it takes to hear the next key
    tty.press(b"5");
    tty.shows("[5]Log");
    assert_eq!(tty.notes(), "");
    tty.press(b"/");
    tty.shows("/_");
    tty.press(b"\x1b[200~load\x1b[201~");
    tty.shows("/load_");
    tty.press(b"\x1b");
    tty.shows("Log  follow");
    tty.press(b"q");
    tty.shows("what becomes of the run");
    tty.press(b"2");
    tty.ends();
    until("the end of it", || !bracketed(&tty));
}

#[test]
fn leaving_a_run_headless_tells_the_supervisor() {
    let mut tty = Tty::open("run", true);
    tty.shows("HUNG");
    tty.press(b"q");
    tty.shows("what becomes of the run");
    tty.press(b"2");
    tty.ends();
    assert_eq!(tty.notes(), "TerminalLost\nleft\n");
    until("the normal screen", || !tty.alternate());
}

#[test]
fn the_end_can_be_left_at_once() {
    let mut tty = Tty::open("end", true);
    tty.ends();
    assert_eq!(tty.notes(), "left\n");
}

#[test]
fn a_lost_terminal_is_reported_and_costs_nothing() {
    let mut tty = Tty::open("run", false);
    // The screen needs a reader until the terminal goes.
    let mut reader = tty.master.as_ref().unwrap().try_clone_reader().unwrap();
    let mut first = [0; 64];
    assert!(reader.read(&mut first).unwrap() > 0);
    std::thread::sleep(Duration::from_millis(300));
    drop(reader);
    drop(tty.keys.take());
    drop(tty.master.take());
    tty.noted("TerminalLost\nleft");
    tty.ends();
}

#[test]
fn a_blocked_terminal_does_not_hold_the_program() {
    let mut tty = Tty::open("blocked", false);
    tty.noted("in time");
    tty.ends();
}

#[test]
fn a_panic_gives_the_terminal_back_first() {
    let mut tty = Tty::open("panic", true);
    tty.ends();
    until("the message", || tty.screen().contains("planted"));
    let raw = String::from_utf8_lossy(&tty.seen.lock().unwrap().1).into_owned();
    let left = raw.find("\u{1b}[?1049l").unwrap();
    assert!(
        raw.find("planted").unwrap() > left,
        "the message is on the user's own screen"
    );
    assert!(!tty.seen.lock().unwrap().0.screen().bracketed_paste());
}

#[test]
fn suspending_stops_us_and_coming_back_draws_again() {
    let mut tty = Tty::open("run", true);
    tty.shows("HUNG");
    tty.press(&[26]);
    until("the stop", || tty.state() == 'T');
    until("the user's screen", || !tty.alternate());
    kill_process(tty.pid(), Signal::CONT).unwrap();
    until("our screen", || tty.alternate());
    tty.shows("HUNG");
    tty.press(b"q");
    tty.shows("what becomes of the run");
    tty.press(b"2");
    tty.ends();
}
