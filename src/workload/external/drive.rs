//! The task behind a [`Running`](super::Running) workload.

use std::future::pending;
use std::time::{Duration, Instant};

use procfs::process::Process;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::sync::mpsc;
use tokio::time::{sleep, sleep_until, timeout};

use super::ChildEvent;
use super::orphans::Orphans;
use crate::model::{ExitStatus, Line, Stream};
use crate::workload::lines::LineSplitter;
use crate::workload::protocol::{Empty, MAX_LINE, Report, Request, encode};
use crate::workload::rate::{self, RateLimit};

/// Unfinished text is passed on after this time without a further byte.
const PENDING: Duration = Duration::from_millis(300);

/// How long output is still read after the root process, or the last one, ended.
const DRAIN: Duration = Duration::from_millis(500);

/// No output for this long means that the pipes are empty.
const QUIET: Duration = Duration::from_millis(20);

/// How often dropped lines are told.
const DROPPED_PERIOD: Duration = Duration::from_secs(1);

/// How often an orphaned group is looked at.
const LOST_PERIOD: Duration = Duration::from_millis(200);

/// A guardian that has not answered for this long is of no use: it is killed, and what
/// it held is ended without it. Less than the time after which the workload would be
/// called unkillable.
const ANSWER: Duration = Duration::from_secs(8);

/// Places in the channel that ordinary lines leave to reports and to lines that matter.
const RESERVED: usize = 128;

/// Places that even lines that matter leave to reports.
const RESERVED_REPORTS: usize = 32;

/// Bytes read at once.
const CHUNK: usize = 32 * 1024;

/// Whether the task goes on.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    GoOn,
    End,
}

type Reader = Box<dyn AsyncRead + Send + Sync + Unpin>;

/// One output stream.
struct Tap {
    reader: Option<Reader>,
    splitter: LineSplitter,
    limit: RateLimit,
    chunk: Vec<u8>,
}

impl Tap {
    fn new(reader: Option<Reader>, attempt: u32, stream: Stream) -> Self {
        Self {
            reader,
            splitter: LineSplitter::new(attempt, stream),
            limit: RateLimit::default(),
            chunk: vec![0; CHUNK],
        }
    }

    /// Bytes of the next chunk; 0: the stream has ended. Waits for ever after that.
    async fn read(&mut self) -> usize {
        match &mut self.reader {
            Some(reader) => reader.read(&mut self.chunk).await.unwrap_or(0),
            None => pending().await,
        }
    }

    /// Takes `n` bytes of the chunk, or the end of the stream.
    fn take(&mut self, n: usize, out: &mut Vec<Line>) {
        let now = Instant::now();
        let mut lines = Vec::new();
        if n == 0 {
            self.reader = None;
            self.splitter.flush(&mut lines);
        } else {
            self.splitter.feed(&self.chunk[..n], now, &mut lines);
        }
        for line in lines {
            self.limit.push(line, now, out);
        }
        if n == 0 {
            self.limit.end(out);
        }
    }

    /// When unfinished text or a held bar is due.
    fn due(&self) -> Option<Instant> {
        let pending = self.splitter.pending_since().map(|t| t + PENDING);
        [pending, self.limit.bar_due(), self.limit.tail_due()]
            .into_iter()
            .flatten()
            .min()
    }

    fn flush_due(&mut self, now: Instant, out: &mut Vec<Line>) {
        if self
            .splitter
            .pending_since()
            .is_some_and(|t| now.saturating_duration_since(t) >= PENDING)
        {
            let mut lines = Vec::new();
            self.splitter.flush_pending(&mut lines);
            for line in lines {
                self.limit.push(line, now, out);
            }
        }
        self.limit.release_bar(now, out);
        self.limit.release_tail(now, out);
    }
}

