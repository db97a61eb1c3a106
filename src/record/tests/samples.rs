//! One event of each kind and shape.

use std::collections::BTreeMap;

use crate::model::Vendor;
use crate::model::agent::{
    AgentCheck, AgentConv, AgentFinding, AgentHello, AgentMemory, AgentVault,
};
use crate::model::attempt::Artefact;
use crate::model::event::{
    Choice, Decision, EvidenceItem, EvidenceReport, Level, Replanned, RunStarted, SCHEMA,
    Standstill, Survivor,
};
use crate::model::*;

fn metrics_gpu() -> GpuSample {
    let id = GpuId("0000:0c:00.0".into());
    let mut gpu = GpuSample::unread(id, 0, Vendor::Amd, "Radeon".into(), "sysfs");
    gpu.arch = Some("gfx1100".into());
    gpu.busy = Metric::Fresh(98.0);
    gpu.power_w = Metric::Stale {
        value: 21.5,
        age_ms: 4000,
    };
    gpu.mem_busy = Metric::Failed {
        why: "EPERM".into(),
        for_ms: 1500,
    };
    gpu.vram_used = Metric::Fresh(Bytes::gib(20));
    gpu
}

fn sample() -> Event {
    let process = ProcSample {
        pid: 7,
        state: Metric::Fresh('S'),
        per_thread: vec![ThreadSample {
            pid: 7,
            tid: 8,
            name: "pt_main".into(),
            state: 'S',
            run_ns: 1,
            switches: 2,
            wchan: Some("futex_wait_queue".into()),
        }],
        ..ProcSample::default()
    };
    Event::Sample(Box::new(Sample {
        gpus: vec![metrics_gpu()],
        process: Some(process),
        host: HostSample::default(),
        sources: vec![source()],
    }))
}

fn source() -> SourceStatus {
    SourceStatus {
        name: "sysfs 0000:0c:00.0".into(),
        state: SourceState::Stale,
        age_ms: 2100,
        why: Some("the read blocks".into()),
    }
}

pub(super) fn verdict(confidence: f64) -> Event {
    Event::Verdict(Box::new(Verdict {
        id: VerdictId::SilentHang,
        health: Health::Hung,
        phase: Phase::VaeDecode,
        section: Some(1),
        confidence,
        onset: Mono(1000),
        sentence: "Nothing moves.".into(),
        findings: vec![Finding {
            verdict: VerdictId::SilentHang,
            text: "no CPU time for 50 s".into(),
            seqs: vec![3, 9],
            cites: Vec::new(),
            count: 2,
        }],
        considered: Vec::new(),
        remedy: None,
        ruled_out: vec!["no download is open".into()],
        cause: None,
        action: ActionId::FastFind,
        next: Some(NextStep {
            what: "evidence".into(),
            at: Mono(51_000),
        }),
        questions: Some(Box::new(questions())),
    }))
}

fn questions() -> Questions {
    Questions {
        job: Answered::new(Answer::Yes, "a bar of steps", Some(12.0)),
        moves: Answered::new(Answer::No, "no thread of the job ran", Some(61.5)),
        waits: Waits {
            answer: WaitsFor::Card,
            pid: Some(7),
            tid: Some(9),
            within: Some("ioctl".to_owned()),
            detail: Some("/dev/kfd".to_owned()),
            for_s: Some(50.0),
        },
    }
}

