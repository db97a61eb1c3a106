//! Which threads work, and which only poll.
//!
//! Whole-process figures do not separate a hang from a crawl: a blocked program
//! whose other threads wait for the interpreter lock burns 0.8 % of a core at 390
//! switches a second, an honest crawl 0.8 % at 9 a second (measured on the tiny
//! workload over 20 s). A poller runs for some tens of microseconds each time it
//! is woken; a worker runs for long.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

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

/// What a round of thread samples says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CpuActivity {
    /// A thread that works in this job ran.
    Worked,
    /// Only pollers ran, or nothing.
    Quiet,
    /// This sample brought no threads (or the first ones).
    NoRound,
}

/// Names of threads that are told, most busy first.
const TOLD: usize = 6;

/// Threads that did something in the last round.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Working {
    /// When the round was read; it speaks for the time since the round before.
    pub at: Mono,
    /// Names, each with the CPU of all threads of that name, 100 = one core; most busy
    /// first, at most six. Empty: none worked.
    pub threads: Vec<(String, f64)>,
}

#[derive(Debug, Clone, Default)]
struct Known {
    run_ns: u64,
    switches: u64,
    /// Run time that looked like work, since the attempt began.
    worked_ns: u64,
}

/// Remembers each thread of the tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct ThreadTracker {
    known: HashMap<(u32, u32), Known>,
    last_round: Option<Mono>,
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

    /// Folds a round in. An empty slice is no round.
    pub(crate) fn observe(&mut self, now: Mono, threads: &[ThreadSample]) -> CpuActivity {
        if threads.is_empty() {
            return CpuActivity::NoRound;
        }
        let first = self.last_round.is_none();
        let dt = self.last_round.map_or(Duration::ZERO, |r| now.since(r));
        self.last_round = Some(now);

        let mut ran = Vec::new();
        let mut names = BTreeMap::<&str, u64>::new();
        let mut next = HashMap::with_capacity(threads.len());
        for t in threads {
            let key = (t.pid, t.tid);
            let mut known = self.known.remove(&key);
            let is_new = known.is_none();
            let k = known.get_or_insert_with(Known::default);
            let run = t.run_ns.saturating_sub(k.run_ns);
            let switches = t.switches.saturating_sub(k.switches);
            let work = if is_new {
                run >= NEW_THREAD_NS
            } else {
                is_work(run, switches, dt)
            };
            if work {
                k.worked_ns += run;
                ran.push(key);
                *names.entry(&t.name).or_default() += run;
            }
            k.run_ns = t.run_ns;
            k.switches = t.switches;
            next.extend(known.map(|k| (key, k)));
        }
        self.known = next;
        if first {
            return CpuActivity::NoRound;
        }
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
        .take(TOLD)
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
            last = tracker.observe(Mono(2000 * i as u64), &threads);
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
        tracker.observe(Mono(0), &[thread(1, 0, 0), thread(2, 0, 0)]);
        tracker.observe(
            Mono(2000),
            &[thread(1, 20 * MS, 4), thread(2, 1900 * MS, 10)],
        );
        let got = tracker.observe(
            Mono(4000),
            &[thread(1, 24 * MS, 6), thread(2, 1900 * MS, 10)],
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
        tracker.observe(Mono(0), &before);
        assert_eq!(tracker.working(), None, "one round is no difference");
        let after = [
            named(1, "python", 1960 * MS),
            named(2, "MIOpenComp", 1200 * MS),
            named(3, "MIOpenComp", 1000 * MS),
            named(4, "idle", 0),
        ];
        tracker.observe(Mono(2000), &after);
        let working = tracker.working().unwrap();
        assert_eq!(working.at, Mono(2000));
        let told: Vec<_> = (working.threads.iter())
            .map(|(name, share)| format!("{name} {share:.1}"))
            .collect();
        assert_eq!(told, ["MIOpenComp 110.0", "python 98.0"]);
        tracker.observe(Mono(4000), &[]);
        assert_eq!(tracker.working().map(|w| w.at), Some(Mono(2000)));
    }

    #[test]
    fn no_threads_is_no_round() {
        let mut tracker = ThreadTracker::default();
        assert_eq!(tracker.observe(Mono(0), &[]), CpuActivity::NoRound);
        assert!(!tracker.recent(Mono(0)));
    }
}
