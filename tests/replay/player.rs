//! Plays a case: bytes, rows and happenings in the order of their times, through the
//! parts that a run is made of. What the core asks for is only noted.

use std::cell::Cell;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use framepack_tui::detect::Thresholds;

use framepack_tui::model::event::{
    Choice, Decision, EvidenceReport, RunStarted, SCHEMA, Standstill,
};
use framepack_tui::model::{
    Bytes, Chosens, Effect, Envelope, Event, ExitReport, ExitStatus, GpuId, GpuSample, Health,
    Line, Metric, Mono, Phase, ProcSample, Sample, Stream, Verdict, VerdictId,
};
use framepack_tui::model::{HostSample, Vendor};
use framepack_tui::profile::resolve::{Inputs, env_names};
use framepack_tui::profile::{Card, Catalog, Machine, best, resolve};
use framepack_tui::run::{RunState, reduce};
use framepack_tui::workload::adapter::{self, Adapter, AdapterKind, LaunchInfo};
use framepack_tui::workload::capabilities;
use framepack_tui::workload::lines::LineSplitter;

use crate::case::{Case, Happening, Meta, Row};

const CARD: &str = "0000:0c:00.0";
/// Readings before the launch, as a run takes them.
const BEFORE: Duration = Duration::from_secs(2);
/// As the program that drains the child's output: unfinished text waits this long.
const PENDING_S: f64 = 0.3;
/// Time in one row, and what a clock may deviate before it is a jump.
const ROW_S: f64 = 1.0;
const JUMP_S: f64 = 2.5;

thread_local! {
    /// Numbers of the rules for what is played in this thread.
    static NUMBERS: Cell<Thresholds> = const { Cell::new(Thresholds::DEFAULT) };
}

/// Plays with other numbers in the rules, whatever `f` plays in this thread.
pub(crate) fn with_numbers<R>(numbers: Thresholds, f: impl FnOnce() -> R) -> R {
    let before = NUMBERS.replace(numbers);
    let result = f();
    NUMBERS.set(before);
    result
}

/// What came out.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Each verdict that was told, at its time in the case.
    pub(crate) verdicts: Vec<(f64, Verdict)>,
    pub(crate) decisions: Vec<(f64, Decision)>,
    /// Phases, for messages of failing tests.
    pub(crate) phases: Vec<(f64, Phase)>,
    pub(crate) phase: Option<Phase>,
    /// Signals that would have been sent.
    pub(crate) signals: u32,
}

