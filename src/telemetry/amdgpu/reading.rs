//! One card's values, file by file; a file that fails spoils no other.
//!
//! Every file but those of the PCI core is the driver's: none of them is read of a card
//! that sleeps and is to go on sleeping.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::super::file::{self, ReadError, ReadResult};
use super::super::track::Tracker;
use super::hwmon::Hwmon;
use super::metrics::{self, Metrics, Watch};
use super::numbers::{
    CLOCK, DEGREES, RPM, WATTS, in_words_of_amdgpu, percent, plausible, read, real, scaled,
};
use super::{dpm, link, resets};
use crate::model::{Bytes, GpuSample, Metric, Resets, is_suspended};

const MICRO: f64 = 1e6;
const MILLI: f64 = 1e3;
const MEGA: f64 = 1e6;
/// File with the table of sensors.
const METRICS: &str = "gpu_metrics";
/// After a wake the table shows activity and clocks that are latched high, for 9 to 15 s
/// (ROCm/rocm-systems#8024).
const LATCHED: Duration = Duration::from_secs(15);
/// The kernel counts its limit in pages of this size on every machine with such cards.
const PAGE: u64 = 4096;

/// Why a card that was read once does not tell yet what throttles it.
pub(crate) const NEEDS_TWO: &str = "not known yet (needs two readings)";

/// What is kept of a card from one reading to the next.
#[derive(Debug, Default)]
pub(super) struct Memory {
    tracker: Tracker,
    watch: Watch,
    /// When the card was last seen asleep.
    slept: Option<Instant>,
    reset_kinds: Option<Vec<String>>,
    link: Option<PathBuf>,
}

impl Memory {
    /// The card or its driver is a new one.
    pub(super) fn renew(&mut self) {
        self.watch = Watch::default();
        self.reset_kinds = None;
        self.link = None;
    }

    /// The state of the card's power; reading it never wakes.
    pub(super) fn state(&mut self, device: &Path) -> Metric<String> {
        let state = file::read_text(&device.join("power/runtime_status"));
        let state = self.tracker.settle("runtime_status", state);
        let wakes = |s: &String| is_suspended(s) || s == "resuming";
        if state.fresh().is_some_and(wakes) {
            self.slept = Some(Instant::now());
        }
        state
    }

    fn latched(&self) -> bool {
        self.slept.is_some_and(|at| at.elapsed() < LATCHED)
    }
}

/// Where a card's values lie.
pub(super) struct Reader<'a> {
    /// Folder that has `sys` in it.
    pub(super) root: &'a Path,
    /// The card's folder.
    pub(super) device: &'a Path,
    /// Its hwmon folder.
    pub(super) hwmon: Option<&'a Hwmon>,
    /// What is kept.
    pub(super) memory: &'a mut Memory,
    /// Whether the card is known to be an APU's.
    pub(super) known_apu: Option<bool>,
}

/// A value of the table that stands in for a file.
struct StandIn {
    key: &'static str,
    of: fn(&Metrics) -> Option<f64>,
    /// Whether it is latched after a wake.
    latched: bool,
}

const fn steady(key: &'static str, of: fn(&Metrics) -> Option<f64>) -> StandIn {
    StandIn {
        key,
        of,
        latched: false,
    }
}

const fn latched(key: &'static str, of: fn(&Metrics) -> Option<f64>) -> StandIn {
    StandIn {
        key,
        of,
        latched: true,
    }
}

const BUSY: StandIn = latched("activity in gpu_metrics", |m| m.busy);
const MEM_BUSY: StandIn = latched("memory activity in gpu_metrics", |m| m.mem_busy);
const VIDEO: StandIn = latched("video activity in gpu_metrics", |m| m.video_busy);
const POWER: StandIn = steady("power in gpu_metrics", |m| m.power_w);
const EDGE: StandIn = steady("edge temperature in gpu_metrics", |m| m.temp_edge);
const JUNCTION: StandIn = steady("junction temperature in gpu_metrics", |m| m.temp_junction);
const MEM_TEMP: StandIn = steady("memory temperature in gpu_metrics", |m| m.temp_mem);
const SCLK: StandIn = latched("shader clock in gpu_metrics", |m| m.sclk_mhz);
const MCLK: StandIn = latched("memory clock in gpu_metrics", |m| m.mclk_mhz);

