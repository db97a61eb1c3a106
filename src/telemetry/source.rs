//! A source that may block for ever, and the slot in which its last answer lies.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::model::time::millis;
use crate::model::{SourceState, SourceStatus};

/// No answer for this long: *stale*.
pub(crate) const STALE_AFTER: Duration = Duration::from_secs(2);
/// No answer for this long: *lost*.
pub(crate) const LOST_AFTER: Duration = Duration::from_secs(30);
/// A source that is not there is asked again this often.
const ABSENT_PERIOD: Duration = Duration::from_secs(15);

/// Why a source gave no reading.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SourceError {
    /// Not there on this machine.
    #[error("{0}")]
    Absent(String),
    /// There, but it answers with an error.
    #[error("{0}")]
    Failed(String),
}

/// One reading, with what is wrong about it as a whole.
#[derive(Debug, Clone)]
pub(crate) struct Answer<T> {
    /// The reading.
    pub(crate) reading: T,
    /// Set where the source answers, but with nothing but errors.
    pub(crate) trouble: Option<String>,
}

impl<T> Answer<T> {
    /// A reading without trouble.
    pub(crate) const fn good(reading: T) -> Self {
        Self {
            reading,
            trouble: None,
        }
    }
}

/// Something that is read again and again, on a thread of its own.
pub(crate) trait Source: Send + 'static {
    /// What it yields.
    type Reading: Clone + Send + 'static;

    /// Name in [`SourceStatus`].
    fn name(&self) -> String;

    /// Reads once. May block for as long as the driver likes.
    fn read(&mut self) -> Result<Answer<Self::Reading>, SourceError>;
}

/// Locks even when another thread panicked while it held the lock: the data are
/// whole readings, replaced at once.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The last answer of a source; whoever reads it waits for no device.
#[derive(Debug)]
pub(crate) struct Slot<T> {
    name: String,
    inner: Mutex<Inner<T>>,
}

#[derive(Debug)]
struct Inner<T> {
    started: Instant,
    /// When the read that is under way began.
    asked: Option<Instant>,
    answered: bool,
    good: Option<(Instant, T)>,
    trouble: Option<Trouble>,
}

#[derive(Debug)]
struct Trouble {
    state: SourceState,
    why: String,
    since: Instant,
    /// Whether a reading came with it.
    read: bool,
}

/// A slot at one moment.
#[derive(Debug, Clone)]
pub(crate) struct View<T> {
    /// The last reading and its age.
    pub(crate) reading: Option<(Duration, T)>,
    /// State of the source.
    pub(crate) status: SourceStatus,
    /// Why and for how long, where the last answer was an error without a reading.
    pub(crate) failure: Option<(String, Duration)>,
}

impl<T: Clone> Slot<T> {
    /// A slot that nothing was put in yet.
    pub(crate) fn new(name: String) -> Self {
        Self {
            name,
            inner: Mutex::new(Inner {
                started: Instant::now(),
                asked: None,
                answered: false,
                good: None,
                trouble: None,
            }),
        }
    }

    /// A read begins.
    pub(crate) fn begin(&self, now: Instant) {
        lock(&self.inner).asked = Some(now);
    }

    /// A read has ended.
    pub(crate) fn finish(&self, now: Instant, result: Result<Answer<T>, SourceError>) {
        let mut inner = lock(&self.inner);
        inner.asked = None;
        inner.answered = true;
        let trouble = match result {
            Ok(answer) => {
                inner.good = Some((now, answer.reading));
                answer.trouble.map(|why| (SourceState::Failing, why, true))
            }
            Err(SourceError::Absent(why)) => Some((SourceState::Absent, why, false)),
            Err(SourceError::Failed(why)) => Some((SourceState::Failing, why, false)),
        };
        inner.trouble = trouble.map(|(state, why, read)| Trouble {
            state,
            why,
            since: inner.trouble.as_ref().map_or(now, |t| t.since),
            read,
        });
    }

    /// Whether the source has answered at least once, with whatever.
    pub(crate) fn answered(&self) -> bool {
        lock(&self.inner).answered
    }