enum Item<'a> {
    Slept(f64),
    Output(&'a [u8]),
    Kernel(&'a str),
    Happened(Happening),
    Sample(&'a Row),
    Tick,
}

/// Cumulated counters of the process tree and the host.
#[derive(Debug, Default, Clone)]
struct Counters {
    cpu_ns: f64,
    read: f64,
    write: f64,
    net: f64,
    faults: f64,
}

struct Player<'a> {
    case: &'a Case,
    state: RunState,
    adapter: Box<dyn Adapter + Send>,
    splitter: LineSplitter,
    last_piece: f64,
    pid: u32,
    seq: u64,
    /// Time in the case, and how much of it the machine slept.
    t: f64,
    slept: f64,
    counters: Counters,
    /// State letter of the root process.
    letter: char,
    gone: bool,
    evidence: Vec<(f64, u32)>,
    decided: bool,
    out: Outcome,
}

/// Plays the whole case, or until the run is decided.
pub(crate) fn play(case: &Case) -> Outcome {
    let mut player = Player::new(case);
    player.before_launch(case.rows.first());
    for (t, item) in timeline(case) {
        if player.decided || player.state.is_over() {
            break;
        }
        player.t = t;
        player.item(&item);
    }
    player.out.phase = Some(player.state.snapshot().phase);
    player.out
}

fn timeline(case: &Case) -> Vec<(f64, Item<'_>)> {
    let mut items = Vec::new();
    let mut last = None;
    for row in &case.rows {
        if let Some(last) = last.filter(|l| row.t - l > JUMP_S) {
            items.push((row.t, 0, Item::Slept(row.t - last - ROW_S)));
        }
        last = Some(row.t);
        for half in [0.0, 0.5] {
            items.push((row.t + half, 2, Item::Sample(row)));
            items.push((row.t + half + 0.25, 2, Item::Tick));
        }
    }
    let console = case.console.iter();
    items.extend(console.map(|(t, bytes)| (*t, 1, Item::Output(bytes.as_slice()))));
    items.extend(case.kernel.iter().map(|(t, s)| (*t, 1, Item::Kernel(s))));
    items.extend(case.events.iter().map(|(t, h)| (*t, 1, Item::Happened(*h))));
    items.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    items.into_iter().map(|(t, _, item)| (t, item)).collect()
}

impl<'a> Player<'a> {
    fn new(case: &'a Case) -> Self {
        let meta = &case.meta;
        let (cwd, names) = folder(meta);
        let kind = AdapterKind::detect(&meta.argv, cwd, &names);
        let started = started(meta, kind);
        let launch = LaunchInfo {
            argv: meta.argv.clone(),
            on_cpu: false,
        };
        let mut player = Self {
            case,
            state: RunState::with_thresholds(&started, NUMBERS.get()),
            adapter: adapter::new(kind, &launch),
            splitter: LineSplitter::new(1, Stream::Stderr),
            last_piece: 0.0,
            pid: victim(case).unwrap_or(4242),
            seq: 0,
            t: -BEFORE.as_secs_f64(),
            slept: 0.0,
            counters: Counters::default(),
            letter: 'S',
            gone: false,
            evidence: Vec::new(),
            decided: false,
            out: Outcome::default(),
        };
        player.post(Event::RunStarted(Box::new(started)));
        player
    }

    /// The card is read before the program is launched: that is its idle level.
    fn before_launch(&mut self, first: Option<&Row>) {
        let mut sample = Sample::default();
        sample.gpus.extend(first.map(|r| self.card(r)));
        self.post(Event::Sample(Box::new(sample)));
        // a card that cannot be read is not waited for any longer than this
        self.t = 0.0;
        self.post(Event::Tick);
        assert!(self.state.snapshot().pid.is_some(), "launched");
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            // the clock of the run leaps
            Item::Slept(_) if self.case.sleep_untold => {}
            Item::Slept(seconds) => {
                self.slept += seconds;
                self.post(Event::Standstill {
                    cause: Standstill::MachineSuspended,
                    for_ms: millis(*seconds),
                });
            }
            Item::Output(bytes) => {
                self.last_piece = self.t;
                let mut lines = Vec::new();
                self.splitter.feed(bytes, Instant::now(), &mut lines);
                self.lines(lines);
            }
            Item::Kernel(text) => self.post(Event::Kernel {
                text: (*text).to_owned(),
            }),
            Item::Happened(Happening::Stopped) => self.letter = 'T',
            Item::Happened(Happening::Continued) => self.letter = 'S',
            Item::Happened(Happening::Exit(status)) => self.exit(*status),
            Item::Sample(row) => {
                self.evidence_comes_back();
                let sample = self.sample(row);
                self.post(Event::Sample(Box::new(sample)));
            }
            Item::Tick => {
                if self.splitter.pending_since().is_some() && self.t - self.last_piece >= PENDING_S
                {
                    let mut lines = Vec::new();
                    self.splitter.flush_pending(&mut lines);
                    self.lines(lines);
                }
                self.post(Event::Tick);
            }
        }
    }

    fn lines(&mut self, lines: Vec<Line>) {
        for line in lines {
            let events = self.adapter.feed(&line);
            self.post(Event::Line(line));
            for e in events {
                self.post(e);
            }
        }
    }

    fn exit(&mut self, status: ExitStatus) {
        let mut lines = Vec::new();
        self.splitter.flush(&mut lines);
        self.lines(lines);
        for e in self.adapter.finish(status == ExitStatus::Code(0)) {
            self.post(e);
        }
        self.gone = true;
        self.post(Event::Exited(ExitReport { attempt: 1, status }));
        self.post(Event::GroupGone { attempt: 1 });
    }

    fn evidence_comes_back(&mut self) {
        let due: Vec<_> = self.evidence.drain(..).collect();
        for (at, number) in due {
            if self.t - at < 1.0 {
                self.evidence.push((at, number));
                continue;
            }
            self.post(Event::EvidenceTaken(EvidenceReport {
                number,
                attempt: 1,
                dir: "/evidence".to_owned(),
                items: Vec::new(),
                took_ms: 1000,
            }));
        }
    }

    fn post(&mut self, event: Event) {
        let mut queue = VecDeque::from([event]);
        while let Some(event) = queue.pop_front() {
            self.note(&event);
            self.seq += 1;
            let env = Envelope {
                seq: self.seq,
                at: Mono(millis(self.t - self.slept + BEFORE.as_secs_f64())),
                event,
            };
            for effect in reduce(&mut self.state, &env) {
                match effect {
                    Effect::Emit(e) => queue.push_back(*e),
                    Effect::Launch(spec) if spec.number == 1 => {
                        queue.push_back(Event::Spawned {
                            attempt: 1,
                            pid: self.pid,
                            pgid: self.pid,
                        });
                        queue.extend(self.adapter.start());
                    }
                    Effect::Signal { .. } => self.out.signals += 1,
                    Effect::Capture { number, .. } => self.evidence.push((self.t, number)),
                    _ => {}
                }
            }
        }
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::Verdict(v) => self.out.verdicts.push((self.t, (**v).clone())),
            Event::Decision(d) => {
                self.decided |= matches!(d.choice, Choice::Restart { .. } | Choice::GiveUp);
                self.out.decisions.push((self.t, (**d).clone()));
            }
            Event::Phase(p) => self.out.phases.push((self.t, p.phase)),
            _ => {}
        }
    }

    fn sample(&mut self, row: &Row) -> Sample {
        let c = &mut self.counters;
        let half = |rate: Option<f64>| rate.unwrap_or(0.0) * ROW_S / 2.0;
        c.cpu_ns += half(row.cpu) * 1e7;
        c.read += half(row.read_bps);
        c.write += half(row.write_bps);
        c.net += half(row.net_bps);
        c.faults += half(row.faults);
        let c = c.clone();
        Sample {
            gpus: vec![self.card(row)],
            process: (row.alive && !self.gone).then(|| self.process(row, &c)),
            host: HostSample {
                net_rx_bytes: counter(row.net_bps, c.net),
                ..HostSample::default()
            },
            sources: Vec::new(),
        }
    }

    fn process(&self, row: &Row, c: &Counters) -> ProcSample {
        ProcSample {
            pid: self.pid,
            processes: 1 + u32::try_from(row.children.len()).unwrap(),
            threads: 30,
            children: row.children.clone(),
            state: Metric::Fresh(self.letter),
            cpu_ns: counter(row.cpu, c.cpu_ns),
            minor_faults: counter(row.faults, c.faults),
            read_bytes: counter(row.read_bps, c.read),
            write_bytes: counter(row.write_bps, c.write),
            d_state: row
                .d_state
                .map_or_else(failed, |d| Metric::Fresh(whole32(d))),
            ..ProcSample::default()
        }
    }

    fn card(&self, row: &Row) -> GpuSample {
        let meta = &self.case.meta;
        let mut g = GpuSample::unread(
            GpuId(CARD.to_owned()),
            0,
            vendor(meta),
            meta.gpu.clone(),
            "replay",
        );
        g.arch = Some(meta.arch.clone());
        g.apu = meta.apu;
        let mib = |v: Option<f64>| v.map_or_else(failed, |m| Metric::Fresh(Bytes(whole(m) << 20)));
        g.busy = row.busy.map_or_else(failed, Metric::Fresh);
        g.power_w = row.power.map_or_else(failed, Metric::Fresh);
        g.vram_used = mib(row.vram_mib);
        // an APU has no board limit of its own
        if let (Some(watts), false) = (meta.board_power_w, meta.apu) {
            g.power_cap_w = Metric::Fresh(watts);
        }
        g.vram_total = Metric::Fresh(Bytes::mib(meta.vram_total_mib));
        if let Some(total) = meta.gtt_total_mib {
            g.gtt_used = mib(row.gtt_mib);
            g.gtt_total = Metric::Fresh(Bytes::mib(total));
        }
        g
    }
}