/// One thread for each kind of wait and target.
/// Waits of every kind.
fn waits() -> Vec<Wait> {
    let call = |call: &str, on: Vec<WaitTarget>| Wait::Call {
        call: call.to_owned(),
        timeout_ms: Some(1000),
        on,
        channel: Some("do_epoll_wait".to_owned()),
    };
    let text = |text: &str| text.to_owned();
    vec![
        Wait::Running,
        Wait::Blocked {
            channel: Some(text("folio_wait_bit_common")),
        },
        Wait::Unreadable {
            why: text("EPERM"),
            channel: Some(text("futex_wait_queue")),
        },
        call(
            "ioctl",
            vec![WaitTarget::Card {
                device: text("/dev/kfd"),
            }],
        ),
        call(
            "epoll_wait",
            vec![
                WaitTarget::Listener {
                    address: text("tcp 127.0.0.1:7860"),
                },
                WaitTarget::Peer {
                    network: text("tcp"),
                    address: text("203.0.113.9:443"),
                    inside: Some(8),
                    accepted: true,
                },
                WaitTarget::Event {
                    what: text("eventfd"),
                },
            ],
        ),
        call(
            "read",
            vec![WaitTarget::Pipe { ends: vec![8] }, WaitTarget::Terminal],
        ),
        call(
            "flock",
            vec![WaitTarget::Lock {
                path: text("/x/the.lock"),
                holder: Some(8),
                holder_is_dead: true,
            }],
        ),
        call("wait4", vec![WaitTarget::Process { pid: Some(8) }]),
        call(
            "read",
            vec![WaitTarget::File {
                path: text("/x/a.bin"),
            }],
        ),
        call(
            "read",
            vec![WaitTarget::Other {
                what: text("anon_inode:bpf"),
            }],
        ),
    ]
}

fn probe() -> Event {
    let text = |text: &str| text.to_owned();
    let thread = |(n, wait): (u32, Wait)| ProbedThread {
        tid: 7 + n,
        name: text("python3"),
        state: 'S',
        run_ns: 5,
        read: Some(Bytes(1)),
        written: Some(Bytes(2)),
        major_faults: 3,
        minor_faults: 4,
        wait,
    };
    Event::Probe(Box::new(Probe {
        processes: vec![ProbedProcess {
            pid: 7,
            parent: 1,
            name: text("python3"),
            card: true,
            torch: true,
            weights: Some(text("/m/a.safetensors")),
            listens: vec![text("tcp 127.0.0.1:7860")],
            writes: vec![text("/out/a.mp4")],
            tracer: Some(Tracer {
                pid: 3,
                name: text("gdb"),
            }),
            unreadable: Some(text("EACCES")),
            threads: (0..).zip(waits()).map(thread).collect(),
        }],
        left_out: 1,
        threads_left_out: 2,
        network: Metric::Fresh(PeerTraffic {
            received: 1,
            sent: 2,
            connections: 3,
            uncounted: 4,
            unanswered_ms: vec![91_000],
        }),
        took_us: 900,
    }))
}

pub(super) fn line(text: &str) -> Event {
    Event::Line(Line {
        attempt: 1,
        row: 0,
        stream: Stream::Stderr,
        text: text.into(),
        bar: true,
        truncated: true,
        chatter: true,
    })
}

fn artefact() -> Artefact {
    Artefact {
        path: "/out/film.mp4".into(),
        size: Bytes(10),
        frames: Some(9),
        attempt: 2,
        rung: RungId("fast_find".into()),
    }
}

pub(super) fn started() -> Event {
    Event::RunStarted(Box::new(RunStarted {
        schema: SCHEMA.into(),
        program: "0.1.0".into(),
        run: "20261127-2231-7f3a".into(),
        wall_clock: "2026-11-27T22:31:00+01:00".into(),
        argv: vec!["python".into()],
        cwd: "/home".into(),
        profile: "generic-amd".into(),
        profile_why: "asked for".into(),
        adapter: "generic".into(),
        gpu: Some(GpuId("0000:0c:00.0".into())),
        vram_cap: Some(Bytes::gib(20)),
        interactive: true,
        plan: plan(),
        attached: Some(crate::model::Attached {
            pid: 4711,
            start: 912_345,
        }),
    }))
}

pub(super) fn finished() -> Event {
    Event::RunFinished {
        outcome: Outcome::Finished { restarts: 1 },
        exit_code: 10,
        result: Some(artefact()),
        summary: "The video is there.".into(),
    }
}

