//! From what each process tells to what the tree holds on each card: pure but for the
//! clock of failures.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Display;
use std::time::Instant;

use super::super::file::{ReadError, ReadResult};
use super::fdinfo::{self, DrmClient};
use super::kfd::OnCard;
use crate::model::time::millis;
use crate::model::{Bytes, EngineTime, GpuId, Metric, TreeOnCard};

/// Why ROCm's processes have no share of the card.
pub(super) const ROCM_NOTE: &str =
    "no per-process % for ROCm: its work goes through KFD queues, which fdinfo does not count";
/// Why KFD tells nothing about the tree.
pub(super) const CONTAINER: &str = "KFD lists host PIDs; this is a container";

/// One process of the tree.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) pid: u32,
    /// Its open files of cards, or why they are not shown.
    pub(super) clients: Result<Vec<DrmClient>, String>,
    /// Whether it has `/dev/kfd` open.
    pub(super) opened_kfd: bool,
    /// What KFD lists of it; missing: KFD does not know it.
    pub(super) kfd: ReadResult<Vec<OnCard>>,
}

/// What is true of a card of AMD that [`Sums::on_cards`] does not list.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Elsewhere {
    /// Nothing is held there, or why that is not known.
    pub(super) memory: Metric<Bytes>,
    /// The same of queues; unsupported without KFD.
    pub(super) queues: Metric<u32>,
}

/// Sums over the processes, and since when each of them has been failing.
#[derive(Debug, Default)]
pub(super) struct Sums {
    failing: HashMap<(GpuId, &'static str), Instant>,
    hidden: Option<Instant>,
    foreign: Option<Instant>,
}

/// One value summed over processes: known where one told it, failed where one failed.
#[derive(Debug, Default)]
struct Total {
    sum: Option<u64>,
    why: Option<String>,
}

impl Total {
    fn add(&mut self, value: u64) {
        self.sum = Some(self.sum.unwrap_or(0).saturating_add(value));
    }

    fn fail(&mut self, why: impl Display) {
        self.why.get_or_insert_with(|| why.to_string());
    }

    /// Adds an answer of KFD; what it does not offer adds nothing.
    fn answer(&mut self, pid: u32, answer: ReadResult<u64>) {
        match answer {
            Ok(value) => self.add(value),
            Err(ReadError::Missing) => {}
            Err(error) => self.fail(format!("process {pid}: {error}")),
        }
    }
}

/// One card under way.
#[derive(Debug, Default)]
struct Card {
    processes: u32,
    vram: Total,
    gtt: Total,
    evicted: Total,
    evicted_ms: Total,
    queues: Total,
    cu_occupancy: Total,
    engines: Vec<EngineTime>,
    by_kfd: bool,
    by_fdinfo: bool,
}

impl Card {
    /// Adds one process: its clients that no other process has told, and KFD's word.
    ///
    /// Memory of ROCm is in both, so it is never added up. The clients count where they
    /// tell VRAM: they know graphics as well, and what was moved out. Else KFD does: the
    /// descriptors may be hidden, or of a kernel that counts no ROCm in them.
    fn add(&mut self, pid: u32, clients: Result<&[&DrmClient], &str>, kfd: Option<&OnCard>) {
        self.processes += 1;
        if let Err(why) = clients {
            self.gtt.fail(format!("process {pid}: {why}"));
        }
        let clients = clients.unwrap_or_default();
        let sum = |of: fn(&DrmClient) -> Option<Bytes>| {
            let told = clients.iter().filter_map(|c| of(c));
            told.map(|b| b.0).reduce(u64::saturating_add)
        };
        let (vram, evicted) = (sum(|c| c.vram), sum(|c| c.evicted));
        let told = vram.filter(|n| *n > 0 || evicted.is_some_and(|e| e > 0));
        match (told, kfd.map(|k| &k.vram)) {
            (None, Some(Ok(bytes))) if bytes.0 > 0 || vram.is_none() => {
                self.vram.add(bytes.0);
                self.by_kfd = true;
            }
            (None, Some(Err(error))) if *error != ReadError::Missing => {
                self.vram.fail(format!("process {pid}: {error}"));
                self.by_kfd = true;
            }
            _ => {
                if let Some(n) = vram {
                    self.vram.add(n);
                    self.by_fdinfo = true;
                }
            }
        }
        for (total, value) in [
            (&mut self.gtt, sum(|c| c.gtt)),
            (&mut self.evicted, evicted),
        ] {
            if let Some(n) = value {
                total.add(n);
            }
        }
        for engine in clients.iter().flat_map(|c| &c.engines) {
            fdinfo::add_engine(&mut self.engines, &engine.engine, Some(engine.ns));
        }
        if let Some(kfd) = kfd {
            self.queues.answer(pid, kfd.queues.clone().map(u64::from));
            let occupancy = kfd.cu_occupancy.clone().map(u64::from);
            self.cu_occupancy.answer(pid, occupancy);
            self.evicted_ms.answer(pid, kfd.evicted_ms.clone());
        }
    }