    /// The slot as it is at `now`.
    pub(crate) fn view(&self, now: Instant) -> View<T> {
        let inner = lock(&self.inner);
        let pending = inner.asked.map(|at| now.saturating_duration_since(at));
        // an answer of nothing but errors is no good one
        let since_good = match &inner.trouble {
            Some(trouble) if trouble.read => trouble.since,
            _ => inner.good.as_ref().map_or(inner.started, |(at, _)| *at),
        };
        let age = now.saturating_duration_since(since_good);
        let silent =
            |d: Duration| Some(format!("no answer for {} s; the read blocks", d.as_secs()));
        let (state, why) = match (pending, &inner.trouble) {
            (Some(d), _) if d >= LOST_AFTER => (SourceState::Lost, silent(d)),
            (Some(d), _) if d >= STALE_AFTER => (SourceState::Stale, silent(d)),
            (_, Some(trouble)) => (trouble.state, Some(trouble.why.clone())),
            _ if inner.good.is_none() => (SourceState::Starting, None),
            _ => (SourceState::Ok, None),
        };
        View {
            reading: inner
                .good
                .as_ref()
                .map(|(at, value)| (now.saturating_duration_since(*at), value.clone())),
            status: SourceStatus {
                name: self.name.clone(),
                state,
                age_ms: millis(age),
                why,
            },
            failure: inner
                .trouble
                .as_ref()
                .filter(|t| !t.read)
                .map(|t| (t.why.clone(), now.saturating_duration_since(t.since))),
        }
    }
}

/// The common clock of all reader threads: they wait here between two reads, can
/// be woken early, and end when the sampler does.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    state: Mutex<PaceState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct PaceState {
    round: u64,
    stopped: bool,
    times: BTreeMap<String, ReadTime>,
}

/// How long the reads of one source take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadTime {
    /// The first, with whatever had to be opened or loaded.
    pub first: Duration,
    /// The latest after that, where there was one.
    pub latest: Option<Duration>,
}

impl Pace {
    /// Lets every source read now.
    pub(crate) fn wake(&self) {
        lock(&self.state).round += 1;
        self.changed.notify_all();
    }

    /// Ends every reader thread that is not blocked in a read.
    pub(crate) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_all();
    }

    /// A read of the source called `name` has ended.
    pub(crate) fn took(&self, name: &str, time: Duration) {
        let mut state = lock(&self.state);
        if let Some(known) = state.times.get_mut(name) {
            known.latest = Some(time);
        } else {
            let first = ReadTime {
                first: time,
                latest: None,
            };
            state.times.insert(name.to_owned(), first);
        }
    }

    /// What the reads took, by the name of the source.
    pub(crate) fn times(&self) -> BTreeMap<String, ReadTime> {
        lock(&self.state).times.clone()
    }

    /// The present round; to be passed to [`Pace::wait`].
    pub(crate) fn round(&self) -> u64 {
        lock(&self.state).round
    }

    /// Waits for the period to pass or for a wake-up since round `seen`. False:
    /// the thread is to end.
    pub(crate) fn wait(&self, period: Duration, seen: u64) -> bool {
        let state = lock(&self.state);
        let (state, _timeout) = self
            .changed
            .wait_timeout_while(state, period, |s| !s.stopped && s.round == seen)
            .unwrap_or_else(PoisonError::into_inner);
        !state.stopped
    }
}

/// Starts the source on a thread of its own. The thread is detached: one that is
/// blocked in a read keeps neither the sampler nor the program from ending.
pub(crate) fn spawn<S: Source>(
    mut source: S,
    period: Duration,
    pace: Arc<Pace>,
) -> Arc<Slot<S::Reading>> {
    let slot = Arc::new(Slot::new(source.name()));
    let of_thread = Arc::clone(&slot);
    let body = move || {
        let end = EndMark(&of_thread);
        loop {
            let seen = pace.round();
            let begun = Instant::now();
            end.0.begin(begun);
            let result = source.read();
            let absent = matches!(result, Err(SourceError::Absent(_)));
            let ended = Instant::now();
            let took = ended - begun;
            pace.took(&end.0.name, took);
            match &result {
                Ok(_) => tracing::trace!(source = end.0.name, ?took, "read"),
                Err(why) => tracing::debug!(source = end.0.name, ?took, ?why, "not read"),
            }
            end.0.finish(ended, result);
            let pause = if absent {
                period.max(ABSENT_PERIOD)
            } else {
                period
            };
            if !pace.wait(pause, seen) {
                break;
            }
        }
    };
    let name = slot.name.chars().take(15).collect();
    if let Err(error) = thread::Builder::new().name(name).spawn(body) {
        slot.finish(
            Instant::now(),
            Err(SourceError::Failed(format!(
                "no thread could be started: {error}"
            ))),
        );
    }
    slot
}

/// Says in the slot that the thread is gone, a panic of the source included.
struct EndMark<'a, T: Clone>(&'a Slot<T>);

