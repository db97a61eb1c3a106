//! Text that leaves the screen: into the clipboard of the terminal, or into files.
//!
//! Files are written by a thread of their own, so that a disk that hangs never holds
//! up the screen; how it went is told through the slot.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crossterm::clipboard::CopyToClipboard;
use crossterm::queue;

use crate::ui::slot::SnapshotSlot;

/// Longest text for a clipboard, bytes: with its escape sequence it stays below the
/// 100,000 bytes that many terminals take.
const LONGEST: usize = 72 * 1024;
/// Where copied text goes without a clipboard, in the folder of the run.
const COPIED: &str = "copied.txt";

/// How text is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clipboard {
    /// By the escape sequence OSC 52, which the terminal answers with nothing: that it
    /// was taken cannot be known.
    Osc52 {
        /// tmux stands between and passes it on only with `set-clipboard on`.
        tmux: bool,
    },
    /// Not at all: text goes into a file.
    Off {
        /// Why.
        why: &'static str,
    },
}

impl Clipboard {
    /// What the environment says: `FPT_CLIPBOARD=off` or `osc52`; without it OSC 52
    /// unless the terminal is known to have no clipboard. `env` looks a variable up.
    pub fn detect(env: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| env(name).filter(|v| !v.is_empty());
        let tmux = set("TMUX").is_some();
        let term = set("TERM").unwrap_or_default();
        match set("FPT_CLIPBOARD").as_deref() {
            Some("osc52") => Self::Osc52 { tmux },
            Some("off") => Self::Off {
                why: "FPT_CLIPBOARD=off",
            },
            Some(_) => Self::Off {
                why: "FPT_CLIPBOARD is neither off nor osc52",
            },
            None if term == "linux" => Self::Off {
                why: "the console has no clipboard",
            },
            None if term.starts_with("screen") && !tmux => Self::Off {
                why: "GNU screen passes no clipboard on",
            },
            None => Self::Osc52 { tmux },
        }
    }

    /// Why text of this length goes into a file; absent: it does not.
    fn refuses(self, bytes: usize) -> Option<&'static str> {
        match self {
            Self::Off { why } => Some(why),
            Self::Osc52 { .. } if bytes > LONGEST => Some("too long for a clipboard"),
            Self::Osc52 { .. } => None,
        }
    }
}

/// `1 line`.
fn count(text: &str) -> String {
    match text.lines().count() {
        1 => "1 line".to_owned(),
        n => format!("{n} lines"),
    }
}

/// Copies a text: to `terminal`, or into a file in the folder of the run. What to tell
/// now; a file tells through `slot`.
///
/// # Errors
///
/// The terminal cannot be written to.
pub(super) fn copy(
    clipboard: Clipboard,
    text: String,
    terminal: &mut impl Write,
    record: Option<&Path>,
    slot: &SnapshotSlot,
) -> io::Result<Option<String>> {
    let lines = count(&text);
    let Some(why) = clipboard.refuses(text.len()) else {
        queue!(terminal, CopyToClipboard::to_clipboard_from(&text))?;
        terminal.flush()?;
        return Ok(Some(match clipboard {
            Clipboard::Osc52 { tmux: true } => {
                format!("{lines} sent to tmux (OSC 52; it needs set-clipboard on)")
            }
            _ => format!("{lines} sent to the terminal's clipboard (OSC 52)"),
        }));
    };
    let Some(record) = record else {
        return Ok(Some(format!("not copied: {why}")));
    };
    let path = record.join(COPIED);
    // the last copy is the one that counts, as in a clipboard
    in_background(slot, lines, why, move || {
        let mut file = private().truncate(true).create(true).open(&path)?;
        file.write_all(text.as_bytes())?;
        Ok(path)
    });
    Ok(None)
}

/// Writes a text into a new file: the one that was named, or one in the folder of the
/// run. How it went is told through `slot`.
pub(super) fn export(
    text: impl FnOnce() -> String + Send + 'static,
    named: Option<&str>,
    clock: &str,
    record: Option<&Path>,
    slot: &SnapshotSlot,
) {
    let path = match (named, record) {
        (Some(named), _) => at_home(named, std::env::var_os("HOME").map(PathBuf::from)),
        (None, Some(record)) => record.join(format!("log-{}.txt", clock.replace(':', "-"))),
        (None, None) => {
            slot.say("this run has no folder: name a file, as in :export run.log".to_owned());
            return;
        }
    };
    in_background(slot, "the log".to_owned(), "", move || {
        // never over a file that is there
        let mut file = private()
            .create_new(true)
            .open(&path)
            .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
        file.write_all(text().as_bytes())?;
        Ok(path)
    });
}

