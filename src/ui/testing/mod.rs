//! Snapshots for tests: the states that a user meets, and random ones ([`Dice`]).

use std::collections::VecDeque;
use std::sync::Arc;

use crate::model::attempt::Artefact;
use crate::model::{
    ActionId, Budget, BusyTrust, Bytes, FaultKind, GpuId, Health, IdleBaseline, KernelFault,
    KillPlan, Metric, Mono, NextStep, Outcome, Phase, Progress, RuleState, RungId, SourceState,
    SourceStatus, Tier, Verdict, VerdictId,
};
use crate::run::Snapshot;
use crate::run::snapshot::{
    AgentView, Freshness, JobState, Point, ResendView, RungState, Stage, Working,
};

mod agent;
mod base;
pub(super) mod cards;
mod find;
pub(super) mod lobby;
mod random;
pub(super) mod screen;
mod shelf;
mod trail;

use base::{
    CARD, attempt, card, chosen, effective, evidence, history, host, ladder, log, process, rung,
    settings, source,
};

pub(super) use agent::{agent_lost, queue_lost, with_agent};
pub(super) use find::{find_stalls, find_tunes};
pub(super) use random::Dice;
pub(super) use shelf::profiles;

/// What the card reads at rest.
const fn at_rest() -> IdleBaseline {
    IdleBaseline {
        busy: Some(0.0),
        power_w: Some(24.0),
        samples: 1,
        in_use: None,
    }
}

/// A run on its second attempt that advances.
pub(super) fn healthy() -> Snapshot {
    let now = Mono::from_secs(872);
    Snapshot {
        run: "20260714-140022-7f3a".to_owned(),
        now,
        freshness: Freshness::Live,
        wall_clock: "2026-07-14T14:00:22+02:00".to_owned(),
        attached: false,
        argv: vec!["python".to_owned(), "demo_gradio.py".to_owned()],
        profile: "rx7900xtx-safe".to_owned(),
        profile_why: "matched gfx1100 and 24 GiB".to_owned(),
        adapter: "framepack".to_owned(),
        attempt: Some(attempt(2, "fast_find", ActionId::FastFind, Tier::T1)),
        attempt_since: Mono::from_secs(685),
        pid: Some(41_822),
        gpus: vec![card()],
        gpu: Some(GpuId(CARD.to_owned())),
        card_idle: Some(at_rest()),
        busy_trust: BusyTrust::Trusted,
        vram_cap: Some(Bytes::gib(20)),
        process: Some(process()),
        cpu_percent: Some(104.0),
        working: Some(Working {
            at: Mono(870_000),
            threads: vec![("python".to_owned(), 98.0), ("MIOpenComp".to_owned(), 6.4)],
        }),
        read_bps: Some(0.0),
        write_bps: Some(1_258_291.0),
        host: host(),
        sources: sources(),
        history: history(now, None),
        last_output: Some(Mono(869_900)),
        last_progress: Some(Mono(869_900)),
        phase: Phase::Sampling,
        phase_since: Mono::from_secs(774),
        phases: phases(&[
            (0, Phase::Startup),
            (620, Phase::ModelLoad),
            (774, Phase::Sampling),
        ]),
        section: Some(2),
        sections: Some(4),
        progress: Some(Progress {
            what: None,
            done: 17.0,
            total: Some(25.0),
            seconds_per_step: Some(6.8),
            sampling: true,
            closed: false,
        }),
        job: JobState::InFlight(Mono::from_secs(740)),
        find: None,
        agent: AgentView::default(),
        resend: ResendView::default(),
        verdict: advances(),
        verdict_since: Mono::from_secs(682),
        trail: trail::restarted(),
        stage: Stage::Watching,
        ladder: ladder(),
        restarts_left: 2,
        settings: settings(),
        effective: effective("FAST"),
        effective_next: effective("HYBRID"),
        chosen: chosen(),
        budget: Budget::default(),
        kill: KillPlan::default(),
        server: false,
        decision: None,
        log: log(),
        chatter: 1204,
        dropped: Vec::new(),
        evidence: vec![evidence(1, 1)],
        survivors: Vec::new(),
        left_running: Vec::new(),
        ended: false,
        faults: Vec::new(),
        warnings: Vec::new(),
        result: None,
        results: 0,
        outcome: None,
    }
}

fn sources() -> Vec<SourceStatus> {
    vec![
        source("sysfs 0000:0c:00.0", SourceState::Ok),
        source("nvml", SourceState::Absent),
        source("proc", SourceState::Ok),
        source("host", SourceState::Ok),
        source("kernel log", SourceState::Ok),
        source("clients", SourceState::Ok),
    ]
}