    fn source(&self) -> &'static str {
        match (self.by_kfd, self.by_fdinfo) {
            (true, true) => "fdinfo+kfd",
            (true, false) => "kfd",
            _ => "fdinfo",
        }
    }
}

impl Sums {
    /// What the tree holds on each card that one of its processes has open, by address,
    /// and what that means for every other card. `kfd`: whether there is KFD.
    pub(super) fn on_cards(&mut self, seen: &[Seen], kfd: bool) -> (Vec<TreeOnCard>, Elsewhere) {
        let mut cards: BTreeMap<GpuId, Card> = BTreeMap::new();
        let mut told: HashSet<(&GpuId, u64)> = HashSet::new();
        for process in seen {
            add_process(&mut cards, &mut told, process);
        }
        let known = seen.iter().any(|s| s.kfd.is_ok());
        let opened = seen.iter().any(|s| s.opened_kfd);
        // Forks inherit the descriptor, so one that KFD does not know proves nothing; a
        // whole tree does.
        let foreign = opened && !known;
        let hidden = seen.iter().find_map(|s| match (&s.clients, &s.kfd) {
            (Err(why), Err(_)) => Some(format!("process {}: {why}", s.pid)),
            _ => None,
        });
        for card in cards.values_mut() {
            card.judge(foreign, kfd, hidden.as_deref());
        }
        let container = foreign.then(|| CONTAINER.to_owned());
        let elsewhere = Elsewhere {
            memory: known_unless(hidden, &mut self.hidden, Bytes(0)),
            queues: if kfd {
                known_unless(container, &mut self.foreign, 0)
            } else {
                Metric::Unsupported
            },
        };
        let rocm = |card: &Card| opened || card.queues.sum.is_some_and(|n| n > 0);
        let out = cards
            .into_iter()
            .map(|(gpu, card)| {
                let note = rocm(&card).then(|| ROCM_NOTE.to_owned());
                self.tell(gpu, card, note)
            })
            .collect();
        (out, elsewhere)
    }

    fn tell(&mut self, gpu: GpuId, card: Card, compute_note: Option<String>) -> TreeOnCard {
        let source = card.source().to_owned();
        let small = |m: Metric<u64>| m.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        TreeOnCard {
            source,
            processes: card.processes,
            vram: self.settle(&gpu, "vram", card.vram).map(Bytes),
            gtt: self.settle(&gpu, "gtt", card.gtt).map(Bytes),
            evicted: self.settle(&gpu, "evicted", card.evicted).map(Bytes),
            evicted_ms: self.settle(&gpu, "evicted_ms", card.evicted_ms),
            queues: small(self.settle(&gpu, "queues", card.queues)),
            cu_occupancy: small(self.settle(&gpu, "cu_occupancy", card.cu_occupancy)),
            engines: card.engines,
            busy: Metric::Unsupported,
            compute_note,
            gpu,
        }
    }

