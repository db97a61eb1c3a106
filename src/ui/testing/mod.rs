//! Snapshots for tests: the states that a user meets, and random ones ([`Dice`]).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::model::attempt::Artefact;
use crate::model::event::{EvidenceItem, EvidenceReport};
use crate::model::sample::Vendor;
use crate::model::{
    ActionId, AttemptSpec, Bytes, Finding, GpuId, GpuSample, Health, HostSample, Metric, Mono,
    NextStep, Outcome, Phase, ProcSample, Progress, RungId, SourceState, SourceStatus, Tier,
    Verdict, VerdictId,
};
use crate::run::Snapshot;
use crate::run::snapshot::{JobState, LadderEntry, LogKind, LogLine, Point, RungState, Stage};

mod random;

pub(super) use random::Dice;

const CARD: &str = "0000:0c:00.0";

fn rung(id: &str) -> RungId {
    RungId(id.to_owned())
}

fn card() -> GpuSample {
    GpuSample {
        arch: Some("gfx1100".to_owned()),
        state: Metric::Fresh("active".to_owned()),
        busy: Metric::Fresh(98.0),
        mem_busy: Metric::Fresh(41.0),
        power_w: Metric::Fresh(287.0),
        power_cap_w: Metric::Fresh(303.0),
        vram_used: Metric::Fresh(Bytes::mib(18_227)),
        vram_total: Metric::Fresh(Bytes::gib(24)),
        gtt_used: Metric::Fresh(Bytes::mib(920)),
        gtt_total: Metric::Fresh(Bytes::gib(32)),
        temp_edge: Metric::Fresh(61.0),
        temp_junction: Metric::Fresh(84.0),
        temp_mem: Metric::Fresh(78.0),
        sclk_mhz: Metric::Fresh(2410.0),
        mclk_mhz: Metric::Fresh(1249.0),
        fan_rpm: Metric::Fresh(1210.0),
        ..GpuSample::unread(
            GpuId(CARD.to_owned()),
            0,
            Vendor::Amd,
            "Radeon RX 7900 XTX".to_owned(),
            "sysfs",
        )
    }
}

fn process() -> ProcSample {
    ProcSample {
        pid: 41_822,
        processes: 2,
        threads: 63,
        children: vec!["python".to_owned()],
        state: Metric::Fresh('R'),
        cpu_ns: Metric::Fresh(870_000_000_000),
        d_state: Metric::Fresh(0),
        wait_channel: Metric::Unsupported,
        rss: Metric::Fresh(Bytes::mib(18_637)),
        swap: Metric::Fresh(Bytes(0)),
        ..ProcSample::default()
    }
}

fn host() -> HostSample {
    HostSample {
        mem_total: Metric::Fresh(Bytes::gib(64)),
        mem_available: Metric::Fresh(Bytes::gib(23)),
        swap_total: Metric::Fresh(Bytes::gib(8)),
        swap_used: Metric::Fresh(Bytes(0)),
        psi_cpu: Metric::Fresh(1.2),
        psi_io: Metric::Fresh(0.1),
        psi_mem: Metric::Fresh(0.0),
        load1: Metric::Fresh(2.3),
        ..HostSample::default()
    }
}

fn source(name: &str, state: SourceState) -> SourceStatus {
    SourceStatus {
        name: name.to_owned(),
        state,
        age_ms: 300,
        why: None,
    }
}

fn history(now: Mono, idle_from: Option<Mono>) -> Arc<VecDeque<Point>> {
    let begin = now.0.saturating_sub(290_000);
    let points = (begin..=now.0).step_by(500).map(|t| {
        let idle = idle_from.is_some_and(|from| t >= from.0) || (t / 1000) % 97 == 3;
        let gap = (t / 1000) % 120 > 113;
        let ramp = (t - begin).min(60_000) * 17 / 60_000 + 1;
        Point {
            at: Mono(t),
            busy: (!gap).then_some(if idle { 0.0 } else { 98.0 }),
            power_w: (!gap).then_some(if idle { 22.0 } else { 287.0 }),
            mem_used: (!gap).then_some(Bytes::gib(ramp)),
            cpu: Some(if idle { 0.0 } else { 104.0 }),
        }
    });
    Arc::new(points.collect())
}

