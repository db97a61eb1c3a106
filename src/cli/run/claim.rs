//! The card of a run: taken at once, or waited for while an earlier run still has it.
//!
//! The lock is free when supervisor and guardian of the earlier run have ended. Where both were
//! killed, processes that carry their mark may still hold memory of the card.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::cli::CliError;
use crate::model::time::millis;
use crate::model::{CardHeld, CardHolder, Event, GpuId};
use crate::supervise::{GpuLock, LockError, guardian_of};
use crate::telemetry::{CardUsers, Held};
use crate::workload::leftovers::leftovers;

/// Time between two looks at the processes of the machine.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);
/// The first look may take this long: a process whose memory map is locked blocks it, and is no
/// reason to start nothing.
const FIRST_LOOK: Duration = Duration::from_secs(3);

/// A supervisor that was killed a moment ago may not have ended yet: only one that lives for so long
/// refuses the card.
const DYING: Duration = Duration::from_secs(1);
/// Time between two tries within that.
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// What a look at the processes has found.
#[derive(Default)]
struct Found {
    guardian: Option<u32>,
    holders: Vec<CardHolder>,
    /// The supervisor that had started the first of them.
    supervisor: Option<(u32, u64)>,
}

/// How the card stands for a new run.
pub(in crate::cli) enum Claim {
    /// It is ours.
    Ours(GpuLock),
    /// Something of an earlier run has it.
    Waits(Box<Wait>),
}

impl Claim {
    /// The lock, or the wait for it.
    pub(super) fn split(self) -> (Option<GpuLock>, Option<Box<Wait>>) {
        match self {
            Self::Ours(lock) => (Some(lock), None),
            Self::Waits(wait) => (None, Some(wait)),
        }
    }
}

/// A wait for the card.
pub(in crate::cli) struct Wait {
    gpu: GpuId,
    run: String,
    since: Instant,
    lock: Option<GpuLock>,
    /// The run that the lock named while it was not ours.
    ending: Option<String>,
    looks: Receiver<Found>,
    found: Found,
    /// Looks that began before the lock was ours do not count.
    stale_looks: u32,
    told: Option<CardHeld>,
}

/// Takes the card for the run `run`, or begins to wait for it.
///
/// # Errors
/// Where a living run has the card, or the lock cannot be taken at all.
pub(in crate::cli) fn claim(
    gpu: &GpuId,
    run: &str,
    notices: &mut Vec<String>,
) -> Result<Claim, CliError> {
    let mut wait = Wait {
        gpu: gpu.clone(),
        run: run.to_owned(),
        since: Instant::now(),
        lock: None,
        ending: None,
        looks: looks(gpu)?,
        found: Found::default(),
        stale_looks: 0,
        told: None,
    };
    let since = wait.since;
    try_while_dying(|| wait.try_lock(), || since.elapsed(), std::thread::sleep)?;
    wait.stale_looks = 0;
    match wait.looks.recv_timeout(FIRST_LOOK) {
        Ok(found) => wait.found = found,
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => notices.push(format!(
            "whether an earlier run has left processes on {gpu} is not known: a look at the processes takes longer than {} s",
            FIRST_LOOK.as_secs()
        )),
    }
    Ok(match wait.lock.take() {
        Some(lock) if wait.found.holders.is_empty() => Claim::Ours(lock),
        lock => {
            wait.lock = lock;
            Claim::Waits(Box::new(wait))
        }
    })
}

/// Tries again while whoever has the lock may be a process that is just ending. `elapsed`: since
/// the first try.
fn try_while_dying<E>(
    mut try_lock: impl FnMut() -> Result<(), E>,
    elapsed: impl Fn() -> Duration,
    mut sleep: impl FnMut(Duration),
) -> Result<(), E> {
    loop {
        match try_lock() {
            Err(_) if elapsed() < DYING => sleep(BETWEEN_TRIES),
            tried => return tried,
        }
    }
}

/// Looks again and again on a thread of its own, until nobody listens.
fn looks(gpu: &GpuId) -> Result<Receiver<Found>, CliError> {
    let (to, looks) = channel();
    let gpu = gpu.clone();
    let thread = std::thread::Builder::new().name("card users".to_owned());
    thread
        .spawn(move || look_until_unheard(&gpu, &to))
        .map_err(|why| CliError::System {
            what: "start a thread",
            why,
        })?;
    Ok(looks)
}