fn decisions() -> Vec<Event> {
    let rung = RungId("fast_find".into());
    let restart = Choice::Restart {
        rung: rung.clone(),
        kill_at: Mono(60_000),
        by_user: false,
    };
    let asked = Choice::Restart {
        rung: rung.clone(),
        kill_at: Mono(60_000),
        by_user: true,
    };
    let choices = [
        restart,
        asked,
        Choice::GiveUp,
        Choice::Advise,
        Choice::Hold,
        Choice::Resume,
    ];
    let skipped = SkippedRung {
        rung,
        why: "needs the agent".into(),
    };
    choices
        .into_iter()
        .map(|choice| {
            Event::Decision(Box::new(Decision {
                attempt: 1,
                verdict: VerdictId::SilentHang,
                choice,
                why: "it answers".into(),
                skipped: vec![skipped.clone()],
                restarts_left: 2,
            }))
        })
        .collect()
}

#[expect(clippy::too_many_lines, reason = "one event after the other")]
fn attempt_events() -> Vec<Event> {
    let env = EnvChange {
        name: "MIOPEN_FIND_MODE".into(),
        value: Some("2".into()),
        origin: EnvOrigin::Rung,
        overrides: Some("1".into()),
    };
    let spec = AttemptSpec {
        number: 2,
        rung: RungId("fast_find".into()),
        action: ActionId::FastFind,
        tier: Tier::T1,
        argv: vec!["python".into()],
        env: vec![env],
        settings: BTreeMap::from([("vae_tile".into(), "256".into())]),
        on_cpu: false,
    };
    let mut events = vec![
        Event::AttemptStarted(Box::new(spec)),
        Event::Spawned {
            attempt: 1,
            pid: 7,
            pgid: 7,
        },
        Event::SpawnFailed {
            attempt: 1,
            why: "no such file".into(),
            not_found: true,
        },
        Event::SignalSent {
            attempt: 1,
            signal: Signal::Term,
            scope: Scope::Group,
            reached: 2,
        },
        Event::CommandReturned {
            attempt: 1,
            processes: vec![Survivor {
                pid: 8,
                name: "python".into(),
                state: 'S',
                wchan: Some("futex_wait_queue".into()),
            }],
        },
        Event::ProcessEnded {
            attempt: 1,
            pid: 8,
            status: ExitStatus::Signal(9),
        },
        Event::GroupGone { attempt: 1 },
        Event::GuardianLost { attempt: 1 },
        Event::CardHeld(CardHeld {
            gpu: GpuId("0000:0c:00.0".into()),
            run: Some("20261127-2231-7f3a".into()),
            guardian: Some(70),
            processes: vec![CardHolder {
                pid: 9,
                name: "python".into(),
                state: 'S',
                vram: Some(Bytes::gib(17)),
            }],
        }),
        Event::CardFree {
            gpu: GpuId("0000:0c:00.0".into()),
            took_ms: 2100,
        },
        Event::Survivors {
            attempt: 1,
            processes: vec![Survivor {
                pid: 7,
                name: "python".into(),
                state: 'D',
                wchan: None,
            }],
        },
        Event::EvidenceTaken(EvidenceReport {
            number: 1,
            attempt: 1,
            dir: "/state".into(),
            items: vec![
                absent(),
                EvidenceItem {
                    kind: "threads".into(),
                    file: Some("evidence/001/threads.txt".into()),
                    bytes: 10,
                    failed: None,
                    absent: false,
                },
            ],
            took_ms: 12,
            asked: Some(Mono(11)),
        }),
    ];
    for status in [
        ExitStatus::Code(1),
        ExitStatus::Signal(9),
        ExitStatus::Unknown,
    ] {
        events.push(Event::Exited(ExitReport { attempt: 1, status }));
    }
    events
}