fn failed<T>() -> Metric<T> {
    Metric::Failed {
        why: "not in the recording".to_owned(),
        for_ms: 0,
    }
}

fn counter(rate: Option<f64>, total: f64) -> Metric<u64> {
    rate.map_or_else(failed, |_| Metric::Fresh(whole(total)))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures of a recording"
)]
fn whole(v: f64) -> u64 {
    v.max(0.0).round() as u64
}

fn whole32(v: f64) -> u32 {
    u32::try_from(whole(v)).unwrap()
}

fn millis(seconds: f64) -> u64 {
    whole(seconds * 1000.0)
}

fn vendor(meta: &Meta) -> Vendor {
    match meta.vendor.as_str() {
        "amd" => Vendor::Amd,
        "nvidia" => Vendor::Nvidia,
        other => panic!("unknown vendor {other}"),
    }
}

/// The working directory that the program's name suggests, and what lies there.
fn folder(meta: &Meta) -> (&'static str, Vec<String>) {
    if meta.app.starts_with("comfyui") {
        ("/home/user/ComfyUI", Vec::new())
    } else if meta.app.starts_with("framepack") {
        ("/home/user/app", vec!["diffusers_helper".to_owned()])
    } else {
        ("/home/user/app", Vec::new())
    }
}

/// Recordings do not hold the pid. The kernel's victim is ours if it has the name of
/// our program: on a real machine the pid decides.
fn victim(case: &Case) -> Option<u32> {
    let program = case.meta.argv.first()?.rsplit('/').next()?;
    let words = format!("({program}");
    let line = &case
        .kernel
        .iter()
        .find(|(_, text)| text.contains(&words))?
        .1;
    let rest = line.split_once("process ")?.1;
    rest.split_whitespace().next()?.parse().ok()
}

