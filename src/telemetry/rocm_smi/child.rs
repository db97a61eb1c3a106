//! The reader process as the parent sees it: started, asked, waited for no longer than
//! a deadline, and never waited for at its end.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::wire::{self, Line};
use crate::model::GpuId;

/// The subcommand.
const COMMAND: &str = "rocm-smi-reader";
/// A line longer than this is none of ours.
const MAX_LINE: usize = 1 << 20;
/// How much of what the library prints is kept to find its last line.
const KEPT_WORDS: usize = 4096;
/// How long a process that closed its output may take to end, a core file included.
const END: Duration = Duration::from_secs(2);

/// Why the reader gave no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// It could not be started.
    #[error("its reader does not start: {0}")]
    Start(#[source] io::Error),
    /// It does not answer.
    #[error("no answer for {} s", .0.as_secs())]
    Silent(Duration),
    /// It ended: how, in words.
    #[error("{0}")]
    Ended(String),
}

/// A running reader. Dropping it closes its input, upon which it ends by itself once
/// no call is under way: ended in a call it would leave the library's lock behind.
#[derive(Debug)]
pub(super) struct Reader {
    child: Option<Child>,
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: ChildStderr,
    pending: Vec<u8>,
    printed: Vec<u8>,
}

impl Reader {
    /// Starts it. It is in a process group of its own: Ctrl-C is not for it.
    pub(super) fn start(exe: &Path) -> Result<Self, Trouble> {
        let mut child = Command::new(exe)
            // by which the library's words name the program
            .arg0("framepack-tui")
            .arg(OsStr::new(COMMAND))
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(Trouble::Start)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(Trouble::Start(io::ErrorKind::BrokenPipe.into()));
        };
        Ok(Self {
            child: Some(child),
            stdin,
            stdout,
            stderr,
            pending: Vec::new(),
            printed: Vec::new(),
        })
    }

    /// Its process; none once it has ended.
    pub(super) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Asks for these cards.
    pub(super) fn ask<'a>(
        &mut self,
        cards: impl IntoIterator<Item = &'a GpuId>,
        limit: Duration,
    ) -> Result<Line, Trouble> {
        let mut request = String::new();
        for id in cards {
            request.push_str(&id.0);
            request.push(' ');
        }
        request.push('\n');
        // one that has ended tells so below
        let _ = self.stdin.write_all(request.as_bytes());
        self.next(limit)
    }

    /// Its next line. One that stays silent for the limit is killed.
    pub(super) fn next(&mut self, limit: Duration) -> Result<Line, Trouble> {
        let until = Instant::now() + limit;
        loop {
            while let Some(end) = self.pending.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                if let Some(line) = wire::decode(&line) {
                    return Ok(line);
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.kill();
                return Err(Trouble::Silent(limit));
            }
            match self.hear(left) {
                Ok(true) if self.pending.len() <= MAX_LINE => {}
                Ok(true) => {
                    self.kill();
                    return Err(Trouble::Ended("it answers with no end of text".to_owned()));
                }
                Ok(false) => return Err(Trouble::Ended(self.end())),
                Err(error) => return Err(Trouble::Ended(error.to_string())),
            }
        }
    }

    /// Waits for output and takes it. False: the answers have ended.
    fn hear(&mut self, limit: Duration) -> io::Result<bool> {
        let mut fds = [
            PollFd::new(&self.stdout, PollFlags::IN),
            PollFd::new(&self.stderr, PollFlags::IN),
        ];
        match poll(&mut fds, Some(&timespec(limit))) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
        let ready = fds.map(|fd| !fd.revents().is_empty());
        let mut chunk = [0; 4096];
        if ready[1] {
            let n = self.stderr.read(&mut chunk)?;
            self.print(&chunk[..n]);
            if n == 0 && !ready[0] {
                // A library that closed the descriptor under us; polling it again
                // would spin.
                thread::sleep(Duration::from_millis(20));
            }
        }
        if ready[0] {
            let n = self.stdout.read(&mut chunk)?;
            self.pending.extend_from_slice(&chunk[..n]);
            return Ok(n > 0);
        }
        Ok(true)
    }

    fn print(&mut self, bytes: &[u8]) {
        self.printed.extend_from_slice(bytes);
        let excess = self.printed.len().saturating_sub(KEPT_WORDS);
        self.printed.drain(..excess);
    }

    /// The last line that the library printed.
    fn last_words(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.printed);
        let line = text.lines().rev().find(|l| !l.trim().is_empty())?;
        Some(line.trim().to_owned())
    }

    /// How it ended, in words, with what the library printed last.
    fn end(&mut self) -> String {
        let begun = Instant::now();
        while begun.elapsed() < END {
            match self.child.as_mut().map(Child::try_wait) {
                Some(Ok(None)) => thread::sleep(Duration::from_millis(5)),
                Some(Ok(Some(status))) => {
                    self.child = None;
                    self.drain();
                    let end = how(status);
                    return match self.last_words() {
                        Some(words) => format!("{end}: {words}"),
                        None => end,
                    };
                }
                Some(Err(_)) | None => break,
            }
        }
        "it closed its output".to_owned()
    }

    /// Takes what is left in the pipe of one that has ended.
    fn drain(&mut self) {
        let mut rest = Vec::new();
        let ready = |stderr: &ChildStderr| {
            let mut fds = [PollFd::from_borrowed_fd(stderr.as_fd(), PollFlags::IN)];
            poll(&mut fds, Some(&timespec(Duration::ZERO))).is_ok_and(|n| n > 0)
        };
        let mut chunk = [0; 4096];
        while ready(&self.stderr) && rest.len() < MAX_LINE {
            match self.stderr.read(&mut chunk) {
                Ok(0) | Err(_) => break,
                Ok(n) => rest.extend_from_slice(&chunk[..n]),
            }
        }
        self.print(&rest);
    }

    fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            // Fails only where it has ended already.
            let _ = child.kill();
        }
    }
}

