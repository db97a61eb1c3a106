//! The kernel log through `journalctl`, where `/dev/kmsg` may not be opened.
//!
//! Group `adm` or `systemd-journal` may read the journal while `kernel.dmesg_restrict`
//! closes the device. The child follows from its start on; its pipes are read without
//! waiting. It ends with us: by a kill when the source is dropped, and by itself when
//! we are gone, for `journalctl -f` watches its output being closed.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::{Lines, RECORD, keep};
use crate::telemetry::source::SourceError;

/// Bytes that are taken in one round.
const ROUND: usize = 1 << 20;
/// What is kept of the child's complaints.
const COMPLAINT: usize = 2048;
/// What gives a user the right to see the kernel's lines.
const RIGHTS: &str = "root, group adm or systemd-journal, or kernel.dmesg_restrict 0";

/// A running `journalctl`.
#[derive(Debug)]
pub(super) struct Journal {
    child: Child,
    out: ChildStdout,
    err: ChildStderr,
    partial: Vec<u8>,
    complaint: Vec<u8>,
}

impl Journal {
    /// Starts `program`. `NotFound` where there is none.
    pub(super) fn start(program: &OsStr) -> io::Result<Self> {
        let mut child = Command::new(program)
            .args(["-k", "-f", "-n", "0", "-o", "cat", "--no-pager"])
            // its complaints are recognised by their English words
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C at the terminal is for us
            .process_group(0)
            .spawn()?;
        let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(io::Error::other("no pipe"));
        };
        let journal = Self {
            child,
            out,
            err,
            partial: Vec::new(),
            complaint: Vec::new(),
        };
        do_not_wait(&journal.out)?;
        do_not_wait(&journal.err)?;
        Ok(journal)
    }

    /// Its process.
    #[cfg(test)]
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Takes what has come. An error: nothing more will come from this child.
    pub(super) fn read(&mut self, lines: &Lines) -> Result<(), SourceError> {
        let mut new = Vec::new();
        let open = take(&mut self.out, &mut new, ROUND);
        self.partial.append(&mut new);
        while let Some(end) = self.partial.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = self.partial.drain(..=end).collect();
            keep(&line, lines);
        }
        self.partial.truncate(RECORD);
        let mut said = Vec::new();
        take(&mut self.err, &mut said, ROUND);
        let room = COMPLAINT.saturating_sub(self.complaint.len());
        self.complaint.extend(said.into_iter().take(room));
        let complaint = String::from_utf8_lossy(&self.complaint);
        if complaint.contains("insufficient permissions")
            || complaint.contains("not seeing messages")
        {
            return Err(SourceError::Absent(format!(
                "the kernel's lines may not be read through journalctl; cure: {RIGHTS}"
            )));
        }
        match self.child.try_wait() {
            Ok(None) if open => Ok(()),
            Ok(status) => {
                let how = status.map_or_else(|| "its output".to_owned(), |s| s.to_string());
                let last = complaint.lines().rev().find(|l| !l.trim().is_empty());
                let why = last.map_or_else(String::new, |l| format!(": {}", l.trim()));
                Err(SourceError::Failed(format!(
                    "journalctl ended ({how}){why}"
                )))
            }
            Err(error) => Err(SourceError::Failed(format!("journalctl: {error}"))),
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // both fail only where it is gone already
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn do_not_wait(pipe: &impl AsFd) -> io::Result<()> {
    let flags = fcntl_getfl(pipe)?;
    Ok(fcntl_setfl(pipe, flags | OFlags::NONBLOCK)?)
}

/// Reads what is there, at most about `most` bytes. False: the other end is closed.
fn take(pipe: &mut impl Read, into: &mut Vec<u8>, most: usize) -> bool {
    let mut buffer = [0; 8192];
    while into.len() < most {
        match pipe.read(&mut buffer) {
            Ok(0) => return false,
            Ok(n) => into.extend_from_slice(&buffer[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return e.kind() == io::ErrorKind::WouldBlock,
        }
    }
    true
}
