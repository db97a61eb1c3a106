//! The threads of one process, one by one.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use super::super::file::{ReadError, ReadResult};
use super::kept::{self, Kept};
use super::member::{Look, LookAt};
use super::parse;
use crate::model::ThreadSample;

/// One look at the threads of a process.
pub(super) struct Threads {
    /// Those that live, and those of them in uninterruptible sleep.
    pub(super) count: ReadResult<(u32, u32)>,
    /// Whether the kernel tells how often they were put on a CPU.
    pub(super) told: ReadResult<()>,
    /// Those that it tells of, by their numbers.
    pub(super) samples: Vec<ThreadSample>,
}

impl Threads {
    /// Looks at the process in `dir`; `seen` is what the last look told.
    pub(super) fn read(
        dir: &Path,
        look: &Look,
        seen: &HashMap<u32, ThreadSample>,
        files: &mut HashMap<u32, TaskFiles>,
    ) -> Self {
        let tasks = dir.join("task");
        let listed: ReadResult<Vec<u32>> = fs::read_dir(&tasks)
            .map(|entries| {
                entries
                    .filter_map(Result::ok)
                    .filter_map(|e| e.file_name().to_str()?.parse().ok())
                    .collect()
            })
            .map_err(|e| ReadError::os(&tasks, &e));
        let listed = match listed {
            Ok(listed) => listed,
            Err(error) => {
                return Self {
                    count: Err(error.clone()),
                    told: Err(error),
                    samples: Vec::new(),
                };
            }
        };
        let mut open = std::mem::take(files);
        let (mut alive, mut waiting) = (0, 0);
        let mut told = Ok(());
        let mut samples = Vec::new();
        for tid in listed {
            let mut its = open.remove(&tid).unwrap_or_default();
            its.keep = files.len() < look.keep_threads;
            let Some(thread) = Thread::read(&tasks, tid, look, (seen.get(&tid), &mut its)) else {
                continue;
            };
            if its.keep {
                files.insert(tid, its);
            }
            alive += 1;
            waiting += u32::from(thread.state == 'D');
            match thread.sample {
                Ok(sample) => samples.push(sample),
                Err(error) if told.is_ok() && (error != ReadError::Missing || alive == 1) => {
                    told = Err(error);
                }
                Err(_) => {}
            }
        }
        samples.sort_by_key(|s| s.tid);
        Self {
            count: Ok((alive, waiting)),
            told,
            samples,
        }
    }
}

/// The files of a thread that are read in every look.
#[derive(Debug, Default)]
pub(super) struct TaskFiles {
    schedstat: Kept,
    stat: Kept,
    keep: bool,
}

/// One thread: its state, and the rest where it is told.
struct Thread {
    state: char,
    sample: ReadResult<ThreadSample>,
}

impl Thread {
    /// None: it ended meanwhile.
    fn read(
        tasks: &Path,
        tid: u32,
        look: &Look,
        (last, files): (Option<&ThreadSample>, &mut TaskFiles),
    ) -> Option<Self> {
        let keep = files.keep;
        let task = || tasks.join(tid.to_string());
        let sched = files
            .schedstat
            .read(|| task().join("schedstat"), keep, parse::schedstat)
            .ok()
            .flatten();
        // One that was never put on a CPU since it slept sleeps still, and where it slept.
        // Most threads are so, and this spares two of three files.
        if let (Some(now), Some(last)) = (sched, last)
            && now == (last.run_ns, last.switches)
            && matches!(last.state, 'S' | 'D' | 'I')
            && (last.wchan.is_some() || look.threads != LookAt::WaitChannels)
        {
            return Some(Self {
                state: last.state,
                sample: Ok(last.clone()),
            });
        }
        let brief = |text: &str| {
            let (name, state) = parse::name_and_state(text)?;
            let ticks = match sched {
                Some(_) => 0,
                None => parse::stat(text)?.ticks,
            };
            Some((name.to_owned(), state, ticks))
        };
        let (name, state, ticks) = files
            .stat
            .read(|| task().join("stat"), keep, brief)
            .ok()??;
        let sample = match sched {
            Some((run, switches)) => Ok((run, switches)),
            None => context_switches(&task().join("status"))
                .map(|switches| (ticks.saturating_mul(look.tick_ns), switches)),
        }
        .map(|(run_ns, switches)| ThreadSample {
            pid: look.pid,
            tid,
            name,
            state,
            run_ns,
            switches,
            wchan: (look.threads == LookAt::WaitChannels)
                .then(|| kept::read_once(&task().join("wchan")).ok())
                .flatten()
                .filter(|w| !matches!(w.as_str(), "" | "0")),
        });
        Some(Self { state, sample })
    }
}

/// How often the thread was put on a CPU, where the kernel keeps no schedstat.
fn context_switches(path: &Path) -> ReadResult<u64> {
    let text = kept::read_once(path)?;
    let keys = ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"];
    match parse::keyed(&text, keys) {
        [Some(own), Some(forced)] => Ok(own.saturating_add(forced)),
        _ => Err(ReadError::Missing),
    }
}