fn log() -> Arc<VecDeque<LogLine>> {
    let line = |secs: u64, kind, text: &str, bar, folded| LogLine {
        at: Mono::from_secs(secs),
        kind,
        text: text.to_owned(),
        bar,
        folded,
    };
    Arc::new(VecDeque::from([
        line(
            685,
            LogKind::Own,
            "attempt 2 on rung fast_find: MIOPEN_FIND_MODE=FAST",
            false,
            0,
        ),
        line(692, LogKind::Stdout, "Free VRAM 23.1 GB", false, 0),
        line(731, LogKind::Stdout, "Loading transformer", false, 0),
        line(
            760,
            LogKind::Stderr,
            "UserWarning: expandable_segments not supported on this platform",
            false,
            11,
        ),
        line(
            773,
            LogKind::Stdout,
            "latent_padding_size = 18, is_last_section = False",
            false,
            0,
        ),
        line(
            774,
            LogKind::Own,
            "phase sampling, section 2 of 4",
            false,
            0,
        ),
        line(
            871,
            LogKind::Stderr,
            " 68%|██████▊   | 17/25 [01:51<00:54,  6.80s/it]",
            true,
            16,
        ),
    ]))
}

fn entry(id: &str, action: ActionId, tier: Tier, state: RungState) -> LadderEntry {
    LadderEntry {
        id: rung(id),
        action,
        tier,
        state,
    }
}

fn ladder() -> Vec<LadderEntry> {
    vec![
        entry(
            RungId::AS_GIVEN,
            ActionId::None,
            Tier::T0,
            RungState::Tried {
                result: "silent_hang after 00:04:12".to_owned(),
            },
        ),
        entry(
            "fast_find",
            ActionId::FastFind,
            Tier::T1,
            RungState::Running,
        ),
        entry("tiled_vae", ActionId::TiledVae, Tier::T2, RungState::Next),
        entry(
            "full_unload",
            ActionId::FullUnload,
            Tier::T1,
            RungState::Unavailable {
                why: "needs the agent in the program".to_owned(),
            },
        ),
        entry("vae_cpu", ActionId::VaeCpu, Tier::T3, RungState::Untried),
    ]
}

fn attempt(number: u32, id: &str, action: ActionId, tier: Tier) -> AttemptSpec {
    AttemptSpec {
        number,
        rung: rung(id),
        action,
        tier,
        argv: vec!["python".to_owned(), "demo_gradio.py".to_owned()],
        env: Vec::new(),
        settings: BTreeMap::new(),
        on_cpu: false,
    }
}

/// A run on its second attempt that advances.
pub(super) fn healthy() -> Snapshot {
    let now = Mono::from_secs(872);
    Snapshot {
        run: "20260714-140022-7f3a".to_owned(),
        now,
        wall_clock: "2026-07-14T14:00:22+02:00".to_owned(),
        argv: vec!["python".to_owned(), "demo_gradio.py".to_owned()],
        profile: "rx7900xtx-safe".to_owned(),
        profile_why: "matched gfx1100 and 24 GiB".to_owned(),
        adapter: "framepack".to_owned(),
        attempt: Some(attempt(2, "fast_find", ActionId::FastFind, Tier::T1)),
        attempt_since: Mono::from_secs(685),
        pid: Some(41_822),
        gpus: vec![card()],
        gpu: Some(GpuId(CARD.to_owned())),
        vram_cap: Some(Bytes::gib(20)),
        process: Some(process()),
        cpu_percent: Some(104.0),
        read_bps: Some(0.0),
        write_bps: Some(1_258_291.0),
        host: host(),
        sources: vec![
            source("sysfs 0000:0c:00.0", SourceState::Ok),
            source("nvml", SourceState::Absent),
            source("proc", SourceState::Ok),
            source("host", SourceState::Ok),
            source("kernel log", SourceState::Ok),
        ],
        history: history(now, None),
        last_output: Some(Mono(869_900)),
        last_progress: Some(Mono(869_900)),
        phase: Phase::Sampling,
        phase_since: Mono::from_secs(774),
        section: Some(2),
        sections: Some(4),
        progress: Some(Progress {
            what: None,
            done: 17.0,
            total: Some(25.0),
            seconds_per_step: Some(6.8),
            sampling: true,
        }),
        job: JobState::InFlight(Mono::from_secs(740)),
        verdict: Verdict {
            id: VerdictId::Healthy,
            health: Health::Healthy,
            phase: Phase::Sampling,
            section: Some(2),
            confidence: 0.9,
            onset: Mono::from_secs(774),
            sentence: "Steps are completed at the pace of this run, the last one 2 s ago."
                .to_owned(),
            findings: Vec::new(),
            ruled_out: Vec::new(),
            action: ActionId::None,
            next: Some(NextStep {
                what: "suspect, if nothing moves".to_owned(),
                at: Mono::from_secs(885),
            }),
        },
        verdict_since: Mono::from_secs(682),
        stage: Stage::Watching,
        ladder: ladder(),
        restarts_left: 2,
        decision: None,
        log: log(),
        chatter: 1204,
        dropped: Vec::new(),
        evidence: vec![evidence(1, 1)],
        survivors: Vec::new(),
        result: None,
        outcome: None,
    }
}

