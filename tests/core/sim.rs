//! A simulated world around the pure core: it makes samples, answers effects and
//! keeps the whole stream. No clock, no process.

use std::collections::BTreeMap;
use std::time::Duration;

use framepack_tui::model::Vendor;

use framepack_tui::model::event::{
    EvidenceItem, EvidenceReport, Replanned, RunStarted, SCHEMA, Survivor,
};
use framepack_tui::model::{
    ActionId, Answers, Attached, Baselines, Budget, Bytes, Chosens, Effect, Effective, EnvChange,
    EnvOrigin, Envelope, Event, ExitReport, ExitStatus, Follow, GpuId, GpuSample, JobChange,
    KillPlan, Limits, Line, Link, Metric, Mono, Origin, Phase, PhaseChange, Plan, Probe,
    ProcSample, Progress, Rung, RungId, Sample, Setting, Signal, Speaker, Stream, ThreadSample,
    Tier, TreeOnCard, VerdictId,
};
use framepack_tui::run::{RunState, reduce};

/// A profile with another ladder: `other_find` in the place of `fast_find`.
pub(crate) const OTHER: &str = "other";
pub(crate) const CARD: &str = "0000:0c:00.0";
const PERIOD: Duration = Duration::from_millis(500);

/// What the world is like at present.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent knobs of a test world"
)]
pub(crate) struct World {
    pub(crate) busy: Metric<f64>,
    pub(crate) power: Metric<f64>,
    /// Watts before the launch and between attempts.
    pub(crate) idle_power: f64,
    /// Busy percent and memory in use then.
    pub(crate) idle_busy: f64,
    /// The card's runtime status.
    pub(crate) runtime: Metric<String>,
    pub(crate) idle_vram: Bytes,
    pub(crate) power_cap: Metric<f64>,
    /// Percent of time in which some task waits for a CPU.
    pub(crate) cpu_pressure: f64,
    pub(crate) vram: Metric<Bytes>,
    /// The PCIe link of the card.
    pub(crate) link: Metric<Link>,
    /// CPU of the worker thread, percent of a core, in slices of this length.
    pub(crate) worker_percent: f64,
    pub(crate) worker_slice_ns: u64,
    /// Wake-ups a second of a thread that only polls (20 us each).
    pub(crate) poller_hz: u64,
    pub(crate) read_bps: u64,
    pub(crate) state: char,
    /// Child processes that a signal has stopped.
    pub(crate) stopped: Vec<u32>,
    pub(crate) process: bool,
    /// What the tree holds on the card, where that is known.
    pub(crate) held: Option<Bytes>,
    pub(crate) card: bool,
    /// Its architecture; absent: not told.
    pub(crate) arch: Option<&'static str>,
    /// What a first signal does; `None`: it is ignored.
    pub(crate) term_kills: bool,
    pub(crate) kill_kills: bool,
    pub(crate) evidence_takes: Duration,
    pub(crate) evidence_answers: bool,
    /// VRAM falls this long after the end.
    pub(crate) vram_lags: Duration,
}

impl Default for World {
    fn default() -> Self {
        Self {
            busy: Metric::Fresh(97.0),
            power: Metric::Fresh(310.0),
            idle_power: 20.0,
            idle_busy: 0.0,
            runtime: Metric::Unsupported,
            idle_vram: Bytes::mib(600),
            power_cap: Metric::Unsupported,
            cpu_pressure: 0.0,
            vram: Metric::Fresh(Bytes::gib(18)),
            link: Metric::Unsupported,
            worker_percent: 95.0,
            worker_slice_ns: 3_000_000,
            poller_hz: 5,
            read_bps: 0,
            state: 'S',
            stopped: Vec::new(),
            process: true,
            held: None,
            card: true,
            arch: None,
            term_kills: true,
            kill_kills: true,
            evidence_takes: Duration::from_secs(1),
            evidence_answers: true,
            vram_lags: Duration::ZERO,
        }
    }
}

impl World {
    /// Nothing moves but a poller.
    pub(crate) fn silent() -> Self {
        Self::default().made_silent()
    }

    /// The same world, in which nothing moves but a poller.
    pub(crate) fn made_silent(self) -> Self {
        Self {
            busy: Metric::Fresh(0.0),
            power: Metric::Fresh(22.0),
            worker_percent: 0.0,
            ..self
        }
    }
}

