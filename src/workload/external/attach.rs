//! A process that was there before us: its end, its console as far as that lies in
//! files, and signals where the user asks for them.
//!
//! Nothing of it is reaped or held: dropping the [`Running`] leaves it alone. How it
//! ended is told to its parent only.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::sleep_until;

use super::console::Console;
use super::tail::{self, ConsoleFile, Token};
use super::{CHANNEL, ChildEvent, Running};
use crate::model::{ExitStatus, Scope, Stream};
use crate::workload::proctree::{self, Member};
use crate::workload::protocol::{Empty, Request};

/// How often it is looked whether the process, and those that were to end, live.
const PERIOD: Duration = Duration::from_millis(200);

/// Whom to watch.
#[derive(Debug)]
pub struct AttachSpec {
    /// Process id.
    pub pid: u32,
    /// When it began, in clock ticks since boot.
    pub start: u64,
    /// A pidfd of that very process.
    pub handle: OwnedFd,
    /// Its process group.
    pub group: u32,
    /// Where its output can be read, at most one file a stream.
    pub console: Vec<ConsoleFile>,
    /// Number of the attempt, for its lines.
    pub attempt: u32,
}

/// Begins to watch. Must be called within a tokio runtime.
///
/// # Errors
/// When a file of its console cannot be read.
pub fn attach(spec: AttachSpec) -> io::Result<Running> {
    let token = Token::default();
    let (mut stdout, mut stderr) = (None, None);
    for file in spec.console {
        let reader = match file.stream {
            Stream::Stdout => &mut stdout,
            Stream::Stderr => &mut stderr,
        };
        *reader = Some(tail::start(file, &token)?);
    }
    let (sender, events) = mpsc::channel(CHANNEL);
    let (requests, asked) = mpsc::channel(16);
    let spawned = ChildEvent::Spawned {
        pid: spec.pid,
        pgid: spec.group,
    };
    let watch = Watch {
        console: Console::new(spec.attempt, stdout, stderr, sender),
        handle: spec.handle,
        pid: i32::try_from(spec.pid).unwrap_or(i32::MAX),
        start: spec.start,
        to_end: Vec::new(),
        ended: false,
        _token: token,
    };
    tokio::spawn(watch.run(spawned, asked));
    Ok(Running {
        guardian_pid: None,
        events,
        requests,
    })
}

/// Whether the process behind a pidfd has ended.
pub fn has_ended(handle: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(handle, PollFlags::IN)];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut fds, Some(&at_once)).is_ok_and(|ready| ready > 0)
}

struct Watch {
    console: Console,
    handle: OwnedFd,
    pid: i32,
    start: u64,
    /// Those that were sent a signal: their end is waited for.
    to_end: Vec<Member>,
    ended: bool,
    _token: Token,
}

impl Watch {
    async fn run(mut self, spawned: ChildEvent, mut asked: mpsc::Receiver<Request>) {
        self.console.send(spawned).await;
        while !self.console.sender.is_closed() {
            let due: Instant = self.console.due(PERIOD);
            tokio::select! {
                biased;
                request = asked.recv() => match request {
                    Some(request) => self.answer(request).await,
                    None => return,
                },
                n = self.console.stdout.read() => self.console.took(Stream::Stdout, n),
                n = self.console.stderr.read() => self.console.took(Stream::Stderr, n),
                () = sleep_until(due.into()) => self.console.time_passed(),
            }
            if !self.ended && has_ended(&self.handle) {
                self.end().await;
            }
            if self.ended && self.are_gone().await {
                return self.console.send(ChildEvent::Gone).await;
            }
            // a flood must not starve the other tasks of this thread
            tokio::task::yield_now().await;
        }
    }

    /// The process has ended: first what it said last.
    async fn end(&mut self) {
        self.ended = true;
        // the file is looked at each 100 ms
        tokio::time::sleep(PERIOD).await;
        self.console.drain().await;
        let status = ExitStatus::Unknown;
        self.console.send(ChildEvent::Exited(status)).await;
    }

