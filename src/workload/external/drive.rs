//! The task behind a [`Running`](super::Running) workload.

use std::collections::VecDeque;
use std::future::pending;
use std::time::{Duration, Instant};

use procfs::process::Process;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::sync::mpsc;
use tokio::time::{sleep_until, timeout};

use super::ChildEvent;
use super::console::{CHUNK, Console, DRAIN, DROPPED_PERIOD, Reader};
use super::orphans::Orphans;
use crate::model::{ExitStatus, Stream};
use crate::workload::protocol::{Empty, MAX_LINE, Report, Request, encode};

/// How often an orphaned group is looked at.
const LOST_PERIOD: Duration = Duration::from_millis(200);

/// A guardian that has not answered for this long is of no use: it is killed, and what
/// it held is ended without it. Less than the time after which the workload would be
/// called unkillable.
const ANSWER: Duration = Duration::from_secs(8);

/// Whether the task goes on.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    GoOn,
    End,
}

struct Drive {
    guardian: Child,
    /// Absent once the guardian is gone.
    control: Option<UnixStream>,
    unread: Vec<u8>,
    console: Console,
    orphans: Orphans,
    /// Since when a request has been waiting for its answer.
    asked: Option<Instant>,
    /// Requests that the guardian has not answered yet, oldest first: each gets its answer, from
    /// us where the guardian dies before.
    owed: VecDeque<Request>,
    looked: Instant,
    exited: bool,
}

/// Reads and serves until everything is gone or nobody listens any more.
pub(super) async fn drive(
    mut guardian: Child,
    control: UnixStream,
    mark: String,
    attempt: u32,
    sender: mpsc::Sender<ChildEvent>,
    mut asked: mpsc::Receiver<Request>,
) {
    let stdout = guardian.stdout.take().map(|r| Box::new(r) as Reader);
    let stderr = guardian.stderr.take().map(|r| Box::new(r) as Reader);
    let mut drive = Drive {
        console: Console::new(attempt, stdout, stderr, sender),
        guardian,
        control: Some(control),
        unread: Vec::new(),
        orphans: Orphans { group: None, mark },
        asked: None,
        owed: VecDeque::new(),
        looked: Instant::now(),
        exited: false,
    };
    while drive.turn(&mut asked).await == Next::GoOn {}
    // The end of the control stream makes a guardian that still lives end the tree.
    drive.control = None;
    let _ = drive.guardian.wait().await;
}

/// What woke the task.
enum Woken {
    Asked(Option<Request>),
    Control(usize),
    Stdout(usize),
    Stderr(usize),
    Time,
}

impl Drive {
    async fn turn(&mut self, asked: &mut mpsc::Receiver<Request>) -> Next {
        let mut report = [0u8; 4096];
        let due = self.due();
        let started = self.orphans.group.is_some();
        // Standard output before standard error: programs print a step there and draw
        // its bar here, and adapters take a late bar better than an early one.
        let woken = tokio::select! {
            biased;
            request = asked.recv() => Woken::Asked(request),
            n = read_control(self.control.as_mut(), &mut report) => Woken::Control(n),
            // The workload's first line comes after the word that it exists.
            n = self.console.stdout.read(), if started => Woken::Stdout(n),
            n = self.console.stderr.read(), if started => Woken::Stderr(n),
            () = sleep_until(due.into()) => Woken::Time,
        };
        match woken {
            Woken::Asked(None) => return Next::End,
            Woken::Asked(Some(request)) => self.ask(request).await,
            Woken::Control(0) => return self.lost().await,
            Woken::Control(n) => {
                self.unread.extend_from_slice(&report[..n]);
                return self.reports().await;
            }
            Woken::Stdout(n) => {
                self.console.took(Stream::Stdout, n);
                if n == CHUNK {
                    // A flood here must not starve the other stream.
                    self.console.glance_at_stderr().await;
                }
            }
            Woken::Stderr(n) => self.console.took(Stream::Stderr, n),
            Woken::Time => self.console.time_passed(),
        }
        if self.console.sender.is_closed() {
            return Next::End;
        }
        if self.control.is_none() {
            return self.look_at_group().await;
        }
        if self.looked.elapsed() >= LOST_PERIOD {
            self.look_at_guardian();
        }
        // A flood must not starve the other tasks of this thread.
        tokio::task::yield_now().await;
        Next::GoOn
    }

    fn due(&self) -> Instant {
        let longest = if self.control.is_none() {
            LOST_PERIOD
        } else {
            DROPPED_PERIOD
        };
        self.console.due(longest)
    }

