//! Generations and other users of the cards, found among all processes of the machine.
//!
//! This only reads. It runs every two seconds on a thread of its own; a process whose
//! entry blocks holds up this list and nothing else, and the list then says at which
//! process it waits.

mod fold;
mod held;
mod memory;
#[cfg(feature = "nvml")]
mod nvml;
mod scan;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub use held::{CardUsers, Held};

use super::source::{self, Answer, Pace, Slot, Source, SourceError, lock};
use crate::model::{FoundProcess, SourceState, SourceStatus};

/// What a command line suggests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guess {
    /// The adapter's word.
    pub kind: &'static str,
    /// Whether the command line alone says so. Else the process counts only once it has
    /// PyTorch loaded or holds GPU memory.
    pub sure: bool,
}

/// Judges a command: its words, its working directory, the names of the files there
/// (empty where they cannot be read). `None`: no generation.
pub type Classify = fn(&[String], &str, &[String]) -> Option<Guess>;

/// Where processes are looked for, and how often.
#[derive(Debug, Clone)]
pub struct ProcessesConfig {
    /// Folder that has `proc` and `sys` in it; `/` on a real machine.
    pub root: PathBuf,
    /// Whether NVIDIA's driver is asked who holds its memory, where the program was
    /// built with NVML.
    pub nvml: bool,
    /// Time between two looks.
    pub period: Duration,
    /// What a generation looks like.
    pub classify: Classify,
}

impl ProcessesConfig {
    /// The real machine, every two seconds.
    pub fn new(classify: Classify) -> Self {
        Self {
            root: PathBuf::from("/"),
            nvml: true,
            period: Duration::from_secs(2),
            classify,
        }
    }
}

/// The running search. Dropping it ends its thread.
#[derive(Debug)]
pub struct Processes {
    slot: Arc<Slot<Vec<FoundProcess>>>,
    supervisors: Arc<Mutex<Vec<u32>>>,
    at: Arc<AtomicU32>,
    pace: Arc<Pace>,
}

impl Processes {
    /// Starts it; waits for nothing.
    pub fn start(config: ProcessesConfig) -> Self {
        let pace = Arc::new(Pace::default());
        let supervisors = Arc::new(Mutex::new(Vec::new()));
        let at = Arc::new(AtomicU32::new(0));
        let period = config.period;
        let search = Search {
            scan: scan::Scan::new(config, Arc::clone(&at)),
            supervisors: Arc::clone(&supervisors),
        };
        Self {
            slot: source::spawn(search, period, Arc::clone(&pace)),
            supervisors,
            at,
            pace,
        }
    }

    /// Processes of this program that supervise a run: what runs below them is told
    /// as supervised.
    pub fn set_supervisors(&self, pids: Vec<u32>) {
        let mut now = lock(&self.supervisors);
        if *now != pids {
            *now = pids;
            drop(now);
            self.pace.wake();
        }
    }

    /// Whether the first look is done.
    pub fn answered(&self) -> bool {
        self.slot.answered()
    }

    /// What was found last, and how the search is doing. Waits for nothing.
    pub fn latest(&self) -> (Vec<FoundProcess>, SourceStatus) {
        let view = self.slot.view(Instant::now());
        let mut status = view.status;
        let at = self.at.load(Ordering::Relaxed);
        if matches!(status.state, SourceState::Stale | SourceState::Lost) && at > 0 {
            let why = status.why.unwrap_or_default();
            status.why = Some(format!("{why} at process {at}"));
        }
        let found = view.reading.map_or_else(Vec::new, |(_, found)| found);
        (found, status)
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.pace.stop();
    }
}

/// The source behind [`Processes`].
struct Search {
    scan: scan::Scan,
    supervisors: Arc<Mutex<Vec<u32>>>,
}

impl Source for Search {
    type Reading = Vec<FoundProcess>;

    fn name(&self) -> String {
        "processes".to_owned()
    }

    fn read(&mut self) -> Result<Answer<Self::Reading>, SourceError> {
        let seen = self.scan.look()?;
        let supervisors = lock(&self.supervisors).clone();
        let found = fold::fold(&seen, std::process::id(), &supervisors);
        Ok(Answer::good(found))
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
