//! The watcher is watched: a thread that ends the child when the supervising
//! loop itself has gone silent. The one kill without evidence before it.

use std::io;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::tree::Target;

/// Length of a nap.
const NAP: Duration = Duration::from_secs(1);
/// A nap that took longer than this was no nap: the process was stopped, or the
/// machine had no time for us, and then it had none for the loop either.
const IN_TIME: Duration = Duration::from_millis(1500);
/// No thread has this number.
const NOBODY: u32 = 0;

/// What the deadline did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fired {
    /// For how long the loop had been silent while it could have run.
    pub silent: Duration,
    /// The process group that was sent SIGKILL.
    pub pgid: u32,
    /// Whether it was reached; else the system's answer.
    pub killed: Result<(), String>,
    /// Further processes that were sent SIGKILL: descendants of the guardian that
    /// had left the group.
    pub swept: u32,
}

#[derive(Debug, Default)]
struct Shared {
    beats: AtomicU64,
    /// Thread of the last beat; [`NOBODY`]: there was none.
    thread: AtomicU32,
    /// 0: none.
    pgid: AtomicI32,
    /// 0: none.
    guardian: AtomicU32,
}

/// The handle of the supervising loop. Dropping it ends the thread.
#[derive(Debug)]
pub struct Watchdog {
    shared: Arc<Shared>,
}

impl Watchdog {
    /// Silence after which the child group is ended (R8).
    pub const LIMIT: Duration = Duration::from_secs(30);

    /// Starts the thread. `on_fire` is called on it after the kill, and must not
    /// wait for the supervising loop: it is there to log that this was the one
    /// kill without prior evidence.
    pub fn start(limit: Duration, on_fire: impl Fn(&Fired) + Send + 'static) -> io::Result<Self> {
        Self::start_with(limit, nap, on_fire)
    }

    /// `nap` sleeps for [`NAP`] and says how much of it this thread could have run.
    fn start_with(
        limit: Duration,
        mut nap: impl FnMut(u32) -> Duration + Send + 'static,
        on_fire: impl Fn(&Fired) + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::downgrade(&shared);
        thread::Builder::new()
            .name("hard deadline".to_owned())
            .spawn(move || {
                let mut silence = Silence::new(limit);
                loop {
                    let thread = theirs
                        .upgrade()
                        .map_or(NOBODY, |shared| shared.thread.load(Ordering::Relaxed));
                    let free = nap(thread);
                    if !watch(&theirs, &mut silence, free, &on_fire) {
                        return;
                    }
                }
            })?;
        Ok(Self { shared })
    }

    /// The supervising loop is alive. Cheap; to be called at every turn.
    pub fn beat(&self) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        let thread = thread.unsigned_abs();
        self.shared.thread.store(thread, Ordering::Relaxed);
        self.shared.beats.fetch_add(1, Ordering::Relaxed);
    }

    /// What to end: the child's process group and the guardian beside it. To be
    /// set right after the launch and taken back (`None`) once the group is gone,
    /// so that no later group with the same number is ever hit.
    pub fn set_group(&self, pgid: Option<u32>, guardian: Option<u32>) {
        // 0 and 1 would mean our own group and everything.
        let pgid = pgid
            .and_then(|p| i32::try_from(p).ok())
            .filter(|p| *p > 1)
            .unwrap_or(0);
        self.shared
            .guardian
            .store(guardian.unwrap_or(0), Ordering::Release);
        self.shared.pgid.store(pgid, Ordering::Release);
        self.beat();
    }
}

/// Sleeps for [`NAP`]; how much of it the thread could have run.
fn nap(thread: u32) -> Duration {
    let begun = (Instant::now(), waited_for_cpu(thread));
    thread::sleep(NAP);
    let waited = waited_for_cpu(thread).saturating_sub(begun.1);
    free_time(begun.0.elapsed(), waited)
}

/// What counts of a nap that took `took`, in which the loop waited for a processor as long as
/// `waited`: on a machine with too much to do its silence says nothing.
fn free_time(took: Duration, waited: Duration) -> Duration {
    if took > IN_TIME {
        Duration::ZERO
    } else {
        NAP.saturating_sub(waited)
    }
}

/// How long a thread of ours has waited for a processor so far. A kernel that does not count
/// it says zero.
fn waited_for_cpu(thread: u32) -> Duration {
    let read = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat"));
    let waited = read.ok().and_then(|text| {
        let field = text.split_whitespace().nth(1)?;
        field.parse().ok()
    });
    waited.map_or(Duration::ZERO, Duration::from_nanos)
}