/// A run on a card that much is the matter with, an APU beside it.
pub(super) fn odd_cards() -> Snapshot {
    let mut s = healthy();
    s.gpus = vec![cards::disagreeing(), cards::apu()];
    let mut fault = KernelFault::new(FaultKind::RingTimeout);
    fault.gpu = Some(GpuId(CARD.to_owned()));
    fault.part = Some("gfx_0.0.0".to_owned());
    s.faults = vec![(Mono(s.now.0 - 12_000), fault)];
    let wrong = "HIP_VISIBLE_DEVICES=0 makes the program use GPU 1, but GPU 0 is supervised";
    s.warnings = vec![wrong.to_owned()];
    s
}

/// A run on an APU, with three cards beside it that are idle, asleep and silent.
pub(super) fn on_an_apu() -> Snapshot {
    let mut s = healthy();
    let mut idle = cards::complete();
    idle.busy = Metric::Fresh(0.0);
    idle.power_w = Metric::Fresh(18.0);
    idle.vram_used = Metric::Fresh(Bytes::mib(512));
    let mut asleep = base::card();
    asleep.id = GpuId("0000:d1:00.0".to_owned());
    asleep.index = 2;
    asleep.state = Metric::Fresh("suspended".to_owned());
    let stale = |value| Metric::Stale {
        value,
        age_ms: 61_000,
    };
    (asleep.busy, asleep.power_w) = (stale(0.0), stale(9.0));
    let mut silent = asleep.clone();
    silent.id = GpuId("0000:e1:00.0".to_owned());
    silent.index = 3;
    silent.state = Metric::Unsupported;
    let why = "no answer".to_owned();
    silent.busy = Metric::Failed { why, for_ms: 9_000 };
    silent.power_w = silent.busy.clone();
    silent.vram_used = silent.busy.clone().map(|_| Bytes(0));
    (silent.gtt_used, silent.gtt_total) = (Metric::Unsupported, Metric::Unsupported);
    let mut apu = cards::apu();
    apu.busy = Metric::Fresh(99.0);
    apu.power_w = Metric::Fresh(117.0);
    apu.gtt_used = Metric::Fresh(Bytes::gib(38));
    s.gpu = Some(apu.id.clone());
    s.vram_cap = None;
    s.busy_trust = BusyTrust::Untrusted {
        since: Mono::from_secs(640),
        why: "busy reads 99 % at 24 W while no job runs".to_owned(),
    };
    if let Some(p) = &mut s.process {
        p.on_cards[0].gpu = apu.id.clone();
        p.on_cards[0].gtt = Metric::Fresh(Bytes::gib(36));
        p.on_cards[0].vram = Metric::Fresh(Bytes::mib(300));
        p.on_cards[0].engines[0].ns = 41_000_000_000;
        p.on_cards[0].evicted = Metric::Fresh(Bytes::mib(700));
        p.on_cards[0].evicted_ms = Metric::Fresh(4_200);
    }
    s.gpus = vec![idle, apu, asleep, silent];
    s
}

/// The verdict of a run that advances.
fn advances() -> Verdict {
    Verdict {
        id: VerdictId::Healthy,
        health: Health::Healthy,
        phase: Phase::Sampling,
        section: Some(2),
        confidence: 0.9,
        onset: Mono::from_secs(774),
        sentence: "Steps are completed at the pace of this run, the last one 2 s ago.".to_owned(),
        findings: Vec::new(),
        considered: Vec::new(),
        remedy: None,
        ruled_out: Vec::new(),
        action: ActionId::None,
        next: Some(NextStep {
            what: "silence limit in sampling".to_owned(),
            at: Mono::from_secs(885),
        }),
        questions: None,
        cause: None,
    }
}

fn phases(of: &[(u64, Phase)]) -> Arc<VecDeque<(Mono, Phase)>> {
    let begin = |&(secs, phase)| (Mono::from_secs(secs), phase);
    Arc::new(of.iter().map(begin).collect())
}

fn silent(s: &mut Snapshot, health: Health, confidence: f64, silent_s: u64) {
    let onset = Mono::from_secs(872 - silent_s);
    s.phase = Phase::VaeDecode;
    s.phase_since = onset;
    Arc::make_mut(&mut s.phases).push_back((onset, Phase::VaeDecode));
    s.section = Some(1);
    s.progress = None;
    s.gpus[0].busy = Metric::Fresh(0.0);
    s.gpus[0].power_w = Metric::Fresh(22.0);
    s.gpus[0].sclk_mhz = Metric::Fresh(45.0);
    s.cpu_percent = Some(0.0);
    s.working = Some(Working {
        at: s.now,
        threads: Vec::new(),
    });
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
        findings: trail::silent_findings(onset, silent_s),
        considered: trail::considered(VerdictId::SilentHang),
        remedy: None,
        ruled_out: vec!["model load: no bytes are read".to_owned()],
        cause: None,
        action: ActionId::FastFind,
        next: Some(NextStep {
            what: "verdict silent_hang".to_owned(),
            at: onset + std::time::Duration::from_secs(51),
        }),
        questions: Some(Box::new(trail::stuck(onset, silent_s))),
    };
    s.trail = trail::silent(s, onset);
}