impl<T: Clone> Drop for EndMark<'_, T> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.finish(
                Instant::now(),
                Err(SourceError::Failed("its reader broke down".to_owned())),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn silence_is_stale_then_lost_and_an_answer_ends_it() {
        let slot = Slot::new("s".to_owned());
        let t0 = Instant::now();
        let at = |s: u64| t0 + Duration::from_secs(s);
        assert_eq!(slot.view(t0).status.state, SourceState::Starting);
        slot.begin(t0);
        slot.finish(t0, Ok(Answer::good(1)));
        assert_eq!(slot.view(at(1)).status.state, SourceState::Ok);
        slot.begin(at(1));
        assert_eq!(slot.view(at(2)).status.state, SourceState::Ok);
        assert_eq!(slot.view(at(3)).status.state, SourceState::Stale);
        let lost = slot.view(at(31));
        assert_eq!(lost.status.state, SourceState::Lost);
        assert_eq!(lost.status.age_ms, 31_000);
        assert_eq!(lost.reading, Some((Duration::from_secs(31), 1)));
        slot.finish(at(40), Ok(Answer::good(2)));
        assert_eq!(slot.view(at(40)).status.state, SourceState::Ok);
    }

    #[test]
    fn an_error_keeps_its_beginning_and_the_last_reading() {
        let slot = Slot::new("s".to_owned());
        let t0 = Instant::now();
        let at = |s: u64| t0 + Duration::from_secs(s);
        slot.finish(t0, Ok(Answer::good(1)));
        slot.finish(at(1), Err(SourceError::Failed("a".to_owned())));
        slot.finish(at(2), Err(SourceError::Failed("b".to_owned())));
        let view = slot.view(at(4));
        assert_eq!(view.status.state, SourceState::Failing);
        assert_eq!(view.status.why.as_deref(), Some("b"));
        assert_eq!(view.failure, Some(("b".to_owned(), Duration::from_secs(3))));
        assert_eq!(view.reading.map(|r| r.1), Some(1));
    }

    #[test]
    fn answers_of_nothing_but_errors_are_one_failure_that_grows_older() {
        let slot = Slot::new("s".to_owned());
        let t0 = Instant::now();
        let at = |s: u64| t0 + Duration::from_secs(s);
        slot.finish(t0, Ok(Answer::good(1)));
        for s in 1..=12 {
            let trouble = Some("gone".to_owned());
            slot.finish(
                at(s),
                Ok(Answer {
                    reading: 2,
                    trouble,
                }),
            );
        }
        let view = slot.view(at(13));
        assert_eq!(view.status.state, SourceState::Failing);
        assert_eq!(view.status.age_ms, 12_000);
        assert_eq!(view.reading, Some((Duration::from_secs(1), 2)));
    }

    struct Blocked(mpsc::Receiver<()>);
    impl Source for Blocked {
        type Reading = u8;
        fn name(&self) -> String {
            "blocked".to_owned()
        }
        fn read(&mut self) -> Result<Answer<u8>, SourceError> {
            let _ = self.0.recv();
            Ok(Answer::good(1))
        }
    }

    struct Broken;
    impl Source for Broken {
        type Reading = u8;
        fn name(&self) -> String {
            "broken".to_owned()
        }
        fn read(&mut self) -> Result<Answer<u8>, SourceError> {
            std::panic::resume_unwind(Box::new("on purpose"));
        }
    }

    #[test]
    fn a_blocked_or_broken_source_delays_nobody() {
        let (release, gate) = mpsc::channel();
        let pace = Arc::new(Pace::default());
        let period = Duration::from_millis(5);
        let begin = Instant::now();
        let blocked = spawn(Blocked(gate), period, Arc::clone(&pace));
        let broken = spawn(Broken, period, Arc::clone(&pace));
        while !broken.answered() {
            assert!(begin.elapsed() < Duration::from_secs(5));
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(
            broken.view(Instant::now()).status.state,
            SourceState::Failing
        );
        assert!(!blocked.answered());
        assert!(!pace.times().contains_key("blocked"), "it has not ended");
        release.send(()).unwrap();
        while !blocked.answered() {
            assert!(begin.elapsed() < Duration::from_secs(5));
            thread::sleep(Duration::from_millis(1));
        }
        assert!(pace.times().contains_key("blocked"));
        pace.stop();
        assert_eq!(blocked.view(Instant::now()).reading.map(|r| r.1), Some(1));
    }
}