    fn settle(&mut self, gpu: &GpuId, what: &'static str, total: Total) -> Metric<u64> {
        let key = (gpu.clone(), what);
        if let Some(why) = total.why {
            let since = self.failing.entry(key).or_insert_with(Instant::now);
            let for_ms = millis(since.elapsed());
            return Metric::Failed { why, for_ms };
        }
        self.failing.remove(&key);
        total.sum.map_or(Metric::Unsupported, Metric::Fresh)
    }
}

/// A value, unless there is a reason why it is not known.
fn known_unless<T>(why: Option<String>, since: &mut Option<Instant>, value: T) -> Metric<T> {
    let Some(why) = why else {
        *since = None;
        return Metric::Fresh(value);
    };
    let since = *since.get_or_insert_with(Instant::now);
    let for_ms = millis(since.elapsed());
    Metric::Failed { why, for_ms }
}

impl Card {
    /// What no single process can tell: whether KFD's word, or a hidden process, is
    /// missing from the sums.
    fn judge(&mut self, foreign: bool, kfd: bool, hidden: Option<&str>) {
        if foreign && kfd {
            for total in [&mut self.queues, &mut self.evicted_ms] {
                total.fail(CONTAINER);
            }
            // ROCm's memory is in fdinfo on every kernel that tells VRAM there
            if self.vram.sum.is_none_or(|n| n == 0) {
                self.vram.fail(CONTAINER);
            }
        } else if kfd && self.queues.sum.is_none() {
            // nobody of the tree uses KFD
            self.queues.add(0);
        }
        if let Some(why) = hidden {
            self.vram.fail(why);
            self.gtt.fail(why);
        }
    }
}

fn add_process<'a>(
    cards: &mut BTreeMap<GpuId, Card>,
    told: &mut HashSet<(&'a GpuId, u64)>,
    process: &'a Seen,
) {
    let clients = process.clients.as_ref();
    let listed = process.kfd.as_deref().unwrap_or_default();
    // several nodes may be parts of one card
    let fails = |k: &OnCard| k.vram.as_ref().is_err_and(|e| *e != ReadError::Missing);
    let used = listed.iter().filter(|k| k.in_use() || fails(k));
    let mut open: Vec<&GpuId> = clients
        .iter()
        .flat_map(|c| c.iter())
        .map(|c| &c.gpu)
        .collect();
    open.extend(used.map(|k| &k.gpu));
    open.sort();
    open.dedup();
    for gpu in open {
        let new: Vec<&DrmClient> = clients
            .iter()
            .flat_map(|all| all.iter())
            .filter(|c| c.gpu == *gpu && told.insert((&c.gpu, c.id)))
            .collect();
        let kfd = listed.iter().filter(|k| k.gpu == *gpu).cloned();
        let kfd = kfd.reduce(|a, b| both(&a, &b));
        let card = cards.entry(gpu.clone()).or_default();
        let new = clients.map(|_| new.as_slice()).map_err(String::as_str);
        card.add(process.pid, new, kfd.as_ref());
    }
}

/// Two parts of one card as one.
fn both(a: &OnCard, b: &OnCard) -> OnCard {
    fn sum<T: Clone>(a: &ReadResult<T>, b: &ReadResult<T>, add: fn(&T, &T) -> T) -> ReadResult<T> {
        match (a, b) {
            (Ok(a), Ok(b)) => Ok(add(a, b)),
            (Err(ReadError::Missing), other) | (other, Err(ReadError::Missing)) => other.clone(),
            (Err(error), _) | (_, Err(error)) => Err(error.clone()),
        }
    }
    OnCard {
        gpu: a.gpu.clone(),
        vram: sum(&a.vram, &b.vram, |a, b| Bytes(a.0.saturating_add(b.0))),
        // the list of queues is read once, so it fails for both alike
        queues: sum(&a.queues, &b.queues, |a, b| a.saturating_add(*b)),
        cu_occupancy: sum(&a.cu_occupancy, &b.cu_occupancy, |a, b| {
            a.saturating_add(*b)
        }),
        evicted_ms: sum(&a.evicted_ms, &b.evicted_ms, |a, b| a.saturating_add(*b)),
    }
}

#[cfg(test)]
#[path = "sum_tests.rs"]
mod tests;
