//! The supervisor's side of a launch: an external command behind a [`guardian`](super::guardian).
//!
//! One task reads both output streams and the guardian's reports and passes everything
//! on as [`ChildEvent`]s, in order: output that was written before the end of the root
//! process comes before [`ChildEvent::Exited`]. The channel is bounded; when its reader
//! is slow, lines are dropped and counted, reports are not.
//!
//! The workload's standard input is `/dev/null`.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::process::Stdio;

use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::sync::mpsc;

use super::handover;
use super::protocol::{Empty, Request};
use crate::model::event::Survivor;
use crate::model::os_text;
use crate::model::{EnvChange, ExitStatus, Line, Scope, Signal};

mod attach;
mod console;
mod drive;
mod orphans;
mod tail;

pub use attach::{AttachSpec, attach, has_ended};
pub(super) use orphans::MARK;
pub use tail::ConsoleFile;

/// Events that may wait for their reader: more than both streams may burst at once.
const CHANNEL: usize = 5 * 1024;

/// What to launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchSpec {
    /// This program, which is started as the guardian (`/proc/self/exe`).
    pub exe: PathBuf,
    /// Command and arguments of the workload.
    pub argv: Vec<String>,
    /// Changes against our own environment.
    pub env: Vec<EnvChange>,
    /// Working directory of the workload.
    pub cwd: PathBuf,
    /// Number of the attempt, for its lines.
    pub attempt: u32,
}

/// Why nothing was launched.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// There is no command.
    #[error("no command was given; write it behind `--`")]
    NoCommand,
    /// The working directory does not exist or is no directory.
    #[error("the working directory {} is not there; pass another one with `--cwd`", .0.display())]
    NoDirectory(PathBuf),
    /// The guardian could not be started.
    #[error("the guardian process {} does not start: {source}", .exe.display())]
    Guardian {
        /// Program that was tried.
        exe: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// What happens to a launched workload.
#[derive(Debug, Clone, PartialEq)]
pub enum ChildEvent {
    /// A stretch of a flood.
    Flood(crate::model::Flood),
    /// The root process exists.
    Spawned {
        /// Its id.
        pid: u32,
        /// Its process group.
        pgid: u32,
    },
    /// It could not be started. Nothing follows.
    SpawnFailed {
        /// Why.
        why: String,
        /// Whether the program was not found.
        not_found: bool,
    },
    /// A line, or a state of a bar.
    Line(Line),
    /// Lines that were not passed on since the last such event.
    DroppedLines(u64),
    /// The root process ended; descendants may go on.
    Exited(ExitStatus),
    /// A process ended whose parent had ended before it.
    Ended {
        /// The process.
        pid: u32,
        /// How it ended.
        status: ExitStatus,
    },
    /// No descendant is left. Nothing follows.
    Gone,
    /// A signal was sent.
    Signalled {
        /// Which.
        signal: Signal,
        /// To whom.
        scope: Scope,
        /// Living processes that it reached.
        reached: u32,
    },
    /// The living descendants.
    Survivors(Vec<Survivor>),
    /// The guardian died before its time, or was killed because it did not answer.
    /// Signals go to the process group and to what carries the launch's mark in its
    /// environment from now on, and [`ChildEvent::Gone`] means these.
    GuardianLost,
}

/// A launched workload. Dropping it makes the guardian end the whole tree; one that was
/// attached to goes on.
#[derive(Debug)]
pub struct Running {
    /// Process id of the guardian; a process that was attached to has none.
    pub guardian_pid: Option<u32>,
    /// What happens, in order. Ends after [`ChildEvent::Gone`] or
    /// [`ChildEvent::SpawnFailed`].
    pub events: mpsc::Receiver<ChildEvent>,
    requests: mpsc::Sender<Request>,
}

impl Running {
    /// Asks for a signal; [`ChildEvent::Signalled`] answers. Never waits: `false`
    /// when everything is gone already, or the way to the guardian is blocked.
    pub fn signal(&self, signal: Signal, scope: Scope) -> bool {
        self.requests
            .try_send(Request::Signal { signal, scope })
            .is_ok()
    }

    /// Asks who lives; [`ChildEvent::Survivors`] answers. `false` as in
    /// [`Running::signal`].
    pub fn ask_survivors(&self) -> bool {
        self.requests.try_send(Request::Survivors(Empty {})).is_ok()
    }
}

/// Launches a workload behind a guardian. Must be called within a tokio runtime.
///
/// `lock`: an open file that the guardian keeps open until it ends, so that a `flock` on it lasts
/// as long as the workload.
///
/// # Errors
/// When there is no command, no directory, or the guardian does not start. That the
/// *workload* does not start is told by [`ChildEvent::SpawnFailed`].
pub fn launch(spec: LaunchSpec, lock: Option<BorrowedFd<'_>>) -> Result<Running, LaunchError> {
    if spec.argv.is_empty() {
        return Err(LaunchError::NoCommand);
    }
    if !spec.cwd.is_dir() {
        return Err(LaunchError::NoDirectory(spec.cwd));
    }
    let failed = |source| LaunchError::Guardian {
        exe: spec.exe.clone(),
        source,
    };
    let (ours, theirs) = StdUnixStream::pair().map_err(failed)?;
    handover::send(&ours, lock).map_err(failed)?;
    ours.set_nonblocking(true).map_err(failed)?;
    let control = UnixStream::from_std(ours).map_err(failed)?;
    let mut command = Command::new(&spec.exe);
    command
        .arg("guardian")
        .arg("--")
        .args(spec.argv.iter().map(|word| os_text::to_os(word)))
        .current_dir(&spec.cwd)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mark = orphans::fresh_mark();
    command.env(orphans::MARK, &mark);
    for change in &spec.env {
        match &change.value {
            Some(value) => command.env(&change.name, value),
            None => command.env_remove(&change.name),
        };
    }
    let guardian = command.spawn().map_err(failed)?;
    // Our copy of the guardian's end has to go, or its end would never be seen.
    drop(command);
    let guardian_pid = guardian.id();
    let (sender, events) = mpsc::channel(CHANNEL);
    let (requests, asked) = mpsc::channel(16);
    tokio::spawn(drive::drive(
        guardian,
        control,
        mark,
        spec.attempt,
        sender,
        asked,
    ));
    Ok(Running {
        guardian_pid,
        events,
        requests,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_cannot_be_launched_is_said() {
        let spec = LaunchSpec {
            exe: PathBuf::from("/nonexistent/program"),
            argv: vec!["true".to_owned()],
            env: Vec::new(),
            cwd: PathBuf::from("/"),
            attempt: 1,
        };
        let launch = |spec| super::launch(spec, None);
        let e = launch(LaunchSpec {
            argv: Vec::new(),
            ..spec.clone()
        });
        assert!(matches!(e, Err(LaunchError::NoCommand)));
        let e = launch(LaunchSpec {
            cwd: PathBuf::from("/nonexistent"),
            ..spec.clone()
        });
        assert!(e.unwrap_err().to_string().contains("--cwd"));
        assert!(matches!(launch(spec), Err(LaunchError::Guardian { .. })));
    }
}
