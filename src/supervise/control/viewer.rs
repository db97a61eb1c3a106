//! The screen's side of the control socket.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt::socket_peercred;

use crate::model::Request;
use crate::model::event::SCHEMA;

use super::{
    Hello, LONGEST_EVENT, MessageError, Messages, PROTOCOL, ToSupervisor, ToViewer, address, encode,
};

/// A supervisor that is alive says hello within this time.
const GREETING: Duration = Duration::from_secs(5);
/// Longest wait for a supervisor that does not read.
const SENDING: Duration = Duration::from_secs(1);

/// Why a screen does not attach.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Nobody listens.
    #[error("its supervisor cannot be reached: {0}")]
    NoSocket(#[source] io::Error),
    /// It belongs to somebody else.
    #[error("the run of another user")]
    OtherUser,
    /// Its messages may have another shape.
    #[error("its supervisor is of another version")]
    OtherVersion,
    /// It does not say hello.
    #[error("its supervisor does not answer: {0}")]
    Silent(#[from] LinkError),
}

/// Why a connection is of no more use.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The other side has closed it.
    #[error("the connection is closed")]
    Closed,
    /// The time is up.
    #[error("nothing came for {} s", GREETING.as_secs())]
    Late,
    /// The system's answer.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The supervisor sends something else than messages.
    #[error("{0}")]
    Foreign(#[from] MessageError),
}

/// A connection to a supervisor.
#[derive(Debug)]
pub struct Link {
    stream: UnixStream,
    messages: Messages,
    chunk: Vec<u8>,
}

impl Link {
    /// Over a socket whose other end is our own supervisor, which says hello when it is
    /// ready.
    pub fn over(stream: UnixStream) -> Self {
        Self {
            stream,
            messages: Messages::new(LONGEST_EVENT),
            chunk: vec![0; 64 << 10],
        }
    }

    /// Attaches to the supervisor of the run in this folder.
    ///
    /// # Errors
    /// When there is none, or it is not ours, or of another version.
    pub fn attach(folder: &Path) -> Result<(Self, Hello), AttachError> {
        let (_open, path) = address(folder).map_err(AttachError::NoSocket)?;
        let stream = UnixStream::connect(path).map_err(|e| match e.kind() {
            io::ErrorKind::PermissionDenied => AttachError::OtherUser,
            _ => AttachError::NoSocket(e),
        })?;
        let peer = socket_peercred(&stream).map_err(|e| AttachError::NoSocket(e.into()))?;
        if peer.uid != rustix::process::geteuid() {
            return Err(AttachError::OtherUser);
        }
        let mut link = Self::over(stream);
        match link.next(GREETING)? {
            Some(ToViewer::Hello(hello))
                if hello.protocol == PROTOCOL && hello.schema == SCHEMA =>
            {
                Ok((link, hello))
            }
            Some(_) => Err(AttachError::OtherVersion),
            None => Err(LinkError::Late.into()),
        }
    }

    /// The next message, waited for at most so long; `None`: there is none yet.
    ///
    /// # Errors
    /// When the other side has closed, or sends something else.
    pub fn next(&mut self, wait: Duration) -> Result<Option<ToViewer>, LinkError> {
        if let Some(message) = self.messages.take()? {
            return Ok(Some(message));
        }
        // a time of zero would mean to wait for ever
        let wait = wait.max(Duration::from_millis(1));
        self.stream.set_read_timeout(Some(wait))?;
        match self.stream.read(&mut self.chunk) {
            Ok(0) => Err(LinkError::Closed),
            Ok(n) => {
                self.messages.push(&self.chunk[..n]);
                Ok(self.messages.take()?)
            }
            Err(e) if is_pause(&e) => Ok(None),
            Err(e) if e.kind() == io::ErrorKind::ConnectionReset => Err(LinkError::Closed),
            Err(e) => Err(e.into()),
        }
    }

    /// The way for requests, for another thread.
    ///
    /// # Errors
    /// When no descriptor is free.
    pub fn sender(&self) -> io::Result<RequestSender> {
        let stream = self.stream.try_clone()?;
        stream.set_write_timeout(Some(SENDING))?;
        Ok(RequestSender { stream })
    }
}

fn is_pause(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// Sends requests over a [`Link`]. Dropping it does not close the connection.
#[derive(Debug)]
pub struct RequestSender {
    stream: UnixStream,
}

impl RequestSender {
    /// Sends one.
    ///
    /// # Errors
    /// When the supervisor is gone, or does not read.
    pub fn send(&mut self, request: Request) -> io::Result<()> {
        let line = encode(&ToSupervisor::Request(request))?;
        self.stream.write_all(&line)
    }

    /// Closes the connection in both directions.
    pub fn close(&self) {
        // closed by the other side already
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}
