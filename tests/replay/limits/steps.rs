//! The pace of steps: crawl, heat, memory that overflows.

use framepack_tui::model::VerdictId;

use super::{Limit, limit, sampling, small_sampling, steps};
use crate::case::Row;
use crate::script::{Act, RX6800, RX7900XTX, RX9070XT, Script};

/// Work that something holds up: the card has pauses.
fn held_up(r: &mut Row) {
    r.busy = Some(70.0);
}

/// As busy as before, at this share of the power.
fn at_power(share: f64) -> impl Fn(&mut Row) {
    move |r| r.power = r.power.map(|p| p * share)
}

/// Memory of the card in use and system memory mapped for it, MiB.
fn memory(vram: f64, gtt: f64) -> impl Fn(&mut Row) {
    move |r| {
        r.vram_mib = Some(vram);
        r.gtt_mib = Some(gtt);
    }
}

fn overflow(r: &mut Row) {
    memory(16_250.0, 7000.0)(r);
}

/// Twenty steps of two seconds.
fn quick_sampling() -> Script {
    let mut s = Script::diffusers(RX6800);
    steps(&mut s, 0, 20, 2, |_| {});
    s
}

/// Eight steps of twelve seconds.
fn slow_sampling() -> Script {
    let mut s = Script::diffusers(RX7900XTX);
    steps(&mut s, 0, 8, 12, |_| {});
    s
}

/// So many slow steps and then the usual pace again.
fn passes(mut s: Script, from: u32, n: u32, each: u32, usual: u32, change: impl Fn(&mut Row)) {
    steps(&mut s, from, n, each, &change);
    steps(&mut s, from + n, 5, usual, |_| {});
    s.is_quiet();
}

fn stays(
    mut s: Script,
    from: u32,
    (n, each): (u32, u32),
    want: VerdictId,
    by: f64,
    change: impl Fn(&mut Row),
) {
    let onset = s.now();
    steps(&mut s, from, n, each, change);
    s.tells(want, onset, onset + by);
}

/// From its first step on nothing fits: steps of so many seconds at this power.
fn never_fitted(n: u32, each: u32, power: f64) -> (Script, f64) {
    let mut s = Script::diffusers(RX9070XT);
    let onset = s.now();
    steps(&mut s, 0, n, each, |r| {
        overflow(r);
        r.power = Some(power);
    });
    (s, onset)
}

/// A second section whose first step compiles, beside memory that is full.
fn second_section() -> Script {
    let mut s = Script::framepack(RX6800);
    s.say("Loaded CLIPTextModel to cuda:0 as complete.");
    s.act(5, Act::Encode);
    for padding in [9, 0] {
        s.say(&format!(
            "latent_padding_size = {padding}, is_last_section = {}",
            if padding == 0 { "True" } else { "False" }
        ));
        s.say("Moving DynamicSwap_HunyuanVideoTransformer3DModelPacked to cuda:0 with preserved memory: 6 GB");
        s.act(5, Act::Load);
        let first = if padding == 0 { 100 } else { 4 };
        s.part_bar(0, 1, 25, first, "");
        s.act_with(first, Act::Sample, memory(16_200.0, 7000.0));
        s.part_bar(1, 25, 25, 96, "");
        s.act_with(96, Act::Sample, memory(16_200.0, 7000.0));
        s.say("Unloading DynamicSwap_HunyuanVideoTransformer3DModelPacked completely");
        s.say("Loaded AutoencoderKLHunyuanVideo to cuda:0 as complete.");
        s.act(10, Act::Vae);
        s.say("Unloaded AutoencoderKLHunyuanVideo as complete.");
        s.say("Decoded. Current latent shape torch.Size([1, 16, 9, 68, 90])");
        s.act(3, Act::CpuMany);
    }
    s
}

/// A first step that compiles, so many of four seconds, and then a crawl.
fn crawl_after(n: u32) -> (Script, f64) {
    let mut s = Script::diffusers(RX6800);
    steps(&mut s, 0, 1, 100, |_| {});
    steps(&mut s, 1, n, 4, |_| {});
    let onset = s.now();
    steps(&mut s, 1 + n, 6, 30, held_up);
    (s, onset)
}

fn crawls_after(n: u32) {
    let (s, onset) = crawl_after(n);
    s.tells(VerdictId::Crawl, onset + 40.0, onset + 62.0);
}

