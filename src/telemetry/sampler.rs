//! All sources together: started once, merged at each sample.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::aging::{self, Age, Fail};
use super::amdgpu::{CARDS_SOURCE, CardScan, CardSource, Identity};
use super::attention::Attention;
use super::clients::{Clients, NvmlFeed};
use super::host::Host;
use super::kmsg::{KernelLog, Lines};
#[cfg(feature = "nvml")]
use super::nvml::{NvmlSource, events};
use super::probe::Probes;
use super::procfs::{ProcReading, ProcSource, Target};
#[cfg(feature = "rocm-smi")]
use super::second::Second;
use super::source::{self, Answer, Pace, ReadTime, Slot, Source, SourceError, View, lock};
use crate::model::Vendor;
use crate::model::time::millis;
use crate::model::{
    GpuId, GpuSample, HostSample, Probe, ProcSample, Sample, SourceState, SourceStatus,
    ThreadSample, TimeScale,
};

/// Our own program, also where its file was replaced meanwhile.
const OWN_PROGRAM: &str = "/proc/self/exe";
/// How long [`Sampler::cards`] waits for the first answers: a driver that has to wake
/// its card takes more than a second.
const FIRST_ANSWERS: Duration = Duration::from_secs(2);
/// How often cards are looked for.
const SCAN_PERIOD: Duration = Duration::from_secs(5);
/// A reading is fresh for so many periods.
const FRESH_PERIODS: u32 = 3;
/// Takes the place of `/dev/kmsg`, for tests and demonstrations.
const KERNEL_LOG_VARIABLE: &str = "FPT_KERNEL_LOG";

/// Where the sources read, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplerConfig {
    /// Folder that has `sys` in it; `/` on a real machine.
    pub sys_root: PathBuf,
    /// Folder that has `proc` in it; `/` on a real machine.
    pub proc_root: PathBuf,
    /// The kernel log: a device like `/dev/kmsg`, or a plain file that grows. None:
    /// the environment's `FPT_KERNEL_LOG`, else `/dev/kmsg`, or what `journalctl` says
    /// where that may not be read.
    pub kernel_log: Option<PathBuf>,
    /// Whether NVIDIA cards are asked for, where the program was built with NVML.
    pub nvml: bool,
    /// Program that is started as `PROGRAM rocm-smi-reader` and asks librocm_smi64 for a
    /// second opinion on AMD cards, where this was built with it. The library reads `/sys`
    /// only, so it is not asked where `sys_root` is elsewhere. None: it is not asked.
    pub rocm_smi: Option<PathBuf>,
    /// Time between two readings of each source.
    pub period: Duration,
    /// How fast the run's clock goes, by which the period and the rounds are meant.
    pub time_scale: TimeScale,
}

impl Default for SamplerConfig {
    /// The real machine, twice a second, without librocm_smi64: a program that does not
    /// know the subcommand of its reader would start itself again and again.
    fn default() -> Self {
        Self {
            sys_root: PathBuf::from("/"),
            proc_root: PathBuf::from("/"),
            kernel_log: None,
            nvml: true,
            rocm_smi: None,
            period: Duration::from_millis(500),
            time_scale: TimeScale::REAL,
        }
    }
}

impl SamplerConfig {
    /// The real machine, for a program that calls [`super::rocm_smi_reader`] when its
    /// first argument is `rocm-smi-reader`.
    pub fn with_own_reader() -> Self {
        Self {
            rocm_smi: Some(PathBuf::from(OWN_PROGRAM)),
            ..Self::default()
        }
    }

    /// The same for a run whose clock goes this fast.
    #[must_use]
    pub const fn at_scale(mut self, scale: TimeScale) -> Self {
        self.time_scale = scale;
        self
    }
}

pub(super) type CardSlots = Arc<Mutex<BTreeMap<GpuId, (Identity, Arc<Slot<GpuSample>>)>>>;

/// The running sources. Dropping it ends their threads; one that is blocked in a
/// read is left behind and keeps nothing from ending.
#[derive(Debug)]
pub struct Sampler {
    period: Duration,
    pace: Arc<Pace>,
    attention: Arc<Attention>,
    target: Arc<Mutex<Target>>,
    threads: Arc<Mutex<Vec<ThreadSample>>>,
    lines: Arc<Lines>,
    scan: Arc<Slot<Vec<Identity>>>,
    cards: CardSlots,
    nvml: Option<NvmlSlots>,
    #[cfg(feature = "rocm-smi")]
    second: Option<Box<Second>>,
    process: Arc<Slot<ProcReading>>,
    clients: Clients,
    probes: Probes,
    host: Arc<Slot<HostSample>>,
    kernel: Arc<Slot<()>>,
}