fn started(meta: &Meta, kind: AdapterKind) -> RunStarted {
    let arch = |prefix: &str| Some(meta.arch.clone()).filter(|a| a.starts_with(prefix));
    let machine = Machine {
        cards: vec![Card {
            name: Some(meta.gpu.clone()),
            vendor: Some(vendor(meta)),
            gfx: arch("gfx"),
            sm: arch("sm_"),
            vram: Some(Bytes::mib(meta.vram_total_mib)),
            unified: meta.apu,
        }],
        adapter: kind.to_string(),
    };
    let catalog = Catalog::with_folder(None);
    let choice = best(&catalog.all(), &machine).expect("a profile fits");
    let profile = catalog.get(&choice.id).unwrap();
    let names = env_names(&profile);
    let launch = LaunchInfo {
        argv: meta.argv.clone(),
        on_cpu: false,
    };
    let env = meta.env.iter().filter(|(name, _)| names.contains(*name));
    let plan = resolve(
        &profile,
        &Inputs {
            argv: meta.argv.clone(),
            user_env: env.map(|(k, v)| (k.clone(), v.clone())).collect(),
            cap: None,
            gpu: Some(GpuId(CARD.to_owned())),
            adapter: kind.to_string(),
            server: adapter::new(kind, &launch).is_server(),
            countdown: Duration::ZERO,
            setting_args: &|key, value| capabilities::arguments(kind, &meta.argv, key, value),
            no_miopen: None,
            chosen: Chosens::default(),
        },
    )
    .plan;
    RunStarted {
        schema: SCHEMA.to_owned(),
        program: "0".to_owned(),
        run: "replay".to_owned(),
        wall_clock: "2026-01-01T00:00:00+00:00".to_owned(),
        argv: meta.argv.clone(),
        cwd: folder(meta).0.to_owned(),
        profile: choice.id,
        profile_why: choice.why,
        adapter: kind.to_string(),
        gpu: plan.gpu.clone(),
        vram_cap: plan.vram_cap,
        interactive: false,
        plan,
    }
}

impl Outcome {
    /// The verdicts that stand: a suspicion is no verdict yet.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (f64, &Verdict)> {
        let told = self.verdicts.iter().map(|(t, v)| (*t, v));
        told.filter(|(_, v)| v.health != Health::Suspect)
    }

    /// What stood at a time.
    pub(crate) fn at(&self, t: f64) -> Option<VerdictId> {
        let before = self.shown().take_while(|(at, _)| *at <= t);
        before.last().map(|(_, v)| v.id)
    }

    /// The main answer: the most severe verdict that stood, among the harmless ones the
    /// last.
    pub(crate) fn main(&self) -> Option<(f64, &Verdict)> {
        let fault = self
            .shown()
            .filter(|(_, v)| !v.id.is_no_fault())
            .min_by_key(|(_, v)| std::cmp::Reverse(v.id.severity()));
        fault.or_else(|| self.shown().last())
    }

    /// One line a change, for messages.
    pub(crate) fn story(&self) -> String {
        let mut lines: Vec<(f64, String)> = self
            .verdicts
            .iter()
            .map(|(t, v)| {
                let word = v.health.word();
                (
                    *t,
                    format!("{word} {} in {}: {}", v.id, v.phase, v.sentence),
                )
            })
            .collect();
        lines.extend(self.phases.iter().map(|(t, p)| (*t, format!("-- {p}"))));
        let decided = self.decisions.iter();
        lines.extend(decided.map(|(t, d)| (*t, format!("{:?}: {}", d.choice, d.why))));
        lines.sort_by(|a, b| a.0.total_cmp(&b.0));
        let text = lines.iter().map(|(t, l)| format!("    {t:7.2} {l}\n"));
        text.collect()
    }
}
