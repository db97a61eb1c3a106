//! Searches, spins, wedged queues, storms.

use framepack_tui::model::VerdictId;

use super::{Limit, decode, encoding, limit};
use crate::script::{Act, RX6700XT, RX7900XTX, Script};

const SAVED: &str = "Decoded. Current latent shape torch.Size([1, 16, 9, 68, 90]); pixel shape torch.Size([1, 3, 33, 544, 720])";
const STORM: &str = "HSA exception: MemoryRegion::BlockAllocator::alloc failed.";

/// MIOpen has opened a Find and says nothing more.
fn find() -> Script {
    let mut s = Script::framepack_decode(RX6700XT);
    s.say("MIOpen(HIP): Command [LogCmdFindConvolution] ./bin/MIOpenDriver convfp16 -n 1 -c 512 -H 68 -W 90 -k 512 -y 3 -x 3");
    s.say("MIOpen(HIP): Info [EvaluateInvokers] Evaluating Solver: ConvDirectNaiveConvFwd");
    s
}

/// A decode of a card that cannot be read.
fn unseen_card() -> Script {
    let mut s = Script::new(RX7900XTX, "diffusers", "python3 generate.py");
    s.always = Some(|r| {
        r.busy = None;
        r.power = None;
        r.vram_mib = None;
        r.gtt_mib = None;
    });
    s.act(60, Act::Startup);
    s.bar(20, 60, "");
    s.act(60, Act::Sample);
    s
}

/// A decode after one of forty seconds.
fn second_decode() -> Script {
    let mut s = decode();
    s.act(40, Act::Vae);
    s.say(SAVED);
    s.say("latent_padding_size = 9, is_last_section = False");
    s.say("Moving DynamicSwap_HunyuanVideoTransformer3DModelPacked to cuda:0 with preserved memory: 6 GB");
    s.act(5, Act::Load);
    s.bar(25, 50, "");
    s.act(50, Act::Sample);
    s.say("Unloading DynamicSwap_HunyuanVideoTransformer3DModelPacked completely");
    s.say("Loaded AutoencoderKLHunyuanVideo to cuda:0 as complete.");
    s.act(3, Act::Vae);
    s
}

fn works_for(mut s: Script, seconds: u32, how: Act) -> Script {
    s.act(seconds, how);
    s.say(SAVED);
    s.act(5, Act::Vae);
    s
}

fn ends_in(mut s: Script, seconds: u32, how: Act, want: VerdictId, by: f64) {
    let onset = s.now();
    s.act(seconds, how);
    s.tells(want, onset, onset + by);
}

fn is_suspected(mut s: Script, seconds: u32, how: Act, want: VerdictId, by: f64) {
    let onset = s.now();
    s.act(seconds, how);
    s.suspects(want, onset + by);
}

/// Six steps of sixteen seconds.
fn long_steps() -> Script {
    let mut s = Script::diffusers(RX7900XTX);
    s.part_bar(0, 6, 40, 96, "");
    s.act(96, Act::Sample);
    s
}

fn storm(copies: u32) -> Script {
    let mut s = decode();
    s.repeat(STORM, 0.2, copies);
    s
}

/// A search that only warnings told of, then bursts of a model on the card.
fn bursts(times: u32, seconds: u32) -> (Script, f64) {
    let mut s = Script::comfyui_decode(RX6700XT, "");
    s.say("MIOpen(HIP): Warning [SearchImpl] Searching the best solution in the 9 dim space. Please, be patient...");
    let onset = s.now();
    for _ in 0..times {
        s.act(6, Act::Cpu1);
        s.act(seconds, Act::Vae);
    }
    (s, onset)
}