/// What NVML tells: readings, and error reports into the kernel's lines.
#[derive(Debug)]
struct NvmlSlots {
    cards: Arc<Slot<Vec<GpuSample>>>,
    events: Arc<Slot<()>>,
}

/// Looks for cards, and starts a reader for each new one.
struct Cards {
    scan: CardScan,
    slots: CardSlots,
    attention: Arc<Attention>,
    pace: Arc<Pace>,
    period: Duration,
}

impl Source for Cards {
    type Reading = Vec<Identity>;

    fn name(&self) -> String {
        self.scan.name()
    }

    fn read(&mut self) -> Result<Answer<Self::Reading>, SourceError> {
        let found = self.scan.read()?;
        for identity in &found.reading {
            let mut slots = lock(&self.slots);
            if slots.contains_key(&identity.id) {
                continue;
            }
            let attention = Arc::clone(&self.attention);
            let card = CardSource::new(self.scan.root.clone(), identity.clone(), attention);
            let slot = source::spawn(card, self.period, Arc::clone(&self.pace));
            slots.insert(identity.id.clone(), (identity.clone(), slot));
        }
        Ok(found)
    }
}

impl Sampler {
    /// Starts every source. Waits for none of them.
    #[expect(clippy::too_many_lines, reason = "one source after the other")]
    pub fn start(config: SamplerConfig) -> Self {
        let SamplerConfig {
            sys_root,
            proc_root,
            kernel_log,
            nvml,
            rocm_smi,
            period,
            time_scale,
        } = config;
        let period = time_scale.real_time(period);
        let pace = Arc::new(Pace::default());
        let attention = Arc::new(Attention::default());
        let cards = CardSlots::default();
        let target = Arc::new(Mutex::new(Target::default()));
        let threads = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::new(Lines::default());
        // a log that was asked for takes the place of both, of the device and the journal
        let asked = kernel_log.or_else(|| std::env::var_os(KERNEL_LOG_VARIABLE).map(PathBuf::from));
        let journalctl = asked.is_none().then(|| "journalctl".into());
        let kernel_log = asked.unwrap_or_else(|| PathBuf::from("/dev/kmsg"));
        let host = Host::new(&proc_root, &sys_root);
        let reader = rocm_smi.filter(|_| sys_root == Path::new("/"));
        let members = Arc::default();
        let process = ProcSource::new(
            &proc_root,
            Arc::clone(&target),
            Arc::clone(&threads),
            Arc::clone(&members),
        )
        .at_scale(time_scale);
        let probes = Probes::start(&proc_root, &target, Arc::clone(&members), &pace);
        let holders = NvmlFeed::default();
        let clients = Clients::start(
            (&proc_root, &sys_root),
            (members, Arc::clone(&holders)),
            (period, period * FRESH_PERIODS),
            &pace,
        );
        let nvml = start_nvml(
            nvml,
            &sys_root,
            (&attention, &lines, holders),
            period,
            &pace,
        );
        let scan = Cards {
            scan: CardScan { root: sys_root },
            slots: Arc::clone(&cards),
            attention: Arc::clone(&attention),
            pace: Arc::clone(&pace),
            period,
        };
        let log = KernelLog::new(kernel_log, journalctl, Arc::clone(&lines));
        let scan = source::spawn(scan, SCAN_PERIOD, Arc::clone(&pace));
        #[cfg(feature = "rocm-smi")]
        let second = reader.map(|reader| {
            Box::new(Second::start(
                reader,
                &attention,
                (&scan, &cards),
                period,
                &pace,
            ))
        });
        #[cfg(not(feature = "rocm-smi"))]
        let _ = reader;
        Self {
            #[cfg(feature = "rocm-smi")]
            second,
            scan,
            nvml,
            clients,
            probes,
            process: source::spawn(process, period, Arc::clone(&pace)),
            host: source::spawn(host, period, Arc::clone(&pace)),
            kernel: source::spawn(log, period, Arc::clone(&pace)),
            period,
            pace,
            attention,
            target,
            threads,
            lines,
            cards,
        }
    }

