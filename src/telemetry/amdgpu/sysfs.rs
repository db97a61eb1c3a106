//! One card's values, file by file; a file that fails spoils no other.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::super::aging::{self, Age, Fail};
use super::super::file::{self, ReadError, ReadResult};
use super::super::source::{Answer, Source, SourceError};
use super::super::track::Tracker;
use super::card::{self, Identity};
use super::hwmon::Hwmon;
use crate::model::Vendor;
use crate::model::time::millis;
use crate::model::{Bytes, GpuSample, Metric};

/// Every read counts as use, and a card that is in use does not fall asleep. So
/// when nothing was supervised for this long, a card with power management is read
/// only every [`GENTLE_PERIOD`] (autosuspend takes 5 s). The minute covers the wait
/// for memory to come back after a kill.
pub(crate) const GENTLE_AFTER: Duration = Duration::from_mins(1);
/// See [`GENTLE_AFTER`].
pub(crate) const GENTLE_PERIOD: Duration = Duration::from_secs(10);
/// The architecture is asked for again after so many reads while it is unknown.
const ARCH_RETRY: u64 = 20;

/// How much the readings matter at the moment.
#[derive(Debug, Default)]
pub(crate) struct Attention {
    job: AtomicBool,
    process: AtomicBool,
}

impl Attention {
    /// Says whether a job runs: then a sleeping card is read as well.
    pub(crate) fn set_job(&self, running: bool) {
        self.job.store(running, Ordering::Relaxed);
    }

    /// Says whether a process is supervised: then every card that is awake is read
    /// in every round.
    pub(crate) fn set_process(&self, supervised: bool) {
        self.process.store(supervised, Ordering::Relaxed);
    }

    fn job(&self) -> bool {
        self.job.load(Ordering::Relaxed)
    }

    /// Whether anything is supervised.
    pub(crate) fn any(&self) -> bool {
        self.job() || self.process.load(Ordering::Relaxed)
    }
}

/// Reads one card.
#[derive(Debug)]
pub(crate) struct CardSource {
    root: PathBuf,
    identity: Identity,
    attention: Arc<Attention>,
    tracker: Tracker,
    hwmon: Option<Hwmon>,
    arch: Option<String>,
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
            tracker: Tracker::default(),
            hwmon: None,
            arch: None,
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
        if self.arch.is_none() && self.reads.is_multiple_of(ARCH_RETRY) {
            self.arch = self.identity.arch(&self.root);
        }
        self.reads += 1;
        let Identity { id, name, .. } = &self.identity;
        let mut sample = GpuSample::unread(id.clone(), 0, Vendor::Amd, name.clone(), "sysfs");
        sample.arch.clone_from(&self.arch);
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

    /// A sleeping card: nothing is read, and what it offers is told by the mere
    /// existence of the files.
    fn asleep(&mut self, state: Metric<String>) -> GpuSample {
        let mut sample = self.blank();
        sample.state = state;
        let hwmon = self.hwmon().cloned();
        let since = self.last.as_ref().map_or(self.last_watched, |(at, _)| *at);
        let for_ms = millis(since.elapsed());
        let there = |path: Option<PathBuf>| path.is_some_and(|p| p.exists());
        let device = |name: &str| there(Some(self.file(name)));
        let in_hwmon = |name: &str| there(hwmon.as_ref().map(|h| h.file(name)));
        sample.busy = asleep_if(device("gpu_busy_percent"), for_ms);
        sample.mem_busy = asleep_if(device("mem_busy_percent"), for_ms);
        sample.vram_used = asleep_if(device("mem_info_vram_used"), for_ms);
        sample.vram_total = asleep_if(device("mem_info_vram_total"), for_ms);
        sample.gtt_used = asleep_if(device("mem_info_gtt_used"), for_ms);
        sample.gtt_total = asleep_if(device("mem_info_gtt_total"), for_ms);
        let power = in_hwmon("power1_average") || in_hwmon("power1_input");
        sample.power_w = asleep_if(power, for_ms);
        sample.power_cap_w = asleep_if(in_hwmon("power1_cap"), for_ms);
        sample.fan_rpm = asleep_if(in_hwmon("fan1_input"), for_ms);
        let sensor = |of: fn(&Hwmon) -> &Option<PathBuf>| {
            asleep_if(there(hwmon.as_ref().and_then(|h| of(h).clone())), for_ms)
        };
        sample.temp_edge = sensor(|h| &h.edge);
        sample.temp_junction = sensor(|h| &h.junction);
        sample.temp_mem = sensor(|h| &h.mem);
        sample.sclk_mhz = sensor(|h| &h.sclk);
        sample.mclk_mhz = sensor(|h| &h.mclk);
        sample
    }

