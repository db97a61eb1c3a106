//! A made-up workload: a FramePack server that does one job after another, as a
//! stream of events two samples a second. All figures are invented; what counts is
//! that as much happens as on a real machine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use framepack_tui::model::Vendor;
use framepack_tui::model::attempt::Artefact;
use framepack_tui::model::event::{RunStarted, SCHEMA};
use framepack_tui::model::{
    ActionId, Answers, Bytes, Effect, Envelope, Event, GpuId, GpuSample, HostSample, JobChange,
    Line, Metric, Mono, Phase, PhaseChange, Plan, ProcSample, Progress, Rung, RungId, Sample,
    SourceState, SourceStatus, Stream, ThreadSample, Tier, VerdictId,
};
use framepack_tui::run::{RunState, reduce};

/// The card.
const CARD: &str = "0000:0c:00.0";
/// Threads of the workload.
const THREADS: u32 = 48;
/// Time between two samples, ms.
pub(crate) const PERIOD_MS: u64 = 500;
/// Seconds from the start of a job to the start of the next.
const JOB_S: u64 = 600;
/// Seconds of one section: sampling, then decoding.
const SECTION_S: u64 = 170;
/// Seconds of sampling in a section.
const SAMPLING_S: u64 = 150;
/// Second of a job at which its first section begins, and at which the last has ended.
const SECTIONS: (u64, u64) = (20, 530);

/// What the workload does at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Working,
    Waiting,
    /// Nothing, in the middle of a job.
    Hanging,
}

/// A run of that workload, folded as it goes.
pub(crate) struct Workload {
    /// The fold.
    pub(crate) state: RunState,
    /// What has happened and was not taken yet.
    pub(crate) stream: Vec<Arc<Envelope>>,
    now: Mono,
    seq: u64,
    doing: Doing,
    cpu_ns: u64,
    switches: u64,
    read: u64,
}

impl Workload {
    /// A run whose first attempt has been launched.
    pub(crate) fn start() -> Self {
        let started = started();
        let mut run = Self {
            state: RunState::new(&started),
            stream: Vec::new(),
            now: Mono::ZERO,
            seq: 0,
            doing: Doing::Waiting,
            cpu_ns: 0,
            switches: 0,
            read: 0,
        };
        run.post(Event::RunStarted(Box::new(started)));
        run
    }

    /// Half a second in which the workload goes on with its job, or hangs in it.
    pub(crate) fn half_second(&mut self, hangs: bool) {
        self.now += Duration::from_millis(PERIOD_MS);
        if hangs {
            self.doing = Doing::Hanging;
        } else if self.now.0.is_multiple_of(1000) {
            self.script(self.now.0 / 1000 % JOB_S);
        }
        let sample = self.reading();
        self.post(Event::Sample(Box::new(sample)));
    }

    /// The turn of the clock halfway to the next sample.
    pub(crate) fn tick(&mut self) {
        let at = self.now + Duration::from_millis(PERIOD_MS / 2);
        self.post_at(at, Event::Tick);
    }

    /// Appends an event to the stream and folds it; what the fold emits follows.
    pub(crate) fn post(&mut self, event: Event) {
        self.post_at(self.now, event);
    }

    fn post_at(&mut self, at: Mono, event: Event) {
        self.seq += 1;
        let env = Arc::new(Envelope {
            seq: self.seq,
            at,
            from: None,
            event,
        });
        let effects = reduce(&mut self.state, &env);
        self.stream.push(env);
        for effect in effects {
            match effect {
                Effect::Emit(event) => self.post_at(at, *event),
                Effect::Launch(spec) => self.post_at(
                    at,
                    Event::Spawned {
                        attempt: spec.number,
                        pid: 41_822,
                        pgid: 41_822,
                    },
                ),
                // evidence and signals lead nowhere here: the picture stays
                _ => {}
            }
        }
    }

    /// What the console says at this second of a job.
    fn script(&mut self, second: u64) {
        let (begin, end) = SECTIONS;
        match second {
            0 => {
                self.doing = Doing::Working;
                self.post(Event::Job(JobChange::Started));
                self.phase(Phase::TextEncode, None);
                self.line("Moving DynamicSwap_LlamaModel to cuda:0 with preserved memory: 6 GB");
            }
            10 => self.phase(Phase::VaeEncode, None),
            s if (begin..end).contains(&s) => {
                let into = (s - begin) % SECTION_S;
                let section = u32::try_from((s - begin) / SECTION_S).unwrap_or(0) + 1;
                self.section(section, into);
            }
            s if s == end => {
                self.phase(Phase::Save, None);
                self.line("Decoded. Current latent shape torch.Size([1, 16, 27, 68, 60])");
            }
            540 => {
                self.post(Event::Artefact(Artefact {
                    path: "/data/outputs/251127_221455_123_4567_27.mp4".to_owned(),
                    size: Bytes::mib(14),
                    frames: None,
                    attempt: 1,
                    rung: RungId(RungId::AS_GIVEN.to_owned()),
                }));
                self.post(Event::Job(JobChange::Done));
            }
            545 => {
                self.doing = Doing::Waiting;
                self.post(Event::Job(JobChange::Waiting));
                self.phase(Phase::Idle, None);
            }
            _ => {}
        }
    }

