//! Which threads work, and which only poll.
//!
//! Whole-process figures do not separate a hang from a crawl: a blocked program
//! whose other threads wait for the interpreter lock burns 0.8 % of a core at 390
//! switches a second, an honest crawl 0.8 % at 9 a second (measured on the tiny
//! workload over 20 s). A poller runs for some tens of microseconds each time it
//! is woken; a worker runs for long.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::model::agent::THREAD_NAME as AGENT_THREAD;
use crate::model::{Mono, ThreadSample};

/// Run time a wake-up above which a thread does work.
const WORK_PER_SWITCH_NS: u64 = 500_000;
/// Run time in a round below which nothing was done.
const LEAST_WORK_NS: u64 = 500_000;
/// Share of the time between two rounds above which the number of wake-ups does
/// not matter: twenty percent of a core is no poller.
const CLEARLY_WORKING: u128 = 5;
/// A worker has done at least a tenth of what the busiest thread has.
const SHARE_OF_BUSIEST: u64 = 10;
/// A thread that is new since the last round works if it ran this long.
const NEW_THREAD_NS: u64 = 5_000_000;
/// Per-thread rounds older than this say nothing about the present.
const RECENT: Duration = Duration::from_secs(15);
/// Rounds in which the job moved that show its thread by themselves.
const ENOUGH_ROUNDS: u32 = 3;
/// Time constant of a thread's mean load: bursts of a helper do not reach it.
const MEAN_S: f64 = 5.0;

/// What a round of thread samples says of the tree as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CpuActivity {
    /// A thread that works in this job ran.
    Worked,
    /// Only pollers ran, or nothing.
    Quiet,
    /// This sample brought no threads (or the first ones).
    NoRound,
}

/// Names of threads in [`Working`], most busy first.
const NAMED: usize = 6;

/// Threads that did something in the last round.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Working {
    /// When the round was read; it speaks for the time since the round before.
    pub at: Mono,
    /// Names, each with the CPU of all threads of that name, 100 = one core; most busy
    /// first, at most six. Empty: none worked.
    pub threads: Vec<(String, f64)>,
}

/// What the work of a thread says about whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credit {
    /// The job moves at present, by something else than the CPU time of a thread.
    Job,
    /// No job computes yet.
    Early,
    /// Nothing: the job rests.
    None,
}

/// Process and thread.
pub(crate) type ThreadId = (u32, u32);

#[derive(Debug, Clone, Default)]
struct Known {
    name: String,
    run_ns: u64,
    switches: u64,
    /// Run time that looked like work, since the attempt began.
    worked_ns: u64,
    /// Run time in rounds in which the job moved.
    credited_ns: u64,
    /// Run time that looked like work before the job computed: imports, loads.
    early_ns: u64,
    /// Mean load, 100 = one core.
    mean_percent: f64,
    /// When it last did work, and when it last ran at all.
    worked: Option<Mono>,
    ran: Option<Mono>,
}

/// Remembers each thread of the tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct ThreadTracker {
    known: HashMap<ThreadId, Known>,
    last_round: Option<Mono>,
    /// Rounds in which the job moved and a thread worked.
    credited_rounds: u32,
    /// The thread of the job has ended while its process lives, and nobody has moved the job
    /// since.
    ended: bool,
    working: Option<Working>,
}

impl ThreadTracker {
    /// The threads that did something; absent: two rounds have not been read yet.
    pub(crate) const fn working(&self) -> Option<&Working> {
        self.working.as_ref()
    }

    /// Whether the last round is recent enough to speak for the present.
    pub(crate) fn recent(&self, now: Mono) -> bool {
        self.last_round.is_some_and(|r| now.since(r) <= RECENT)
    }

    /// The thread of the job, as far as its work shows: the one that worked most while
    /// the job moved, else the one that worked most at all.
    ///
    /// Work beside a job that rests does not count, or a thread that collects statistics
    /// would become the thread of the job in a long hang. A job of a few seconds shows too
    /// little: there what was imported and loaded before it counts as well.
    pub(crate) fn most_worked(&self) -> Option<ThreadId> {
        self.most(|_| true)
    }

    fn most(&self, counts: impl Fn(&ThreadId) -> bool) -> Option<ThreadId> {
        let by = |work: &dyn Fn(&Known) -> u64| {
            let ran = self.known.iter().filter(|(id, _)| counts(id));
            // of equal ones the oldest number, so that the answer does not depend on a hash
            ran.filter(|(_, k)| work(k) > 0)
                .max_by_key(|(id, k)| (work(k), std::cmp::Reverse(**id)))
                .map(|(id, _)| *id)
        };
        let early = self.credited_rounds < ENOUGH_ROUNDS;
        let shown = by(&|k| k.credited_ns + if early { k.early_ns } else { 0 });
        shown.or_else(|| by(&|k| k.worked_ns))
    }

