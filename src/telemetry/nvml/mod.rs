//! NVIDIA cards through NVML, the driver's library, which is loaded at run time.

mod card;
pub(super) mod events;
pub(super) mod power;
pub(super) mod processes;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use super::aging::{self, Age, Fail};
use super::amdgpu::{GENTLE_AFTER, GENTLE_PERIOD};
use super::attention::Attention;
use super::clients::{NvmlCard, NvmlFeed};
use super::file::ReadError;
use super::source::{Answer, Source, SourceError, lock};
use super::track::Tracker;
use crate::model::Vendor;
use crate::model::time::millis;
use crate::model::{GpuId, GpuSample, Metric};

pub(super) use card::id as card_id;

/// Reads every card of NVIDIA.
pub(crate) struct NvmlSource {
    root: PathBuf,
    attention: Arc<Attention>,
    nvml: Option<Nvml>,
    /// The last sample of each card by NVML's index: a card that fell off the bus
    /// can no longer tell its address.
    known: HashMap<u32, GpuSample>,
    lost_since: HashMap<u32, Instant>,
    trackers: HashMap<GpuId, Tracker>,
    /// Cards on the bus; looked for by the first read, on its own thread: the files of a
    /// wedged card may block.
    cards: Option<Vec<power::Card>>,
    last_watched: Instant,
    last_read: Option<Instant>,
    /// Where the processes on each card go.
    holders: NvmlFeed,
}

impl NvmlSource {
    /// A reader; `root` has `sys` in it, which tells whether cards sleep. The processes
    /// on each card are put into `holders`.
    pub(crate) fn new(root: PathBuf, attention: Arc<Attention>, holders: NvmlFeed) -> Self {
        Self {
            cards: None,
            root,
            attention,
            nvml: None,
            known: HashMap::new(),
            lost_since: HashMap::new(),
            trackers: HashMap::new(),
            last_watched: Instant::now(),
            last_read: None,
            holders,
        }
    }

    /// What is told instead of a reading, while reading would wake a card or keep it
    /// awake for nobody: the rule of amdgpu's cards. Nothing: read.
    fn left_alone(&mut self) -> Option<Vec<GpuSample>> {
        if self.attention.nvidia() {
            self.last_watched = Instant::now();
        }
        let cards = self.cards.get_or_insert_with(|| power::cards(&self.root));
        if power::all_asleep(cards) {
            // our own open handle is what would wake it; a workload wakes its own
            self.nvml = None;
            return Some(self.asleep());
        }
        if self.last_watched.elapsed() < GENTLE_AFTER || !power::any_may_sleep(cards) {
            return None;
        }
        self.nvml = None;
        let at = self.last_read.filter(|at| at.elapsed() < GENTLE_PERIOD)?;
        let age = Age {
            age_ms: millis(at.elapsed()),
            fresh_ms: 0,
        };
        Some(self.last().map(|s| aging::gpu(s, &age)).collect())
    }

    /// The last sample of each card, in NVML's order.
    fn last(&self) -> impl Iterator<Item = GpuSample> + '_ {
        let mut known: Vec<_> = self.known.iter().collect();
        known.sort_by_key(|(index, _)| **index);
        known.into_iter().map(|(_, sample)| sample.clone())
    }

    /// Every card that sleeps, with what was known of it.
    fn asleep(&self) -> Vec<GpuSample> {
        let since = self.last_read.unwrap_or(self.last_watched);
        let sleeping = |card: &power::Card| {
            let known = self.known.values().find(|s| s.id == card.id);
            let blank = || {
                let name = format!("NVIDIA GPU {}", card.device);
                GpuSample::unread(card.id.clone(), 0, Vendor::Nvidia, name, "nvml")
            };
            let fail = Fail {
                why: "the card sleeps, and is not woken to be read",
                for_ms: millis(since.elapsed()),
                unread: known.is_none(),
            };
            let mut sample = aging::gpu(known.cloned().unwrap_or_else(blank), &fail);
            sample.state = Metric::Fresh("suspended".to_owned());
            sample
        };
        self.cards.iter().flatten().map(sleeping).collect()
    }

    fn read_all(&mut self) -> Result<Answer<Vec<GpuSample>>, SourceError> {
        let nvml = if let Some(nvml) = self.nvml.take() {
            nvml
        } else {
            // a card may have come meanwhile
            self.cards = Some(power::cards(&self.root));
            Nvml::init().map_err(|e| absent(&e))?
        };
        let nvml = self.nvml.insert(nvml);
        let count = nvml.device_count().map_err(|e| failed(&e))?;
        if count == 0 {
            return Err(SourceError::Absent("no card of NVIDIA".to_owned()));
        }
        let mut samples = Vec::new();
        let mut trouble = None;
        let mut holders = Vec::new();
        for index in 0..count {
            let sample = nvml.device_by_index(index).and_then(|device| {
                let sample = card::read(&device, &mut self.trackers)?;
                holders.extend(held(&device, &sample.id));
                Ok(sample)
            });
            match sample {
                Ok(sample) => {
                    self.lost_since.remove(&index);
                    samples.push((index, sample));
                }
                Err(error) => {
                    let why = error.to_string();
                    let since = *self.lost_since.entry(index).or_insert_with(Instant::now);
                    let fail = Fail {
                        why: &why,
                        for_ms: millis(since.elapsed()),
                        unread: false,
                    };
                    let known = self.known.get(&index);
                    samples.extend(known.map(|s| (index, aging::gpu(s.clone(), &fail))));
                    trouble = Some(format!("card {index}: {why}"));
                }
            }
        }
        *lock(&self.holders) = holders;
        let any_cut = card::any_cut(nvml, count);
        card::number(&mut samples, any_cut);
        for (index, sample) in &samples {
            if !self.lost_since.contains_key(index) {
                self.known.insert(*index, sample.clone());
            }
        }
        self.last_read = Some(Instant::now());
        Ok(Answer {
            reading: samples.into_iter().map(|(_, s)| s).collect(),
            trouble,
        })
    }
}

