//! The start screens that a user meets. All figures are invented.

use crate::model::{
    Bytes, CardMemory, FoundProcess, GpuId, GpuSample, Metric, Outcome, SourceState, SourceStatus,
};
use crate::profile::{Condition, Fit, Holds, Owner, ShelfEntry};
use crate::ui::lobby::{Lobby, RunLine, RunState};

use super::base::{CARD, card, host, source};

const OTHER: &str = "0000:0e:00.0";

fn profile(id: &str, title: &str, fit: Fit) -> ShelfEntry {
    ShelfEntry {
        id: id.to_owned(),
        title: Some(title.to_owned()),
        description: None,
        version: Some("1.0".to_owned()),
        owner: Owner::Shipped,
        path: format!("profiles/{id}.toml"),
        extends: None,
        fit,
        why: None,
        conditions: match fit {
            Fit::Other => vec![Condition {
                what: "architecture",
                wanted: "gfx1151".to_owned(),
                have: Some("gfx1100".to_owned()),
                holds: Holds::No,
            }],
            _ => Vec::new(),
        },
        problems: Vec::new(),
        broken: None,
        profile: None,
    }
}

fn shelf() -> Vec<ShelfEntry> {
    vec![
        profile(
            "rx7900xtx-safe",
            "RX 7900 XTX, 24 GB, completes first",
            Fit::Best,
        ),
        profile("generic-amd", "Any AMD card", Fit::Fits),
        profile("strix-halo-wan", "Strix Halo, shared memory", Fit::Other),
    ]
}

fn sources() -> Vec<SourceStatus> {
    vec![
        source("sysfs 0000:0c:00.0", SourceState::Ok),
        source("nvml", SourceState::Absent),
        source("host", SourceState::Ok),
        source("kernel log", SourceState::Ok),
        source("processes", SourceState::Ok),
    ]
}

fn process(pid: u32, kind: Option<&str>, command: &str) -> FoundProcess {
    FoundProcess {
        pid,
        start: 7,
        kind: kind.map(str::to_owned),
        name: "python".to_owned(),
        argv: command.split(' ').map(str::to_owned).collect(),
        memory: Vec::new(),
        hidden: None,
        cpu_percent: Some(104.0),
        age_ms: Some(3_725_000),
        others: 0,
        supervisor: None,
    }
}

fn holds(gpu: &str, mib: u64) -> CardMemory {
    CardMemory {
        gpu: GpuId(gpu.to_owned()),
        vram: Some(Bytes::mib(mib)),
        gtt: Some(Bytes::mib(40)),
    }
}

fn run(id: &str, began: &str, state: RunState, command: &str) -> RunLine {
    RunLine {
        id: id.to_owned(),
        began: Some(began.to_owned()),
        supervisor: (state == RunState::Running).then_some(4000),
        state,
        argv: command.split(' ').map(str::to_owned).collect(),
    }
}

/// A machine without a card on which nothing runs and nothing was run.
pub(in crate::ui) fn nothing() -> Lobby {
    let mut sources = sources();
    sources[0] = source("amdgpu", SourceState::Absent);
    sources[0].name = "sysfs".to_owned();
    Lobby {
        gpus: Vec::new(),
        host: host(),
        sources,
        found: Some(Vec::new()),
        runs: Some(Vec::new()),
        runs_at: "~/.local/state/framepack-tui/runs".to_owned(),
        runs_trouble: None,
        profiles: vec![
            profile("cpu-only", "No GPU: everything on the CPU", Fit::Best),
            profile("generic-amd", "Any AMD card", Fit::Other),
        ],
    }
}

/// The first frame: no source has answered.
pub(in crate::ui) fn first_frame() -> Lobby {
    Lobby {
        runs_at: "~/.local/state/framepack-tui/runs".to_owned(),
        ..Lobby::default()
    }
}

/// One card that FramePack keeps busy, started by hand.
pub(in crate::ui) fn busy() -> Lobby {
    let mut generation = process(
        4120,
        Some("framepack"),
        "/opt/venv/bin/python demo_gradio.py --port 7860",
    );
    generation.memory = vec![holds(CARD, 18_227)];
    generation.others = 2;
    Lobby {
        gpus: vec![card()],
        sources: sources(),
        found: Some(vec![generation]),
        profiles: shelf(),
        runs: Some(vec![run(
            "20260713-2210-41aa",
            "2026-07-13T22:10:02+02:00",
            RunState::Ended {
                outcome: Outcome::Finished { restarts: 1 },
                exit_code: 10,
            },
            "python demo_gradio.py --port 7860",
        )]),
        ..nothing()
    }
}

