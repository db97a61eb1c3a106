//! The guardian: a small process between the supervisor and the workload.
//!
//! It is this same program, started as `framepack-tui guardian -- CMD…`. All that the
//! workload starts stays below it (it is a child subreaper), so it can end all of it,
//! and it does so when the supervisor vanishes, whatever the reason. It never ends
//! anything otherwise unless it is asked to.
//!
//! | descriptor | what |
//! | --- | --- |
//! | 0 | stream socket to the supervisor, see [`super::protocol`] |
//! | (passed over 0) | the lock of the card, kept open until we end |
//! | 1, 2 | handed to the workload; the guardian itself lets go of them |
//!
//! The workload gets `/dev/null` as its standard input, a process group of its own, and
//! the guardian's environment and working directory.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::{Pid, WaitOptions, WaitStatus};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use super::handover;
use super::launch::spawn;
use super::proctree;
use super::protocol::{Empty, MAX_LINE, Report, Request, RootEnd, encode};
use crate::model::{Scope, Signal};

/// Between SIGTERM and SIGKILL when the supervisor has vanished.
const GRACE: Duration = Duration::from_secs(2);

/// How long the guardian stays after that SIGKILL.
const AFTER_KILL: Duration = Duration::from_secs(10);

/// How often a child is looked for apart from SIGCHLD, which can be lost.
const REAP_PERIOD: Duration = Duration::from_millis(500);