fn look_until_unheard(gpu: &GpuId, to: &Sender<Found>) {
    let mut users = CardUsers::default();
    while to.send(look(gpu, &mut users)).is_ok() {
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

fn look(gpu: &GpuId, users: &mut CardUsers) -> Found {
    let mut found = Found {
        guardian: guardian_of(gpu),
        ..Found::default()
    };
    for left in leftovers() {
        let vram = match users.held(left.pid, gpu) {
            Held::Nothing => continue,
            Held::Memory(vram) => Some(vram),
            Held::Unknown => None,
        };
        found.supervisor.get_or_insert(left.supervisor);
        found.holders.push(CardHolder {
            pid: left.pid,
            name: left.name,
            state: left.state,
            vram,
        });
    }
    found
}

impl Wait {
    /// Time passes: what is new, and the lock once the card is ours.
    pub(super) fn turn(&mut self) -> (Option<Event>, Option<GpuLock>) {
        while let Ok(found) = self.looks.try_recv() {
            self.stale_looks = self.stale_looks.saturating_sub(1);
            self.found = found;
        }
        if self.lock.is_none() {
            // a lock that cannot be taken for another reason is tried again until the wait ends
            let _ = self.try_lock();
        }
        if self.stale_looks == 0
            && self.found.holders.is_empty()
            && let Some(lock) = self.lock.take()
        {
            let free = Event::CardFree {
                gpu: self.gpu.clone(),
                took_ms: millis(self.since.elapsed()),
            };
            return (Some(free), Some(lock));
        }
        let held = self.held();
        if self.told.as_ref() == Some(&held) {
            return (None, None);
        }
        self.told = Some(held.clone());
        (Some(Event::CardHeld(held)), None)
    }

    fn try_lock(&mut self) -> Result<(), CliError> {
        match GpuLock::acquire(&self.gpu, &self.run) {
            Ok(lock) => {
                self.lock = Some(lock);
                self.ending = None;
                // the one under way has begun before, and the next one counts
                self.stale_looks = 2;
                Ok(())
            }
            Err(LockError::Ending { run, .. }) => {
                self.ending = Some(run);
                Ok(())
            }
            Err(refused) => {
                if let LockError::Held { run: Some(run), .. } = &refused {
                    self.ending = Some(run.clone());
                }
                Err(refused.into())
            }
        }
    }

    fn held(&self) -> CardHeld {
        let named = self.found.supervisor.zip(self.lock.as_ref());
        let named = named.and_then(|(supervisor, lock)| lock.run_of(supervisor));
        CardHeld {
            gpu: self.gpu.clone(),
            run: self.ending.clone().or_else(|| named.map(str::to_owned)),
            // whoever has the lock is its guardian only while the lock is not ours
            guardian: self.found.guardian.filter(|_| self.lock.is_none()),
            processes: self.found.holders.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Tries until the lock is let go of at `free_at`, on a clock of its own; what came of it, the
    /// tries, and the time that it took.
    fn tries(free_at: Duration) -> (Result<(), ()>, u32, Duration) {
        let (clock, count) = (Cell::new(Duration::ZERO), Cell::new(0));
        let try_lock = || {
            count.set(count.get() + 1);
            if clock.get() >= free_at {
                Ok(())
            } else {
                Err(())
            }
        };
        let sleep = |time| clock.set(clock.get() + time);
        let result = try_while_dying(try_lock, || clock.get(), sleep);
        (result, count.get(), clock.get())
    }

    #[test]
    fn a_lock_that_a_dying_process_lets_go_of_within_a_second_is_taken() {
        assert_eq!(tries(Duration::ZERO), (Ok(()), 1, Duration::ZERO));
        for ms in [1, 100, 350, 950, 1000] {
            let (result, count, took) = tries(Duration::from_millis(ms));
            assert_eq!(result, Ok(()), "{ms}");
            assert!(
                count > 1 && took <= DYING,
                "{ms}: {count} tries in {took:?}"
            );
        }
    }

    #[test]
    fn a_lock_that_is_held_for_longer_refuses_after_a_second() {
        for ms in [1001, 1500, 60_000] {
            let (result, count, took) = tries(Duration::from_millis(ms));
            assert_eq!((result, took), (Err(()), DYING), "{ms}");
            assert_eq!(count, 11, "{ms}");
        }
    }
}