fn console_events() -> Vec<Event> {
    let key = String::from("conv3d");
    let marks = [
        FindMark::Opened { key: key.clone() },
        FindMark::Closed { key },
        FindMark::Solver {
            name: "ConvDirectNaiveConvFwd".into(),
        },
        FindMark::Advance {
            detail: "194 left".into(),
        },
        FindMark::Mode {
            mode: "DYNAMIC_HYBRID(5)".into(),
        },
        FindMark::Convolution(Convolution {
            dims: 3,
            dtype: ConvType::Bf16,
            direction: ConvDirection::Forward,
            layout: ConvLayout::ChannelsLast,
            transposed: true,
            n: 1,
            c: 96,
            k: 96,
            groups: 1,
            input: [6, 482, 834],
            kernel: [3; 3],
            pad: [0; 3],
            stride: [1; 3],
            dilation: [1; 3],
        }),
        FindMark::Figures(FindFigures {
            solver: Some("ConvHipX".into()),
            ms: Some(4.5),
            best_ms: Some(4.2),
            tried: Some(12),
            total: Some(45),
            left: Some(33),
            eta_s: Some(90.5),
        }),
        FindMark::Workspace(Workspace {
            solver: "GemmFwdRest".into(),
            required: 1 << 31,
            provided: 0,
        }),
        FindMark::Release(MiopenRelease {
            rocm: Some([7, 1]),
            miopen: Some([3, 5, 1]),
        }),
    ];
    let jobs = [
        JobChange::Started,
        JobChange::Waiting,
        JobChange::Done,
        JobChange::Failed {
            why: Some("no".into()),
        },
    ];
    let mut events = vec![
        line("50%|#####     | 5/10"),
        Event::Phase(PhaseChange {
            phase: Phase::Sampling,
            section: Some(1),
            sections: Some(4),
            on_cpu: true,
        }),
        Event::Progress(Progress {
            what: Some("steps".into()),
            done: 5.0,
            total: Some(10.0),
            seconds_per_step: Some(1.5),
            sampling: true,
            closed: false,
        }),
        Event::Artefact(artefact()),
    ];
    events.extend(marks.map(Event::Find));
    events.extend(jobs.map(Event::Job));
    events
}

/// Every word of the agent.
fn agent_words() -> impl Iterator<Item = Event> {
    let mut words = agent_reports();
    words.extend([
        AgentWord::Hello(AgentHello {
            protocol: 1,
            agent: "0.1.0".into(),
            python: "3.11.4".into(),
            stacks_by_signal: true,
            rank: Some(1),
        }),
        AgentWord::Main,
        AgentWord::Ended,
        AgentWord::Lost,
        AgentWord::Silent { for_ms: 15_000 },
        AgentWord::Refused {
            protocol: 2,
            agent: "9.0.0".into(),
        },
        AgentWord::Beat(Box::new(AgentBeat {
            phase: Some(Phase::VaeDecode),
            op: Some(AgentOp {
                name: "conv3d".into(),
                shape: vec![1, 16, 9, 64, 64],
                weight: vec![128, 16, 3, 3, 3],
                dtype: "float16".into(),
                device: "cuda:0".into(),
                tier: "native".into(),
                age_ms: 12_500,
                tid: Some(71),
            }),
            ops: 1,
            calls: 20,
            tiers: [("conv3d.split.ok".to_owned(), 68)].into(),
            memory: Some(AgentMemory {
                device: 0,
                allocated: Bytes(1),
                reserved: Bytes(2),
                peak: Bytes(3),
            }),
            cpu_ms: 1250,
            job: Some(true),
            holder: Some(71),
            stack: Some("a1b2c3d4".into()),
            steps: Some(crate::model::AgentSteps {
                tid: Some(4243),
                total: 25.0,
                left: Some(false),
            }),
        })),
    ]);
    let note = |word| Event::Agent(Box::new(AgentNote { pid: 7, word }));
    words.into_iter().map(note)
}