/// Runs the guardian; `words` are the workload's command line, a leading `--` is skipped.
/// The exit code is 0 when every descendant is gone, else 70 (nothing works without the
/// supervisor's end of standard input) or 71 (processes survive SIGKILL).
pub fn main(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut argv: Vec<OsString> = words.into_iter().collect();
    if argv.first().is_some_and(|a| a == "--") {
        argv.remove(0);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let code = runtime.and_then(|r| r.block_on(run(&argv)));
    code.unwrap_or_else(|_no_supervisor_to_tell| ExitCode::from(70))
}

/// What the guardian knows.
struct Guardian {
    control: UnixStream,
    /// The lock of the card: it is free when we are gone, and the workload with us.
    _lock: Option<OwnedFd>,
    me: i32,
    root: Option<Pid>,
    root_ended: bool,
}

async fn run(argv: &[OsString]) -> io::Result<ExitCode> {
    let _held = ignore_terminal_signals()?;
    let mut children = signal(SignalKind::child())?;
    // Fails if we already lead a session or a group, which serves as well.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let (control, lock) = control_socket()?;
    let mut guardian = Guardian {
        control,
        _lock: lock,
        me: rustix::process::getpid().as_raw_pid(),
        root: None,
        root_ended: false,
    };
    let report = match spawn(argv) {
        Ok(pid) => {
            guardian.root = Pid::from_raw(pid);
            Report::Spawned {
                pid: u32::try_from(pid).unwrap_or_default(),
            }
        }
        Err(failed) => Report::SpawnFailed {
            not_found: failed.not_found,
            why: failed.why,
        },
    };
    let failed = matches!(report, Report::SpawnFailed { .. });
    let told = guardian.tell(&report).await;
    release_output();
    if failed {
        return told.map(|()| ExitCode::SUCCESS);
    }
    if told.is_err() {
        return Ok(guardian.end_all(&mut children).await);
    }
    guardian.watch(&mut children).await
}

impl Guardian {
    /// Serves the supervisor until no descendant is left.
    async fn watch(&mut self, children: &mut SignalStream) -> io::Result<ExitCode> {
        let mut pending = Vec::new();
        let mut chunk = [0u8; 4096];
        loop {
            let (gone, ended) = self.reap();
            for report in ended {
                if self.tell(&report).await.is_err() {
                    return Ok(self.end_all(children).await);
                }
            }
            if gone {
                self.tell(&Report::Gone(Empty {})).await?;
                return Ok(ExitCode::SUCCESS);
            }
            let read = tokio::select! {
                _ = children.recv() => None,
                () = tokio::time::sleep(REAP_PERIOD) => None,
                read = self.control.read(&mut chunk) => Some(read.unwrap_or(0)),
            };
            let alive = match read {
                None => true,
                Some(0) => false,
                Some(n) => {
                    pending.extend_from_slice(&chunk[..n]);
                    self.serve(&mut pending).await.is_ok()
                }
            };
            if !alive {
                return Ok(self.end_all(children).await);
            }
        }
    }

    /// Answers the complete lines in `pending`.
    async fn serve(&mut self, pending: &mut Vec<u8>) -> io::Result<()> {
        while let Some(end) = pending.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            // A request of a newer supervisor that we do not know goes unanswered.
            if let Ok(request) = serde_json::from_slice::<Request>(&line) {
                let report = self.answer(request);
                self.tell(&report).await?;
            }
        }
        if pending.len() > MAX_LINE {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(())
    }

    fn answer(&self, request: Request) -> Report {
        match request {
            Request::Signal { signal, scope } => Report::Signalled {
                signal,
                scope,
                reached: proctree::signal(self.me, self.group(), signal, scope),
            },
            Request::Survivors(Empty {}) => Report::Survivors(proctree::survivors(self.me)),
        }
    }

    /// The workload's process group.
    const fn group(&self) -> Option<Pid> {
        self.root
    }

    async fn tell(&mut self, report: &Report) -> io::Result<()> {
        self.control.write_all(&encode(report)).await
    }

    /// Collects ended children. Gives whether no descendant is left, for orphans become
    /// our children, and how those ended that did so now.
    fn reap(&mut self) -> (bool, Vec<Report>) {
        let mut ended = Vec::new();
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if Some(pid) == self.root && !self.root_ended => {
                    self.root_ended = true;
                    ended.push(Report::Exited(root_end(status)));
                }
                Ok(Some((pid, status))) => {
                    if let Ok(pid) = u32::try_from(pid.as_raw_pid()) {
                        let end = root_end(status);
                        ended.push(Report::Ended { pid, end });
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return (false, ended),
                Err(_) => return (true, ended), // ECHILD: no child is left
            }
        }
    }

    /// The supervisor is gone: SIGTERM, a grace, SIGKILL.
    async fn end_all(&mut self, children: &mut SignalStream) -> ExitCode {
        for (kind, patience) in [(Signal::Term, GRACE), (Signal::Kill, AFTER_KILL)] {
            let until = Instant::now() + patience;
            let mut send = true;
            while Instant::now() < until {
                if send {
                    proctree::signal(self.me, self.group(), kind, Scope::Tree);
                    // What is born meanwhile is killed as well.
                    send = kind == Signal::Kill;
                }
                if self.reap().0 {
                    return ExitCode::SUCCESS;
                }
                tokio::select! {
                    _ = children.recv() => {}
                    () = tokio::time::sleep(REAP_PERIOD) => {}
                    () = sleep_until(until) => {}
                }
            }
        }
        ExitCode::from(71)
    }
}

fn root_end(status: WaitStatus) -> RootEnd {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => RootEnd::Code(code),
        (None, Some(signal)) => RootEnd::Signal(signal),
        (None, None) => RootEnd::Code(-1),
    }
}

/// Handlers in place of the default action. Unlike an ignored signal, a handled one is
/// back at its default in the workload.
fn ignore_terminal_signals() -> io::Result<Vec<SignalStream>> {
    let ttou = SignalKind::from_raw(rustix::process::Signal::TTOU.as_raw());
    [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
        SignalKind::quit(),
        ttou,
    ]
    .into_iter()
    .map(signal)
    .collect()
}

/// The supervisor's socket, moved off standard input so that no child inherits it, and the lock of
/// the card.
fn control_socket() -> io::Result<(UnixStream, Option<OwnedFd>)> {
    let owned = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let socket = std::os::unix::net::UnixStream::from(owned);
    // Not a socket: someone typed the hidden subcommand.
    socket.peer_addr()?;
    let lock = handover::receive(&socket)?;
    socket.set_nonblocking(true)?;
    if let Ok(null) = std::fs::File::open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null);
    }
    Ok((UnixStream::from_std(socket)?, lock))
}

/// Lets go of the output pipes, so that they end when the workload lets go of them.
fn release_output() {
    if let Ok(null) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}