/// Silent for 17 s.
pub(super) fn suspect() -> Snapshot {
    let mut s = healthy();
    silent(&mut s, Health::Suspect, 0.62, 17);
    for c in &mut s.verdict.considered {
        if c.state == RuleState::Match {
            c.state = RuleState::NotYet;
        }
    }
    s.trail.raised.push(trail::raised(700));
    s
}

/// Hung; the kill is announced.
pub(super) fn hung() -> Snapshot {
    let mut s = healthy();
    silent(&mut s, Health::Hung, 0.97, 52);
    s.verdict_since = Mono::from_secs(871);
    s.trail = trail::silent(&s, s.verdict.onset);
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

/// The kill that was announced is held.
pub(super) fn held() -> Snapshot {
    let mut s = hung();
    if let Stage::Countdown { held, .. } = &mut s.stage {
        *held = true;
    }
    s
}

/// A process that somebody else started, hung; nothing is done to it.
pub(super) fn watched() -> Snapshot {
    let mut s = hung();
    s.attached = true;
    s.attempt = Some(attempt(1, "as_given", ActionId::None, Tier::T0));
    s.ladder[0].state = RungState::Running;
    for entry in &mut s.ladder[1..] {
        if !matches!(entry.state, RungState::Unavailable { .. }) {
            entry.state = RungState::Untried;
        }
    }
    s.verdict.next = None;
    s.restarts_left = 0;
    s.stage = Stage::Watching;
    s.decision = Some("silent_hang in vae_decode: the process is not ours, nothing is done to it; advice: stop it and start it again with MIOPEN_FIND_MODE=FAST (rung fast_find: start it with MIOPEN_FIND_MODE=FAST)".to_owned());
    s
}

/// The states that every screen is kept in.
pub(super) fn states() -> [(&'static str, Snapshot); 6] {
    [
        ("healthy", healthy()),
        ("suspect", suspect()),
        ("hung", hung()),
        ("gave_up", gave_up()),
        ("no_gpu", no_gpu()),
        ("finished", finished()),
    ]
}

/// An error was read, the program lives on.
pub(super) fn failing() -> Snapshot {
    let mut s = healthy();
    let at = Mono::from_secs(866);
    s.phase = Phase::VaeDecode;
    s.phase_since = Mono::from_secs(860);
    Arc::make_mut(&mut s.phases).push_back((s.phase_since, Phase::VaeDecode));
    s.progress = None;
    s.verdict_since = Mono::from_secs(867);
    s.verdict = Verdict {
        id: VerdictId::GpuOom,
        health: Health::Failing,
        phase: Phase::VaeDecode,
        section: Some(2),
        confidence: 0.95,
        onset: at,
        sentence: "The card's memory ran out in vae_decode: 6.40 GiB were asked for and 5.11 GiB are free.".to_owned(),
        findings: vec![trail::oom_finding(at)],
        considered: trail::considered(VerdictId::GpuOom),
        remedy: Some(trail::smaller_tiles()),
        ruled_out: vec!["block_allocator: no such line".to_owned()],
        action: ActionId::TiledVae,
        next: None,
        questions: None,
        cause: None,
    };
    s.trail = trail::silent(&s, at);
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
    s.working = None;
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
                temp_c: None,
                sclk_mhz: None,
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
    s.working = None;
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
    let eio: Metric<f64> = Metric::Failed {
        why: "Input/output error".to_owned(),
        for_ms: 12_400,
    };
    s.gpus[0].busy = eio.clone();
    s.gpus[0].power_w = Metric::Stale {
        value: 287.0,
        age_ms: 4_200,
    };
    s.gpus[0].vram_used = Metric::Stale {
        value: Bytes::mib(18_227),
        age_ms: 4_200,
    };
    s.gpus[0].temp_junction = Metric::Unsupported;
    s.gpus[0].temp_mem = eio;
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
    s.trail.lapses = trail::lapses(s.now);
    s.verdict_since = s.now - std::time::Duration::from_secs(12);
    s.verdict.sentence =
        "Only the output is seen; that is not enough to judge. Nothing will be killed.".to_owned();
    s.verdict.next = None;
    trail::then(&mut s.trail, s.verdict_since, &s.verdict);
    let now = s.now.0;
    for p in Arc::make_mut(&mut s.history) {
        p.io_bps = None;
        if p.at.0 + 12_000 > now {
            p.busy = None;
        }
        if p.at.0 + 4_000 > now {
            (p.power_w, p.mem_used) = (None, None);
        }
    }
    s
}

/// Home after one restart.
pub(super) fn finished() -> Snapshot {
    let mut s = healthy();
    s.pid = None;
    s.process = None;
    s.cpu_percent = None;
    s.working = None;
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
    s.results = 1;
    s.result = Some(Artefact {
        path: "/home/user/FramePack/outputs/260714_140311_884_5712_37.mp4".to_owned(),
        size: Bytes::mib(11),
        frames: None,
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