    fn section(&mut self, section: u32, into: u64) {
        match into {
            0 => {
                self.line(&format!(
                    "latent_padding_size = {}, is_last_section = False",
                    (4 - section) * 9
                ));
                self.phase(Phase::Sampling, Some(section));
            }
            s if s == SAMPLING_S => {
                self.line("Offloading DynamicSwap_HunyuanVideoTransformer3DModelPacked from cuda:0 to preserve memory: 8 GB");
                self.phase(Phase::VaeDecode, Some(section));
            }
            s if s < SAMPLING_S && s.is_multiple_of(6) => {
                let done = u32::try_from(s / 6).unwrap_or(0);
                self.bar(done, SAMPLING_S / 6);
            }
            s if s > SAMPLING_S => self.chatter(s),
            _ => {}
        }
    }

    fn bar(&mut self, done: u32, total: u64) {
        let filled = usize::try_from(done).unwrap_or(0) * 10 / 25;
        let text = format!(
            " {:>3}%|{:<10}| {done}/{total} [{:02}:{:02}<02:30,  6.01s/it]",
            done * 4,
            "█".repeat(filled),
            done * 6 / 60,
            done * 6 % 60
        );
        self.say(&text, true, false);
        self.post(Event::Progress(Progress {
            what: None,
            done: done.into(),
            total: Some(25.0),
            seconds_per_step: Some(6.01),
            sampling: true,
            closed: false,
        }));
    }

    /// What MIOpen logs while it is asked to.
    fn chatter(&mut self, second: u64) {
        for k in 0..4 {
            let text = format!(
                "MIOpen(HIP): Command [LogCmdFindConvolution] ./bin/MIOpenDriver convbfp16 -n 1 -c 128 -H {} -W 544 -k 128 -y 3 -x 3",
                second + k
            );
            self.say(&text, false, true);
        }
    }

    fn phase(&mut self, phase: Phase, section: Option<u32>) {
        self.post(Event::Phase(PhaseChange {
            phase,
            section,
            sections: section.map(|_| 3),
            on_cpu: false,
        }));
    }

    /// A line of the workload.
    pub(crate) fn line(&mut self, text: &str) {
        self.say(text, false, false);
    }

    fn say(&mut self, text: &str, bar: bool, chatter: bool) {
        self.post(Event::Line(Line {
            attempt: 1,
            row: 0,
            stream: if bar || chatter {
                Stream::Stderr
            } else {
                Stream::Stdout
            },
            text: text.to_owned(),
            bar,
            truncated: false,
            chatter,
        }));
    }

    /// What the sources say now.
    fn reading(&mut self) -> Sample {
        // a wave with a period that is no divisor of anything else
        let wave = f64::from(u32::try_from(self.now.0 / PERIOD_MS % 47).unwrap_or(0)) / 47.0;
        let works = self.doing == Doing::Working;
        let share = if works { 1.04 } else { 0.004 };
        // without work a thread that polls is left: short slices, few of them
        self.cpu_ns += if works { 520_000_000 } else { 100_000 };
        self.switches += if works { 2000 } else { 5 };
        self.read += if works { 4096 } else { 0 };
        // the threads are listed every 5 s, and always while there is doubt
        let listed = self.doing == Doing::Hanging || self.now.0.is_multiple_of(5000);
        Sample {
            gpus: vec![card(works, self.doing, wave)],
            process: Some(self.process(listed)),
            host: host(share + wave),
            sources: ["sysfs card1", "process", "host", "kernel log"]
                .map(|name| SourceStatus {
                    name: name.to_owned(),
                    state: SourceState::Ok,
                    age_ms: 120,
                    why: None,
                })
                .to_vec(),
        }
    }

    fn process(&self, listed: bool) -> ProcSample {
        let threads = if listed { THREADS } else { 0 };
        ProcSample {
            pid: 41_822,
            processes: 2,
            threads: THREADS,
            children: vec!["python".to_owned()],
            state: Metric::Fresh('S'),
            cpu_ns: Metric::Fresh(self.cpu_ns),
            minor_faults: Metric::Fresh(self.cpu_ns / 10_000_000),
            major_faults: Metric::Fresh(0),
            read_bytes: Metric::Fresh(self.read),
            write_bytes: Metric::Fresh(self.read / 8),
            read_chars: Metric::Fresh(self.read * 2),
            write_chars: Metric::Fresh(self.read / 4),
            switches: Metric::Fresh(self.switches * 2),
            d_state: Metric::Fresh(0),
            wait_channel: Metric::Fresh("futex_wait_queue".to_owned()),
            rss: Metric::Fresh(Bytes::mib(18_637)),
            swap: Metric::Fresh(Bytes(0)),
            per_thread: (0..threads)
                .map(|i| ThreadSample {
                    pid: 41_822,
                    tid: 41_822 + i,
                    name: format!("pt_autograd_{i}"),
                    state: 'S',
                    run_ns: self.cpu_ns / u64::from(i + 1),
                    switches: self.switches / u64::from(i + 1),
                    wchan: Some("futex_wait_queue".to_owned()),
                })
                .collect(),
            ..ProcSample::default()
        }
    }
}

