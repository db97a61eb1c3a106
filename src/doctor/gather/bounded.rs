//! Work that may block for ever, with a deadline of its own.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::doctor::facts::Look;

/// Work under way on a thread of its own. A thread that blocks for ever is left behind
/// and keeps nothing from ending.
#[derive(Debug)]
pub(super) struct Pending<T> {
    answer: Option<Receiver<T>>,
    begun: Instant,
    limit: Duration,
}

impl<T: Send + 'static> Pending<T> {
    /// Starts the work.
    pub(super) fn start(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Self {
        let (sender, answer) = mpsc::channel();
        let body = move || {
            // nobody waits for it any more
            let _ = sender.send(work());
        };
        let started = thread::Builder::new().name("doctor".to_owned()).spawn(body);
        Self {
            answer: started.is_ok().then_some(answer),
            begun: Instant::now(),
            limit,
        }
    }

    /// Its answer; waits until the deadline, counted from the start.
    pub(super) fn take(self) -> Look<T> {
        let Some(answer) = self.answer else {
            return Look::Unknown("no thread could be started".to_owned());
        };
        let left = self.limit.saturating_sub(self.begun.elapsed());
        match answer.recv_timeout(left) {
            Ok(value) => Look::Known(value),
            Err(RecvTimeoutError::Timeout) => Look::Unknown(format!(
                "no answer within {} s; the read blocks",
                self.limit.as_secs()
            )),
            Err(RecvTimeoutError::Disconnected) => Look::Unknown("the check broke down".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_blocks_or_breaks_is_unknown() {
        let (_open, gate) = mpsc::channel::<()>();
        let blocked = Pending::start(Duration::from_millis(20), move || gate.recv().is_ok());
        assert!(blocked.take().unknown().unwrap().contains("no answer"));
        let broken = Pending::start(Duration::from_secs(5), || {
            std::panic::resume_unwind(Box::new("on purpose"))
        });
        let broken: Look<()> = broken.take();
        assert_eq!(broken.unknown(), Some("the check broke down"));
        assert_eq!(
            Pending::start(Duration::from_secs(5), || 7).take(),
            Look::Known(7)
        );
    }
}