impl Source for NvmlSource {
    type Reading = Vec<GpuSample>;

    fn name(&self) -> String {
        "nvml".to_owned()
    }

    fn read(&mut self) -> Result<Answer<Self::Reading>, SourceError> {
        match self.left_alone() {
            Some(samples) => Ok(Answer::good(samples)),
            None => self.read_all(),
        }
    }
}

/// The processes on a card; none where NVML does not offer the list.
fn held(device: &Device<'_>, gpu: &GpuId) -> Option<NvmlCard> {
    let processes = match processes::on(device) {
        Err(ReadError::Missing) => return None,
        told => told.map_err(|error| error.to_string()),
    };
    Some(NvmlCard {
        gpu: gpu.clone(),
        at: Instant::now(),
        processes,
    })
}

fn absent(error: &NvmlError) -> SourceError {
    match error {
        NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound => {
            SourceError::Absent("no libnvidia-ml.so.1: no driver of NVIDIA".to_owned())
        }
        NvmlError::DriverNotLoaded => {
            SourceError::Absent("the driver of NVIDIA is not loaded".to_owned())
        }
        other => failed(other),
    }
}

fn failed(error: &NvmlError) -> SourceError {
    SourceError::Failed(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::pci::PciAddress;
    use crate::telemetry::testing::Tree;

    #[test]
    fn a_machine_without_the_library_says_so_and_one_with_it_has_cards() {
        let mut source = NvmlSource::new(PathBuf::from("/"), Arc::default(), Arc::default());
        source.attention.set_supervised(true, false);
        match source.read() {
            Err(SourceError::Absent(why)) => assert!(why.contains("NVIDIA"), "{why}"),
            Err(SourceError::Failed(why)) => assert!(!why.is_empty()),
            Ok(answer) => {
                let card = &answer.reading[0];
                assert!(PciAddress::parse(&card.id.0).is_some());
                assert!(card.arch.as_ref().is_some_and(|a| a.starts_with("sm_")));
                assert!(card.vram_total.is_supported());
            }
        }
    }

    #[test]
    fn a_sleeping_card_is_not_woken() {
        let tree = Tree::new();
        power::tests::laptop(&tree, "auto\n", "suspended\n");
        let mut source = NvmlSource::new(tree.root().to_owned(), Arc::default(), Arc::default());
        source.attention.set_supervised(true, false);
        source.attention.set_watched(true);
        let first = source.read().unwrap().reading;
        assert_eq!(first.len(), 1);
        assert_eq!(first[0].id.0, "0000:01:00.0");
        assert_eq!(first[0].name, "NVIDIA GPU 0x2684");
        assert_eq!(first[0].state, Metric::Fresh("suspended".to_owned()));
        assert!(matches!(&first[0].busy, Metric::Failed { why, .. } if why.contains("sleeps")));
        // what was read before it fell asleep names it, and what it never offered
        // stays unsupported
        let mut known = first[0].clone();
        known.name = "RTX 4090 Laptop".to_owned();
        known.busy = Metric::Fresh(3.0);
        known.temp_mem = Metric::Unsupported;
        source.known.insert(0, known);
        let again = source.read().unwrap().reading;
        assert_eq!(again[0].name, "RTX 4090 Laptop");
        assert!(matches!(again[0].busy, Metric::Failed { .. }));
        assert_eq!(again[0].temp_mem, Metric::Unsupported);
    }

    #[test]
    fn an_awake_card_that_may_sleep_is_read_gently_when_nothing_runs_for_long() {
        let tree = Tree::new();
        power::tests::laptop(&tree, "auto\n", "active\n");
        let mut source = NvmlSource::new(tree.root().to_owned(), Arc::default(), Arc::default());
        assert!(source.left_alone().is_none(), "the first minute");
        let long_ago = Instant::now().checked_sub(GENTLE_AFTER).unwrap();
        source.last_watched = long_ago;
        assert!(source.left_alone().is_none(), "never read");
        let id = GpuId("0000:01:00.0".to_owned());
        let mut known = GpuSample::unread(id, 0, Vendor::Nvidia, "RTX".to_owned(), "nvml");
        known.busy = Metric::Fresh(3.0);
        source.known.insert(0, known);
        source.last_read = Some(Instant::now());
        let aged = source.left_alone().unwrap();
        assert!(!matches!(aged[0].busy, Metric::Failed { .. }));
        source.last_read = Instant::now().checked_sub(GENTLE_PERIOD);
        assert!(source.left_alone().is_none(), "due");
        source.last_read = Some(Instant::now());
        source.attention.set_supervised(true, true);
        assert!(source.left_alone().is_some(), "a card of AMD is supervised");
        source.attention.set_watched(true);
        assert!(source.left_alone().is_none(), "watched");
        source.attention.set_watched(false);
        source.last_watched = long_ago;
        source.attention.set_supervised(true, false);
        assert!(source.left_alone().is_none(), "supervised");
        // without power management nothing is gained by looking away
        source.attention.set_supervised(false, false);
        source.last_watched = long_ago;
        power::tests::laptop(&tree, "on\n", "active\n");
        assert!(source.left_alone().is_none());
    }
}