fn card(works: bool, doing: Doing, wave: f64) -> GpuSample {
    let pick = |busy: f64, idle: f64| Metric::Fresh(if works { busy - wave } else { idle + wave });
    let held = if doing == Doing::Waiting {
        2048
    } else {
        18_227
    };
    GpuSample {
        arch: Some("gfx1100".to_owned()),
        state: Metric::Fresh("active".to_owned()),
        busy: pick(98.0, 0.0),
        mem_busy: pick(41.0, 0.0),
        power_w: pick(287.0, 22.0),
        power_cap_w: Metric::Fresh(303.0),
        vram_used: Metric::Fresh(Bytes::mib(held)),
        vram_total: Metric::Fresh(Bytes::gib(24)),
        gtt_used: Metric::Fresh(Bytes::mib(920)),
        gtt_total: Metric::Fresh(Bytes::gib(32)),
        temp_edge: pick(61.0, 41.0),
        temp_junction: pick(84.0, 44.0),
        temp_mem: pick(78.0, 48.0),
        sclk_mhz: pick(2410.0, 45.0),
        mclk_mhz: pick(1249.0, 96.0),
        fan_rpm: pick(1210.0, 0.0),
        ..GpuSample::unread(
            GpuId(CARD.to_owned()),
            0,
            Vendor::Amd,
            "Radeon RX 7900 XTX".to_owned(),
            "sysfs",
        )
    }
}

fn host(load: f64) -> HostSample {
    HostSample {
        mem_total: Metric::Fresh(Bytes::gib(64)),
        mem_available: Metric::Fresh(Bytes::gib(23)),
        swap_total: Metric::Fresh(Bytes::gib(8)),
        swap_used: Metric::Fresh(Bytes(0)),
        psi_cpu: Metric::Fresh(1.2),
        psi_io: Metric::Fresh(0.1),
        psi_mem: Metric::Fresh(0.0),
        load1: Metric::Fresh(load),
        ..HostSample::default()
    }
}

fn rung(id: &str, action: ActionId, tier: Tier, unavailable: Option<&str>) -> Rung {
    Rung {
        id: RungId(id.to_owned()),
        action,
        tier,
        answers: Answers::These(vec![
            VerdictId::SilentHang,
            VerdictId::SpinHang,
            VerdictId::GpuOom,
        ]),
        phases: Vec::new(),
        env: BTreeMap::from([("MIOPEN_FIND_MODE".to_owned(), Some("FAST".to_owned()))]),
        args: Vec::new(),
        settings: BTreeMap::new(),
        cost: Some("decode x1.5".to_owned()),
        source: None,
        alters_result: None,
        unavailable: unavailable.map(str::to_owned),
        acts: framepack_tui::model::Acts::default(),
    }
}

fn started() -> RunStarted {
    let agent = Some("needs the agent inside the program");
    let plan = Plan {
        argv: ["python", "demo_gradio.py", "--server", "0.0.0.0"]
            .map(str::to_owned)
            .to_vec(),
        ladder: vec![
            rung("fast_find", ActionId::FastFind, Tier::T1, None),
            rung("tiled_vae", ActionId::TiledVae, Tier::T2, None),
            rung("lower_settings", ActionId::LowerSettings, Tier::T2, agent),
            rung("vae_cpu", ActionId::VaeCpu, Tier::T3, agent),
        ],
        gpu: Some(GpuId(CARD.to_owned())),
        vram_cap: Some(Bytes::gib(20)),
        server: true,
        // a countdown that nobody sees the end of
        countdown: Duration::from_hours(1),
        ..Plan::default()
    };
    RunStarted {
        schema: SCHEMA.to_owned(),
        program: "bench".to_owned(),
        run: "20261128-0000-beef".to_owned(),
        wall_clock: "2026-11-28T00:00:00+00:00".to_owned(),
        argv: plan.argv.clone(),
        cwd: "/home/user/FramePack".to_owned(),
        profile: "rx7900xtx-safe".to_owned(),
        profile_why: "matched gfx1100 and 24 GiB".to_owned(),
        adapter: "framepack".to_owned(),
        gpu: plan.gpu.clone(),
        vram_cap: plan.vram_cap,
        interactive: true,
        plan,
        attached: None,
    }
}
