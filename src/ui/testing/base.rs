//! The pieces of which the states are made. All figures are invented.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::model::Vendor;
use crate::model::event::{EvidenceItem, EvidenceReport};
use crate::model::{
    ActionId, AttemptSpec, Bytes, Chosen, Chosens, Effective, Follow, GpuId, GpuSample, HostSample,
    Metric, Mono, Origin, Phase, ProcSample, RungId, Setting, SourceState, SourceStatus, Tier,
};
use crate::run::snapshot::LogLines;
use crate::run::snapshot::{LadderEntry, LogKind, LogLine, Point, RungState, SettingView};

pub(super) const CARD: &str = "0000:0c:00.0";

pub(super) fn rung(id: &str) -> RungId {
    RungId(id.to_owned())
}

pub(super) fn card() -> GpuSample {
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

/// The six settings of a program that follows some of them.
pub(super) fn settings() -> Vec<SettingView> {
    let view = |setting, now: Option<&str>, next: Option<&str>, origin, follow| SettingView {
        setting,
        now: now.map(str::to_owned),
        next: next.map(str::to_owned),
        origin,
        follow,
    };
    let no = || {
        Follow::No {
        why: "FramePack has no argument for it (a profile may name one: [workload.arguments] vae_tile), and the agent is off (--agent off)".to_owned(),
    }
    };
    let line = |line| Origin::Profile {
        file: "profiles/rx7900xtx-safe.toml".to_owned(),
        line,
    };
    vec![
        view(
            Setting::FindMode,
            Some("FAST"),
            Some("HYBRID"),
            Origin::Live,
            Follow::Yes {
                how: "MIOPEN_FIND_MODE=FAST".to_owned(),
            },
        ),
        view(Setting::ChunkSize, None, None, Origin::BuiltIn, no()),
        view(Setting::TileSize, None, None, Origin::BuiltIn, no()),
        view(
            Setting::Precision,
            None,
            Some("float32"),
            Origin::Live,
            Follow::Yes {
                how: "--fp32-vae".to_owned(),
            },
        ),
        view(
            Setting::VramCap,
            Some("20 GiB"),
            Some("20 GiB"),
            line(26),
            Follow::Ours,
        ),
        view(Setting::PreservedMemory, None, None, Origin::BuiltIn, no()),
    ]
}

/// What the user chose of [`settings`].
pub(super) fn chosen() -> Chosens {
    let chosen = |value: &str| Chosen {
        value: value.to_owned(),
        over: vec![rung("fast_find")],
    };
    Chosens {
        profile: None,
        settings: BTreeMap::from([
            (Setting::FindMode, chosen("HYBRID")),
            (Setting::Precision, chosen("float32")),
        ]),
    }
}

/// Settings with who set them.
pub(super) fn effective(find_mode: &str) -> Arc<Vec<Effective>> {
    let line = |line| Origin::Profile {
        file: "profiles/rx7900xtx-safe.toml".to_owned(),
        line,
    };
    let entry = |key: &str, value: Option<&str>, origin, overrides: Option<&str>| Effective {
        key: key.to_owned(),
        value: value.map(str::to_owned),
        origin,
        overrides: overrides.map(str::to_owned),
        idle: None,
    };
    let by = if find_mode == "FAST" {
        Origin::Rung {
            rung: rung("fast_find"),
        }
    } else {
        Origin::Live
    };
    Arc::new(vec![
        entry("budget.restarts", Some("3"), Origin::BuiltIn, None),
        entry("detect.find_limit", Some("2m"), line(29), None),
        entry("env.MIOPEN_FIND_ENFORCE", Some("NONE"), line(23), None),
        entry(
            "env.MIOPEN_FIND_MODE",
            Some(find_mode),
            by,
            Some("NORMAL (your environment)"),
        ),
        entry("env.MIOPEN_LOG_LEVEL", Some("5"), Origin::Supervisor, None),
        entry("limits.vram_cap", Some("20 GiB"), line(26), None),
        entry(
            "workload.adapter",
            Some("framepack"),
            Origin::Detected,
            None,
        ),
    ])
}

pub(super) fn process() -> ProcSample {
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
        on_cards: vec![super::cards::held()],
        ..ProcSample::default()
    }
}

pub(super) fn host() -> HostSample {
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

pub(super) fn source(name: &str, state: SourceState) -> SourceStatus {
    SourceStatus {
        name: name.to_owned(),
        state,
        age_ms: 300,
        why: None,
    }
}

pub(super) fn history(now: Mono, idle_from: Option<Mono>) -> Arc<VecDeque<Point>> {
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
            temp_c: (!gap).then_some(if idle { 55.0 } else { 84.0 }),
            sclk_mhz: (!gap).then_some(if idle { 45.0 } else { 2410.0 }),
            io_bps: Some(if idle { 0.0 } else { 1_258_291.0 }),
        }
    });
    Arc::new(points.collect())
}

pub(super) fn log() -> LogLines {
    let line = |secs: u64, kind, text: &str, bar, folded| LogLine {
        at: Mono::from_secs(secs),
        kind,
        text: text.to_owned(),
        phase: match secs {
            0..700 => Phase::Startup,
            700..774 => Phase::ModelLoad,
            _ => Phase::Sampling,
        },
        bar,
        folded,
    };
    LogLines::from_iter([
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
    ])
}

pub(super) fn entry(id: &str, action: ActionId, tier: Tier, state: RungState) -> LadderEntry {
    LadderEntry {
        id: rung(id),
        action,
        tier,
        state,
    }
}

pub(super) fn ladder() -> Vec<LadderEntry> {
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

pub(super) fn attempt(number: u32, id: &str, action: ActionId, tier: Tier) -> AttemptSpec {
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

pub(super) fn evidence(number: u32, attempt: u32) -> EvidenceReport {
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
                absent: false,
            },
            EvidenceItem {
                kind: "python_stacks".to_owned(),
                file: None,
                bytes: 0,
                failed: Some("py-spy is not installed".to_owned()),
                absent: true,
            },
        ],
        took_ms: 820,
        asked: None,
    }
}