pub(super) const ALL: &[Limit] = &[
    limit(
        "pace_warm_count",
        || {
            second_section().is_quiet();
        },
        || crawls_after(3),
    ),
    limit(
        "pace_usual_count",
        || {
            let mut s = Script::diffusers(RX6800);
            steps(&mut s, 0, 3, 1, |_| {});
            steps(&mut s, 3, 12, 8, held_up);
            s.is_quiet();
        },
        || crawls_after(4),
    ),
    limit(
        "crawl_factor",
        || passes(sampling(RX6800), 12, 10, 16, 4, held_up),
        || {
            stays(
                sampling(RX6800),
                12,
                (6, 28),
                VerdictId::Crawl,
                70.0,
                held_up,
            );
        },
    ),
    limit(
        "crawl_steps_count",
        || passes(sampling(RX6800), 12, 1, 60, 4, held_up),
        || {
            stays(
                sampling(RX6800),
                12,
                (6, 30),
                VerdictId::Crawl,
                65.0,
                held_up,
            );
        },
    ),
    limit(
        "crawl_s",
        || passes(quick_sampling(), 20, 2, 12, 2, held_up),
        || {
            stays(
                quick_sampling(),
                20,
                (10, 12),
                VerdictId::Crawl,
                55.0,
                held_up,
            );
        },
    ),
    limit(
        "throttled_factor",
        || {
            let mut s = slow_sampling();
            steps(&mut s, 8, 10, 13, at_power(0.7));
            s.is_quiet();
        },
        || {
            let s = slow_sampling();
            stays(s, 8, (6, 20), VerdictId::Throttled, 70.0, at_power(0.6));
        },
    ),
    limit(
        "throttled_power_share",
        || passes(slow_sampling(), 8, 6, 18, 12, at_power(1.0)),
        || {
            let s = slow_sampling();
            stays(s, 8, (6, 18), VerdictId::Throttled, 65.0, at_power(0.7));
        },
    ),
    limit(
        "throttled_steps_count",
        || passes(slow_sampling(), 8, 2, 20, 12, at_power(0.6)),
        || {
            let s = slow_sampling();
            stays(s, 8, (7, 20), VerdictId::Throttled, 70.0, at_power(0.6));
        },
    ),
    limit(
        "throttled_s",
        || passes(sampling(RX6800), 12, 3, 7, 4, at_power(0.6)),
        || {
            let s = sampling(RX6800);
            stays(s, 12, (12, 7), VerdictId::Throttled, 42.0, at_power(0.6));
        },
    ),
    limit(
        "throttled_most_factor",
        || passes(sampling(RX6800), 12, 8, 18, 4, at_power(0.8)),
        || {
            let s = sampling(RX6800);
            stays(s, 12, (8, 16), VerdictId::Throttled, 60.0, at_power(0.5));
        },
    ),
    limit(
        "throttled_busy_pct",
        || {
            passes(slow_sampling(), 8, 6, 18, 12, |r| {
                at_power(0.6)(r);
                held_up(r);
            });
        },
        || {
            let s = slow_sampling();
            stays(s, 8, (6, 18), VerdictId::Throttled, 65.0, at_power(0.6));
        },
    ),
    limit(
        "spill_vram_share",
        || passes(small_sampling(), 12, 6, 12, 4, memory(11_500.0, 7000.0)),
        || {
            stays(
                small_sampling(),
                12,
                (6, 12),
                VerdictId::VramSpill,
                40.0,
                overflow,
            );
        },
    ),
    limit(
        "spill_gtt_mib",
        || passes(small_sampling(), 12, 6, 12, 4, memory(16_250.0, 880.0)),
        || {
            let mapped = memory(16_250.0, 1700.0);
            stays(
                small_sampling(),
                12,
                (6, 12),
                VerdictId::VramSpill,
                40.0,
                mapped,
            );
        },
    ),
    limit(
        "spill_factor",
        || passes(small_sampling(), 12, 10, 6, 4, overflow),
        || {
            stays(
                small_sampling(),
                12,
                (6, 12),
                VerdictId::VramSpill,
                40.0,
                overflow,
            );
        },
    ),
    limit(
        "spill_steps_count",
        || {
            let mut s = small_sampling();
            steps(&mut s, 12, 1, 27, overflow);
            steps(&mut s, 13, 5, 4, overflow);
            s.is_quiet();
        },
        || {
            stays(
                small_sampling(),
                12,
                (8, 13),
                VerdictId::VramSpill,
                36.0,
                overflow,
            );
        },
    ),
    limit(
        "spill_s",
        || passes(quick_small(), 20, 3, 5, 2, overflow),
        || {
            stays(
                quick_small(),
                20,
                (12, 5),
                VerdictId::VramSpill,
                30.0,
                overflow,
            );
        },
    ),
    limit(
        "spill_cap_share",
        || {
            never_fitted(12, 12, 270.0).0.is_quiet();
        },
        || {
            let (s, onset) = never_fitted(12, 12, 130.0);
            s.tells(VerdictId::VramSpill, onset + 20.0, onset + 60.0);
        },
    ),
    limit(
        "spill_step_s",
        || {
            never_fitted(20, 6, 120.0).0.is_quiet();
        },
        || {
            let (s, onset) = never_fitted(12, 12, 120.0);
            s.tells(VerdictId::VramSpill, onset + 20.0, onset + 60.0);
        },
    ),
];

/// Twenty steps of two seconds on a card with little memory.
fn quick_small() -> Script {
    let mut s = Script::diffusers(RX9070XT);
    steps(&mut s, 0, 20, 2, |_| {});
    s
}