/// Adds up what the loop could have run since its last beat. Not elapsed time: that also
/// passes while the machine sleeps, or has no time for us, when nobody can beat.
#[derive(Debug)]
struct Silence {
    limit: Duration,
    beats: u64,
    silent: Duration,
    fired: bool,
}

impl Silence {
    const fn new(limit: Duration) -> Self {
        Self {
            limit,
            beats: 0,
            silent: Duration::ZERO,
            fired: false,
        }
    }

    /// Whether to fire now: once in a silence. `free`: what the loop could have run meanwhile.
    fn nap(&mut self, beats: u64, free: Duration) -> Option<Duration> {
        if beats != self.beats {
            *self = Self {
                beats,
                ..Self::new(self.limit)
            };
            return None;
        }
        self.silent += free;
        let fire = !self.fired && self.silent >= self.limit;
        self.fired |= fire;
        fire.then_some(self.silent)
    }
}

/// One turn; `false` when the handle is gone.
fn watch(
    shared: &Weak<Shared>,
    silence: &mut Silence,
    free: Duration,
    on_fire: &impl Fn(&Fired),
) -> bool {
    let Some(shared) = shared.upgrade() else {
        return false;
    };
    let beats = shared.beats.load(Ordering::Relaxed);
    let Some(pgid) = Pid::from_raw(shared.pgid.load(Ordering::Acquire)) else {
        // Nothing to end; a silence is counted from the launch on.
        *silence = Silence::new(silence.limit);
        return true;
    };
    if let Some(silent) = silence.nap(beats, free) {
        let guardian = shared.guardian.load(Ordering::Acquire);
        on_fire(&end(pgid, guardian, silent));
    }
    true
}

fn end(pgid: Pid, guardian: u32, silent: Duration) -> Fired {
    let killed = kill_process_group(pgid, Signal::KILL).map_err(|e| e.to_string());
    Fired {
        silent,
        pgid: pgid.as_raw_nonzero().get().unsigned_abs(),
        killed,
        swept: sweep(pgid, guardian),
    }
}