/// `~/` at the begin is the home directory, as in a shell.
fn at_home(named: &str, home: Option<PathBuf>) -> PathBuf {
    match (named.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(named),
    }
}

/// Readable by its owner only: prompts stand in logs.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

fn in_background(
    slot: &SnapshotSlot,
    what: String,
    why: &str,
    write: impl FnOnce() -> io::Result<PathBuf> + Send + 'static,
) {
    let why = match why {
        "" => String::new(),
        why => format!(" ({why})"),
    };
    let to = slot.clone();
    let body = move || {
        to.say(match write() {
            // the name first: the end of a long line may be cut
            Ok(path) => {
                let name = path.file_name().unwrap_or(path.as_os_str());
                let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
                let folder = folder.map_or_else(|| PathBuf::from("."), Path::to_owned);
                format!(
                    "{what} written{why}: {} in {}",
                    name.display(),
                    folder.display()
                )
            }
            Err(e) => format!("{what} not written: {e}"),
        });
    };
    let thread = std::thread::Builder::new().name("writer".to_owned());
    if let Err(e) = thread.spawn(body) {
        slot.say(format!("not written: no thread can be started: {e}"));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, Instant};

    use super::*;

    fn detect(vars: &[(&str, &str)]) -> Clipboard {
        Clipboard::detect(|name| {
            let found = vars.iter().find(|(n, _)| *n == name);
            found.map(|(_, v)| (*v).to_owned())
        })
    }

    #[test]
    fn the_environment_decides_how_text_is_copied() {
        let tmux = ("TMUX", "/tmp/tmux-1000/default,1,0");
        assert_eq!(detect(&[]), Clipboard::Osc52 { tmux: false });
        assert_eq!(detect(&[tmux]), Clipboard::Osc52 { tmux: true });
        let off = |vars: &[_]| matches!(detect(vars), Clipboard::Off { .. });
        assert!(off(&[("FPT_CLIPBOARD", "off")]));
        assert!(off(&[("FPT_CLIPBOARD", "yes")]));
        assert!(off(&[("TERM", "linux")]));
        assert!(off(&[("TERM", "screen.xterm-256color")]));
        assert!(!off(&[("TERM", "screen-256color"), tmux]));
        assert!(!off(&[("TERM", "linux"), ("FPT_CLIPBOARD", "osc52")]));
    }

    fn told(slot: &SnapshotSlot) -> String {
        let begun = Instant::now();
        loop {
            if let Some(word) = slot.take_word() {
                return word;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "nothing was told"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_short_text_goes_to_the_terminal_and_a_long_one_into_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let slot = SnapshotSlot::new();
        let osc52 = Clipboard::Osc52 { tmux: false };
        let mut sent = Vec::new();
        let word = copy(osc52, "HUNG".to_owned(), &mut sent, Some(dir.path()), &slot).unwrap();
        assert_eq!(sent, b"\x1b]52;c;SFVORw==\x1b\\");
        assert_eq!(
            word.as_deref(),
            Some("1 line sent to the terminal's clipboard (OSC 52)")
        );
        sent.clear();
        for text in ["x\n".repeat(LONGEST), "shorter\n".to_owned()] {
            let word = copy(osc52, text.clone(), &mut sent, Some(dir.path()), &slot).unwrap();
            if word.is_some() {
                continue;
            }
            assert!(told(&slot).contains("(too long for a clipboard)"));
            assert_eq!(fs::read_to_string(dir.path().join(COPIED)).unwrap(), text);
        }
        let off = Clipboard::Off { why: "off" };
        assert_eq!(
            copy(off, String::new(), &mut sent, None, &slot)
                .unwrap()
                .as_deref(),
            Some("not copied: off")
        );
    }

    #[test]
    fn an_export_never_overwrites_and_says_where_it_went() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let slot = SnapshotSlot::new();
        let go = |named: Option<&str>| {
            export(
                || "text\n".to_owned(),
                named,
                "00:14:32",
                Some(dir.path()),
                &slot,
            );
            told(&slot)
        };
        let path = dir.path().join("log-00-14-32.txt");
        let folder = dir.path().display();
        assert_eq!(
            go(None),
            format!("the log written: log-00-14-32.txt in {folder}")
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "text\n");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let again = go(None);
        assert!(again.starts_with("the log not written: "), "{again}");
        assert!(again.contains("exists"), "{again}");
        let missing = dir.path().join("absent/run.log").display().to_string();
        assert!(go(Some(&missing)).contains("No such file"));
        let home = Some(PathBuf::from("/home/user"));
        assert_eq!(at_home("~/x", home.clone()), Path::new("/home/user/x"));
        assert_eq!(at_home("x", home), Path::new("x"));
    }
}