    /// The same among the threads of one process.
    pub(crate) fn most_worked_of(&self, pid: u32) -> Option<ThreadId> {
        self.most(|(p, _)| *p == pid)
    }

    /// When a thread last did work.
    pub(crate) fn worked(&self, id: ThreadId) -> Option<Mono> {
        self.known.get(&id)?.worked
    }

    /// When a thread last ran at all.
    pub(crate) fn ran(&self, id: ThreadId) -> Option<Mono> {
        self.known.get(&id)?.ran
    }

    /// Whether the thread of the job has ended, and no other one has taken over since.
    pub(crate) const fn job_thread_ended(&self) -> bool {
        self.ended
    }

    /// Name of a thread.
    pub(crate) fn name(&self, id: ThreadId) -> Option<&str> {
        Some(self.known.get(&id)?.name.as_str())
    }

    /// Threads whose mean load is at least this, 100 = one core.
    pub(crate) fn busy(&self, percent: f64) -> impl Iterator<Item = ThreadId> {
        let busy = self.known.iter();
        busy.filter(move |(_, k)| k.mean_percent >= percent)
            .map(|(id, _)| *id)
    }

    /// Names of processes of which a thread did work since `since`, by their main threads.
    pub(crate) fn worked_since(&self, since: Mono) -> impl Iterator<Item = &str> {
        let worked = self.known.iter();
        worked
            .filter(move |(_, k)| k.worked.is_some_and(|at| at >= since))
            .filter_map(|((pid, _), _)| self.name((*pid, *pid)))
    }

    /// Folds a round in; an empty slice is ignored. Threads of the agent are left out.
    pub(crate) fn observe(
        &mut self,
        now: Mono,
        threads: &[ThreadSample],
        credit: Credit,
    ) -> CpuActivity {
        if threads.is_empty() {
            return CpuActivity::NoRound;
        }
        let before = self.last_round.replace(now);
        let dt = before.map_or(Duration::ZERO, |r| now.since(r));

        let mut ran = Vec::new();
        let mut names = BTreeMap::<&str, u64>::new();
        let mut next = HashMap::with_capacity(threads.len());
        for t in threads.iter().filter(|t| t.name != AGENT_THREAD) {
            let key = (t.pid, t.tid);
            let known = self.known.remove(&key);
            let is_new = known.is_none();
            let mut k = known.unwrap_or_default();
            if k.take_round(now, dt, t, is_new, credit) {
                ran.push(key);
                *names.entry(&t.name).or_default() += t.run_ns.saturating_sub(k.run_ns);
            }
            k.run_ns = t.run_ns;
            k.switches = t.switches;
            next.insert(key, k);
        }
        let vanished = std::mem::replace(&mut self.known, next);
        if before.is_none() {
            return CpuActivity::NoRound;
        }
        if credit == Credit::Job && !ran.is_empty() {
            self.credited_rounds = self.credited_rounds.saturating_add(1);
            self.ended = false;
        }
        self.ended |= self.credited_rounds >= ENOUGH_ROUNDS && self.worked_less_than(&vanished);
        self.working = Some(Working {
            at: now,
            threads: shares(names, dt),
        });
        let busiest = self.known.values().map(|k| k.worked_ns).max().unwrap_or(0);
        let worked = ran.iter().any(|key| {
            self.known
                .get(key)
                .is_some_and(|k| k.worked_ns * SHARE_OF_BUSIEST >= busiest)
        });
        if worked {
            CpuActivity::Worked
        } else {
            CpuActivity::Quiet
        }
    }

    /// Whether one of these threads of living processes did more of the job than any that is
    /// left.
    fn worked_less_than(&self, vanished: &HashMap<ThreadId, Known>) -> bool {
        let lives = |pid: u32| self.known.keys().any(|(p, _)| *p == pid);
        let gone = vanished.iter().filter(|((pid, _), _)| lives(*pid));
        let most = gone.map(|(_, k)| k.credited_ns).max().unwrap_or(0);
        let left = self.known.values().map(|k| k.credited_ns).max();
        most > left.unwrap_or(0)
    }
}