fn evidence(number: u32, attempt: u32) -> EvidenceReport {
    EvidenceReport {
        number,
        attempt,
        dir: format!("/home/user/.local/state/framepack-tui/7f3a/evidence/{number:04}"),
        items: vec![
            EvidenceItem {
                kind: "threads".to_owned(),
                file: Some("threads.txt".to_owned()),
                bytes: 40_000,
                failed: None,
            },
            EvidenceItem {
                kind: "python_stacks".to_owned(),
                file: None,
                bytes: 0,
                failed: Some("py-spy is not installed".to_owned()),
            },
        ],
        took_ms: 820,
    }
}

fn silent(s: &mut Snapshot, health: Health, confidence: f64, silent_s: u64) {
    let onset = Mono::from_secs(872 - silent_s);
    s.phase = Phase::VaeDecode;
    s.phase_since = onset;
    s.section = Some(1);
    s.progress = None;
    s.gpus[0].busy = Metric::Fresh(0.0);
    s.gpus[0].power_w = Metric::Fresh(22.0);
    s.gpus[0].sclk_mhz = Metric::Fresh(45.0);
    s.cpu_percent = Some(0.0);
    s.history = history(s.now, Some(onset));
    s.last_output = Some(onset);
    s.last_progress = Some(onset);
    s.verdict_since = onset;
    s.attempt = Some(attempt(1, RungId::AS_GIVEN, ActionId::None, Tier::T0));
    s.attempt_since = Mono::ZERO;
    s.evidence.clear();
    s.ladder = ladder();
    s.ladder[0].state = RungState::Running;
    s.ladder[1].state = RungState::Next;
    s.ladder[2].state = RungState::Untried;
    s.restarts_left = 3;
    s.verdict = Verdict {
        id: VerdictId::SilentHang,
        health,
        phase: Phase::VaeDecode,
        section: Some(1),
        confidence,
        onset,
        sentence: format!(
            "The program holds 17.8 GiB of VRAM in vae_decode and does nothing: GPU 0 %, CPU 0 %, no bytes read or written, no output for {silent_s} s."
        ),
        findings: vec![Finding {
            verdict: VerdictId::SilentHang,
            text: format!("GPU busy below 2 % for {silent_s} s"),
            seqs: vec![4182, 4391],
            count: 1,
        }],
        ruled_out: vec!["model load: no bytes are read".to_owned()],
        action: ActionId::FastFind,
        next: Some(NextStep {
            what: "verdict silent_hang".to_owned(),
            at: onset + std::time::Duration::from_secs(51),
        }),
    };
}

/// Silent for 17 s.
pub(super) fn suspect() -> Snapshot {
    let mut s = healthy();
    silent(&mut s, Health::Suspect, 0.62, 17);
    s
}

/// Hung; the kill is announced.
pub(super) fn hung() -> Snapshot {
    let mut s = healthy();
    silent(&mut s, Health::Hung, 0.97, 52);
    s.verdict_since = Mono::from_secs(871);
    s.verdict.next = Some(NextStep {
        what: "restart on rung fast_find".to_owned(),
        at: Mono(874_400),
    });
    s.stage = Stage::Countdown {
        rung: rung("fast_find"),
        kill_at: Mono(874_400),
        held: false,
    };
    s.decision = Some("silent_hang in vae_decode: fast_find is the first untried rung that answers it; 3 restarts left.".to_owned());
    s
}

/// The last rung hung too.
pub(super) fn gave_up() -> Snapshot {
    let mut s = healthy();
    silent(&mut s, Health::Failed, 0.97, 52);
    for (at, e) in s.ladder.iter_mut().enumerate() {
        if !matches!(e.state, RungState::Unavailable { .. }) {
            e.state = RungState::Tried {
                result: format!("silent_hang after 00:0{}:12", at + 2),
            };
        }
    }
    s.attempt = Some(attempt(4, "vae_cpu", ActionId::VaeCpu, Tier::T3));
    s.pid = None;
    s.process = None;
    s.cpu_percent = None;
    s.read_bps = None;
    s.write_bps = None;
    s.restarts_left = 0;
    s.verdict.next = None;
    s.job = JobState::Ended;
    s.stage = Stage::Ended;
    s.evidence = vec![evidence(1, 1), evidence(2, 2), evidence(3, 4)];
    s.decision = Some("silent_hang on the last rung: nothing is left to try.".to_owned());
    s.outcome = Some((
        Outcome::GaveUp,
        21,
        "The decode hung on every rung that this program can take; 3 restarts are spent."
            .to_owned(),
    ));
    s
}

