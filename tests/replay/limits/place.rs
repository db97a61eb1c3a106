//! Swapping, mapped memory, a transformer that stays, jobs on the CPU or on two devices,
//! and how long a warning stays.

use framepack_tui::model::{Health, VerdictId};

use super::{Limit, limit};
use crate::case::Row;
use crate::script::{
    Act, Broken, Gpu, RTX4090, RX7900XTX, RX9070XT, Script, W6400, W7800, require,
};

/// Three steps of a prompt of ComfyUI.
pub(super) fn before_it_swaps() -> Script {
    let mut s = Script::comfyui_prompt(RTX4090, "");
    s.part_bar(0, 3, 20, 30, "");
    s.act(30, Act::Sample);
    s
}

fn no_thrash(seconds: u32, change: impl FnMut(&mut Row)) {
    let mut s = before_it_swaps();
    s.act_with(seconds, Act::Thrash, change);
    s.part_bar(4, 8, 20, 30, "");
    s.act(30, Act::Sample);
    s.is_quiet();
}

fn thrashes(change: impl FnMut(&mut Row)) {
    let mut s = before_it_swaps();
    let onset = s.now();
    s.act_with(150, Act::Thrash, change);
    s.tells(VerdictId::Thrash, onset + 25.0, onset + 48.0);
}

/// Swapping in waves.
fn waves(on: u32, off: u32) -> impl FnMut(&mut Row) {
    let mut k = 0;
    move |r| {
        if k % (on + off) >= on {
            r.write_bps = Some(0.0);
        }
        k += 1;
    }
}

fn only_pressure(percent: f64) -> impl FnMut(&mut Row) {
    move |r| {
        r.write_bps = Some(0.0);
        r.psi_mem = Some(percent);
    }
}

const OFFLOADED: &str = "Offloading DynamicSwap_HunyuanVideoTransformer3DModelPacked from cuda:0 to preserve memory: 8 GB";

/// A decode behind a transformer that was only offloaded.
fn offloaded(gpu: Gpu, vram: f64) -> Script {
    let mut s = Script::framepack(gpu);
    s.say("Loaded CLIPTextModel to cuda:0 as complete.");
    s.act(10, Act::Encode);
    s.say("latent_padding_size = 0, is_last_section = True");
    s.say("Moving DynamicSwap_HunyuanVideoTransformer3DModelPacked to cuda:0 with preserved memory: 6 GB");
    s.vram = vram;
    s.act(5, Act::Load);
    s.bar(25, 100, "");
    s.act(100, Act::Sample);
    s.say(OFFLOADED);
    s.say("Loaded AutoencoderKLHunyuanVideo to cuda:0 as complete.");
    s
}

fn no_risk(mut s: Script) {
    s.act(30, Act::Vae);
    s.is_quiet();
}

fn is_risky(mut s: Script) {
    let onset = s.now();
    s.act(30, Act::Vae);
    s.tells(VerdictId::OffloadRisk, onset, onset + 5.0);
}

/// Memory falls for so many seconds beside a warning: when it is told that it ended.
fn memory_falls(seconds: u32) -> (f64, Option<f64>, String) {
    let mut s = offloaded(RX7900XTX, 22_000.0);
    s.act(20, Act::Vae);
    let onset = s.now();
    s.act_with(seconds, Act::Vae, |r| r.vram_mib = Some(12_000.0));
    s.act(10, Act::Vae);
    let got = s.play();
    let ended = got
        .shown()
        .find(|(t, v)| *t >= onset && v.health == Health::Healthy);
    (onset, ended.map(|(t, _)| t), got.story())
}

fn a_dip_is_no_end() {
    let (_, ended, story) = memory_falls(1);
    require(ended.is_none(), Broken::State, || {
        format!("{ended:?}\n{story}")
    });
}

fn the_end_is_told() {
    let (onset, ended, story) = memory_falls(20);
    let soon = ended.is_some_and(|t| t <= onset + 1.3);
    require(soon, Broken::Late, || format!("{ended:?}\n{story}"));
}

/// A script that is to sample beside a card that has not moved.
fn loaded(gpu: Gpu, taken: f64) -> Script {
    let mut s = Script::new(gpu, "diffusers", "python3 generate.py");
    s.act(30, Act::Startup);
    s.bar(7, 25, "Loading pipeline components...:");
    s.act(25, Act::Load);
    s.vram += taken;
    s.act(5, Act::Load);
    s
}

/// Steps on the CPU for so long, this busy.
fn on_cpu(s: &mut Script, seconds: u32, cpu: f64) {
    s.part_bar(0, seconds / 10, 60, seconds, "");
    s.act_with(seconds, Act::CpuMany, |r| r.cpu = Some(cpu));
}

fn then_the_card(mut s: Script, from: u32) {
    s.part_bar(from, from + 10, 60, 40, "");
    s.act(40, Act::Sample);
    s.is_quiet();
}

fn falls_back(mut s: Script, cpu: f64, by: f64) {
    let onset = s.now();
    on_cpu(&mut s, 150, cpu);
    s.tells(VerdictId::CpuFallback, onset, onset + by);
}

/// ComfyUI has said that it runs on the CPU, and is to sample.
fn says_cpu() -> Script {
    let mut s = Script::new(RX9070XT, "comfyui", "python3 main.py");
    s.act(6, Act::Startup);
    s.say("Device: cpu");
    s.act(6, Act::Startup);
    s.say("To see the GUI go to: http://127.0.0.1:8188");
    s.act(8, Act::Idle);
    s.say("got prompt");
    s.act(20, Act::Load);
    s
}

