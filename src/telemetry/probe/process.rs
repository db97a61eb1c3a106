//! One process of the tree: what its entry in `/proc` shows in one look.

use std::path::{Path, PathBuf};

use super::super::procfs::{parse, read_once};
use super::descriptors::{Access, Descriptors};
use super::files;
use super::memory::ProcessMemory;
use super::text;
use super::thread::Task;
use crate::model::Tracer;

/// Results of a process that are named.
const MOST_RESULTS: usize = 16;
/// Longest `maps` that is read.
const MAPS: u64 = 8 << 20;

/// A process with its threads and descriptors.
#[derive(Debug)]
pub(super) struct Process {
    /// Its number.
    pub(super) pid: u32,
    /// Its folder in `/proc`.
    pub(super) dir: PathBuf,
    /// Its `stat`.
    pub(super) stat: parse::Stat,
    /// Its threads.
    pub(super) tasks: Vec<Task>,
    /// Threads beyond the bound.
    pub(super) left_out: u32,
    /// Its descriptors, or why they were not read.
    pub(super) descriptors: Result<Descriptors, String>,
    /// Its memory, opened when it is needed.
    pub(super) memory: ProcessMemory,
}

impl Process {
    /// Reads the process; none where it has ended, or its number is another's now.
    /// `refusal` makes the words for what may not be read.
    pub(super) fn read(
        proc: &Path,
        (pid, start): (u32, u64),
        most_threads: usize,
        refusal: impl Fn(&Path) -> String,
    ) -> Option<Self> {
        let dir = proc.join(pid.to_string());
        let stat = parse::stat(&read_once(&dir.join("stat")).ok()?)?;
        if stat.start != start {
            return None;
        }
        let (tasks, left_out) = Task::list(&dir, pid, most_threads);
        let blocked = stat.state == 'D' || tasks.iter().any(Task::is_blocked);
        let descriptors = if blocked {
            Err("a thread is in uninterruptible sleep: a look at its files could block".to_owned())
        } else {
            Descriptors::read(&dir).map_err(|error| {
                if text::is_refusal(&error) {
                    refusal(&dir)
                } else {
                    error.to_string()
                }
            })
        };
        Some(Self {
            memory: ProcessMemory::new(dir.join("mem")),
            pid,
            dir,
            stat,
            tasks,
            left_out,
            descriptors,
        })
    }

    /// Whether a look at its memory could block.
    pub(super) fn is_blocked(&self) -> bool {
        self.stat.state == 'D' || self.tasks.iter().any(Task::is_blocked)
    }

    /// Numbers and links of its descriptors; none where they were not read.
    pub(super) fn links(&self) -> impl Iterator<Item = (u32, &str)> {
        self.descriptors.iter().flat_map(Descriptors::links)
    }

    /// Inodes of its sockets.
    pub(super) fn sockets(&self) -> impl Iterator<Item = u64> {
        self.descriptors.iter().flat_map(Descriptors::sockets)
    }

    /// Whether it has a device node of a card open.
    pub(super) fn has_card(&self) -> bool {
        self.links().any(|(_, link)| files::computes(link))
    }

    /// Weights that are open.
    pub(super) fn open_weights(&self) -> Option<String> {
        let descriptors = self.descriptors.as_ref().ok()?;
        let weights = descriptors
            .links()
            .filter(|(_, link)| files::is_weights(link));
        let long = |number| {
            let metadata = descriptors.metadata(number);
            metadata.is_some_and(|m| m.is_file() && m.len() >= files::WEIGHTS)
        };
        let mut long = weights.filter(|(number, _)| long(*number));
        long.next().map(|(_, link)| link.to_owned())
    }

    /// Results that are open for writing.
    pub(super) fn open_results(&self) -> Vec<String> {
        let Ok(descriptors) = &self.descriptors else {
            return Vec::new();
        };
        let results = descriptors
            .links()
            .filter(|(_, link)| files::is_result(link));
        let written = results.filter(|(number, _)| {
            matches!(
                descriptors.access(*number),
                Some(Access::Write | Access::Both)
            )
        });
        let mut paths: Vec<String> = written
            .map(|(_, link)| link.to_owned())
            .take(MOST_RESULTS)
            .collect();
        paths.dedup();
        paths
    }

    /// What it has mapped; none where that was not read.
    pub(super) fn mapped(&self) -> Option<files::Mapped> {
        if self.is_blocked() {
            return None;
        }
        let maps = text::limited(&self.dir.join("maps"), MAPS).ok()?;
        Some(files::mapped(&maps))
    }

    /// Who traces it, or one of its threads that is stopped by a tracer.
    pub(super) fn tracer(&self, proc: &Path) -> Option<Tracer> {
        let of = |dir: &Path| {
            let status = read_once(&dir.join("status")).ok()?;
            let [pid] = parse::keyed(&status, ["TracerPid"]);
            u32::try_from(pid?).ok().filter(|pid| *pid > 0)
        };
        let stopped = self.tasks.iter().find(|task| task.state() == 't');
        let pid = of(&self.dir).or_else(|| of(&stopped?.dir))?;
        let name = read_once(&proc.join(pid.to_string()).join("comm"));
        Some(Tracer {
            pid,
            name: text::clip(&name.unwrap_or_default()),
        })
    }
}