    /// Every card, by PCI address over all makers. Waits at most two seconds for
    /// the first answers; a card that has not answered by then is listed with its
    /// identity, and its values are *failed*, not zero.
    pub fn cards(&self) -> Vec<GpuSample> {
        let begin = Instant::now();
        while begin.elapsed() < FIRST_ANSWERS && !self.all_cards_answered() {
            thread::sleep(Duration::from_millis(5));
        }
        self.gpus(Instant::now()).0
    }

    fn all_cards_answered(&self) -> bool {
        self.scan.answered()
            && self.nvml.as_ref().is_none_or(|nvml| nvml.cards.answered())
            && lock(&self.cards).values().all(|(_, slot)| slot.answered())
    }

    /// Sets the process tree to watch: `pid` is its root, `reaper` a subreaper above
    /// it to which orphans fall. None: no tree is read. That alone asks no more of the
    /// cards: see [`Sampler::set_supervised`].
    pub fn set_target(&self, pid: Option<u32>, reaper: Option<u32>) {
        {
            let mut target = lock(&self.target);
            target.pid = pid;
            target.reaper = reaper;
            lock(&self.threads).clear();
        }
        self.pace.wake();
    }

    /// Says whether a process is supervised, and its card where that is known: then every
    /// card that is awake is read in every round, those of NVIDIA not where the card is
    /// one of AMD. A card that sleeps is woken by its own workload, never by a reading.
    pub fn set_supervised(&self, supervised: bool, gpu: Option<&GpuId>) {
        let on_amd = gpu.is_some_and(|id| lock(&self.cards).contains_key(id));
        self.attention.set_supervised(supervised, on_amd);
        self.pace.wake();
    }

    /// Says whether somebody looks at the readings all the time: then every card that is
    /// awake is read in every round, and asked for a second opinion. Wakes none either.
    pub fn set_watched(&self, watched: bool) {
        self.attention.set_watched(watched);
        self.pace.wake();
    }

    /// Whether the threads are listed in every sample and probes are taken, the first at
    /// once; else the threads are listed every 5 s.
    pub fn set_thread_detail(&self, detail: bool) {
        lock(&self.target).detail = detail;
        self.pace.wake();
    }

    /// The latest of every source, merged. Waits for no device. A value older than
    /// three periods is *stale*.
    pub fn sample(&self) -> Sample {
        let now = Instant::now();
        let (gpus, mut sources) = self.gpus(now);
        let process = self.process.view(now);
        let host = self.host.view(now);
        sources.push(process.status.clone());
        sources.push(self.clients.status(now));
        sources.extend(self.probes.status(now));
        sources.push(host.status.clone());
        sources.push(self.kernel.view(now).status);
        let target = *lock(&self.target);
        let mut process = self.process_of(process, target);
        if let Some(tree) = &mut process {
            tree.on_cards = self.clients.on_cards(now, target, &gpus);
        }
        Sample {
            gpus,
            process,
            host: match host.reading {
                Some((age, sample)) => aging::host(sample, &self.age(age)),
                None => aging::host(HostSample::default(), &unread(&host.status)),
            },
            sources,
        }
    }

    /// How long the reads of each source take, by its name in [`Sample::sources`]; a
    /// source whose first read has not ended is not among them.
    pub fn read_times(&self) -> BTreeMap<String, ReadTime> {
        self.pace.times()
    }

    /// The last probe, once: while [`Sampler::set_thread_detail`] asks for them, one is
    /// taken every two seconds. Waits for nothing.
    pub fn take_probe(&self) -> Option<Probe> {
        self.probes.take()
    }

    /// Lines of the kernel log about GPUs and killed processes since the last call.
    pub fn kernel_lines(&self) -> Vec<String> {
        self.lines.drain()
    }

    fn age(&self, age: Duration) -> Age {
        Age {
            age_ms: millis(age),
            fresh_ms: millis(self.period * FRESH_PERIODS),
        }
    }

    fn process_of(&self, view: View<ProcReading>, target: Target) -> Option<ProcSample> {
        let (age, reading) = view.reading?;
        let same = (reading.target.pid, reading.target.reaper) == (target.pid, target.reaper);
        let mut sample = reading.sample.filter(|_| same)?;
        let mut threads = lock(&self.threads);
        // Of a slow round the threads are told once, so that an old list is never
        // taken for a new one.
        sample.per_thread = if target.detail {
            threads.clone()
        } else {
            std::mem::take(&mut *threads)
        };
        drop(threads);
        sample = aging::process(sample, &self.age(age));
        Some(match &view.failure {
            Some((why, since)) => aging::process(sample, &failed(why, *since)),
            None => sample,
        })
    }