/// A script whose pipeline and inputs are on two devices, by its words.
fn two_devices(said: bool) -> Script {
    let mut s = Script::diffusers(RX9070XT);
    if said {
        s.say("[INFO] Pipeline device: cpu\nlatents are on cuda:0");
    }
    s
}

/// Full work claimed at a fifth of the power, in steps of so long.
fn waits(s: &mut Script, n: u32, each: u32) {
    s.part_bar(0, n, 50, n * each, "");
    s.act_with(n * each, Act::Sample, |r| {
        r.busy = Some(100.0);
        r.power = Some(55.0);
    });
}

fn then_it_works(mut s: Script, from: u32) {
    s.part_bar(from, from + 5, 50, 40, "");
    s.act(40, Act::Sample);
    // steps this long are a sign of a wedged queue, too
    s.is_spared();
}

fn mismatch(mut s: Script, n: u32, each: u32, by: f64) {
    let onset = s.now();
    waits(&mut s, n, each);
    s.tells(VerdictId::DeviceMismatch, onset, onset + by);
}

pub(super) const ALL: &[Limit] = &[
    limit(
        "thrash_io_bps",
        || {
            no_thrash(60, |r| {
                r.read_bps = Some(1.1e7);
                r.write_bps = Some(1.1e7);
            });
        },
        || {
            thrashes(|r| {
                r.read_bps = Some(2.4e7);
                r.write_bps = Some(2.4e7);
            });
        },
    ),
    limit(
        "thrash_threads_count",
        || no_thrash(60, |r| r.d_state = Some(0.0)),
        || thrashes(|r| r.d_state = Some(1.0)),
    ),
    limit(
        "thrash_cpu_pct",
        || no_thrash(60, |r| r.cpu = Some(90.0)),
        || thrashes(|r| r.cpu = Some(45.0)),
    ),
    limit("thrash_s", || no_thrash(22, |_| {}), || thrashes(|_| {})),
    limit(
        "thrash_dip_s",
        || no_thrash(72, waves(10, 8)),
        || thrashes(waves(10, 5)),
    ),
    limit(
        "thrash_psi_pct",
        || no_thrash(60, only_pressure(15.0)),
        || thrashes(only_pressure(30.0)),
    ),
    limit(
        "offload_vram_mib",
        || no_risk(offloaded(W7800, 29_000.0)),
        || is_risky(offloaded(RX7900XTX, 22_000.0)),
    ),
    limit(
        "offload_free_share",
        || no_risk(offloaded(W6400, 800.0)),
        || is_risky(offloaded(W6400, 1_800.0)),
    ),
    limit(
        "offload_free_mib",
        || no_risk(offloaded(RX7900XTX, 12_000.0)),
        || is_risky(offloaded(RX7900XTX, 17_000.0)),
    ),
    limit("calm_count", a_dip_is_no_end, the_end_is_told),
    limit("calm_s", a_dip_is_no_end, the_end_is_told),
    limit(
        "fallback_cpu_pct",
        || {
            let mut s = loaded(RX7900XTX, 0.0);
            on_cpu(&mut s, 120, 130.0);
            s.is_quiet();
        },
        || falls_back(loaded(RX7900XTX, 0.0), 260.0, 60.0),
    ),
    limit(
        "fallback_s",
        || {
            let mut s = loaded(RX7900XTX, 0.0);
            on_cpu(&mut s, 30, 900.0);
            then_the_card(s, 3);
        },
        || falls_back(loaded(RX7900XTX, 0.0), 900.0, 60.0),
    ),
    limit(
        "fallback_said_s",
        || {
            let mut s = says_cpu();
            s.bar(2, 7, "");
            s.act(7, Act::CpuMany);
            s.say("Prompt executed in 27.00 seconds");
            s.act(20, Act::Idle);
            s.is_quiet();
        },
        || falls_back(says_cpu(), 900.0, 15.0),
    ),
    limit(
        "fallback_vram_mib",
        || {
            let mut s = loaded(RX7900XTX, 1500.0);
            on_cpu(&mut s, 120, 900.0);
            s.is_quiet();
        },
        || falls_back(loaded(RX7900XTX, 800.0), 900.0, 60.0),
    ),
    limit(
        "mismatch_s",
        || {
            let mut s = two_devices(true);
            waits(&mut s, 1, 30);
            then_it_works(s, 1);
        },
        || mismatch(two_devices(true), 10, 15, 55.0),
    ),
    limit(
        "mismatch_unsaid_s",
        || {
            let mut s = two_devices(false);
            waits(&mut s, 4, 18);
            then_it_works(s, 4);
        },
        || mismatch(two_devices(false), 12, 18, 115.0),
    ),
    limit(
        "mismatch_step_s",
        || {
            let mut s = two_devices(true);
            waits(&mut s, 15, 6);
            then_it_works(s, 15);
        },
        || mismatch(two_devices(true), 12, 12, 55.0),
    ),
    limit(
        "mismatch_steps_count",
        || {
            let mut s = two_devices(false);
            waits(&mut s, 2, 55);
            then_it_works(s, 2);
        },
        || mismatch(two_devices(false), 7, 31, 125.0),
    ),
];
