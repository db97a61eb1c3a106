//! Sinks of the event stream, each behind its own thread.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::model::Envelope;

use super::queue::{Queue, QueueLimits};

/// Why a sink cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// The disk is full, the pipe is closed, …
    #[error("write {what}: {source}")]
    Io {
        /// What was written: `events.jsonl`, `standard output`.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
    /// An event that has no JSON form.
    #[error("encode event {seq}: {source}")]
    Encode {
        /// Which.
        seq: u64,
        /// Why.
        source: serde_json::Error,
    },
}

/// A reader of the stream that writes it somewhere. Its calls may block; that is
/// why it runs behind a [`SinkThread`].
pub trait EventSink: Send {
    /// Takes one envelope. An error detaches the sink for the rest of the run.
    fn accept(&mut self, envelope: &Envelope) -> Result<(), SinkError>;
    /// Hands on what is buffered, so that at most one second is lost.
    fn flush(&mut self) -> Result<(), SinkError>;
    /// The stream is over: flush, and make it durable where that means something.
    fn finish(&mut self) -> Result<(), SinkError>;
}

/// Why a sink did not end well.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FinishError {
    /// It is still busy or blocked; the rest is lost.
    #[error("still blocked after {waited:?}, {left} events not written")]
    Blocked {
        /// How long was waited.
        waited: Duration,
        /// Envelopes that were still waiting.
        left: usize,
    },
    /// It had failed before, or failed at the end.
    #[error("{0}")]
    Failed(String),
}

/// A sink buffers at most this long: with the time between two events and that of the
/// write, SIGKILL takes no more than the last second.
const FLUSH_EVERY: Duration = Duration::from_millis(600);

#[derive(Debug, Default)]
struct State {
    queue: Queue,
    closing: bool,
    done: bool,
    failure: Option<String>,
    failure_taken: bool,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    ended: Condvar,
}

impl Shared {
    /// The state stays consistent between any two statements of its users, so a
    /// poisoned lock is still good.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a sink on its own OS thread behind a bounded queue. Offering an envelope
/// never blocks, whatever the disk or the reader of the pipe does.
#[derive(Debug)]
pub struct SinkThread {
    shared: Arc<Shared>,
    limits: QueueLimits,
}

impl SinkThread {
    /// Starts the thread. The sink itself is made by the caller, so that an
    /// error in opening a file is seen at once.
    pub fn start(
        name: &str,
        sink: impl EventSink + 'static,
        limits: QueueLimits,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        thread::Builder::new()
            .name(format!("sink {name}"))
            .spawn(move || run(sink, &theirs))?;
        Ok(Self { shared, limits })
    }

    /// Hands over one envelope without ever waiting. When the queue is full it is
    /// dropped and counted; ticks, samples and lines first.
    pub fn try_send(&self, envelope: &Arc<Envelope>) {
        let mut state = self.shared.lock();
        if state.done || state.closing {
            return;
        }
        state.queue.offer(Arc::clone(envelope), self.limits);
        drop(state);
        self.shared.wake.notify_one();
    }

    /// What was dropped since the last call: `ticks`, `samples`, `lines`,
    /// `events`, each with its count.
    pub fn take_dropped(&self) -> Vec<(String, u64)> {
        self.shared.lock().queue.take_dropped()
    }

    /// Why the sink was detached; given once.
    pub fn take_failure(&self) -> Option<String> {
        let mut state = self.shared.lock();
        if state.failure_taken {
            return None;
        }
        state.failure_taken = state.failure.is_some();
        state.failure.clone()
    }

    /// Whether the sink still takes envelopes.
    pub fn is_attached(&self) -> bool {
        !self.shared.lock().done
    }

    /// Lets the sink write what waits and finish, for at most `timeout`; a sink
    /// that is still blocked then is left behind.
    pub fn finish(self, timeout: Duration) -> Result<(), FinishError> {
        let mut state = self.shared.lock();
        state.closing = true;
        self.shared.wake.notify_one();
        let end = Instant::now() + timeout;
        while !state.done {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(FinishError::Blocked {
                    waited: timeout,
                    left: state.queue.len(),
                });
            }
            state = self
                .shared
                .ended
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        match &state.failure {
            Some(why) => Err(FinishError::Failed(why.clone())),
            None => Ok(()),
        }
    }
}

impl Drop for SinkThread {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.wake.notify_one();
    }
}

/// The thread: a sink that fails or panics is detached, nothing else happens.
fn run(mut sink: impl EventSink, shared: &Shared) {
    let ended = catch_unwind(AssertUnwindSafe(|| pump(&mut sink, shared)));
    let failure = match ended {
        Ok(Ok(())) => None,
        Ok(Err(e)) => Some(e.to_string()),
        Err(_panic) => Some("the sink panicked; this is a defect of the program".to_owned()),
    };
    let mut state = shared.lock();
    state.done = true;
    state.failure = failure;
    state.queue.clear();
    drop(state);
    shared.ended.notify_all();
}

fn pump(sink: &mut impl EventSink, shared: &Shared) -> Result<(), SinkError> {
    let mut flushed = Instant::now();
    let mut dirty = false;
    loop {
        match next(shared, FLUSH_EVERY.saturating_sub(flushed.elapsed())) {
            Next::Envelope(envelope) => {
                sink.accept(&envelope)?;
                dirty = true;
            }
            Next::Nothing => {}
            Next::Closed => return sink.finish(),
        }
        if flushed.elapsed() >= FLUSH_EVERY {
            if dirty {
                sink.flush()?;
                dirty = false;
            }
            flushed = Instant::now();
        }
    }
}

enum Next {
    Envelope(Arc<Envelope>),
    Nothing,
    Closed,
}

fn next(shared: &Shared, wait: Duration) -> Next {
    let mut state = shared.lock();
    if state.queue.len() == 0 && !state.closing {
        state = shared
            .wake
            .wait_timeout(state, wait)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
    }
    match state.queue.pop() {
        Some(envelope) => Next::Envelope(envelope),
        None if state.closing => Next::Closed,
        None => Next::Nothing,
    }
}
