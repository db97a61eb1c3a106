//! The binary in a real terminal (a PTY), at two sizes.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use vt100::Parser;

use crate::harness::{BINARY, Card, Home, assert_none_left, python, wait_until, workload};

/// Longer than a machine stalls; whatever is waited for comes by itself.
const PATIENCE: Duration = Duration::from_mins(2);

/// A terminal with a program in it.
pub(crate) struct Terminal {
    screen: Arc<Mutex<Parser>>,
    keys: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    /// Closing it hangs up.
    master: Box<dyn MasterPty + Send>,
}

impl Terminal {
    /// Starts `framepack-tui run OPTIONS -- COMMAND`.
    pub(crate) fn start(
        home: &Home,
        card: &Card,
        size: (u16, u16),
        words: &[impl AsRef<OsStr>],
    ) -> Self {
        let mut program: Vec<OsString> = card.enter().into_iter().map(Into::into).collect();
        program.extend([BINARY, "run"].map(OsString::from));
        program.extend(words.iter().map(|w| w.as_ref().to_owned()));
        Self::open(home, size, &program)
    }

    /// Starts a program inside a shell that prints the terminal's settings before and
    /// after it, and its exit code.
    pub(crate) fn open(home: &Home, (cols, rows): (u16, u16), program: &[OsString]) -> Self {
        let size = PtySize {
            rows,
            cols,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new("sh");
        command.arg("-c");
        command.arg(r#"echo "before $(stty -g)"; "$@"; echo "exit $?"; echo "after $(stty -g)""#);
        command.arg("sh");
        command.args(program);
        command.cwd(home.dir());
        for name in Home::users_own() {
            command.env_remove(name);
        }
        for (name, folder) in home.folders() {
            command.env(name, folder);
        }
        let marked = home.marked();
        let (name, value) = marked.split_once('=').unwrap();
        command.env(name, value);
        command.env("TINY_PLAYS", "rocm");
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        let child = pair.slave.spawn_command(command).unwrap();
        let keys = pair.master.take_writer().unwrap();
        let mut output = pair.master.try_clone_reader().unwrap();
        let screen = Arc::new(Mutex::new(Parser::new(rows, cols, 0)));
        let sink = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = output.read(&mut bytes) {
                sink.lock().unwrap().process(&bytes[..n]);
            }
        });
        Self {
            screen,
            keys,
            child,
            master: pair.master,
        }
    }

    /// Gives the terminal another size. The emulator starts afresh with it: its own
    /// reflow breaks on the smallest sizes, and the program draws everything anew.
    pub(crate) fn resize(&self, (cols, rows): (u16, u16)) {
        let mut fresh = Parser::new(rows.max(2), cols.max(2), 0);
        if self.full_screen() {
            fresh.process(b"\x1b[?1049h");
        }
        *self.screen.lock().unwrap() = fresh;
        let size = PtySize {
            rows,
            cols,
            pixel_width: 0,
            pixel_height: 0,
        };
        self.master.resize(size).unwrap();
    }