/// What it reports but where it is.
fn agent_reports() -> Vec<AgentWord> {
    let some = || Some("x".to_owned());
    let text = || "x".to_owned();
    vec![
        AgentWord::Conv(Box::new(AgentConv {
            what: "failed".into(),
            took_ms: Some(4),
            message: some(),
            ..AgentConv::default()
        })),
        AgentWord::Finding(Box::new(AgentFinding {
            verdict: VerdictId::DeviceMismatch,
            text: text(),
            cure: text(),
            fixed: true,
        })),
        AgentWord::Fix {
            what: text(),
            detail: text(),
        },
        AgentWord::Vault(Box::new(AgentVault {
            what: "saved".into(),
            of: "latents".into(),
            file: some(),
            bytes: Some(12),
            took_ms: Some(3),
            message: some(),
        })),
        AgentWord::Preflight {
            checks: vec![AgentCheck {
                name: text(),
                ok: Some(false),
                value: some(),
                text: text(),
                cure: some(),
            }],
        },
        AgentWord::Problem { text: text() },
        AgentWord::HookFailed {
            module: text(),
            hook: text(),
            message: text(),
        },
        AgentWord::Error {
            phase: Some(Phase::VaeDecode),
            exception: text(),
            message: text(),
        },
        AgentWord::Torch {
            version: text(),
            hip: some(),
            cuda: some(),
            find_dbs: Some(vec![text()]),
        },
        AgentWord::Dropped { n: 3 },
    ]
}

fn machine_events() -> Vec<Event> {
    let mut events = vec![
        sample(),
        probe(),
        Event::Kernel {
            text: "amdgpu: ring timeout".into(),
        },
        Event::VramWaiting {
            used: Bytes(2),
            before: Bytes(1),
        },
        Event::VramReclaimed {
            used: Some(Bytes(1)),
            took_ms: 5,
            complete: true,
        },
        Event::Source(source()),
        Event::Dropped {
            what: "lines".into(),
            n: 3,
        },
        Event::Flood(Box::new(Flood {
            attempt: 1,
            stream: Stream::Stdout,
            row: 7,
            lines: 5,
            kept: vec![
                Repeated {
                    text: "again".to_owned(),
                    times: 3,
                },
                Repeated {
                    text: "once".to_owned(),
                    times: 1,
                },
            ],
        })),
        Event::Tick,
        Event::Notice {
            level: Level::Warn,
            text: "no GPU".into(),
        },
    ];
    for cause in [
        Standstill::MachineSuspended,
        Standstill::SupervisorStalled,
        Standstill::ChildStopped,
    ] {
        events.push(Event::Standstill { cause, for_ms: 9 });
    }
    events
}

/// Every kind, and every shape of those that have several.
pub(crate) fn one_of_each() -> Vec<Event> {
    use Command::{
        Evidence, FalseAlarm, Hold, Kill, Release, ScreenAttached, Stop, TerminalLost, Terminate,
        Wait,
    };
    let mut events = vec![started(), verdict(0.9)];
    events.extend(decisions());
    events.extend(attempt_events());
    events.extend(console_events());
    events.extend(machine_events());
    events.extend(agent_words());
    for command in [
        Hold,
        Release,
        Wait,
        FalseAlarm,
        Evidence,
        Stop,
        Terminate,
        Kill,
        TerminalLost,
        ScreenAttached,
    ] {
        events.push(Event::Command(command));
    }
    for outcome in [
        Outcome::Failed,
        Outcome::GaveUp,
        Outcome::Unkillable { pids: vec![7] },
        Outcome::NotLaunched { not_found: true },
        Outcome::Interrupted { terminated: false },
        Outcome::Left,
        Outcome::Ended,
        Outcome::LeftoversEnded { pids: vec![8] },
        Outcome::ResultKept,
        Outcome::CardHeld { pids: vec![9] },
    ] {
        events.push(Event::RunFinished {
            exit_code: outcome.exit_code(),
            outcome,
            result: None,
            summary: String::new(),
        });
    }
    events.extend(switches());
    events.extend(lost());
    events.push(finished());
    events
}

fn absent() -> EvidenceItem {
    EvidenceItem {
        kind: "python_stacks".into(),
        file: None,
        bytes: 0,
        failed: Some("py-spy is not installed".into()),
        absent: true,
    }
}

