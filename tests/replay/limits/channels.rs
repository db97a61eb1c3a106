//! What counts as a sign of life.

use framepack_tui::model::{ThreadSample, VerdictId};

use super::silence::download;
use super::{Limit, decode, limit, silent_for};
use crate::case::Row;
use crate::script::{Act, Broken, RX7900XTX, Script, require};

/// In a decode nothing moves but this.
fn moves(change: impl FnMut(&mut Row)) -> (Script, f64) {
    let mut s = decode();
    let onset = s.now();
    s.act_with(90, Act::Idle, change);
    (s, onset)
}

fn lives(change: impl FnMut(&mut Row)) {
    moves(change).0.is_quiet();
}

fn hangs(change: impl FnMut(&mut Row)) {
    let (s, onset) = moves(change);
    silent_for(&s, onset);
}

/// Each so many seconds one of this much CPU.
fn every(seconds: u32, cpu: f64) -> impl FnMut(&mut Row) {
    let mut k = 0;
    move |r| {
        r.cpu = Some(if k % seconds == 0 { cpu } else { 0.0 });
        k += 1;
    }
}

/// This much CPU, and no thread that works: two are woken again and again, and what else
/// ran is gone when they are looked at.
fn only_pollers(cpu: f64) -> impl FnMut(&mut Row) {
    let mut k = 0;
    move |r| {
        k += 1;
        r.cpu = Some(cpu);
        r.threads = (1..=2)
            .map(|tid| ThreadSample {
                pid: 4242,
                tid,
                name: "python3".into(),
                state: 'S',
                run_ns: k * 4_000_000,
                switches: k * 200,
                wchan: None,
            })
            .collect();
    }
}

/// A bar whose steps end while the card reads nothing, then a busy core.
fn unseen_steps(n: u32) -> (Script, f64) {
    let mut s = Script::diffusers(RX7900XTX);
    s.part_bar(0, n, 40, 10 * n, "");
    s.act(10 * n, Act::Cpu1);
    let onset = s.now();
    s.act(200, Act::Cpu1);
    (s, onset)
}

/// A core is busy, but for a moment each so often.
fn with_dips(busy: u32, dip: u32, seconds: u32, level: f64) -> (Script, f64) {
    let mut s = decode();
    let onset = s.now();
    let mut k = 0;
    s.act_with(seconds, Act::Cpu1, |r| {
        r.cpu = Some(if k % (busy + dip) < busy { level } else { 6.0 });
        k += 1;
    });
    (s, onset)
}

fn spins(onset: f64, s: &Script) {
    s.tells(VerdictId::SpinHang, onset + 110.0, onset + 135.0);
}

/// The state while an encoder is read at this rate.
fn reads(bps: f64, want: VerdictId) {
    let mut s = Script::new(RX7900XTX, "diffusers", "python3 generate.py");
    s.act(20, Act::Startup);
    s.say("Encoding prompt");
    s.act_with(60, Act::Hdd, |r| r.read_bps = Some(bps));
    let got = s.is_quiet();
    let at = got.at(s.now() - 5.0);
    require(at == Some(want), Broken::State, || {
        format!("{at:?}\n{}", got.story())
    });
}

pub(super) const ALL: &[Limit] = &[
    limit(
        "io_active_bps",
        || lives(|r| r.read_bps = Some(100_000.0)),
        || hangs(|r| r.read_bps = Some(45_000.0)),
    ),
    limit(
        "net_active_bps",
        || {
            let mut s = download();
            s.act_with(120, Act::Idle, |r| r.net_bps = Some(400_000.0));
            s.is_quiet();
        },
        || {
            let mut s = download();
            let onset = s.now();
            s.act_with(120, Act::Idle, |r| r.net_bps = Some(200_000.0));
            s.tells(VerdictId::DownloadStall, onset + 55.0, onset + 70.0);
        },
    ),
    limit(
        "minor_faults_count",
        || lives(|r| r.faults = Some(800.0)),
        || hangs(|r| r.faults = Some(300.0)),
    ),
    limit(
        "major_faults_count",
        || lives(|r| r.major_faults = Some(8.0)),
        || hangs(|r| r.major_faults = Some(3.0)),
    ),
    limit(
        "vram_step_mib",
        || lives(|r| r.vram_mib = Some(4000.0 + 48.0 * (r.t % 2.0))),
        || hangs(|r| r.vram_mib = Some(4000.0 + 20.0 * (r.t % 2.0))),
    ),
    limit(
        "cpu_many_pct",
        || {
            let (s, _) = with_dips(1, 0, 250, 220.0);
            s.is_quiet();
        },
        || {
            let (s, onset) = with_dips(1, 0, 200, 100.0);
            spins(onset, &s);
        },
    ),
    limit(
        "heavy_read_bps",
        || reads(3e6, VerdictId::Healthy),
        || reads(6e6, VerdictId::LoadingIo),
    ),
    limit(
        "cpu_active_pct",
        || lives(|r| r.cpu = Some(4.5)),
        || hangs(|r| r.cpu = Some(2.0)),
    ),
    limit(
        "cpu_burst_pct",
        || lives(only_pollers(35.0)),
        || hangs(only_pollers(18.0)),
    ),
    limit(
        "cpu_smooth_s",
        || lives(every(12, 18.0)),
        || {
            let mut s = decode();
            let onset = s.now();
            s.act_with(120, Act::Idle, every(6, 9.0));
            // what the decode left in the mean goes first
            s.tells(VerdictId::SilentHang, onset + 40.0, onset + 75.0);
        },
    ),
    limit(
        "trust_steps_count",
        || {
            unseen_steps(4).0.is_quiet();
        },
        || {
            let (s, onset) = unseen_steps(2);
            spins(onset, &s);
        },
    ),
    limit(
        "core_busy_pct",
        || {
            with_dips(1, 0, 200, 60.0).0.is_quiet();
        },
        || {
            let (s, onset) = with_dips(1, 0, 200, 100.0);
            spins(onset, &s);
        },
    ),
    limit(
        "core_crowded_pct",
        || {
            let mut s = decode();
            s.act_with(200, Act::Cpu1, |r| {
                r.cpu = Some(15.0);
                r.psi_cpu = Some(100.0);
            });
            s.is_quiet();
        },
        || {
            let mut s = decode();
            let onset = s.now();
            s.act_with(200, Act::Cpu1, |r| {
                r.cpu = Some(30.0);
                r.psi_cpu = Some(100.0);
            });
            spins(onset, &s);
        },
    ),
    limit(
        "core_dip_s",
        || {
            with_dips(20, 4, 240, 100.0).0.is_quiet();
        },
        || {
            let (s, onset) = with_dips(20, 2, 200, 100.0);
            spins(onset, &s);
        },
    ),
];
