//! Silence, what is learned of it, hysteresis.

use framepack_tui::model::{Health, VerdictId};

use super::{Limit, decode, limit, silent_for};
use crate::script::{Act, Broken, RTX4090, RX6700XT, RX7900XTX, Script, require};

/// A download of which a part has come.
pub(super) fn download() -> Script {
    let mut s = Script::new(RTX4090, "diffusers", "python3 generate.py");
    s.act(10, Act::Startup);
    s.part_bar(
        0,
        30,
        100,
        60,
        "Downloading model-00001-of-00004.safetensors:",
    );
    s.act(60, Act::Download);
    s
}

/// So many shapes were made; each mesh rested so long. The next one is at its mesh.
fn meshes(n: u32, pause: u32) -> Script {
    let mut s = Script::new(RX7900XTX, "comfyui-hunyuan3d", "python3 main.py");
    s.act(14, Act::Startup);
    s.say("To see the GUI go to: http://127.0.0.1:8188");
    s.act(5, Act::Idle);
    for k in 0..=n {
        s.say("got prompt");
        s.act(5, Act::Load);
        s.bar(50, 10, "Diffusion Sampling::");
        s.act(10, Act::Sample);
        s.bar(100, 10, "FlashVDM Volume Decoding:");
        s.act(10, Act::Vae);
        s.act(5, Act::Cpu1);
        if k < n {
            s.act(pause, Act::Idle);
            s.act(5, Act::Cpu1);
            s.say("Prompt executed in 00:00:40");
            s.act(5, Act::Idle);
        }
    }
    s
}

fn rests_and_goes_on(mut s: Script, seconds: u32, then: Act) {
    s.act(seconds, Act::Idle);
    s.act(10, then);
    s.is_spared();
}

fn hangs(mut s: Script, seconds: u32, by: f64) {
    let onset = s.now();
    s.act(seconds, Act::Idle);
    s.tells(VerdictId::SilentHang, onset, onset + by);
}

fn decode_with_a_silence(seconds: u32) -> Script {
    let mut s = decode();
    s.play_on();
    s.act(60, Act::Idle);
    s.act(10, Act::Vae);
    s.act(seconds, Act::Idle);
    s
}

/// Moments at which a hang was declared.
fn hangs_told(s: &Script) -> (Vec<f64>, String) {
    let got = s.play();
    let hung = got.shown().filter(|(_, v)| v.health == Health::Hung);
    (hung.map(|(t, _)| t).collect(), got.story())
}

/// A script of which nothing can be read at first.
fn unread(seconds: u32) -> Vec<(f64, Health)> {
    let mut s = Script::new(RX7900XTX, "diffusers", "python3 generate.py");
    s.act_with(seconds, Act::Startup, |r| r.cpu = None);
    s.act(20, Act::Startup);
    let got = s.play();
    got.verdicts.iter().map(|(t, v)| (*t, v.health)).collect()
}

/// The CPU can be read in so many rows after each so many in which it cannot.
fn gaps(unread: u32, read: u32, seconds: u32) -> (Script, f64) {
    let mut s = decode();
    let onset = s.now();
    let mut k = 0;
    s.act_with(seconds, Act::Idle, |r| {
        if k % (unread + read) < unread {
            r.cpu = None;
        }
        k += 1;
    });
    (s, onset)
}

pub(super) const ALL: &[Limit] = &[
    limit(
        "silence_s",
        || rests_and_goes_on(decode(), 35, Act::Vae),
        || hangs(decode(), 75, 55.0),
    ),
    limit(
        "silence_load_s",
        || rests_and_goes_on(Script::comfyui_prompt(RX6700XT, ""), 48, Act::Load),
        || hangs(Script::comfyui_prompt(RX6700XT, ""), 100, 70.0),
    ),
    limit(
        "silence_long_s",
        || rests_and_goes_on(meshes(0, 0), 90, Act::Cpu1),
        || hangs(meshes(0, 0), 200, 130.0),
    ),
    limit(
        "silence_download_s",
        || rests_and_goes_on(download(), 45, Act::Download),
        || {
            let mut s = download();
            let onset = s.now();
            s.act(110, Act::Idle);
            s.tells(VerdictId::DownloadStall, onset + 55.0, onset + 70.0);
        },
    ),
    limit(
        "silence_sign_s",
        || {
            let mut s = decode();
            for _ in 0..3 {
                s.act(10, Act::Idle);
                s.act(5, Act::Vae);
            }
            s.is_quiet();
        },
        || {
            let mut s = decode();
            let onset = s.now();
            s.act(40, Act::Idle);
            s.suspects(VerdictId::SilentHang, onset + 20.0);
        },
    ),
    limit(
        "learned_floor_s",
        || rests_and_goes_on(meshes(5, 2), 38, Act::Cpu1),
        || hangs(meshes(5, 2), 110, 55.0),
    ),
    limit(
        "learned_after_count",
        || rests_and_goes_on(meshes(3, 2), 80, Act::Cpu1),
        || hangs(meshes(6, 2), 110, 55.0),
    ),
    limit(
        "learned_factor",
        || rests_and_goes_on(meshes(5, 14), 58, Act::Cpu1),
        || hangs(meshes(5, 14), 160, 90.0),
    ),
    limit(
        "confirm_count",
        || rests_and_goes_on(decode(), 47, Act::Vae),
        || hangs(decode(), 75, 50.0),
    ),
    limit(
        "confirm_s",
        || rests_and_goes_on(decode(), 47, Act::Vae),
        || hangs(decode(), 75, 50.0),
    ),
    limit(
        "ratchet_factor",
        || {
            let mut s = decode_with_a_silence(58);
            s.act(10, Act::Vae);
            let (hung, story) = hangs_told(&s);
            require(hung.len() == 1, Broken::Alarm, || {
                format!("{hung:?}\n{story}")
            });
        },
        || {
            let s = decode_with_a_silence(110);
            let second = s.now() - 110.0;
            let (hung, story) = hangs_told(&s);
            let again = hung.iter().any(|t| *t > second && *t <= second + 80.0);
            require(again, Broken::Late, || format!("{hung:?}\n{story}"));
        },
    ),
    limit(
        "live_s",
        || {
            gaps(3, 1, 120).0.is_spared();
        },
        || {
            let (s, onset) = gaps(1, 2, 90);
            silent_for(&s, onset);
        },
    ),
    limit(
        "warm_up_s",
        || {
            let told = unread(4);
            let blind = told.iter().any(|(_, h)| *h == Health::Blind);
            require(!blind, Broken::State, || format!("{told:?}"));
        },
        || {
            let told = unread(20);
            let blind = told.iter().any(|(t, h)| *h == Health::Blind && *t <= 7.0);
            require(blind, Broken::Late, || format!("{told:?}"));
        },
    ),
    limit(
        "unseen_s",
        || {
            let mut s = decode();
            s.tell_sleep(false);
            s.act(30, Act::Idle);
            s.sleep(7);
            s.act(20, Act::Idle);
            s.act(5, Act::Vae);
            s.is_spared();
        },
        || {
            let mut s = decode();
            s.tell_sleep(false);
            let onset = s.now();
            for _ in 0..6 {
                s.act(10, Act::Idle);
                s.sleep(3);
            }
            s.tells(VerdictId::SilentHang, onset + 40.0, onset + 60.0);
        },
    ),
];