type Table = ReadResult<Metrics>;

impl Reader<'_> {
    /// Reads every file.
    pub(super) fn full(&mut self, sample: &mut GpuSample) {
        let table = self.table();
        self.activity(sample, &table);
        self.memory(sample);
        self.sensors(sample, &table);
        self.clocks(sample, &table);
        let level = self.text("power_dpm_force_performance_level");
        sample.perf_level = self.settle("power_dpm_force_performance_level", level);
        sample.throttle = match table.map(|m| m.throttle) {
            Ok(Some(throttle)) => {
                let reasons = self.memory.watch.reasons(throttle, Instant::now());
                let first = || self.unusable(NEEDS_TWO);
                let reasons = reasons.ok_or_else(first);
                self.settle("throttling", reasons)
            }
            Ok(None) => self.settle("throttling", Err(ReadError::Missing)),
            Err(error) => self.settle("throttling", Err(error)),
        };
        sample.apu = self.known_apu.unwrap_or_else(|| looks_like_apu(sample));
        sample.link = if sample.apu {
            Metric::Unsupported
        } else {
            let folder = self.link_folder();
            self.settle(link::FILE, link::read(&folder))
        };
        let kinds = self.reset_kinds();
        sample.resets = self.resets(kinds);
        sample.ttm_limit = self.ttm_limit();
    }

    /// A sleeping card: what it offers is told by the mere existence of the files. Only
    /// the sizes of its memory are read: the driver keeps them and asks nobody
    /// (`amdgpu_vram_mgr.c`, `amdgpu_gtt_mgr.c`), and by them profile and cap are chosen.
    pub(super) fn asleep(&mut self, sample: &mut GpuSample, for_ms: u64) {
        let device = |name: &str| self.device.join(name).exists();
        let in_hwmon = |name: &str| self.hwmon.is_some_and(|h| h.file(name).exists());
        let seen = |stand_in: &StandIn| self.memory.tracker.seen(stand_in.key);
        let real = |there| asleep_if::<f64>(there, for_ms);
        sample.busy = real(device("gpu_busy_percent") || seen(&BUSY));
        sample.mem_busy = real(device("mem_busy_percent") || seen(&MEM_BUSY));
        sample.video_busy = real(device("vcn_busy_percent") || seen(&VIDEO));
        sample.vram_used = asleep_if(device("mem_info_vram_used"), for_ms);
        sample.gtt_used = asleep_if(device("mem_info_gtt_used"), for_ms);
        let power = in_hwmon("power1_average") || in_hwmon("power1_input");
        sample.power_w = real(power || seen(&POWER));
        sample.power_cap_w = real(in_hwmon("power1_cap"));
        sample.fan_rpm = real(in_hwmon("fan1_input"));
        sample.fan_percent = real(in_hwmon("pwm1"));
        let sensor = |of: fn(&Hwmon) -> &Option<PathBuf>, stand_in: &StandIn| {
            let path = self.hwmon.and_then(|h| of(h).as_ref());
            real(path.is_some_and(|p| p.exists()) || seen(stand_in))
        };
        sample.temp_edge = sensor(|h| &h.edge, &EDGE);
        sample.temp_junction = sensor(|h| &h.junction, &JUNCTION);
        sample.temp_mem = sensor(|h| &h.mem, &MEM_TEMP);
        sample.sclk_mhz = sensor(|h| &h.sclk, &SCLK);
        sample.mclk_mhz = sensor(|h| &h.mclk, &MCLK);
        sample.throttle = asleep_if(device(METRICS), for_ms);
        sample.perf_level = asleep_if(device("power_dpm_force_performance_level"), for_ms);
        sample.link = asleep_if(!sample.apu && device(link::FILE), for_ms);
        let masks = resets::MASKS.iter().any(|name| device(name));
        sample.resets = match (self.memory.reset_kinds.clone(), masks) {
            (None, true) => asleep_if(true, for_ms),
            (kinds, _) => self.resets(kinds.ok_or(ReadError::Missing)),
        };
        sample.ttm_limit = self.ttm_limit();
        self.sizes(sample);
    }

    fn activity(&mut self, sample: &mut GpuSample, table: &Table) {
        for (metric, key, stand_in) in [
            (&mut sample.busy, "gpu_busy_percent", BUSY),
            (&mut sample.mem_busy, "mem_busy_percent", MEM_BUSY),
            (&mut sample.video_busy, "vcn_busy_percent", VIDEO),
        ] {
            let answer = percent(&self.device.join(key));
            *metric = self.settle(key, answer);
            self.stand_in(metric, table, &stand_in);
        }
    }

    fn memory(&mut self, sample: &mut GpuSample) {
        for (metric, key) in [
            (&mut sample.vram_used, "mem_info_vram_used"),
            (&mut sample.gtt_used, "mem_info_gtt_used"),
        ] {
            let answer = read(&self.device.join(key)).map(Bytes);
            *metric = self.settle(key, answer);
        }
        self.sizes(sample);
    }

    fn sizes(&mut self, sample: &mut GpuSample) {
        for (metric, key) in [
            (&mut sample.vram_total, "mem_info_vram_total"),
            (&mut sample.gtt_total, "mem_info_gtt_total"),
        ] {
            let answer = read(&self.device.join(key)).map(Bytes);
            *metric = self.settle(key, answer);
        }
    }

    fn sensors(&mut self, sample: &mut GpuSample, table: &Table) {
        let cap = self.in_hwmon("power1_cap", MICRO);
        let cap = cap.and_then(|w| plausible(w, WATTS, "power1_cap"));
        sample.power_cap_w = self.settle("power1_cap", cap);
        let rpm = self.in_hwmon("fan1_input", 1.0);
        let rpm = rpm.and_then(|n| plausible(n, RPM, "fan1_input"));
        sample.fan_rpm = self.settle("fan1_input", rpm);
        let duty = self.fan_percent();
        sample.fan_percent = self.settle("pwm1", duty);
        let power = self.power().and_then(|w| plausible(w, WATTS, "power1"));
        sample.power_w = self.settle("power1", power);
        self.stand_in(&mut sample.power_w, table, &POWER);
        let h = self.hwmon;
        for (metric, key, path, stand_in) in [
            (
                &mut sample.temp_edge,
                "edge temperature",
                h.and_then(|h| h.edge.as_ref()),
                EDGE,
            ),
            (
                &mut sample.temp_junction,
                "junction temperature",
                h.and_then(|h| h.junction.as_ref()),
                JUNCTION,
            ),
            (
                &mut sample.temp_mem,
                "memory temperature",
                h.and_then(|h| h.mem.as_ref()),
                MEM_TEMP,
            ),
        ] {
            let degrees = scaled(path, MILLI).and_then(|t| plausible(t, DEGREES, key));
            *metric = self.settle(key, degrees);
            self.stand_in(metric, table, &stand_in);
        }
    }

    /// Clocks: hwmon's, else the level in force, else the table's.
    fn clocks(&mut self, sample: &mut GpuSample, table: &Table) {
        let h = self.hwmon;
        let sclk = (
            h.and_then(|h| h.sclk.as_ref()),
            "shader clock",
            "pp_dpm_sclk",
            SCLK,
        );
        let mclk = (
            h.and_then(|h| h.mclk.as_ref()),
            "memory clock",
            "pp_dpm_mclk",
            MCLK,
        );
        for (metric, (path, key, levels, stand_in)) in
            [(&mut sample.sclk_mhz, sclk), (&mut sample.mclk_mhz, mclk)]
        {
            let clock = scaled(path, MEGA).and_then(|c| plausible(c, CLOCK, key));
            *metric = self.settle(key, clock);
            if !metric.is_supported() {
                let answer = self.level_in_force(levels);
                *metric = self.settle(levels, answer);
            }
            self.stand_in(metric, table, &stand_in);
        }
    }

    fn settle<T>(&mut self, key: &'static str, answer: ReadResult<T>) -> Metric<T> {
        self.memory.tracker.settle(key, answer)
    }

    /// Puts the table's value where no file ever had one. A file that fails is not
    /// replaced: its failure is the news.
    fn stand_in(&mut self, metric: &mut Metric<f64>, table: &Table, stand_in: &StandIn) {
        if metric.is_supported() {
            return;
        }
        let answer = match table {
            Ok(table) => match (stand_in.of)(table) {
                Some(_) if stand_in.latched && self.memory.latched() => {
                    Err(self.unusable("high for some seconds after a wake, so not taken"))
                }
                value => value.ok_or(ReadError::Missing),
            },
            // an unread table might not even offer it
            Err(error) if self.memory.tracker.seen(stand_in.key) => Err(error.clone()),
            Err(_) => Err(ReadError::Missing),
        };
        *metric = self.settle(stand_in.key, answer);
    }

    fn table(&self) -> Table {
        let path = self.device.join(METRICS);
        let bytes = file::read_bytes(&path).map_err(in_words_of_amdgpu)?;
        metrics::parse(&bytes).map_err(|error| ReadError::text(&path, error.to_string()))
    }

    fn unusable(&self, what: &str) -> ReadError {
        ReadError::text(&self.device.join(METRICS), what)
    }

    fn text(&self, name: &str) -> ReadResult<String> {
        let path = self.device.join(name);
        let text = file::read_text(&path).map_err(in_words_of_amdgpu)?;
        let word = text.len() <= 32 && text.bytes().all(|b| b.is_ascii_graphic());
        match text.as_str() {
            "" => Err(ReadError::text(&path, "empty")),
            _ if word => Ok(text),
            other => Err(ReadError::text(
                &path,
                format!("`{}` is no level", file::short(other)),
            )),
        }
    }

    fn level_in_force(&self, name: &str) -> ReadResult<f64> {
        let text = file::read_text(&self.device.join(name)).map_err(in_words_of_amdgpu)?;
        dpm::in_force(&text)
            .map(f64::from)
            .ok_or(ReadError::Missing)
    }

    fn in_hwmon(&self, name: &str, unit: f64) -> ReadResult<f64> {
        scaled(self.hwmon.map(|h| h.file(name)).as_ref(), unit)
    }

    /// Watts: the average, else the momentary value. Where both fail, why the first did.
    fn power(&self) -> ReadResult<f64> {
        let now = || self.in_hwmon("power1_input", MICRO);
        match self.in_hwmon("power1_average", MICRO) {
            Ok(watts) => Ok(watts),
            Err(ReadError::Missing) => now(),
            Err(error) => now().or(Err(error)),
        }
    }

    fn fan_percent(&self) -> ReadResult<f64> {
        let path = self.hwmon.ok_or(ReadError::Missing)?.file("pwm1");
        let (duty, most) = (real(&path)?, self.in_hwmon("pwm1_max", 1.0)?);
        if most > 0.0 && (0.0..=most).contains(&duty) {
            Ok(duty / most * 100.0)
        } else {
            Err(ReadError::text(
                &path,
                format!("{duty} of {most} is no duty"),
            ))
        }
    }

    fn link_folder(&mut self) -> PathBuf {
        let device = self.device;
        let folder = self.memory.link.get_or_insert_with(|| link::folder(device));
        folder.clone()
    }

    fn reset_kinds(&mut self) -> ReadResult<Vec<String>> {
        if let Some(kinds) = &self.memory.reset_kinds {
            return Ok(kinds.clone());
        }
        let kinds = resets::kinds(self.device).map_err(in_words_of_amdgpu)?;
        self.memory.reset_kinds = Some(kinds.clone());
        Ok(kinds)
    }

    fn resets(&mut self, kinds: ReadResult<Vec<String>>) -> Metric<Resets> {
        let core_dump = resets::core_dump(self.root, self.device);
        self.settle("resets", resets::of(kinds, core_dump))
    }

    /// The limit of the module that amdgpu uses: AMD's own package brings its own.
    fn ttm_limit(&mut self) -> Metric<Bytes> {
        let pages = |module: &str| {
            let path = format!("sys/module/{module}/parameters/pages_limit");
            file::read_number::<u64>(&self.root.join(path))
        };
        let pages = match pages("amdttm") {
            Err(ReadError::Missing) => pages("ttm"),
            answer => answer,
        };
        self.settle("pages_limit", pages.map(|n| Bytes(n.saturating_mul(PAGE))))
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

/// For chips that are not in our table: an APU has neither a power limit nor a
/// memory controller of its own nor a fan; a card without any sensor cannot be told.
fn looks_like_apu(sample: &GpuSample) -> bool {
    sample.temp_edge.is_supported()
        && !sample.mem_busy.is_supported()
        && !sample.power_cap_w.is_supported()
        && !sample.temp_junction.is_supported()
        && !sample.fan_rpm.is_supported()
}

#[cfg(test)]
#[path = "reading_tests.rs"]
mod tests;