/// A new kind does not compile here until it is added, and then `one_of_each` and
/// `docs/events.md` have to follow.
pub(super) const fn kind(event: &Event) -> &'static str {
    match event {
        Event::RunStarted(_) => "run_started",
        Event::Notice { .. } => "notice",
        Event::AttemptStarted(_) => "attempt_started",
        Event::Spawned { .. } => "spawned",
        Event::SpawnFailed { .. } => "spawn_failed",
        Event::Sample(_) => "sample",
        Event::Probe(_) => "probe",
        Event::Line(_) => "line",
        Event::Phase(_) => "phase",
        Event::Progress(_) => "progress",
        Event::Job(_) => "job",
        Event::Find(_) => "find",
        Event::Artefact(_) => "artefact",
        Event::Kernel { .. } => "kernel",
        Event::Agent(_) => "agent",
        Event::Verdict(_) => "verdict",
        Event::Decision(_) => "decision",
        Event::EvidenceTaken(_) => "evidence_taken",
        Event::SignalSent { .. } => "signal_sent",
        Event::Exited(_) => "exited",
        Event::CommandReturned { .. } => "command_returned",
        Event::ProcessEnded { .. } => "process_ended",
        Event::GroupGone { .. } => "group_gone",
        Event::GuardianLost { .. } => "guardian_lost",
        Event::CardHeld(_) => "card_held",
        Event::CardFree { .. } => "card_free",
        Event::Survivors { .. } => "survivors",
        Event::VramWaiting { .. } => "vram_waiting",
        Event::VramReclaimed { .. } => "vram_reclaimed",
        Event::Command(_) => "command",
        Event::Replanned(_) => "replanned",
        Event::ProfileSaved { .. } => "profile_saved",
        Event::LostJobs(_) => "lost_jobs",
        Event::Resend(_) => "resend",
        Event::Source(_) => "source",
        Event::Standstill { .. } => "standstill",
        Event::Flood(_) => "flood",
        Event::Dropped { .. } => "dropped",
        Event::Tick => "tick",
        Event::RunFinished { .. } => "run_finished",
    }
}

fn chosen() -> Chosens {
    Chosens {
        profile: Some("generic-amd".to_owned()),
        settings: [(
            Setting::FindMode,
            Chosen {
                value: "FAST".to_owned(),
                over: vec![RungId("fast_find".to_owned())],
            },
        )]
        .into(),
    }
}

/// What the user switches while watching.
fn switches() -> Vec<Event> {
    let mut events: Vec<Event> = [
        Command::Set {
            setting: Setting::FindMode,
            value: Some("FAST".to_owned()),
        },
        Command::Set {
            setting: Setting::FindMode,
            value: None,
        },
        Command::UseProfile {
            id: "generic-amd".to_owned(),
        },
        Command::Leave,
        Command::Resend,
        Command::StopAfterStep,
        Command::ApplyNow,
        Command::TakeRung {
            rung: RungId("fast_find".to_owned()),
        },
        Command::SaveProfile {
            id: "mine".to_owned(),
        },
    ]
    .map(Event::Command)
    .into();
    events.push(Event::Replanned(Box::new(Replanned {
        what: "find mode FAST".to_owned(),
        profile: "generic-amd".to_owned(),
        profile_why: "chosen by you".to_owned(),
        adapter: "generic".to_owned(),
        plan: plan(),
    })));
    events.push(Event::ProfileSaved {
        id: "mine".to_owned(),
        path: "/home/me/.config/framepack-tui/profiles/mine.toml".to_owned(),
    });
    events
}