impl Drop for Reader {
    /// The descriptors close with the fields. Reaped by a thread of its own, since it
    /// may be blocked in the kernel, where not even SIGKILL reaches it.
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let reap = move || {
                // No one is left to tell.
                let _ = child.wait();
            };
            // Without a thread it stays a zombie until we end.
            let _ = thread::Builder::new().name("reap".to_owned()).spawn(reap);
        }
    }
}

fn timespec(d: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(d.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(d.subsec_nanos()),
    }
}

fn how(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(6), _) => "it aborted (signal 6)".to_owned(),
        (Some(signal @ (4 | 7 | 8 | 11)), _) => format!("it crashed (signal {signal})"),
        (Some(signal), _) => format!("it was killed (signal {signal})"),
        (None, Some(code)) => format!("it ended with code {code}"),
        (None, None) => "it ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::super::testing::Tree;
    use super::*;

    /// A reader that is a shell script; what it does at a request is its text.
    fn script(tree: &Tree, text: &str) -> Reader {
        let path = tree.root().join("reader");
        tree.write("reader", &format!("#!/bin/sh\n{text}\n"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        // another test may fork while the script is open for writing: "text file busy"
        let begun = Instant::now();
        loop {
            match Reader::start(&path) {
                Err(Trouble::Start(e)) if e.kind() == io::ErrorKind::ExecutableFileBusy => {
                    assert!(begun.elapsed() < Duration::from_secs(10));
                    thread::sleep(Duration::from_millis(10));
                }
                reader => return reader.unwrap(),
            }
        }
    }

    #[test]
    fn answers_are_told_from_what_is_printed_between() {
        let tree = Tree::new();
        let mut reader = script(
            &tree,
            "read a\necho noise\necho \"{\\\"failed\\\":\\\"$a\\\"}\"\nread b",
        );
        let id = GpuId("0000:03:00.0".to_owned());
        let line = reader.ask([&id], Duration::from_secs(20)).unwrap();
        assert_eq!(line, Line::Failed("0000:03:00.0 ".trim().to_owned()));
    }

    #[test]
    fn an_abort_is_told_with_the_last_words() {
        let tree = Tree::new();
        let mut reader = script(
            &tree,
            "echo first >&2\necho 'x: Assertion failed' >&2\nkill -6 $$",
        );
        let trouble = reader.next(Duration::from_secs(20)).unwrap_err();
        assert_eq!(
            trouble.to_string(),
            "it aborted (signal 6): x: Assertion failed"
        );
    }

    #[test]
    fn silence_ends_at_the_deadline_and_printing_is_no_answer() {
        let tree = Tree::new();
        let text = "i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789 >&2; i=$((i+1)); done\nexec sleep 600";
        let mut reader = script(&tree, text);
        let trouble = reader.next(Duration::from_secs(1)).unwrap_err();
        assert!(matches!(trouble, Trouble::Silent(_)), "{trouble}");
        assert!(reader.printed.len() <= KEPT_WORDS);
    }

    #[test]
    fn a_program_that_is_not_there_says_so() {
        let trouble = Reader::start(Path::new("/no/such/program")).unwrap_err();
        assert!(trouble.to_string().contains("does not start"), "{trouble}");
    }
}
