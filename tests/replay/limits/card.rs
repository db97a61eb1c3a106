//! Levels of the card: at work, at rest, and whether its counter is believed.

use framepack_tui::model::VerdictId;

use super::{Limit, decode, encoding, limit, silent_for};
use crate::case::Row;
use crate::script::{Act, Gpu, RX7900XTX, STRIX_HALO, Script, W6400};

/// What a decode reads of the card while nothing else moves: busy percent and watts.
fn reads(busy: f64, power: f64) -> impl Fn(&mut Row) {
    move |r| {
        r.busy = Some(busy);
        r.power = Some(power);
    }
}

fn works(mut s: Script, seconds: u32, change: impl Fn(&mut Row)) {
    s.act_with(seconds, Act::Idle, change);
    s.is_quiet();
}

fn hangs(mut s: Script, change: impl Fn(&mut Row)) {
    let onset = s.now();
    s.act_with(90, Act::Idle, change);
    silent_for(&s, onset);
}

fn is_wedged(mut s: Script, power: f64, by: f64) {
    let onset = s.now();
    s.act_with(200, Act::Wedged, |r| r.power = Some(power));
    s.tells(VerdictId::BusyIdle, onset + 40.0, onset + by);
}

/// A script's own word that its decode begins: without it the phase is unknown, and an
/// unknown phase may be silent for longer.
const DECODE: &str = "Decoding the latents";

/// A decode of a card whose level at rest was not read.
fn no_rest() -> Script {
    let mut s = Script::new(RX7900XTX, "diffusers", "python3 generate.py");
    s.act_with(1, Act::Startup, |r| {
        r.busy = None;
        r.power = None;
    });
    s.act(30, Act::Startup);
    s.bar(20, 60, "");
    s.act(60, Act::Sample);
    s.say(DECODE);
    s
}

/// A decode of a card whose counter stays at 0, so that only power tells.
fn silent_counter(gpu: Gpu, at_work: f64) -> Script {
    let mut s = Script::new(gpu, "diffusers", "python3 generate.py");
    s.vram = 700.0;
    s.always = Some(|r| r.busy = Some(0.0));
    s.act(30, Act::Startup);
    s.bar(20, 60, "");
    s.act_with(60, Act::Sample, |r| r.power = Some(at_work));
    s.say(DECODE);
    s
}

/// An APU in its first job: the CPU lifted its power so far, and no further.
fn apu(most: f64) -> Script {
    let mut s = Script::new(STRIX_HALO, "diffusers", "python3 generate.py");
    s.act(1, Act::Startup);
    s.act_with(59, Act::Startup, |r| r.power = Some(most));
    s.bar(20, 20, "");
    s.act_with(20, Act::Startup, |r| r.power = Some(most));
    s
}

/// Full work of the card's at this power, in silence.
fn computes(mut s: Script, seconds: u32, power: f64) {
    s.act_with(seconds, Act::Vae, |r| {
        r.busy = Some(100.0);
        r.power = Some(power);
    });
    s.is_quiet();
}

fn stuck(r: &mut Row) {
    r.busy = Some(100.0);
}

/// A server whose counter is stuck at full from the end of its start on; it waits so long
/// for its first job, which then is at its decode.
fn stuck_while_waiting(seconds: u32) -> Script {
    let mut s = Script::framepack(RX7900XTX);
    s.act_with(seconds, Act::Idle, stuck);
    s.always = Some(stuck);
    s.framepack_job();
    s
}

/// The same counter was only full for so long: then it is honest.
fn full_while_waiting(seconds: u32) -> Script {
    let mut s = Script::framepack(RX7900XTX);
    s.act_with(seconds, Act::Idle, stuck);
    s.always = Some(low_power);
    s.framepack_job();
    s
}

/// A card that works at the power of a slow memory.
fn low_power(r: &mut Row) {
    r.power = Some(100.0);
}

/// A server whose counter is full before the launch, and for so long of its start.
fn full_before(readings: usize, seconds: u32) -> Script {
    let mut s = Script::new(RX7900XTX, "framepack", "python3 demo_gradio.py");
    s.before(readings, stuck);
    s.act_with(seconds, Act::Startup, stuck);
    s
}

/// It goes on with an honest counter.
fn then_honest(mut s: Script) -> Script {
    s.act_with(10, Act::Startup, |r| r.busy = Some(0.0));
    s.always = Some(low_power);
    to_the_decode(&mut s);
    s
}

