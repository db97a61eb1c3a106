//! The control socket of a run: screens attach to it, are sent every event, and send keys.
//!
//! It lies in the run's folder, which its owner alone may enter, and the kernel tells the
//! user at the other end. Both sides send JSON, one message a line, of a bounded length.
//! A side that sends anything else is cut off; so is a screen that does not read, which
//! catches up from the record and attaches again.

mod server;
mod viewer;

#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::model::{Envelope, Request};

pub use server::{Heard, Incoming, Server};
pub use viewer::{AttachError, Link, LinkError, RequestSender};

/// Name of the socket in a run's folder.
pub const SOCKET: &str = "control.sock";
/// Version of the messages. A screen attaches to a supervisor of the same one only.
pub const PROTOCOL: u32 = 1;
/// Longest message of a screen, bytes.
pub const LONGEST_REQUEST: usize = 64 << 10;
/// Longest message of a supervisor, bytes.
pub const LONGEST_EVENT: usize = 16 << 20;

/// First message of a supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// See [`PROTOCOL`].
    pub protocol: u32,
    /// Version of the event stream.
    pub schema: String,
    /// Id of the run.
    pub run: String,
    /// Folder of the run, as [`os_text`](crate::model::os_text) writes it.
    pub folder: String,
    /// Number of the first event that comes over this connection; those before are in the
    /// record.
    pub next: u64,
}

/// A message of a supervisor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToViewer {
    /// The run is ready to begin, or goes on.
    Hello(Hello),
    /// Nothing was launched; only the process that started the supervisor is sent this.
    Refused {
        /// Why, in a sentence.
        why: String,
        /// What to print.
        report: String,
        /// Exit code.
        exit_code: u8,
    },
    /// An event of the run.
    Event(Box<Envelope>),
    /// What became of a command, where the stream does not say it.
    Answer {
        /// A sentence.
        text: String,
    },
    /// The profiles on the disk were changed.
    ProfilesChanged,
}

/// A message of a screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToSupervisor {
    /// A key, a command of the palette.
    Request(Request),
}

/// Bytes that are no message.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// No newline came.
    #[error("a message is longer than {0} bytes")]
    TooLong(usize),
    /// No JSON, or of another shape.
    #[error("a message cannot be read: {0}")]
    Malformed(#[from] serde_json::Error),
}

/// Takes messages out of a stream of bytes.
#[derive(Debug)]
pub struct Messages {
    bytes: Vec<u8>,
    /// Bytes that are known to hold no newline.
    searched: usize,
    longest: usize,
}

impl Messages {
    /// Of at most so many bytes each.
    pub const fn new(longest: usize) -> Self {
        Self {
            bytes: Vec::new(),
            searched: 0,
            longest,
        }
    }

    /// Takes bytes that came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole message; `None`: its end has not come. After an error the stream is
    /// of no more use.
    ///
    /// # Errors
    /// When the next message is too long, or none of this kind.
    pub fn take<T: for<'a> Deserialize<'a>>(&mut self) -> Result<Option<T>, MessageError> {
        let unsearched = &self.bytes[self.searched..];
        let Some(end) = unsearched.iter().position(|b| *b == b'\n') else {
            self.searched = self.bytes.len();
            return if self.searched > self.longest {
                Err(MessageError::TooLong(self.longest))
            } else {
                Ok(None)
            };
        };
        let end = self.searched + end;
        if end > self.longest {
            return Err(MessageError::TooLong(self.longest));
        }
        let message = serde_json::from_slice(&self.bytes[..end]);
        self.bytes.drain(..=end);
        self.searched = 0;
        Ok(Some(message?))
    }
}

/// One message as a line.
///
/// # Errors
/// When it has no JSON form.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// A way to the socket of a run's folder that is short enough for an address, which holds
/// 107 bytes whatever the length of the folder's path; it leads there while the returned
/// descriptor is open.
fn address(folder: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = rustix::fs::openat(CWD, folder, flags, Mode::empty())?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd())).join(SOCKET);
    Ok((open, path))
}