    /// Cards and the sources behind them. Where two sources know a card, sysfs
    /// counts: it tells a failed read from a zero.
    fn gpus(&self, now: Instant) -> (Vec<GpuSample>, Vec<SourceStatus>) {
        let mut gpus: BTreeMap<GpuId, GpuSample> = BTreeMap::new();
        let mut sources = Vec::new();
        let nvml = self.nvml.as_ref().map(|nvml| nvml.cards.view(now));
        if let Some(view) = &nvml {
            for sample in self.nvml_cards(view) {
                gpus.insert(sample.id.clone(), sample);
            }
        }
        for (identity, slot) in lock(&self.cards).values() {
            let view = slot.view(now);
            let sample = if let Some((age, sample)) = view.reading {
                aging::gpu(sample, &self.age(age))
            } else {
                let Identity { id, name, .. } = identity.clone();
                let blank = GpuSample::unread(id, 0, Vendor::Amd, name, CARDS_SOURCE);
                aging::gpu(blank, &unread(&view.status))
            };
            gpus.insert(sample.id.clone(), sample);
            sources.push(view.status);
        }
        // The search itself matters only where it found nothing or hangs.
        let scan = self.scan.view(now).status;
        if sources.is_empty() || matches!(scan.state, SourceState::Stale | SourceState::Lost) {
            sources.push(scan);
        }
        // Who hears of errors matters only where there are cards and somebody listens.
        let events = self.nvml.as_ref().map(|nvml| nvml.events.view(now).status);
        let cards = nvml.as_ref().is_some_and(|view| view.reading.is_some());
        let events = events.filter(|e| cards && e.state != SourceState::Starting);
        sources.extend(nvml.map(|view| view.status));
        sources.extend(events);
        let mut gpus: Vec<GpuSample> = gpus.into_values().collect();
        #[cfg(feature = "rocm-smi")]
        if let Some(second) = &self.second {
            sources.push(second.join(&mut gpus, now, self.period * FRESH_PERIODS));
        }
        for (index, gpu) in gpus.iter_mut().enumerate() {
            gpu.index = u32::try_from(index).unwrap_or(u32::MAX);
        }
        (gpus, sources)
    }

    fn nvml_cards(&self, view: &View<Vec<GpuSample>>) -> Vec<GpuSample> {
        let Some((age, cards)) = &view.reading else {
            return Vec::new();
        };
        let cards = cards.iter().cloned();
        match &view.failure {
            Some((why, since)) => cards.map(|c| aging::gpu(c, &failed(why, *since))).collect(),
            None => cards.map(|c| aging::gpu(c, &self.age(*age))).collect(),
        }
    }
}

/// Every offered value has failed.
fn failed(why: &str, since: Duration) -> Fail<'_> {
    Fail {
        why,
        for_ms: millis(since),
        unread: false,
    }
}

/// Nothing was read yet, so it is not known what is offered: all values fail.
fn unread(status: &SourceStatus) -> Fail<'_> {
    Fail {
        why: status.why.as_deref().unwrap_or("not read yet"),
        for_ms: status.age_ms,
        unread: true,
    }
}

#[cfg(feature = "nvml")]
fn start_nvml(
    wanted: bool,
    sys_root: &Path,
    (attention, lines, holders): (&Arc<Attention>, &Arc<Lines>, NvmlFeed),
    period: Duration,
    pace: &Arc<Pace>,
) -> Option<NvmlSlots> {
    wanted.then(|| {
        let cards = NvmlSource::new(sys_root.to_owned(), Arc::clone(attention), holders);
        let (attention, lines) = (Arc::clone(attention), Arc::clone(lines));
        NvmlSlots {
            cards: source::spawn(cards, period, Arc::clone(pace)),
            events: events::spawn(
                sys_root.to_owned(),
                attention,
                lines,
                period,
                Arc::clone(pace),
            ),
        }
    })
}

#[cfg(not(feature = "nvml"))]
fn start_nvml(
    _wanted: bool,
    _sys_root: &Path,
    _of: (&Arc<Attention>, &Arc<Lines>, NvmlFeed),
    _period: Duration,
    _pace: &Arc<Pace>,
) -> Option<NvmlSlots> {
    None
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.pace.stop();
    }
}

#[cfg(test)]
#[path = "sampler_tests.rs"]
mod tests;