pub(super) const ALL: &[Limit] = &[
    limit(
        "find_factor",
        || {
            works_for(find(), 90, Act::Cpu1).is_spared();
        },
        || ends_in(find(), 200, Act::Cpu1, VerdictId::FindStall, 130.0),
    ),
    limit(
        "find_sign_share",
        || {
            works_for(find(), 45, Act::Cpu1).is_quiet();
        },
        || is_suspected(find(), 90, Act::Cpu1, VerdictId::FindStall, 70.0),
    ),
    limit(
        "spin_factor",
        || {
            works_for(decode(), 90, Act::Cpu1).is_spared();
        },
        || ends_in(decode(), 200, Act::Cpu1, VerdictId::SpinHang, 130.0),
    ),
    limit(
        "spin_alike_factor",
        || {
            works_for(unseen_card(), 450, Act::Cpu1).is_spared();
        },
        || ends_in(unseen_card(), 750, Act::Cpu1, VerdictId::SpinHang, 620.0),
    ),
    limit(
        "spin_explained_factor",
        || {
            works_for(decode(), 1300, Act::CpuMany).is_spared();
        },
        || ends_in(decode(), 2000, Act::CpuMany, VerdictId::SpinHang, 1830.0),
    ),
    limit(
        "spin_sign_s",
        || {
            works_for(unseen_card(), 510, Act::Cpu1).is_quiet();
        },
        || is_suspected(unseen_card(), 595, Act::Cpu1, VerdictId::SpinHang, 555.0),
    ),
    limit(
        "spin_longest_factor",
        || {
            works_for(second_decode(), 165, Act::Cpu1).is_spared();
        },
        || ends_in(second_decode(), 350, Act::Cpu1, VerdictId::SpinHang, 245.0),
    ),
    limit(
        "spin_just_now_s",
        || {
            let mut s = decode();
            s.act(130, Act::CpuMany);
            works_for(s, 25, Act::Cpu1).is_spared();
        },
        || {
            let mut s = decode();
            s.act(130, Act::CpuMany);
            ends_in(s, 100, Act::Cpu1, VerdictId::SpinHang, 42.0);
        },
    ),
    limit(
        "busy_idle_s",
        || {
            works_for(decode(), 45, Act::Wedged).is_spared();
        },
        || ends_in(decode(), 110, Act::Wedged, VerdictId::BusyIdle, 72.0),
    ),
    limit(
        "busy_idle_unknown_s",
        || {
            let mut s = encoding(RX7900XTX);
            s.act(95, Act::Wedged);
            s.act(10, Act::Encode);
            s.is_spared();
        },
        || {
            let s = encoding(RX7900XTX);
            ends_in(s, 200, Act::Wedged, VerdictId::BusyIdle, 132.0);
        },
    ),
    limit(
        "busy_idle_sign_s",
        || {
            let mut s = decode();
            for _ in 0..3 {
                s.act(15, Act::Wedged);
                s.act(5, Act::Vae);
            }
            s.is_quiet();
        },
        || is_suspected(decode(), 50, Act::Wedged, VerdictId::BusyIdle, 25.0),
    ),
    limit(
        "busy_idle_steps_factor",
        || {
            let mut s = long_steps();
            s.act(72, Act::Wedged);
            s.part_bar(7, 8, 40, 16, "");
            s.act(16, Act::Sample);
            s.is_spared();
        },
        || ends_in(long_steps(), 120, Act::Wedged, VerdictId::BusyIdle, 89.0),
    ),
    limit(
        "storm_count",
        || {
            works_for(storm(15), 55, Act::Cpu1).is_quiet();
        },
        || ends_in(storm(30), 110, Act::Cpu1, VerdictId::BlockAllocator, 60.0),
    ),
    limit(
        "storm_sign_share",
        || {
            works_for(storm(30), 11, Act::Cpu1).is_quiet();
        },
        || is_suspected(storm(30), 40, Act::Cpu1, VerdictId::BlockAllocator, 20.0),
    ),
    limit(
        "model_runs_s",
        || {
            bursts(8, 30).0.is_quiet();
        },
        || {
            let (s, onset) = bursts(15, 12);
            s.tells(VerdictId::FindStall, onset + 100.0, onset + 135.0);
        },
    ),
];