    fn hwmon(&mut self) -> Option<&Hwmon> {
        if !self.hwmon.as_ref().is_some_and(Hwmon::is_there) {
            self.hwmon = Hwmon::find(&self.identity.device);
        }
        self.hwmon.as_ref()
    }

    /// Reads every file.
    fn full(&mut self, state: Metric<String>) -> GpuSample {
        let mut sample = self.blank();
        sample.state = state;
        let hwmon = self.hwmon().cloned();
        let device = self.identity.device.clone();
        let t = &mut self.tracker;
        let in_device = |name: &str| device.join(name);
        let percent = |name: &str| percent(&in_device(name));
        let bytes = |name: &str| read::<u64>(&in_device(name)).map(Bytes);
        sample.busy = t.settle("gpu_busy_percent", percent("gpu_busy_percent"));
        sample.mem_busy = t.settle("mem_busy_percent", percent("mem_busy_percent"));
        sample.vram_used = t.settle("mem_info_vram_used", bytes("mem_info_vram_used"));
        sample.vram_total = t.settle("mem_info_vram_total", bytes("mem_info_vram_total"));
        sample.gtt_used = t.settle("mem_info_gtt_used", bytes("mem_info_gtt_used"));
        sample.gtt_total = t.settle("mem_info_gtt_total", bytes("mem_info_gtt_total"));
        let h = hwmon.as_ref();
        let scaled = |path: Option<PathBuf>, unit: f64| {
            real(&path.ok_or(ReadError::Missing)?).map(|n| n / unit)
        };
        let named = |name: &str, unit| scaled(h.map(|h| h.file(name)), unit);
        let sensor =
            |of: fn(&Hwmon) -> &Option<PathBuf>, unit| scaled(h.and_then(|h| of(h).clone()), unit);
        sample.power_w = t.settle("power1", power(&named));
        sample.power_cap_w = t.settle("power1_cap", named("power1_cap", MICRO));
        sample.temp_edge = t.settle("edge temperature", sensor(|h| &h.edge, MILLI));
        sample.temp_junction = t.settle("junction temperature", sensor(|h| &h.junction, MILLI));
        sample.temp_mem = t.settle("memory temperature", sensor(|h| &h.mem, MILLI));
        sample.sclk_mhz = t.settle("shader clock", sensor(|h| &h.sclk, MEGA));
        sample.mclk_mhz = t.settle("memory clock", sensor(|h| &h.mclk, MEGA));
        sample.fan_rpm = t.settle("fan1_input", named("fan1_input", 1.0));
        sample.apu = self
            .identity
            .known_apu()
            .unwrap_or_else(|| looks_like_apu(&sample));
        sample
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

const MICRO: f64 = 1e6;
const MILLI: f64 = 1e3;
const MEGA: f64 = 1e6;

impl Source for CardSource {
    type Reading = GpuSample;

    fn name(&self) -> String {
        format!("sysfs {}", self.identity.id)
    }

    fn read(&mut self) -> Result<Answer<GpuSample>, SourceError> {
        let job = self.attention.job();
        if self.attention.any() {
            self.last_watched = Instant::now();
        }
        if !self.is_there() {
            return Ok(self.gone());
        }
        let state = file::read_text(&self.file("power/runtime_status"));
        let state = self.tracker.settle("runtime_status", state);
        let sleeping = state.fresh().is_some_and(|s| s.starts_with("suspend"));
        if sleeping && !job {
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

fn asleep_if<T>(there: bool, for_ms: u64) -> Metric<T> {
    if there {
        Metric::Failed {
            why: "the card sleeps, and is not woken to be read".to_owned(),
            for_ms,
        }
    } else {
        Metric::Unsupported
    }
}

/// A number of amdgpu's.
fn read<T: std::str::FromStr>(path: &Path) -> ReadResult<T> {
    file::read_number(path).map_err(in_words_of_amdgpu)
}

/// Old kernels answer EPERM, new ones EBUSY, while the card sleeps or resets: that
/// must not read as a lack of rights.
fn in_words_of_amdgpu(error: ReadError) -> ReadError {
    const EPERM: i32 = 1;
    const EBUSY: i32 = 16;
    match error {
        ReadError::Os {
            file,
            errno: errno @ (EPERM | EBUSY),
            ..
        } => ReadError::Os {
            file,
            errno,
            words: "the card is asleep or in reset".to_owned(),
        },
        other => other,
    }
}

/// A number that is one: the text `nan` parses, too.
fn real(path: &Path) -> ReadResult<f64> {
    let value: f64 = read(path)?;
    if value.is_finite() {
        Ok(value)
    } else {
        Err(ReadError::text(path, format!("{value} is no number")))
    }
}

/// A percentage; some firmware answers 65535 for "not there".
fn percent(path: &Path) -> ReadResult<f64> {
    let value = real(path)?;
    if (0.0..=100.0).contains(&value) {
        Ok(value)
    } else {
        Err(ReadError::text(path, format!("{value} is no percentage")))
    }
}

/// Watts: the average, else the momentary value. Where both fail, why the first did.
fn power(named: &impl Fn(&str, f64) -> ReadResult<f64>) -> ReadResult<f64> {
    match named("power1_average", MICRO) {
        Ok(watts) => Ok(watts),
        Err(ReadError::Missing) => named("power1_input", MICRO),
        Err(error) => named("power1_input", MICRO).or(Err(error)),
    }
}

/// For chips that are not in our table: an APU has neither a power limit nor a
/// memory controller of its own nor a fan; a card without any sensor cannot be told.
fn looks_like_apu(sample: &GpuSample) -> bool {
    sample.temp_edge.is_supported()
        && !sample.mem_busy.is_supported()
        && !sample.power_cap_w.is_supported()
        && !sample.temp_junction.is_supported()
        && !sample.fan_rpm.is_supported()
}

/// How many values of a sample are good and how many fail.
#[derive(Debug, Default)]
struct Values {
    good: usize,
    failed: usize,
    why: Option<String>,
}

impl Values {
    fn count(s: &GpuSample) -> Self {
        let mut values = Self::default();
        for metric in [
            &s.busy,
            &s.mem_busy,
            &s.power_w,
            &s.power_cap_w,
            &s.temp_edge,
            &s.temp_junction,
            &s.temp_mem,
            &s.sclk_mhz,
            &s.mclk_mhz,
            &s.fan_rpm,
        ] {
            values.add(metric);
        }
        for metric in [&s.vram_used, &s.vram_total, &s.gtt_used, &s.gtt_total] {
            values.add(metric);
        }
        values
    }

    fn add<T>(&mut self, metric: &Metric<T>) {
        match metric {
            Metric::Fresh(_) => self.good += 1,
            Metric::Failed { why, .. } => {
                self.failed += 1;
                self.why.get_or_insert_with(|| why.clone());
            }
            Metric::Stale { .. } | Metric::Unsupported => {}
        }
    }
}

#[cfg(test)]
#[path = "sysfs_tests.rs"]
mod tests;