#[derive(Debug, Clone)]
enum Due {
    Event(Event),
    Dead(ExitStatus),
    VramBack,
}

#[expect(
    clippy::struct_excessive_bools,
    reason = "independent knobs of a test world"
)]
pub(crate) struct Sim {
    pub(crate) state: RunState,
    pub(crate) now: Mono,
    pub(crate) world: World,
    pub(crate) stream: Vec<Envelope>,
    pub(crate) effects: Vec<(Mono, Effect)>,
    pub(crate) alive: bool,
    /// The command has returned, and its child lives.
    pub(crate) returned: bool,
    /// Fed every five seconds.
    pub(crate) probe: Option<Probe>,
    seq: u64,
    due: Vec<(Mono, Due)>,
    cpu: BTreeMap<u32, (u64, u64)>,
    read: u64,
    vram_high: bool,
    /// A process that lives does nothing yet.
    pub(crate) idle: bool,
    countdown: Duration,
}

fn on_card(vram: Bytes) -> TreeOnCard {
    TreeOnCard {
        gpu: GpuId(CARD.to_owned()),
        source: "kfd".to_owned(),
        processes: 1,
        vram: Metric::Fresh(vram),
        gtt: Metric::Unsupported,
        evicted: Metric::Unsupported,
        evicted_ms: Metric::Unsupported,
        queues: Metric::Unsupported,
        cu_occupancy: Metric::Unsupported,
        engines: Vec::new(),
        busy: Metric::Unsupported,
        compute_note: None,
    }
}

/// Rung with an environment change.
pub(crate) fn rung(id: &str, action: ActionId, answers: &[VerdictId], phases: &[Phase]) -> Rung {
    Rung {
        id: RungId(id.to_owned()),
        action,
        tier: Tier::T1,
        answers: Answers::These(answers.to_vec()),
        phases: phases.to_vec(),
        env: BTreeMap::from([("MIOPEN_FIND_MODE".to_owned(), Some("FAST".to_owned()))]),
        args: Vec::new(),
        settings: BTreeMap::new(),
        cost: None,
        source: None,
        alters_result: None,
        unavailable: None,
        acts: framepack_tui::model::Acts::default(),
    }
}

/// The plan with what the user chose, as the shell would make it.
fn chosen_plan(chosen: &Chosens, countdown: Duration) -> Plan {
    let mut plan = plan();
    plan.countdown = countdown;
    if chosen.profile.as_deref() == Some(OTHER) {
        plan.ladder.retain(|r| r.id.0 != "fast_find");
        plan.ladder.push(rung(
            "other_find",
            ActionId::ImmediateNaive,
            &[VerdictId::SilentHang],
            &[],
        ));
    }
    plan.chosen = chosen.clone();
    if let Some(mode) = chosen.settings.get(&Setting::FindMode) {
        plan.env.push(EnvChange {
            name: "MIOPEN_FIND_MODE".to_owned(),
            value: Some(mode.value.clone()),
            origin: EnvOrigin::Live,
            overrides: Some("NORMAL".to_owned()),
        });
        plan.env_before
            .insert("MIOPEN_FIND_MODE".to_owned(), mode.value.clone());
        plan.effective.push(Effective {
            key: Setting::FindMode.path(),
            value: Some(mode.value.clone()),
            origin: Origin::Live,
            overrides: None,
            idle: None,
        });
    }
    plan
}