/// Ends what left the group. The guardian itself lives on: it reaps them, and
/// reports to the loop should that wake up again.
fn sweep(pgid: Pid, guardian: u32) -> u32 {
    if guardian <= 1 {
        return 0;
    }
    let target = Target {
        pids: Vec::new(),
        guardian: Some(guardian),
    };
    let mut swept = 0;
    // An error is that nobody is left.
    for member in target.members().unwrap_or_default() {
        let outside = member.group != pgid.as_raw_nonzero().get() && member.state != 'Z';
        let process = i32::try_from(member.pid).ok().and_then(Pid::from_raw);
        if outside && process.is_some_and(|p| kill_process(p, Signal::KILL).is_ok()) {
            swept += 1;
        }
    }
    swept
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command};
    use std::sync::mpsc;

    fn child() -> Child {
        Command::new("sleep")
            .arg("60")
            .process_group(0)
            .spawn()
            .unwrap()
    }

    /// A watchdog whose naps are handed out by the test.
    fn paced(limit: u64) -> (Watchdog, mpsc::SyncSender<Duration>, mpsc::Receiver<Fired>) {
        let (pace, naps) = mpsc::sync_channel(0);
        let (fired, seen) = mpsc::channel();
        let watchdog = Watchdog::start_with(
            Duration::from_secs(limit),
            move |_| {
                naps.recv().unwrap_or_else(|_| {
                    loop {
                        thread::park();
                    }
                })
            },
            move |f| fired.send(f.clone()).unwrap(),
        )
        .unwrap();
        (watchdog, pace, seen)
    }

    #[test]
    fn a_silent_loop_costs_the_child_its_life() {
        let (watchdog, pace, seen) = paced(30);
        let mut child = child();
        watchdog.set_group(Some(child.id()), None);
        // The first nap sees the beat of `set_group`, the next 30 are silent.
        for _ in 0..31 {
            pace.send(NAP).unwrap();
        }
        let fired = seen.recv_timeout(Duration::from_secs(5)).unwrap();
        assert_eq!(fired.silent, Duration::from_secs(30));
        assert_eq!(fired.pgid, child.id());
        assert_eq!(fired.killed, Ok(()));
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        // Once, not again and again.
        for _ in 0..100 {
            pace.send(NAP).unwrap();
        }
        assert!(seen.try_recv().is_err());
    }

    #[test]
    fn what_left_the_group_is_swept() {
        let (watchdog, pace, seen) = paced(1);
        let mut guardian = Command::new("sh")
            .args(["-c", "setsid sleep 60 & setsid sleep 60 & wait"])
            .process_group(0)
            .spawn()
            .unwrap();
        let target = Target {
            pids: Vec::new(),
            guardian: Some(guardian.id()),
        };
        let end = Instant::now() + Duration::from_secs(5);
        let members = loop {
            let members = target.members().unwrap_or_default();
            let leads = |m: &super::super::tree::Member| u32::try_from(m.group) == Ok(m.pid);
            if members.len() == 2 && members.iter().all(leads) {
                break members;
            }
            assert!(Instant::now() < end, "{members:?}");
            thread::sleep(Duration::from_millis(10));
        };
        watchdog.set_group(Some(members[0].pid), Some(guardian.id()));
        for _ in 0..3 {
            pace.send(NAP).unwrap();
        }
        let fired = seen.recv_timeout(Duration::from_secs(5)).unwrap();
        assert_eq!((fired.killed, fired.swept), (Ok(()), 1));
        // It only waits for the two.
        assert!(guardian.wait().unwrap().success());
    }

    #[test]
    fn beats_stops_and_an_absent_child_do_not_fire() {
        let (watchdog, pace, seen) = paced(30);
        let mut child = child();
        // No child yet.
        for _ in 0..100 {
            pace.send(NAP).unwrap();
        }
        watchdog.set_group(Some(child.id()), None);
        for _ in 0..10 {
            for _ in 0..29 {
                pace.send(NAP).unwrap();
            }
            watchdog.beat();
        }
        // Stopped or starved: naps in which the loop could not run prove nothing, however many.
        for _ in 0..1000 {
            pace.send(Duration::ZERO).unwrap();
        }
        watchdog.set_group(None, None);
        for _ in 0..100 {
            pace.send(NAP).unwrap();
        }
        assert!(seen.try_recv().is_err());
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn silence_counts_what_the_loop_could_have_run_since_its_last_beat() {
        let mut s = Silence::new(Duration::from_secs(3));
        assert_eq!(s.nap(1, NAP), None);
        assert_eq!(s.nap(1, NAP), None);
        assert_eq!(s.nap(1, Duration::ZERO), None);
        assert_eq!(s.nap(1, NAP), None);
        assert_eq!(s.nap(2, NAP), None);
        for _ in 0..2 {
            assert_eq!(s.nap(2, NAP), None);
        }
        assert_eq!(s.nap(2, NAP), Some(Duration::from_secs(3)));
        assert_eq!(s.nap(2, NAP), None);
        // A loop that came back and falls silent again is caught again.
        assert_eq!(s.nap(3, NAP), None);
        for _ in 0..2 {
            assert_eq!(s.nap(3, NAP), None);
        }
        assert_eq!(s.nap(3, NAP), Some(Duration::from_secs(3)));
    }

    #[test]
    fn a_group_number_that_means_everything_is_never_used() {
        let (watchdog, pace, seen) = paced(1);
        for bad in [0, 1, u32::MAX] {
            watchdog.set_group(Some(bad), None);
            for _ in 0..5 {
                pace.send(NAP).unwrap();
            }
        }
        assert!(seen.try_recv().is_err());
    }

    /// A machine that gives the loop a twentieth of a processor: 30 s are as many that it could
    /// have run, not those of the clock.
    #[test]
    fn a_loop_that_waits_for_a_processor_is_not_silent() {
        let starved =
            |waited| free_time(Duration::from_millis(1020), Duration::from_millis(waited));
        let mut s = Silence::new(Duration::from_secs(30));
        s.nap(1, NAP);
        for second in 0..599 {
            assert_eq!(s.nap(1, starved(950)), None, "second {second}");
        }
        assert_eq!(s.nap(1, starved(950)), Some(Duration::from_secs(30)));
        // what waits longer than the nap could not run at all; late naps count nothing
        assert_eq!(starved(1200), Duration::ZERO);
        assert_eq!(
            free_time(Duration::from_secs(2), Duration::ZERO),
            Duration::ZERO
        );
        assert_eq!(starved(0), NAP);
    }

    #[test]
    fn the_wait_for_a_processor_is_read() {
        let of = |thread| waited_for_cpu(thread);
        let me = rustix::thread::gettid()
            .as_raw_nonzero()
            .get()
            .unsigned_abs();
        let before = of(me);
        thread::yield_now();
        assert!(of(me) >= before);
        assert_eq!(of(NOBODY), Duration::ZERO);
        assert!(nap(me) <= NAP);
    }
}