    pub(crate) fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    pub(crate) fn wait_for(&self, word: &str, limit: Duration) {
        let seen = wait_until(limit, || self.text().contains(word));
        assert!(seen, "`{word}` is not on the screen:\n{}", self.text());
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    pub(crate) fn full_screen(&self) -> bool {
        self.screen.lock().unwrap().screen().alternate_screen()
    }

    pub(crate) fn bracketed_paste(&self) -> bool {
        self.screen.lock().unwrap().screen().bracketed_paste()
    }

    /// Closes the terminal, as its window would.
    pub(crate) fn close(self) {
        drop(self);
    }

    /// The process of the program, a child of the shell.
    pub(crate) fn program(&self) -> u32 {
        let shell = self.child.process_id().unwrap();
        let children = format!("/proc/{shell}/task/{shell}/children");
        let children = std::fs::read_to_string(children).unwrap();
        children.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// The program has ended with this code and left the terminal as it found it.
    pub(crate) fn assert_restored(&mut self, code: u8) {
        // the word itself may stand on the screen of the program
        let last = || self.text().lines().any(|l| l.starts_with("after "));
        let seen = wait_until(PATIENCE, last);
        assert!(seen, "the program has not ended:\n{}", self.text());
        assert!(wait_until(PATIENCE, || self
            .child
            .try_wait()
            .unwrap()
            .is_some()));
        let text = self.text();
        let after = |word: &str| {
            let line = text.lines().find_map(|l| l.strip_prefix(word));
            line.unwrap_or_else(|| panic!("no `{word}` in:\n{text}"))
                .trim()
                .to_owned()
        };
        assert_eq!(after("exit "), code.to_string(), "{text}");
        assert_eq!(
            after("before "),
            after("after "),
            "terminal settings differ"
        );
        let screen = self.screen.lock().unwrap();
        let screen = screen.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor());
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        assert!(!screen.bracketed_paste());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Only fails when it has already ended.
        let _ended = self.child.kill();
    }
}

/// `run OPTIONS -- python tiny_framepack.py MORE` with the generic profile.
pub(crate) fn generation(home: &Home, options: &[&str], more: &[&str]) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["--profile".into(), "generic-amd".into()];
    words.extend(options.iter().map(OsString::from));
    words.extend([
        "--".into(),
        python().into(),
        workload("tiny_framepack.py").into(),
    ]);
    words.extend(["--out".into(), home.out().into()]);
    words.extend(more.iter().map(OsString::from));
    words
}

/// A generation of a minute and a half, watched until it samples, then ended by Ctrl-C.
fn watch_and_interrupt(size: (u16, u16)) {
    let home = Home::new();
    let mut card = Card::rx7900xtx();
    card.follow(&home, 0);
    let words = generation(&home, &["--cap", "20GiB"], &["--step-seconds", "3"]);
    let mut terminal = Terminal::start(&home, &card, size, &words);
    terminal.wait_for("HEALTHY", Duration::from_mins(2));
    terminal.wait_for("sampling", Duration::from_mins(2));
    assert!(terminal.full_screen());
    // a busy machine may draw one moment without a reading of the process
    for word in ["generic-amd", "20.0", "fast_find"] {
        terminal.wait_for(word, PATIENCE);
    }
    let text = terminal.text();
    assert!(text.lines().count() <= usize::from(size.1));
    terminal.press("\x03");
    terminal.assert_restored(130);
    assert_none_left(&home);
}

#[test]
fn screen_80x24() {
    watch_and_interrupt((80, 24));
}

#[test]
fn screen_120x36() {
    watch_and_interrupt((120, 36));
}

/// `--plain` writes lines and leaves the screen alone.
#[test]
fn plain_text_stays_out_of_full_screen() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let python = python();
    let words = [
        "--plain",
        "--",
        python.to_str().unwrap(),
        "-c",
        "print('a line of the child')",
    ];
    let mut terminal = Terminal::start(&home, &card, (120, 36), &words);
    terminal.wait_for("a line of the child", PATIENCE);
    assert!(!terminal.full_screen());
    terminal.assert_restored(0);
    assert_none_left(&home);
}

/// The screen stands while the card does not answer, and a key pressed then is heard.
#[test]
fn the_screen_does_not_wait_for_the_card() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    card.break_file("vendor", "stall");
    card.break_file("uevent", "stall");
    let mut terminal = Terminal::start(&home, &card, (80, 24), &["--", "sleep", "60"]);
    terminal.wait_for("looking at the machine", PATIENCE);
    assert!(terminal.full_screen());
    terminal.press("\x03");
    terminal.assert_restored(130);
    assert_none_left(&home);
}

/// A run that is refused after the screen came up says why on a terminal given back.
#[test]
fn a_refused_run_gives_the_terminal_back() {
    let home = Home::new();
    let card = Card::rx7900xtx();
    let words = ["--gpu", "9", "--", "true"];
    let mut terminal = Terminal::start(&home, &card, (80, 24), &words);
    terminal.assert_restored(69);
    assert!(terminal.text().contains("there is no card `9`"));
}