    /// Wakes a guardian that someone stopped, for it does nothing that could be in the
    /// way; and ends one that owes an answer for too long.
    fn look_at_guardian(&mut self) {
        self.looked = Instant::now();
        let id = self.guardian.id().and_then(|id| i32::try_from(id).ok());
        let Some(pid) = id.and_then(Pid::from_raw) else {
            return;
        };
        let stopped = Process::new(pid.as_raw_pid())
            .and_then(|p| p.stat())
            .is_ok_and(|s| s.state == 'T');
        if stopped {
            // Not reaped yet, so the number is still its own; if it has died meanwhile
            // that is seen by reading.
            let _ = kill_process(pid, Signal::CONT);
        }
        if self.asked.is_some_and(|at| at.elapsed() >= ANSWER) {
            self.asked = None;
            let _ = self.guardian.start_kill();
        }
    }

    /// Handles the complete lines of the guardian.
    async fn reports(&mut self) -> Next {
        self.asked = None;
        while let Some(end) = self.unread.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            if let Ok(report) = serde_json::from_slice::<Report>(&line)
                && self.report(report).await == Next::End
            {
                return Next::End;
            }
        }
        if self.unread.len() > MAX_LINE {
            return self.lost().await;
        }
        Next::GoOn
    }

    async fn report(&mut self, report: Report) -> Next {
        match report {
            Report::Spawned { pid } => {
                self.orphans.group = i32::try_from(pid).ok().and_then(Pid::from_raw);
                self.console
                    .send(ChildEvent::Spawned { pid, pgid: pid })
                    .await;
            }
            Report::SpawnFailed { why, not_found } => {
                self.console
                    .send(ChildEvent::SpawnFailed { why, not_found })
                    .await;
                return Next::End;
            }
            Report::Exited(end) => {
                self.console.drain().await;
                self.exited = true;
                self.console.send(ChildEvent::Exited(end.into())).await;
            }
            Report::Ended { pid, end } => {
                let status = end.into();
                self.console.send(ChildEvent::Ended { pid, status }).await;
            }
            Report::Signalled {
                signal,
                scope,
                reached,
            } => {
                self.owed.pop_front();
                self.console
                    .send(ChildEvent::Signalled {
                        signal,
                        scope,
                        reached,
                    })
                    .await;
            }
            Report::Survivors(list) => {
                self.owed.pop_front();
                self.console.send(ChildEvent::Survivors(list)).await;
            }
            Report::Gone(Empty {}) => {
                self.console.drain().await;
                self.console.send(ChildEvent::Gone).await;
                return Next::End;
            }
        }
        Next::GoOn
    }

    async fn ask(&mut self, request: Request) {
        if let Some(control) = &mut self.control {
            // The guardian reads at once unless it is stopped or gone; its end is seen
            // by reading.
            let sent = timeout(DRAIN, control.write_all(&encode(&request))).await;
            tracing::debug!(?request, ?sent, "the guardian is asked");
            self.asked = self.asked.or_else(|| Some(Instant::now()));
            self.owed.push_back(request);
            return;
        }
        self.answer(request).await;
    }

    /// Does without a guardian what it was asked for.
    async fn answer(&mut self, request: Request) {
        let answer = match request {
            Request::Signal { signal, scope } => ChildEvent::Signalled {
                signal,
                scope,
                reached: self.orphans.signal(signal, scope).await,
            },
            Request::Survivors(Empty {}) => ChildEvent::Survivors(self.orphans.survivors().await),
        };
        self.console.send(answer).await;
    }

    async fn lost(&mut self) -> Next {
        self.control = None;
        self.console.send(ChildEvent::GuardianLost).await;
        for request in std::mem::take(&mut self.owed) {
            self.answer(request).await;
        }
        self.look_at_group().await
    }

    /// Without a guardian: everything that we know of is gone when the group is.
    async fn look_at_group(&mut self) -> Next {
        let lives = !self.orphans.survivors().await.is_empty();
        if lives {
            tokio::task::yield_now().await;
            return Next::GoOn;
        }
        self.console.drain().await;
        if !self.exited {
            self.console
                .send(ChildEvent::Exited(ExitStatus::Unknown))
                .await;
        }
        self.console.send(ChildEvent::Gone).await;
        Next::End
    }
}

/// Bytes of the guardian; 0: it is gone. Waits for ever once that is known.
async fn read_control(control: Option<&mut UnixStream>, into: &mut [u8]) -> usize {
    match control {
        Some(stream) => stream.read(into).await.unwrap_or(0),
        None => pending().await,
    }
}