pub(crate) fn plan() -> Plan {
    let decode = [Phase::VaeEncode, Phase::VaeDecode];
    let mut tiled = rung(
        "tiled_vae",
        ActionId::TiledVae,
        &[
            VerdictId::NoAlgorithm,
            VerdictId::GpuOom,
            VerdictId::SilentHang,
        ],
        &[],
    );
    tiled.unavailable = Some("needs the agent".to_owned());
    let mut retry = rung(
        "retry_same",
        ActionId::RetrySame,
        &[
            VerdictId::SpinHang,
            VerdictId::SilentHang,
            VerdictId::BusyIdle,
        ],
        &[
            Phase::Sampling,
            Phase::TextEncode,
            Phase::Save,
            Phase::Unknown,
        ],
    );
    retry.env.clear();
    Plan {
        time_scale: framepack_tui::model::TimeScale::default(),
        follow: BTreeMap::from([
            (Setting::VramCap, Follow::Ours),
            (
                Setting::FindMode,
                Follow::Yes {
                    how: "MIOPEN_FIND_MODE=FAST".to_owned(),
                },
            ),
        ]),
        setting_args: BTreeMap::new(),
        agent: framepack_tui::model::AgentWay::Unknown,
        chosen: Chosens::default(),
        effective: Vec::new(),
        baselines: Baselines::default(),
        argv: vec!["python".to_owned(), "gen.py".to_owned()],
        env: Vec::new(),
        env_before: BTreeMap::from([("MIOPEN_FIND_MODE".to_owned(), "NORMAL".to_owned())]),
        settings: BTreeMap::new(),
        ladder: vec![
            retry,
            rung(
                "fast_find",
                ActionId::FastFind,
                &[
                    VerdictId::SilentHang,
                    VerdictId::FindStall,
                    VerdictId::SpinHang,
                ],
                &decode,
            ),
            tiled,
        ],
        limits: Limits::default(),
        kill: KillPlan::default(),
        budget: Budget::default(),
        gpu: Some(GpuId(CARD.to_owned())),
        vram_cap: Some(Bytes::gib(20)),
        server: false,
        lost_job: None,
        end_after_result: false,
        countdown: Duration::ZERO,
    }
}

impl Sim {
    pub(crate) fn new(plan: Plan) -> Self {
        Self::of(plan, None)
    }

    /// Of a process that somebody else started; it runs.
    pub(crate) fn attached(plan: Plan) -> Self {
        let process = Attached { pid: 101, start: 7 };
        Self::of(plan, Some(process))
    }

    fn of(plan: Plan, attached: Option<Attached>) -> Self {
        let countdown = plan.countdown;
        let started = RunStarted {
            schema: SCHEMA.to_owned(),
            program: "test".to_owned(),
            run: "sim".to_owned(),
            wall_clock: "2026-01-01T00:00:00Z".to_owned(),
            argv: plan.argv.clone(),
            cwd: "/".to_owned(),
            profile: "p".to_owned(),
            profile_why: "asked for".to_owned(),
            adapter: "generic".to_owned(),
            gpu: plan.gpu.clone(),
            vram_cap: plan.vram_cap,
            interactive: !plan.countdown.is_zero(),
            plan,
            attached,
        };
        let mut sim = Self {
            state: RunState::new(&started),
            now: Mono::ZERO,
            world: World::default(),
            stream: Vec::new(),
            effects: Vec::new(),
            alive: false,
            returned: false,
            probe: None,
            seq: 0,
            due: Vec::new(),
            cpu: BTreeMap::new(),
            read: 0,
            vram_high: false,
            idle: true,
            countdown,
        };
        sim.feed(Event::RunStarted(Box::new(started)));
        sim
    }

    /// Up to the point where a job runs in this phase.
    pub(crate) fn running_in(plan: Plan, phase: Phase) -> Self {
        let mut sim = Self::new(plan);
        sim.start(phase);
        sim
    }

    /// Lets the first attempt begin and reach this phase.
    pub(crate) fn start(&mut self, phase: Phase) {
        self.run_for(Duration::from_secs(2));
        assert!(self.alive, "launched");
        self.idle = false;
        self.feed(Event::Job(JobChange::Started));
        self.phase(phase);
        self.run_for(Duration::from_secs(10));
    }

    pub(crate) fn feed(&mut self, event: Event) {
        self.feed_from(None, event);
    }

    /// The same, told by somebody else than the console.
    pub(crate) fn feed_from(&mut self, from: Option<Speaker>, event: Event) {
        self.seq += 1;
        let env = Envelope {
            seq: self.seq,
            at: self.now,
            from,
            event,
        };
        let effects = reduce(&mut self.state, &env);
        self.stream.push(env);
        for effect in effects {
            self.effects.push((self.now, effect.clone()));
            self.carry_out(effect);
        }
    }

    pub(crate) fn phase(&mut self, phase: Phase) {
        self.feed(Event::Phase(PhaseChange {
            phase,
            section: Some(2),
            sections: Some(3),
            on_cpu: false,
        }));
    }

    pub(crate) fn line(&mut self, text: &str) {
        let attempt = self.attempt();
        self.feed(Event::Line(Line {
            attempt,
            row: 0,
            stream: Stream::Stderr,
            text: text.to_owned(),
            bar: false,
            truncated: false,
            chatter: false,
        }));
    }

