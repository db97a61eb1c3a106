//! Processes that a run left behind, found by their mark.

use std::time::Duration;

use rustix::process::Signal;

use super::home::Home;
use super::tools::{kill, wait_until};

/// A process that still carries the mark.
#[derive(Debug)]
struct Leftover {
    pid: u32,
    #[expect(dead_code, reason = "shown when an assertion fails")]
    command: String,
}

/// After the end of a run, or SIGKILL of its supervisor, somebody has to notice and clean up,
/// on a machine that may stall for seconds.
const CLEANED_UP: Duration = Duration::from_secs(30);

/// Fails if a process of this test still lives.
pub(crate) fn assert_none_left(home: &Home) {
    let mark = home.marked();
    let gone = wait_until(CLEANED_UP, || find(&mark).is_empty());
    assert!(gone, "left behind: {:#?}", find(&mark));
}

/// Kills what carries the mark.
pub(crate) fn end(mark: &str) {
    for left in find(mark) {
        // It may have ended meanwhile, which is what is wanted.
        let _gone = kill(left.pid, Signal::KILL);
    }
}

fn find(mark: &str) -> Vec<Leftover> {
    let own = std::process::id();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        // Gone, a zombie, or not ours to read: none of them is a leftover of ours.
        let Ok(environ) = std::fs::read(entry.path().join("environ")) else {
            continue;
        };
        if pid != own && environ.split(|b| *b == 0).any(|e| e == mark.as_bytes()) {
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            found.push(Leftover { pid, command });
        }
    }
    found
}