/// Two cards: ComfyUI under supervision, another user's process, a desktop.
pub(in crate::ui) fn two_cards() -> Lobby {
    let mut comfy = process(4123, Some("comfyui"), "python main.py --lowvram");
    comfy.memory = vec![holds(CARD, 9_300), holds(OTHER, 410)];
    comfy.supervisor = Some(4000);
    comfy.cpu_percent = None;
    let mut foreign = process(990, Some("framepack"), "python demo_gradio_f1.py");
    foreign.hidden = Some("another user's".to_owned());
    let mut desktop = process(700, None, "kwin_wayland --xwayland");
    desktop.memory = vec![holds(CARD, 212)];
    desktop.cpu_percent = Some(2.0);
    let other = GpuSample {
        index: 1,
        name: "Radeon PRO W7900".to_owned(),
        busy: Metric::Fresh(0.0),
        vram_used: Metric::Fresh(Bytes::mib(512)),
        vram_total: Metric::Fresh(Bytes::gib(48)),
        state: Metric::Fresh("suspended".to_owned()),
        id: GpuId(OTHER.to_owned()),
        ..card()
    };
    let mut lobby = busy();
    lobby.gpus.push(other);
    lobby.found = Some(vec![comfy, foreign, desktop]);
    if let Some(runs) = &mut lobby.runs {
        runs.insert(
            0,
            run(
                "20260714-1400-7f3a",
                "2026-07-14T14:00:22+02:00",
                RunState::Running,
                "python main.py --lowvram",
            ),
        );
    }
    lobby
}

/// A card that answers late and in part, and a search for processes that blocks.
pub(in crate::ui) fn bad_sensors() -> Lobby {
    let mut lobby = busy();
    lobby.gpus[0].busy = Metric::Stale {
        value: 98.0,
        age_ms: 4_000,
    };
    lobby.gpus[0].power_w = Metric::Failed {
        why: "power1_average: Input/output error".to_owned(),
        for_ms: 12_000,
    };
    lobby.gpus[0].temp_junction = Metric::Unsupported;
    let mut stale = source("processes", SourceState::Stale);
    stale.age_ms = 6_000;
    stale.why = Some("no answer for 6 s; the read blocks at process 4120".to_owned());
    lobby.sources.pop();
    lobby.sources.push(stale);
    lobby
}

/// More runs than there is room for, one of them running and one broken.
pub(in crate::ui) fn many_runs() -> Lobby {
    let mut lobby = busy();
    let mut runs = vec![
        run(
            "20260714-1400-7f3a",
            "2026-07-14T14:00:22+02:00",
            RunState::Running,
            "python demo_gradio.py --port 7860",
        ),
        run(
            "20260714-1310-0b11",
            "2026-07-14T13:10:40+02:00",
            RunState::Broken {
                why: "it has no end: its supervisor was killed, or the machine went down"
                    .to_owned(),
            },
            "python generate.py --frames 120",
        ),
    ];
    let finished = || Outcome::Finished { restarts: 0 };
    let mut outcomes = vec![
        finished(),
        Outcome::Finished { restarts: 1 },
        Outcome::Failed,
        Outcome::GaveUp,
        Outcome::NotLaunched { not_found: true },
        Outcome::Interrupted { terminated: false },
        Outcome::Interrupted { terminated: true },
        Outcome::Unkillable { pids: vec![7] },
        Outcome::Left,
        Outcome::Ended,
    ];
    outcomes.resize_with(14, finished);
    for (n, outcome) in outcomes.into_iter().enumerate() {
        let exit_code = outcome.exit_code();
        runs.push(run(
            &format!("20260713-10{n:02}-aa{n:02}"),
            &format!("2026-07-13T10:{n:02}:00+02:00"),
            RunState::Ended { outcome, exit_code },
            &format!("python generate.py --seed {n}"),
        ));
    }
    runs.push(RunLine {
        began: None,
        argv: Vec::new(),
        ..runs[1].clone()
    });
    lobby.runs = Some(runs);
    let mut broken = profile("mine", "", Fit::Other);
    broken.title = None;
    broken.broken =
        Some("mine.toml, line 3: unknown key `lader` (did you mean `ladder`?)".to_owned());
    lobby.profiles.push(broken);
    lobby
}