/// What becomes of jobs that were lost with a server.
fn lost() -> Vec<Event> {
    let job = || "9dad78fcaa6dc4e0".to_owned();
    let server = || "http://127.0.0.1:7860".to_owned();
    let lost = LostJob {
        entry: "job.20261127-2231-7f3a.9dad78fcaa6dc4e0.json".to_owned(),
        program: JobProgram::FramePack,
        job: job(),
        attempt: Some(1),
        failed: false,
        prompts: 1,
    };
    let mut events = vec![Event::LostJobs(LostJobs {
        attempt: 2,
        jobs: vec![lost],
        problem: Some("read /vault: denied".to_owned()),
    })];
    let (job, server) = (job(), server());
    let words = [
        ResendWord::Sending {
            job: job.clone(),
            server: server.clone(),
        },
        ResendWord::GivenUp {
            job: None,
            why: "the vault holds none".to_owned(),
        },
        ResendWord::Waiting {
            prompts: 2,
            entries: vec!["queue.20261127-2231-7f3a.1.json".to_owned()],
            server: server.clone(),
            command: "framepack-tui vault resend queue --port 7860".to_owned(),
        },
        ResendWord::Sent {
            job: job.clone(),
            server,
        },
        ResendWord::There { job: job.clone() },
        ResendWord::Done {
            job: job.clone(),
            files: 3,
        },
        ResendWord::Ended {
            job: job.clone(),
            files: 1,
            of: Some(3),
        },
        ResendWord::Queued {
            job: job.clone(),
            queued: 1,
            there: 1,
            refused: vec![RefusedPrompt {
                prompt: "p1".to_owned(),
                why: "no such node".to_owned(),
            }],
        },
        ResendWord::Failed {
            job,
            why: "no server answers".to_owned(),
        },
    ];
    events.extend(words.map(|word| Event::Resend(Resend { attempt: 2, word })));
    events
}

/// A plan in which every field says something.
fn plan() -> Plan {
    Plan {
        argv: vec!["python".to_owned()],
        env: vec![EnvChange {
            name: "MIOPEN_LOG_LEVEL".to_owned(),
            value: Some("5".to_owned()),
            origin: EnvOrigin::Supervisor,
            overrides: None,
        }],
        ladder: vec![Rung {
            id: RungId("fast_find".to_owned()),
            action: ActionId::FastFind,
            tier: Tier::T1,
            answers: Answers::These(vec![VerdictId::SilentHang]),
            phases: vec![Phase::VaeDecode],
            env: [("MIOPEN_FIND_MODE".to_owned(), Some("FAST".to_owned()))].into(),
            args: Vec::new(),
            settings: BTreeMap::new(),
            cost: None,
            source: None,
            alters_result: None,
            unavailable: None,
            acts: Acts {
                rocm: Some([7, 11]),
                gfx: vec!["gfx1100".into()],
            },
        }],
        setting_args: [(
            "vae_dtype".to_owned(),
            [("float32".to_owned(), vec!["--fp32-vae".to_owned()])].into(),
        )]
        .into(),
        follow: [
            (Setting::VramCap, Follow::Ours),
            (
                Setting::FindMode,
                Follow::Yes {
                    how: "MIOPEN_FIND_MODE=FAST".to_owned(),
                },
            ),
            (
                Setting::TileSize,
                Follow::No {
                    why: "no argument for it".to_owned(),
                },
            ),
        ]
        .into(),
        agent: AgentWay::Off {
            why: "the agent is off (--agent off)".to_owned(),
        },
        chosen: chosen(),
        effective: vec![Effective {
            key: "limits.vram_cap".to_owned(),
            value: Some("20 GiB".to_owned()),
            origin: Origin::Profile {
                file: "profiles/generic-amd.toml".to_owned(),
                line: 17,
            },
            overrides: None,
            idle: None,
        }],
        limits: Limits {
            phases: [(Phase::VaeDecode, PhaseLimits::default())].into(),
            ..Limits::default()
        },
        baselines: baselines(),
        ..Plan::default()
    }
}

fn baselines() -> Baselines {
    let mut b = Baselines::default();
    let phase = b.phases.entry(Phase::VaeDecode).or_default();
    phase.stay.add(std::time::Duration::from_secs(31));
    phase.silence.add(std::time::Duration::from_millis(900));
    b.steps
        .entry("sampling/25".to_owned())
        .or_default()
        .add(std::time::Duration::from_secs(4));
    b
}