    pub(crate) fn step_bar(&mut self, done: f64) {
        self.feed(Event::Progress(Progress {
            what: None,
            done,
            total: Some(25.0),
            seconds_per_step: Some(1.0),
            sampling: true,
            closed: false,
        }));
    }

    pub(crate) fn exit(&mut self, status: ExitStatus) {
        self.dead(status);
    }

    /// The command ends while a process that it started lives.
    pub(crate) fn return_with(&mut self, status: ExitStatus) {
        let attempt = self.attempt();
        self.returned = true;
        self.feed(Event::Exited(ExitReport { attempt, status }));
        self.feed(Event::CommandReturned {
            attempt,
            processes: vec![Survivor {
                pid: 102,
                name: "python3".to_owned(),
                state: 'S',
                wchan: None,
            }],
        });
    }

    fn attempt(&self) -> u32 {
        self.state.snapshot().attempt.map_or(0, |a| a.number)
    }

    fn carry_out(&mut self, effect: Effect) {
        let attempt = self.attempt();
        match effect {
            Effect::Emit(event) => self.feed(*event),
            Effect::Resolve { chosen, what } => {
                let plan = chosen_plan(&chosen, self.countdown);
                self.feed(Event::Replanned(Box::new(Replanned {
                    what,
                    profile: chosen.profile.unwrap_or_else(|| "p".to_owned()),
                    profile_why: "asked for".to_owned(),
                    adapter: "generic".to_owned(),
                    plan,
                })));
            }
            Effect::SaveProfile { id, .. } => self.feed(Event::ProfileSaved {
                path: format!("/profiles/{id}.toml"),
                id,
            }),
            Effect::Launch(spec) | Effect::Attach(spec) => {
                self.alive = true;
                self.vram_high = true;
                self.cpu.clear();
                self.feed(Event::Spawned {
                    attempt: spec.number,
                    pid: 100 + spec.number,
                    pgid: 100 + spec.number,
                });
            }
            Effect::Capture { number, attempt } if self.world.evidence_answers => {
                let report = EvidenceReport {
                    number,
                    attempt,
                    dir: "/evidence".to_owned(),
                    items: vec![EvidenceItem {
                        kind: "threads".to_owned(),
                        file: Some("threads.txt".to_owned()),
                        bytes: 10,
                        failed: None,
                        absent: false,
                    }],
                    took_ms: 1000,
                    asked: None,
                };
                let at = self.now + self.world.evidence_takes;
                self.due
                    .push((at, Due::Event(Event::EvidenceTaken(report))));
            }
            Effect::Signal { signal, scope, .. } => {
                self.feed(Event::SignalSent {
                    attempt,
                    signal,
                    scope,
                    reached: u32::from(self.alive),
                });
                let dies = match signal {
                    Signal::Kill => self.world.kill_kills,
                    _ => self.world.term_kills,
                };
                if dies && self.alive {
                    let number = if signal == Signal::Kill { 9 } else { 15 };
                    self.due.push((
                        self.now + Duration::from_millis(200),
                        Due::Dead(ExitStatus::Signal(number)),
                    ));
                }
            }
            Effect::ListSurvivors { .. } => self.feed(Event::Survivors {
                attempt,
                processes: if self.alive {
                    vec![Survivor {
                        pid: 101,
                        name: "python".to_owned(),
                        state: 'D',
                        wchan: Some("amdgpu_ctx_wait".to_owned()),
                    }]
                } else {
                    Vec::new()
                },
            }),
            _ => {}
        }
    }

    fn dead(&mut self, status: ExitStatus) {
        if !self.alive {
            return;
        }
        let attempt = self.attempt();
        self.alive = false;
        self.due
            .push((self.now + self.world.vram_lags, Due::VramBack));
        if std::mem::take(&mut self.returned) {
            self.feed(Event::ProcessEnded {
                attempt,
                pid: 102,
                status,
            });
        } else {
            self.feed(Event::Exited(ExitReport { attempt, status }));
        }
        self.feed(Event::GroupGone { attempt });
    }