impl Known {
    /// Takes what a round says of the thread; gives whether it did work.
    fn take_round(
        &mut self,
        now: Mono,
        dt: Duration,
        t: &ThreadSample,
        is_new: bool,
        credit: Credit,
    ) -> bool {
        if self.name != t.name {
            self.name.clone_from(&t.name);
        }
        let run = t.run_ns.saturating_sub(self.run_ns);
        let switches = t.switches.saturating_sub(self.switches);
        if !is_new && run > 0 {
            self.ran = Some(now);
        }
        if !is_new && !dt.is_zero() {
            let percent = Duration::from_nanos(run).as_secs_f64() / dt.as_secs_f64() * 100.0;
            let weight = (dt.as_secs_f64() / MEAN_S).min(1.0);
            self.mean_percent += (percent - self.mean_percent) * weight;
        }
        let work = if is_new {
            run >= NEW_THREAD_NS
        } else {
            is_work(run, switches, dt)
        };
        if work {
            self.worked = Some(now);
            self.worked_ns += run;
            match credit {
                Credit::Job => self.credited_ns += run,
                Credit::Early => self.early_ns += run,
                Credit::None => {}
            }
        }
        work
    }
}

/// CPU percent of each name over `dt`, most busy first.
fn shares(names: BTreeMap<&str, u64>, dt: Duration) -> Vec<(String, f64)> {
    let whole = dt.as_secs_f64();
    if whole <= 0.0 {
        return Vec::new();
    }
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort_by_key(|(_, run)| std::cmp::Reverse(*run));
    names
        .into_iter()
        .take(NAMED)
        .map(|(name, run)| {
            let run = Duration::from_nanos(run).as_secs_f64();
            (name.to_owned(), run / whole * 100.0)
        })
        .collect()
}