/// No card in the machine.
pub(super) fn no_gpu() -> Snapshot {
    let mut s = healthy();
    s.gpu = None;
    s.gpus.clear();
    s.vram_cap = None;
    s.profile = "cpu-only".to_owned();
    s.profile_why = "no GPU".to_owned();
    s.history = Arc::new(
        s.history
            .iter()
            .map(|p| Point {
                busy: None,
                power_w: None,
                mem_used: None,
                ..*p
            })
            .collect(),
    );
    s.sources = vec![
        SourceStatus {
            why: Some("no amdgpu card".to_owned()),
            ..source("sysfs", SourceState::Absent)
        },
        source("nvml", SourceState::Absent),
        source("proc", SourceState::Ok),
        source("host", SourceState::Ok),
    ];
    s
}

/// Between two attempts, the memory is not back.
pub(super) fn waiting_vram() -> Snapshot {
    let mut s = hung();
    s.pid = None;
    s.process = None;
    s.cpu_percent = None;
    s.read_bps = None;
    s.write_bps = None;
    s.job = JobState::Unknown;
    s.gpus[0].vram_used = Metric::Fresh(Bytes::mib(17_613));
    s.stage = Stage::WaitingVram {
        used: Some(Bytes::mib(17_613)),
        before: Bytes::mib(922),
        until: Mono::from_secs(920),
    };
    s.verdict.next = None;
    s.restarts_left = 2;
    s.ladder[0].state = RungState::Tried {
        result: "silent_hang after 00:14:32".to_owned(),
    };
    s.evidence = vec![evidence(1, 1)];
    s
}

/// Sensors that fail, are stale or missing; things dropped.
pub(super) fn bad_sensors() -> Snapshot {
    let mut s = healthy();
    let eio = || Metric::Failed {
        why: "Input/output error".to_owned(),
        for_ms: 12_400,
    };
    s.gpus[0].busy = eio();
    s.gpus[0].power_w = Metric::Stale {
        value: 287.0,
        age_ms: 4_200,
    };
    s.gpus[0].vram_used = Metric::Stale {
        value: Bytes::mib(18_227),
        age_ms: 4_200,
    };
    s.gpus[0].temp_junction = Metric::Unsupported;
    s.gpus[0].temp_mem = Metric::Failed {
        why: "Input/output error".to_owned(),
        for_ms: 12_400,
    };
    s.gpus[0].fan_rpm = Metric::Fresh(0.0);
    s.sources[0] = SourceStatus {
        state: SourceState::Stale,
        age_ms: 4_200,
        why: Some("the read of gpu_busy_percent blocks".to_owned()),
        ..s.sources[0].clone()
    };
    s.sources[4] = SourceStatus {
        state: SourceState::Lost,
        age_ms: 61_000,
        why: Some("permission denied".to_owned()),
        ..s.sources[4].clone()
    };
    s.dropped = vec![("lines".to_owned(), 12), ("samples".to_owned(), 3)];
    s.verdict.health = Health::Blind;
    s.verdict.sentence =
        "Only the output is seen; that is not enough to judge. Nothing will be killed.".to_owned();
    s.verdict.next = None;
    s
}

/// Home after one restart.
pub(super) fn finished() -> Snapshot {
    let mut s = healthy();
    s.pid = None;
    s.process = None;
    s.cpu_percent = None;
    s.read_bps = None;
    s.write_bps = None;
    s.gpus[0].busy = Metric::Fresh(0.0);
    s.gpus[0].power_w = Metric::Fresh(21.0);
    s.gpus[0].vram_used = Metric::Fresh(Bytes::mib(922));
    s.phase = Phase::Done;
    s.progress = None;
    s.job = JobState::Ended;
    s.stage = Stage::Ended;
    s.verdict.id = VerdictId::Finished;
    s.verdict.health = Health::Finished;
    s.verdict.sentence = "The program ended by itself with code 0.".to_owned();
    s.verdict.next = None;
    s.ladder[1].state = RungState::Tried {
        result: "finished after 00:03:07".to_owned(),
    };
    s.ladder[2].state = RungState::Untried;
    s.result = Some(Artefact {
        path: "/home/user/FramePack/outputs/260714_140311_884_5712_37.mp4".to_owned(),
        size: Bytes::mib(11),
        attempt: 2,
        rung: rung("fast_find"),
    });
    s.outcome = Some((
        Outcome::Finished { restarts: 1 },
        10,
        "Finished on rung fast_find after one restart; attempt 1 hung in vae_decode.".to_owned(),
    ));
    s
}
