//! The console of a workload: bytes of both output streams into lines, few enough for
//! who reads them.

use std::future::pending;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::ChildEvent;
use crate::model::Stream;
use crate::workload::lines::LineSplitter;
use crate::workload::rate::{self, Piece, RateLimit};

/// Unfinished text is passed on after this time without a further byte.
const PENDING: Duration = Duration::from_millis(300);

/// How long output is still read after the root process, or the last one, ended.
pub(super) const DRAIN: Duration = Duration::from_millis(500);

/// No output for this long means that the pipes are empty.
const QUIET: Duration = Duration::from_millis(20);

/// How often dropped lines are told.
pub(super) const DROPPED_PERIOD: Duration = Duration::from_secs(1);

/// Places in the channel that ordinary lines leave to reports and to lines that matter.
const RESERVED: usize = 128;

/// Places that even lines that matter leave to reports.
const RESERVED_REPORTS: usize = 32;

/// Bytes read at once.
pub(super) const CHUNK: usize = 32 * 1024;

pub(super) type Reader = Box<dyn AsyncRead + Send + Sync + Unpin>;

/// One output stream.
pub(super) struct Tap {
    reader: Option<Reader>,
    splitter: LineSplitter,
    limit: RateLimit,
    chunk: Vec<u8>,
}

impl Tap {
    pub(super) fn new(reader: Option<Reader>, attempt: u32, stream: Stream) -> Self {
        Self {
            reader,
            splitter: LineSplitter::new(attempt, stream),
            limit: RateLimit::default(),
            chunk: vec![0; CHUNK],
        }
    }

    /// Bytes of the next chunk; 0: the stream has ended. Waits for ever after that.
    pub(super) async fn read(&mut self) -> usize {
        match &mut self.reader {
            Some(reader) => reader.read(&mut self.chunk).await.unwrap_or(0),
            None => pending().await,
        }
    }

    /// Takes `n` bytes of the chunk, or the end of the stream.
    fn take(&mut self, n: usize, out: &mut Vec<Piece>) {
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
    pub(super) fn due(&self) -> Option<Instant> {
        let pending = self.splitter.pending_since().map(|t| t + PENDING);
        [pending, self.limit.bar_due(), self.limit.tail_due()]
            .into_iter()
            .flatten()
            .min()
    }

    fn flush_due(&mut self, now: Instant, out: &mut Vec<Piece>) {
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

/// Both streams, and who hears of them.
pub(super) struct Console {
    pub(super) stdout: Tap,
    pub(super) stderr: Tap,
    pub(super) sender: mpsc::Sender<ChildEvent>,
    dropped: u64,
    dropped_told: Instant,
}

impl Console {
    /// Of one attempt.
    pub(super) fn new(
        attempt: u32,
        stdout: Option<Reader>,
        stderr: Option<Reader>,
        sender: mpsc::Sender<ChildEvent>,
    ) -> Self {
        Self {
            stdout: Tap::new(stdout, attempt, Stream::Stdout),
            stderr: Tap::new(stderr, attempt, Stream::Stderr),
            sender,
            dropped: 0,
            dropped_told: Instant::now(),
        }
    }

    /// When something is due, at most `longest` from now.
    pub(super) fn due(&self, longest: Duration) -> Instant {
        let latest = Instant::now() + longest;
        let due = [self.stdout.due(), self.stderr.due()];
        due.into_iter().flatten().fold(latest, Instant::min)
    }

    /// Takes `n` bytes of a stream, or its end.
    pub(super) fn took(&mut self, stream: Stream, n: usize) {
        let mut lines = Vec::new();
        let (tap, other) = match stream {
            Stream::Stdout => (&mut self.stdout, &mut self.stderr),
            Stream::Stderr => (&mut self.stderr, &mut self.stdout),
        };
        let mut own = Vec::new();
        tap.take(n, &mut own);
        if own.iter().any(|p| !p.is_bar()) {
            // A bar that was held back was drawn before these lines.
            other.limit.flush(&mut lines);
        }
        lines.append(&mut own);
        self.pass(lines);
    }

    /// A flood on standard output must not starve the other stream.
    pub(super) async fn glance_at_stderr(&mut self) {
        let n = tokio::select! {
            biased;
            n = self.stderr.read() => n,
            () = std::future::ready(()) => return,
        };
        self.took(Stream::Stderr, n);
    }

    /// Passes on what is due.
    pub(super) fn time_passed(&mut self) {
        let now = Instant::now();
        let mut lines = Vec::new();
        self.stdout.flush_due(now, &mut lines);
        self.stderr.flush_due(now, &mut lines);
        self.pass(lines);
        self.tell_dropped(false);
    }

    fn pass(&mut self, pieces: Vec<Piece>) {
        for piece in pieces {
            let keep = match &piece {
                Piece::Line(line) if rate::matters(&line.text) => RESERVED_REPORTS,
                _ => RESERVED,
            };
            let lines = piece.lines();
            if self.sender.capacity() <= keep || self.sender.try_send(event(piece)).is_err() {
                self.dropped += lines;
            }
        }
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

    /// A word that is not dropped, however slow its reader.
    pub(super) async fn send(&self, event: ChildEvent) {
        // A closed channel is seen at the end of the turn.
        let _ = self.sender.send(event).await;
    }

    /// Reads what is in the pipes, so that it comes before the event that follows.
    pub(super) async fn drain(&mut self) {
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
        self.tell_dropped(true);
        // What a program says last is worth waiting for the reader.
        for piece in lines {
            self.send(event(piece)).await;
        }
    }
}

/// The words about a piece.
fn event(piece: Piece) -> ChildEvent {
    match piece {
        Piece::Line(line) => ChildEvent::Line(line),
        Piece::Flood(flood) => ChildEvent::Flood(flood),
    }
}