fn is_work(run: u64, switches: u64, dt: Duration) -> bool {
    if run < LEAST_WORK_NS {
        return false;
    }
    u128::from(run) * CLEARLY_WORKING >= dt.as_nanos()
        || run / switches.max(1) >= WORK_PER_SWITCH_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(tid: u32, run_ns: u64, switches: u64) -> ThreadSample {
        ThreadSample {
            pid: 1,
            tid,
            name: "t".into(),
            state: 'S',
            run_ns,
            switches,
            wchan: None,
        }
    }

    const MS: u64 = 1_000_000;

    /// Feeds rounds two seconds apart and returns what the last one said.
    fn rounds(rows: &[&[(u32, u64, u64)]]) -> CpuActivity {
        let mut tracker = ThreadTracker::default();
        let mut last = CpuActivity::NoRound;
        for (i, row) in rows.iter().enumerate() {
            let threads: Vec<_> = row.iter().map(|&(t, r, s)| thread(t, r, s)).collect();
            last = tracker.observe(Mono(2000 * i as u64), &threads, Credit::None);
        }
        last
    }

    #[test]
    fn waiters_for_the_interpreter_lock_are_no_work() {
        // main: imported for 4 s, now waits for the lock 195 times a second, 20 us each
        let got = rounds(&[
            &[(1, 4000 * MS, 900), (2, 3000 * MS, 500)],
            &[(1, 4008 * MS, 1290), (2, 3000 * MS, 500)],
        ]);
        assert_eq!(got, CpuActivity::Quiet);
    }

    #[test]
    fn a_join_with_a_timeout_is_no_work() {
        let got = rounds(&[
            &[(1, 4000 * MS, 900), (2, 3000 * MS, 500)],
            &[(1, 4001 * MS, 910), (2, 3000 * MS, 500)],
        ]);
        assert_eq!(got, CpuActivity::Quiet);
    }

    #[test]
    fn a_crawling_worker_works() {
        // 2 ms of work in each of four wake-ups a second
        let got = rounds(&[
            &[(1, 4000 * MS, 900), (2, 3000 * MS, 500)],
            &[(1, 4001 * MS, 910), (2, 3016 * MS, 508)],
        ]);
        assert_eq!(got, CpuActivity::Worked);
    }

    #[test]
    fn a_crawl_ten_times_slower_still_works() {
        let got = rounds(&[
            &[(1, 4000 * MS, 900), (2, 3000 * MS, 500)],
            &[(1, 4001 * MS, 910), (2, 3002 * MS, 501)],
        ]);
        assert_eq!(got, CpuActivity::Worked);
    }

    #[test]
    fn a_server_thread_that_answers_a_browser_is_not_the_worker() {
        let mut tracker = ThreadTracker::default();
        tracker.observe(Mono(0), &[thread(1, 0, 0), thread(2, 0, 0)], Credit::None);
        tracker.observe(
            Mono(2000),
            &[thread(1, 20 * MS, 4), thread(2, 1900 * MS, 10)],
            Credit::None,
        );
        let got = tracker.observe(
            Mono(4000),
            &[thread(1, 24 * MS, 6), thread(2, 1900 * MS, 10)],
            Credit::None,
        );
        assert_eq!(got, CpuActivity::Quiet);
    }

    #[test]
    fn threads_of_a_name_are_told_together_and_the_busiest_first() {
        let named = |tid, name: &str, run| ThreadSample {
            name: name.into(),
            ..thread(tid, run, 4)
        };
        let mut tracker = ThreadTracker::default();
        let before = [
            named(1, "python", 0),
            named(2, "MIOpenComp", 0),
            named(3, "MIOpenComp", 0),
            named(4, "idle", 0),
        ];
        tracker.observe(Mono(0), &before, Credit::None);
        assert_eq!(tracker.working(), None, "one round is no difference");
        let after = [
            named(1, "python", 1960 * MS),
            named(2, "MIOpenComp", 1200 * MS),
            named(3, "MIOpenComp", 1000 * MS),
            named(4, "idle", 0),
        ];
        tracker.observe(Mono(2000), &after, Credit::None);
        let working = tracker.working().unwrap();
        assert_eq!(working.at, Mono(2000));
        let told: Vec<_> = (working.threads.iter())
            .map(|(name, share)| format!("{name} {share:.1}"))
            .collect();
        assert_eq!(told, ["MIOpenComp 110.0", "python 98.0"]);
        tracker.observe(Mono(4000), &[], Credit::None);
        assert_eq!(tracker.working().map(|w| w.at), Some(Mono(2000)));
    }

    #[test]
    fn no_threads_is_no_round() {
        let mut tracker = ThreadTracker::default();
        assert_eq!(
            tracker.observe(Mono(0), &[], Credit::None),
            CpuActivity::NoRound
        );
        assert!(!tracker.recent(Mono(0)));
    }

    /// Thread 1 imports for a minute beside thread 2, which collects statistics; then the job
    /// computes for `moving` rounds in thread 3.
    fn holder_after(moving: u64) -> Option<ThreadId> {
        let mut tracker = ThreadTracker::default();
        let mut run = [0, 0, 0];
        let mut round = |n: u64, more: [u64; 3], credit| {
            let threads: Vec<_> = run
                .iter_mut()
                .zip(more)
                .zip(1..)
                .map(|((run, more), tid)| {
                    *run += more * MS;
                    thread(tid, *run, n)
                })
                .collect();
            tracker.observe(Mono::from_secs(5 * n), &threads, credit);
        };
        for n in 0..12 {
            round(n, [4000, 900, 0], Credit::Early);
        }
        for n in 12..12 + moving {
            round(n, [0, 900, 3000], Credit::Job);
        }
        for n in 12 + moving..200 {
            round(n, [0, 900, 0], Credit::None);
        }
        tracker.most_worked()
    }

    #[test]
    fn a_job_of_moments_leaves_its_thread_to_what_was_imported() {
        assert_eq!(holder_after(1), Some((1, 1)));
        assert_eq!(holder_after(3), Some((1, 3)));
    }

    /// Thread 2 does the job for `moving` rounds beside the main thread, then ends; after that
    /// the main thread moves the job for `taken_over` rounds.
    fn ended_after(moving: u64, taken_over: u64) -> bool {
        let mut tracker = ThreadTracker::default();
        for n in 0..moving {
            let both = [thread(1, n * MS, n), thread(2, n * 3000 * MS, n)];
            tracker.observe(Mono::from_secs(5 * n), &both, Credit::Job);
        }
        assert!(!tracker.job_thread_ended());
        for n in moving..moving + 1 + taken_over {
            let more = (n - moving) * 3000 * MS;
            let credit = if n > moving {
                Credit::Job
            } else {
                Credit::None
            };
            let main = [thread(1, moving * MS + more, n)];
            tracker.observe(Mono::from_secs(5 * n), &main, credit);
        }
        tracker.job_thread_ended()
    }

    #[test]
    fn the_end_of_the_jobs_thread_is_seen_until_another_takes_over() {
        assert!(ended_after(8, 0));
        assert!(!ended_after(8, 1));
        assert!(!ended_after(2, 0), "too little was seen");
    }

    #[test]
    fn a_thread_of_the_agent_is_never_the_jobs() {
        let mut tracker = ThreadTracker::default();
        let at = |run| {
            let mut agents = thread(2, run, 1);
            agents.name = AGENT_THREAD.to_owned();
            [thread(1, run / 10, 1), agents]
        };
        tracker.observe(Mono(0), &at(0), Credit::Job);
        tracker.observe(Mono(5000), &at(4000 * MS), Credit::Job);
        assert_eq!(tracker.most_worked(), Some((1, 1)));
        assert_eq!(tracker.ran((1, 2)), None);
    }
}