    pub(crate) fn run_for(&mut self, d: Duration) {
        let end = self.now + d;
        while self.now < end && !self.state.is_over() {
            self.now += PERIOD;
            let now = self.now;
            let (ready, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.due)
                .into_iter()
                .partition(|(at, _)| *at <= now);
            self.due = later;
            for (_, due) in ready {
                match due {
                    Due::Event(e) => self.feed(e),
                    Due::Dead(s) => self.dead(s),
                    Due::VramBack => self.vram_high = false,
                }
            }
            let sample = self.sample();
            self.feed(Event::Sample(Box::new(sample)));
            self.feed(Event::Tick);
            if let Some(probe) = self.probe.clone()
                && now.0.is_multiple_of(5000)
            {
                self.feed(Event::Probe(Box::new(probe)));
            }
        }
    }

    fn sample(&mut self) -> Sample {
        let w = self.world.clone();
        let mut sample = Sample::default();
        sample.host.psi_cpu = Metric::Fresh(w.cpu_pressure);
        if w.card {
            let mut g = GpuSample::unread(
                GpuId(CARD.to_owned()),
                0,
                Vendor::Amd,
                "card".to_owned(),
                "script",
            );
            g.arch = self.world.arch.map(str::to_owned);
            let resting = self.idle || !self.alive;
            g.busy = if resting {
                Metric::Fresh(w.idle_busy)
            } else {
                w.busy.clone()
            };
            g.power_w = if resting {
                Metric::Fresh(w.idle_power)
            } else {
                w.power.clone()
            };
            g.vram_used = if self.vram_high && !(self.idle && self.alive) {
                w.vram.clone()
            } else {
                Metric::Fresh(w.idle_vram)
            };
            g.power_cap_w = w.power_cap.clone();
            g.state = w.runtime.clone();
            g.link = w.link.clone();
            g.vram_total = Metric::Fresh(Bytes::gib(24));
            sample.gpus.push(g);
        }
        if self.alive && w.process {
            sample.process = Some(self.process(&w));
        }
        sample
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small test figures"
    )]
    fn process(&mut self, w: &World) -> ProcSample {
        let half = 500_000_000.0;
        let work_ns = (w.worker_percent / 100.0 * half) as u64;
        let wakes = w.poller_hz / 2;
        let worker = self.cpu.entry(2).or_insert((2_000_000_000, 1000));
        worker.0 += work_ns;
        worker.1 += work_ns / w.worker_slice_ns.max(1);
        let worker = *worker;
        let poller = self.cpu.entry(1).or_insert((4_000_000_000, 1000));
        poller.0 += wakes * 20_000;
        poller.1 += wakes;
        let poller = *poller;
        self.read += w.read_bps / 2;
        let thread = |tid, (run_ns, switches)| ThreadSample {
            pid: 101,
            tid,
            name: "python".to_owned(),
            state: 'S',
            run_ns,
            switches,
            wchan: None,
        };
        ProcSample {
            pid: 101,
            processes: 1,
            threads: 2,
            state: Metric::Fresh(w.state),
            stopped: w.stopped.clone(),
            cpu_ns: Metric::Fresh(worker.0 + poller.0),
            minor_faults: Metric::Fresh(0),
            major_faults: Metric::Fresh(0),
            read_bytes: Metric::Fresh(self.read),
            write_bytes: Metric::Fresh(0),
            read_chars: Metric::Fresh(self.read),
            write_chars: Metric::Fresh(0),
            switches: Metric::Fresh(worker.1 + poller.1),
            per_thread: vec![thread(1, poller), thread(2, worker)],
            on_cards: w.held.map(on_card).into_iter().collect(),
            ..ProcSample::default()
        }
    }

    /// Position in the stream of the first event that fits.
    pub(crate) fn find(&self, fits: impl Fn(&Event) -> bool) -> Option<&Envelope> {
        self.stream.iter().find(|e| fits(&e.event))
    }

    pub(crate) fn first_verdict(&self, id: VerdictId) -> Option<&Envelope> {
        self.find(|e| matches!(e, Event::Verdict(v) if v.id == id))
    }

    pub(crate) fn hung(&self, id: VerdictId) -> Option<&Envelope> {
        self.find(|e| {
            matches!(e, Event::Verdict(v) if v.id == id
                && v.health == framepack_tui::model::Health::Hung)
        })
    }

    pub(crate) fn kills(&self) -> usize {
        self.stream
            .iter()
            .filter(|e| matches!(e.event, Event::SignalSent { .. }))
            .count()
    }
}
