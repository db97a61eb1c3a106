//! Cards with more to say than that of [`base`](super::base). All figures are invented.

use crate::model::{
    Bytes, Disagreement, EngineTime, GpuId, GpuSample, Link, Metric, Opinion, Resets,
    ThrottleReason, TreeOnCard, Vendor,
};

use super::base::{CARD, card};

/// An APU with a small carve-out beside the card.
pub(in crate::ui) const APU: &str = "0000:c3:00.0";

/// Strix Halo: the GTT counts, the power is the package's, much is not offered.
pub(in crate::ui) fn apu() -> GpuSample {
    GpuSample {
        arch: Some("gfx1151".to_owned()),
        apu: true,
        state: Metric::Fresh("active".to_owned()),
        busy: Metric::Fresh(3.0),
        power_w: Metric::Fresh(14.0),
        vram_used: Metric::Fresh(Bytes::mib(410)),
        vram_total: Metric::Fresh(Bytes::gib(8)),
        gtt_used: Metric::Fresh(Bytes::mib(2_150)),
        gtt_total: Metric::Fresh(Bytes::gib(96)),
        temp_edge: Metric::Fresh(47.0),
        sclk_mhz: Metric::Fresh(620.0),
        throttle: Metric::Fresh(Vec::new()),
        perf_level: Metric::Fresh("auto".to_owned()),
        resets: Metric::Fresh(Resets {
            count: None,
            kinds: vec!["soft".to_owned(), "queue".to_owned()],
            core_dump: Some(false),
        }),
        ttm_limit: Metric::Fresh(Bytes::gib(96)),
        compute_index: Some(0),
        ..GpuSample::unread(
            GpuId(APU.to_owned()),
            1,
            Vendor::Amd,
            "Radeon 8060S".to_owned(),
            "sysfs",
        )
    }
}

/// The card of [`base`](super::base) with everything that a kernel of today tells.
pub(in crate::ui) fn complete() -> GpuSample {
    GpuSample {
        fan_percent: Metric::Fresh(38.0),
        video_busy: Metric::Fresh(0.0),
        throttle: Metric::Fresh(Vec::new()),
        link: Metric::Fresh(Link {
            gts: 16.0,
            width: 16,
            max_gts: Some(16.0),
            max_width: Some(16),
        }),
        perf_level: Metric::Fresh("auto".to_owned()),
        resets: Metric::Fresh(Resets {
            count: Some(0),
            kinds: vec!["soft".to_owned(), "full".to_owned()],
            core_dump: Some(false),
        }),
        compute_index: Some(0),
        ..card()
    }
}

/// A card that sleeps and was not read.
pub(in crate::ui) fn asleep() -> GpuSample {
    fn unread<T>() -> Metric<T> {
        Metric::Failed {
            why: "the card sleeps, and is not woken to be read".to_owned(),
            for_ms: 8_000,
        }
    }
    GpuSample {
        state: Metric::Fresh("suspended".to_owned()),
        busy: unread(),
        mem_busy: unread(),
        power_w: unread(),
        power_cap_w: unread(),
        vram_used: unread(),
        vram_total: unread(),
        gtt_used: unread(),
        gtt_total: unread(),
        temp_edge: unread(),
        temp_junction: unread(),
        temp_mem: unread(),
        sclk_mhz: unread(),
        mclk_mhz: unread(),
        fan_rpm: unread(),
        fan_percent: unread(),
        throttle: unread(),
        link: unread(),
        perf_level: unread(),
        ..complete()
    }
}

/// A card of which rocm-smi says something else, throttled, at a forced level, reset
/// before.
pub(in crate::ui) fn disagreeing() -> GpuSample {
    GpuSample {
        busy: Metric::Fresh(97.0),
        throttle: Metric::Fresh(vec![ThrottleReason::Power, ThrottleReason::Thermal]),
        link: Metric::Fresh(Link {
            gts: 2.5,
            width: 16,
            max_gts: Some(16.0),
            max_width: Some(16),
        }),
        perf_level: Metric::Fresh("high".to_owned()),
        resets: Metric::Fresh(Resets {
            count: Some(2),
            kinds: vec!["soft".to_owned(), "full".to_owned()],
            core_dump: Some(true),
        }),
        compute_index: Some(1),
        second: Some(Box::new(Opinion {
            source: "rocm-smi".to_owned(),
            busy: Metric::Fresh(0.0),
            mem_busy: Metric::Fresh(41.0),
            power_w: Metric::Fresh(286.0),
            vram_used: Metric::Stale {
                value: Bytes::mib(18_227),
                age_ms: 6_000,
            },
            temp_junction: Metric::Failed {
                why: "NOT_SUPPORTED".to_owned(),
                for_ms: 1_000,
            },
            ..Opinion::default()
        })),
        disagreements: vec![
            Disagreement {
                value: "busy".to_owned(),
                first: "97 %".to_owned(),
                second: "0 %".to_owned(),
                note: Some("rocm-smi turns a failed read into 0".to_owned()),
            },
            Disagreement {
                value: "vram_total".to_owned(),
                first: "24.0 GiB".to_owned(),
                second: "23.9 GiB".to_owned(),
                note: None,
            },
        ],
        ..complete()
    }
}

/// What the tree of [`base`](super::base) holds on its card.
pub(in crate::ui) fn held() -> TreeOnCard {
    TreeOnCard {
        gpu: GpuId(CARD.to_owned()),
        source: "kfd".to_owned(),
        processes: 1,
        vram: Metric::Fresh(Bytes::mib(17_000)),
        gtt: Metric::Fresh(Bytes::mib(410)),
        evicted: Metric::Fresh(Bytes(0)),
        evicted_ms: Metric::Fresh(0),
        queues: Metric::Fresh(4),
        cu_occupancy: Metric::Unsupported,
        engines: vec![EngineTime {
            engine: "gfx".to_owned(),
            ns: 0,
        }],
        busy: Metric::Unsupported,
        compute_note: Some(
            "no per-process % for ROCm: its work goes through KFD queues, which fdinfo does not count"
                .to_owned(),
        ),
    }
}