struct Drive {
    guardian: Child,
    /// Absent once the guardian is gone.
    control: Option<UnixStream>,
    unread: Vec<u8>,
    stdout: Tap,
    stderr: Tap,
    sender: mpsc::Sender<ChildEvent>,
    dropped: u64,
    dropped_told: Instant,
    orphans: Orphans,
    /// Since when a request has been waiting for its answer.
    asked: Option<Instant>,
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
        stdout: Tap::new(stdout, attempt, Stream::Stdout),
        stderr: Tap::new(stderr, attempt, Stream::Stderr),
        guardian,
        control: Some(control),
        unread: Vec::new(),
        sender,
        dropped: 0,
        dropped_told: Instant::now(),
        orphans: Orphans { group: None, mark },
        asked: None,
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
            n = self.stdout.read(), if started => Woken::Stdout(n),
            n = self.stderr.read(), if started => Woken::Stderr(n),
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
                self.took(Stream::Stdout, n);
                if n == CHUNK {
                    // A flood here must not starve the other stream.
                    self.glance_at_stderr().await;
                }
            }
            Woken::Stderr(n) => self.took(Stream::Stderr, n),
            Woken::Time => self.time_passed(),
        }
        if self.sender.is_closed() {
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
        [self.stdout.due(), self.stderr.due()]
            .into_iter()
            .flatten()
            .min()
            .map_or_else(
                || Instant::now() + longest,
                |d| d.min(Instant::now() + longest),
            )
    }

    fn took(&mut self, stream: Stream, n: usize) {
        let mut lines = Vec::new();
        let (tap, other) = match stream {
            Stream::Stdout => (&mut self.stdout, &mut self.stderr),
            Stream::Stderr => (&mut self.stderr, &mut self.stdout),
        };
        let mut own = Vec::new();
        tap.take(n, &mut own);
        if own.iter().any(|l| !l.bar) {
            // A bar that was held back was drawn before these lines.
            other.limit.flush(&mut lines);
        }
        lines.append(&mut own);
        self.pass(lines);
    }

    async fn glance_at_stderr(&mut self) {
        let n = tokio::select! {
            biased;
            n = self.stderr.read() => n,
            () = std::future::ready(()) => return,
        };
        self.took(Stream::Stderr, n);
    }

    fn time_passed(&mut self) {
        let now = Instant::now();
        let mut lines = Vec::new();
        self.stdout.flush_due(now, &mut lines);
        self.stderr.flush_due(now, &mut lines);
        self.pass(lines);
        self.tell_dropped(false);
    }

    fn pass(&mut self, lines: Vec<Line>) {
        for line in lines {
            let keep = if rate::matters(&line.text) {
                RESERVED_REPORTS
            } else {
                RESERVED
            };
            if self.sender.capacity() <= keep
                || self.sender.try_send(ChildEvent::Line(line)).is_err()
            {
                self.dropped += 1;
            }
        }
        self.dropped += self.stdout.limit.take_dropped() + self.stderr.limit.take_dropped();
        self.tell_dropped(false);
    }

    fn tell_dropped(&mut self, at_once: bool) {
        if self.dropped > 0
            && (at_once || self.dropped_told.elapsed() >= DROPPED_PERIOD)
            && self.sender.capacity() > RESERVED_REPORTS
            && self
                .sender
                .try_send(ChildEvent::DroppedLines(self.dropped))
                .is_ok()
        {
            self.dropped = 0;
            self.dropped_told = Instant::now();
        }
    }

    async fn send(&self, event: ChildEvent) {
        // A closed channel is seen at the end of the turn.
        let _ = self.sender.send(event).await;
    }

    /// Reads what is in the pipes, so that it comes before the event that follows.
    async fn drain(&mut self) {
        let until = Instant::now() + DRAIN;
        while Instant::now() < until {
            let (stream, n) = tokio::select! {
                biased;
                n = self.stdout.read() => (Stream::Stdout, n),
                n = self.stderr.read() => (Stream::Stderr, n),
                () = sleep(QUIET) => break,
            };
            self.took(stream, n);
        }
        let mut lines = Vec::new();
        for tap in [&mut self.stdout, &mut self.stderr] {
            let mut unfinished = Vec::new();
            tap.splitter.flush_pending(&mut unfinished);
            for line in unfinished {
                tap.limit.push(line, Instant::now(), &mut lines);
            }
            tap.limit.end(&mut lines);
        }
        self.dropped += self.stdout.limit.take_dropped() + self.stderr.limit.take_dropped();
        self.tell_dropped(true);
        // What a program says last is worth waiting for the reader.
        for line in lines {
            self.send(ChildEvent::Line(line)).await;
        }
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
                self.send(ChildEvent::Spawned { pid, pgid: pid }).await;
            }
            Report::SpawnFailed { why, not_found } => {
                self.send(ChildEvent::SpawnFailed { why, not_found }).await;
                return Next::End;
            }
            Report::Exited(end) => {
                self.drain().await;
                self.exited = true;
                self.send(ChildEvent::Exited(end.into())).await;
            }
            Report::Signalled {
                signal,
                scope,
                reached,
            } => {
                self.send(ChildEvent::Signalled {
                    signal,
                    scope,
                    reached,
                })
                .await;
            }
            Report::Survivors(list) => self.send(ChildEvent::Survivors(list)).await,
            Report::Gone(Empty {}) => {
                self.drain().await;
                self.send(ChildEvent::Gone).await;
                return Next::End;
            }
        }
        Next::GoOn
    }

    async fn ask(&mut self, request: Request) {
        if let Some(control) = &mut self.control {
            // The guardian reads at once unless it is stopped or gone; its end is seen
            // by reading.
            let _ = timeout(DRAIN, control.write_all(&encode(&request))).await;
            self.asked = self.asked.or_else(|| Some(Instant::now()));
            return;
        }
        let answer = match request {
            Request::Signal { signal, scope } => ChildEvent::Signalled {
                signal,
                scope,
                reached: self.orphans.signal(signal, scope).await,
            },
            Request::Survivors(Empty {}) => ChildEvent::Survivors(self.orphans.survivors().await),
        };
        self.send(answer).await;
    }

    async fn lost(&mut self) -> Next {
        self.control = None;
        self.send(ChildEvent::GuardianLost).await;
        self.look_at_group().await
    }

    /// Without a guardian: everything that we know of is gone when the group is.
    async fn look_at_group(&mut self) -> Next {
        let lives = !self.orphans.survivors().await.is_empty();
        if lives {
            tokio::task::yield_now().await;
            return Next::GoOn;
        }
        self.drain().await;
        if !self.exited {
            self.send(ChildEvent::Exited(ExitStatus::Unknown)).await;
        }
        self.send(ChildEvent::Gone).await;
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