/// Its counter stays full.
fn then_stuck(mut s: Script) -> Script {
    s.always = Some(stuck);
    to_the_decode(&mut s);
    s
}

fn to_the_decode(s: &mut Script) {
    s.say("* Running on local URL:  http://127.0.0.1:7860");
    s.act(2, Act::Idle);
    s.framepack_job();
}

/// Light work of the card's, then full work claimed at the power of little.
fn light(seconds: u32, busy: f64) -> Script {
    let mut s = encoding(RX7900XTX);
    s.act_with(seconds, Act::Encode, |r| {
        r.busy = Some(busy);
        r.power = Some(200.0);
    });
    s
}

pub(super) const ALL: &[Limit] = &[
    limit(
        "busy_active_pct",
        || works(no_rest(), 90, reads(7.0, 22.0)),
        || hangs(no_rest(), reads(4.0, 22.0)),
    ),
    limit(
        "busy_above_idle_pct",
        || works(decode(), 90, reads(15.0, 22.0)),
        || hangs(decode(), reads(9.0, 22.0)),
    ),
    limit(
        "busy_full_pct",
        || works(decode(), 150, reads(60.0, 40.0)),
        || is_wedged(decode(), 70.0, 72.0),
    ),
    limit(
        "busy_hard_pct",
        || {
            let mut s = super::place::before_it_swaps();
            s.act_with(80, Act::Thrash, |r| r.busy = Some(45.0));
            s.is_quiet();
        },
        || {
            let mut s = super::place::before_it_swaps();
            let onset = s.now();
            s.act_with(80, Act::Thrash, |r| r.busy = Some(20.0));
            s.tells(VerdictId::Thrash, onset + 25.0, onset + 45.0);
        },
    ),
    limit(
        "busy_at_work_pct",
        || {
            let mut s = light(40, 35.0);
            s.act_with(95, Act::Wedged, |r| r.power = Some(70.0));
            s.act(10, Act::Encode);
            s.is_spared();
        },
        || is_wedged(light(60, 70.0), 70.0, 72.0),
    ),
    limit(
        "traffic_pct",
        || {
            let mut s = stuck_while_waiting(15);
            s.act_with(90, Act::Idle, |r| r.mem_busy = Some(20.0));
            s.is_quiet();
        },
        || {
            hangs(stuck_while_waiting(15), |r| r.mem_busy = Some(10.0));
        },
    ),
    limit(
        "contradiction_share",
        || computes(decode(), 100, 200.0),
        || is_wedged(decode(), 100.0, 72.0),
    ),
    limit(
        "contradiction_cap_share",
        || computes(encoding(RX7900XTX), 170, 130.0),
        || is_wedged(encoding(RX7900XTX), 70.0, 132.0),
    ),
    limit(
        "next_to_nothing_w",
        || computes(apu(34.0), 170, 19.0),
        || is_wedged(apu(34.0), 15.5, 132.0),
    ),
    limit(
        "power_moves_factor",
        || computes(apu(15.0), 170, 13.0),
        || is_wedged(apu(20.0), 13.0, 132.0),
    ),
    limit(
        "power_moves_w",
        || computes(apu(16.5), 170, 13.0),
        || is_wedged(apu(18.0), 13.0, 132.0),
    ),
    limit(
        "power_active_w",
        || works(silent_counter(W6400, 52.0), 90, reads(0.0, 55.0)),
        || hangs(silent_counter(W6400, 52.0), reads(0.0, 30.0)),
    ),
    limit(
        "power_active_work_share",
        || works(decode(), 90, reads(0.0, 170.0)),
        || hangs(decode(), reads(0.0, 115.0)),
    ),
    limit(
        "power_active_cap_share",
        || {
            works(silent_counter(RX7900XTX, 300.0), 90, reads(0.0, 150.0));
        },
        || hangs(silent_counter(RX7900XTX, 300.0), reads(0.0, 80.0)),
    ),
    limit(
        "lie_s",
        || works(then_honest(full_before(3, 2)), 90, reads(93.0, 100.0)),
        || hangs(then_stuck(full_before(3, 7)), stuck),
    ),
    limit(
        "lie_before_s",
        || works(then_honest(full_before(2, 8)), 90, reads(93.0, 100.0)),
        || hangs(then_stuck(full_before(3, 12)), stuck),
    ),
    limit(
        "lie_waiting_s",
        || works(full_while_waiting(7), 90, reads(93.0, 100.0)),
        || hangs(stuck_while_waiting(15), stuck),
    ),
];
