//! The source: what the processes of the tree hold on the cards of AMD, once a period.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::super::file::ReadError;
use super::super::namespace;
use super::super::procfs::Members;
use super::super::source::{Answer, Source, SourceError, lock};
use super::descriptors::Descriptors;
use super::kfd::Kfd;
use super::sum::{Elsewhere, Seen, Sums};
use crate::model::{GpuId, Metric, TreeOnCard};

/// New descriptors are looked for this often: most of a large program's are files and
/// sockets. Those of cards that are known are read in every round.
const LOOK_PERIOD: Duration = Duration::from_secs(2);

/// Reads the tree's part of the cards of AMD.
#[derive(Debug)]
pub(super) struct ClientsSource {
    proc: PathBuf,
    /// Folders of the driver: without them, and without KFD, there is nothing to read.
    driver: [PathBuf; 2],
    kfd: Kfd,
    members: Arc<Mutex<Members>>,
    processes: HashMap<u32, Process>,
    sums: Sums,
}

/// What is remembered of a process.
#[derive(Debug, Default)]
struct Process {
    start: u64,
    looked: Option<Instant>,
    descriptors: Descriptors,
}

/// The tree on the cards, and whose it is.
#[derive(Debug, Clone)]
pub(super) struct ClientsReading {
    /// Root and reaper of the tree.
    pub(super) of: (Option<u32>, Option<u32>),
    /// Cards that it has open.
    on_cards: Vec<TreeOnCard>,
    elsewhere: Elsewhere,
}

impl ClientsReading {
    /// What the tree holds on this card of AMD.
    pub(super) fn on(&self, gpu: &GpuId) -> TreeOnCard {
        if let Some(on) = self.on_cards.iter().find(|on| on.gpu == *gpu) {
            return on.clone();
        }
        TreeOnCard {
            gpu: gpu.clone(),
            source: "fdinfo".to_owned(),
            processes: 0,
            vram: self.elsewhere.memory.clone(),
            gtt: self.elsewhere.memory.clone(),
            evicted: Metric::Unsupported,
            evicted_ms: Metric::Unsupported,
            queues: self.elsewhere.queues.clone(),
            cu_occupancy: Metric::Unsupported,
            engines: Vec::new(),
            busy: Metric::Unsupported,
            compute_note: None,
        }
    }

    /// Cards that the tree has open.
    pub(super) fn open(&self) -> impl Iterator<Item = &GpuId> {
        self.on_cards.iter().map(|on| &on.gpu)
    }

    /// What went wrong, the first of it.
    fn trouble(&self) -> Option<String> {
        let failure = |why: Option<&str>| why.map(str::to_owned);
        let memory = self.on_cards.iter().map(|on| &on.vram);
        let queues = self.on_cards.iter().map(|on| &on.queues);
        memory
            .chain([&self.elsewhere.memory])
            .find_map(|m| failure(why(m)))
            .or_else(|| {
                queues
                    .chain([&self.elsewhere.queues])
                    .find_map(|m| failure(why(m)))
            })
    }
}

fn why<T>(metric: &Metric<T>) -> Option<&str> {
    match metric {
        Metric::Failed { why, .. } => Some(why),
        _ => None,
    }
}

impl ClientsSource {
    /// A reader over the folders that have `proc` and `sys` in them.
    pub(super) fn new(proc_root: &Path, sys_root: &Path, members: Arc<Mutex<Members>>) -> Self {
        Self {
            proc: proc_root.join("proc"),
            driver: ["sys/module/amdgpu", "sys/bus/pci/drivers/amdgpu"].map(|d| sys_root.join(d)),
            kfd: Kfd::new(sys_root),
            members,
            processes: HashMap::new(),
            sums: Sums::default(),
        }
    }

    fn process(&mut self, pid: u32, start: u64, kfd_is_ours: bool) -> Seen {
        let dir = self.proc.join(pid.to_string());
        let process = self.processes.entry(pid).or_default();
        if process.start != start {
            *process = Process {
                start,
                ..Process::default()
            };
        }
        let due = process.looked.is_none_or(|at| at.elapsed() >= LOOK_PERIOD);
        let clients = if due {
            Descriptors::look(&dir).map(|(found, clients)| {
                process.descriptors = found;
                process.looked = Some(Instant::now());
                clients
            })
        } else {
            process.descriptors.read(&dir)
        };
        Seen {
            pid,
            clients,
            opened_kfd: process.descriptors.kfd,
            kfd: if kfd_is_ours {
                self.kfd.process(pid)
            } else {
                Err(ReadError::Missing)
            },
        }
    }
}

impl Source for ClientsSource {
    type Reading = ClientsReading;

    fn name(&self) -> String {
        super::SOURCE.to_owned()
    }

    fn read(&mut self) -> Result<Answer<ClientsReading>, SourceError> {
        let members = lock(&self.members).clone();
        let there = self.kfd.is_there();
        // A process of the host may have the number of one of ours.
        let ours = there && namespace::is_host(&self.proc);
        let seen: Vec<Seen> = members
            .pids
            .iter()
            .map(|(pid, start)| self.process(*pid, *start, ours))
            .collect();
        self.processes
            .retain(|pid, _| members.pids.contains_key(pid));
        let (on_cards, elsewhere) = self.sums.on_cards(&seen, there);
        if !there && on_cards.is_empty() && !self.driver.iter().any(|d| d.is_dir()) {
            return Err(SourceError::Absent(
                "no KFD and no amdgpu driver here".to_owned(),
            ));
        }
        let reading = ClientsReading {
            of: members.of,
            on_cards,
            elsewhere,
        };
        let trouble = reading.trouble();
        Ok(Answer { reading, trouble })
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