    async fn answer(&mut self, request: Request) {
        let (pid, start) = (self.pid, self.start);
        let answer = match request {
            Request::Signal { signal, .. } => {
                let sent = spawn_blocking(move || proctree::signal_tree(pid, start, signal)).await;
                let reached = sent.unwrap_or_default();
                let count = u32::try_from(reached.len()).unwrap_or(u32::MAX);
                self.to_end.extend(reached);
                ChildEvent::Signalled {
                    signal,
                    scope: Scope::Tree,
                    reached: count,
                }
            }
            Request::Survivors(Empty {}) => {
                let members = self.to_end.clone();
                let list =
                    spawn_blocking(move || proctree::describe(proctree::alive(&members))).await;
                ChildEvent::Survivors(list.unwrap_or_default())
            }
        };
        self.console.send(answer).await;
    }

    /// Whether none lives of those that were to end; the others are not ours to wait for.
    async fn are_gone(&self) -> bool {
        let members = self.to_end.clone();
        let gone = spawn_blocking(move || proctree::alive(&members).is_empty()).await;
        gone.unwrap_or(true)
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use super::*;
    use crate::model::Signal;

    fn start_of(pid: u32) -> u64 {
        let pid = i32::try_from(pid).unwrap();
        let process = procfs::process::Process::new(pid).unwrap();
        process.stat().unwrap().starttime
    }

    fn watch(child: &Child, start: u64) -> Running {
        let pid = Pid::from_child(child);
        attach(AttachSpec {
            pid: child.id(),
            start,
            handle: pidfd_open(pid, PidfdFlags::empty()).unwrap(),
            group: child.id(),
            console: Vec::new(),
            attempt: 1,
        })
        .unwrap()
    }

    fn shell() -> Child {
        Command::new("sh")
            .args(["-c", "sleep 60 & sleep 60"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    }

    async fn next(running: &mut Running) -> ChildEvent {
        let event = tokio::time::timeout(Duration::from_secs(20), running.events.recv());
        event.await.unwrap().unwrap()
    }

    #[tokio::test]
    async fn a_process_is_left_alone_until_the_user_says_otherwise() {
        let mut child = shell();
        let start = start_of(child.id());
        let mut running = watch(&child, start);
        assert!(matches!(
            next(&mut running).await,
            ChildEvent::Spawned { .. }
        ));
        drop(running);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(child.try_wait().unwrap(), None);

        let mut running = watch(&child, start);
        assert!(matches!(
            next(&mut running).await,
            ChildEvent::Spawned { .. }
        ));
        // the children of a shell begin a moment later
        while proctree::tree(i32::try_from(child.id()).unwrap(), start).len() < 3 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(running.signal(Signal::Kill, Scope::Tree));
        let ChildEvent::Signalled { reached, scope, .. } = next(&mut running).await else {
            panic!("no answer");
        };
        assert_eq!((reached, scope), (3, Scope::Tree));
        assert_eq!(
            next(&mut running).await,
            ChildEvent::Exited(ExitStatus::Unknown)
        );
        assert_eq!(next(&mut running).await, ChildEvent::Gone);
        child.wait().unwrap();
    }

    #[tokio::test]
    async fn a_number_that_is_another_process_now_is_not_signalled() {
        let mut child = shell();
        let mut running = watch(&child, start_of(child.id()) + 1);
        next(&mut running).await;
        assert!(running.signal(Signal::Kill, Scope::Tree));
        assert!(matches!(
            next(&mut running).await,
            ChildEvent::Signalled { reached: 0, .. }
        ));
        assert_eq!(child.try_wait().unwrap(), None);
        let start = start_of(child.id());
        proctree::signal_tree(i32::try_from(child.id()).unwrap(), start, Signal::Kill);
        child.wait().unwrap();
    }
}
