//! One card over time: read, asleep, left alone, gone and back.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::aging::{self, Age, Fail};
use super::super::attention::Attention;
use super::super::file;
use super::super::source::{Answer, Source, SourceError};
use super::card::{self, Identity};
use super::hwmon::Hwmon;
use super::kfd::Found;
use super::reading::{Memory, Reader};
use super::values::Values;
use crate::model::time::millis;
use crate::model::{GpuSample, Metric, Vendor, is_suspended};

/// Every read counts as use, and a card that is in use does not fall asleep. So
/// when nothing was supervised for this long, a card with power management is read
/// only every [`GENTLE_PERIOD`] (autosuspend takes 5 s). The minute covers the wait
/// for memory to come back after a kill.
pub(crate) const GENTLE_AFTER: Duration = Duration::from_mins(1);
/// See [`GENTLE_AFTER`].
pub(crate) const GENTLE_PERIOD: Duration = Duration::from_secs(10);
/// The KFD topology is looked at again after so many reads: cards come and go.
const TOPOLOGY_PERIOD: u64 = 20;

/// Reads one card.
#[derive(Debug)]
pub(crate) struct CardSource {
    root: PathBuf,
    identity: Identity,
    attention: Arc<Attention>,
    memory: Memory,
    hwmon: Option<Hwmon>,
    topology: Found,
    reads: u64,
    last: Option<(Instant, GpuSample)>,
    gone_since: Option<Instant>,
    last_watched: Instant,
}

impl CardSource {
    /// A reader for a card that was found below `root`.
    pub(crate) fn new(root: PathBuf, identity: Identity, attention: Arc<Attention>) -> Self {
        Self {
            root,
            identity,
            attention,
            memory: Memory::default(),
            hwmon: None,
            topology: Found::default(),
            reads: 0,
            last: None,
            gone_since: None,
            last_watched: Instant::now(),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.identity.device.join(name)
    }

    /// Whether the card's folder is there; after a reload it may lie elsewhere.
    fn is_there(&mut self) -> bool {
        if self.file("uevent").exists() || self.file("vendor").exists() {
            return true;
        }
        let found = card::scan(&self.root)
            .unwrap_or_default()
            .into_iter()
            .find(|c| c.id == self.identity.id);
        let there = found.is_some();
        if let Some(identity) = found {
            self.identity = identity;
            self.hwmon = None;
        }
        there
    }

    /// A sample with the identity only.
    fn blank(&mut self) -> GpuSample {
        if self.reads.is_multiple_of(TOPOLOGY_PERIOD) {
            let known = self.topology.arch.take();
            self.topology = self.identity.topology(&self.root);
            self.topology.arch = self.topology.arch.take().or(known);
        }
        self.reads += 1;
        let Identity { id, name, .. } = &self.identity;
        let mut sample = GpuSample::unread(id.clone(), 0, Vendor::Amd, name.clone(), "sysfs");
        sample.arch.clone_from(&self.topology.arch);
        sample.compute_index = self.topology.compute_index;
        sample.apu = self.last.as_ref().map_or_else(
            || self.identity.known_apu().unwrap_or(false),
            |(_, last)| last.apu,
        );
        sample
    }

    /// Everything that was ever offered has failed, and the state says why.
    fn gone(&mut self) -> Answer<GpuSample> {
        let since = *self.gone_since.get_or_insert_with(Instant::now);
        let sample = match &self.last {
            Some((_, last)) => last.clone(),
            None => self.blank(),
        };
        let why = "the card is gone: its files have left sysfs";
        let fail = Fail {
            why,
            for_ms: millis(since.elapsed()),
            unread: false,
        };
        let mut sample = aging::gpu(sample, &fail);
        sample.state = Metric::Fresh("gone".to_owned());
        Answer {
            reading: sample,
            trouble: Some(why.to_owned()),
        }
    }

    fn asleep(&mut self, state: Metric<String>) -> GpuSample {
        let since = self.last.as_ref().map_or(self.last_watched, |(at, _)| *at);
        let for_ms = millis(since.elapsed());
        let mut sample = self.blank();
        sample.state = state;
        self.reader().asleep(&mut sample, for_ms);
        sample
    }

    fn full(&mut self, state: Metric<String>) -> GpuSample {
        let mut sample = self.blank();
        sample.state = state;
        self.reader().full(&mut sample);
        sample
    }

    fn reader(&mut self) -> Reader<'_> {
        self.find_hwmon();
        Reader {
            root: &self.root,
            device: &self.identity.device,
            hwmon: self.hwmon.as_ref(),
            memory: &mut self.memory,
            known_apu: self.identity.known_apu(),
        }
    }

    fn find_hwmon(&mut self) {
        if !self.hwmon.as_ref().is_some_and(Hwmon::is_there) {
            self.hwmon = Hwmon::find(&self.identity.device);
        }
    }

    /// The last full reading, grown older, while the card is to be left alone.
    fn left_alone(&self, state: &Metric<String>) -> Option<GpuSample> {
        let (at, last) = self.last.as_ref()?;
        let idle = self.last_watched.elapsed() >= GENTLE_AFTER && at.elapsed() < GENTLE_PERIOD;
        if !idle || file::read_text(&self.file("power/control")).as_deref() != Ok("auto") {
            return None;
        }
        let age = Age {
            age_ms: millis(at.elapsed()),
            fresh_ms: 0,
        };
        let mut sample = aging::gpu(last.clone(), &age);
        sample.state = state.clone();
        Some(sample)
    }
}

impl Source for CardSource {
    type Reading = GpuSample;

    fn name(&self) -> String {
        format!("sysfs {}", self.identity.id)
    }

    fn read(&mut self) -> Result<Answer<GpuSample>, SourceError> {
        if self.attention.any() {
            self.last_watched = Instant::now();
        }
        if !self.is_there() {
            return Ok(self.gone());
        }
        if self.gone_since.is_some() {
            // its driver was loaded anew, so nothing that was learnt of it holds
            self.memory.renew();
            self.reads = 0;
        }
        let state = self.memory.state(&self.identity.device);
        let sleeping = state.fresh().is_some_and(|s| is_suspended(s));
        if sleeping {
            // its own workload wakes it, and nobody else has to
            self.gone_since = None;
            return Ok(Answer::good(self.asleep(state)));
        }
        if let Some(sample) = self.left_alone(&state) {
            return Ok(Answer::good(sample));
        }
        let sample = self.full(state);
        let values = Values::count(&sample);
        if values.good == 0 && values.failed > 0 && self.all_missing() {
            return Ok(self.gone());
        }
        self.gone_since = None;
        let trouble = match (values.good, values.why) {
            (0, Some(why)) => Some(why),
            _ => None,
        };
        self.last = Some((Instant::now(), sample.clone()));
        Ok(Answer {
            reading: sample,
            trouble,
        })
    }
}

impl CardSource {
    /// Whether neither the driver's main files nor its hwmon folder are left: the
    /// driver was unbound, or the card fell off the bus.
    fn all_missing(&self) -> bool {
        let files = [
            "gpu_busy_percent",
            "mem_info_vram_total",
            "mem_info_vram_used",
            "pp_dpm_sclk",
        ];
        !files.iter().any(|name| self.file(name).exists())
            && !self.hwmon.as_ref().is_some_and(Hwmon::is_there)
    }
}

#[cfg(test)]
#[path = "sysfs_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod snapshot_tests;
