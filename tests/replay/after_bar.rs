//! Servers of unknown make, which do not say when a job is over: behind the last step of
//! their bar they decode, fail, hang, or wait for their user.

use framepack_tui::model::{Phase, VerdictId};

use crate::script::{Act, Gpu, MI300X, RTX4090, RX6700XT, RX6800, RX7900XTX, RX9070XT, Script};

const FORGE: &str = "[Memory Management] Target: IntegratedAutoencoderKL, Free GPU: 7113.31 MB, Model Require: 159.87 MB, Previously Loaded: 0.00 MB, Inference Require: 1024.00 MB, Remaining: 5929.44 MB, All loaded to GPU.";

/// A server at the end of the bar of its job.
fn sampled(gpu: Gpu, command: &str) -> Script {
    let mut s = Script::new(gpu, "server", command);
    s.act(12, Act::Startup);
    s.say("Running on local URL:  http://127.0.0.1:7860");
    s.act(10, Act::Idle);
    s.bar(24, 60, "");
    s.act(60, Act::Sample);
    s
}

#[test]
fn it_rests_whatever_a_helper_thread_or_a_stuck_counter_does() {
    let mut s = sampled(RX7900XTX, "python3 launch.py");
    s.act_with(900, Act::Idle, |r| r.cpu = Some(100.2));
    s.is_calm(&[], VerdictId::IdleWaiting);

    let mut s = sampled(RX9070XT, "python3 app.py");
    s.act(3, Act::Vae);
    s.act_with(900, Act::Idle, |r| {
        r.busy = Some(100.0);
        r.power = Some(48.0);
    });
    s.is_calm(
        &[(s.now() - 800.0, VerdictId::IdleWaiting)],
        VerdictId::IdleWaiting,
    );

    // what works on the card after a rest is another program
    let mut s = sampled(RTX4090, "python3 app.py");
    s.act(60, Act::Idle);
    s.act_with(600, Act::Sample, |r| r.cpu = Some(0.4));
    s.is_calm(&[], VerdictId::IdleWaiting);
}

#[test]
fn it_decodes_for_minutes_without_a_word() {
    let mut s = sampled(MI300X, "python3 wgp.py");
    s.act(400, Act::Vae);
    let decoding = s.now() - 5.0;
    s.say("New video saved to Path: outputs/a.mp4");
    s.act(600, Act::Idle);
    s.is_calm(&[(decoding, VerdictId::Healthy)], VerdictId::IdleWaiting);
}

/// `WanGP` is no server of unknown make any more: it says where it wrote the result, and until
/// then its job is in flight.
#[test]
fn wangp_without_its_result_is_not_at_rest() {
    let mut s = sampled(RX9070XT, "python3 wgp.py");
    s.act(3, Act::Vae);
    let onset = s.now();
    s.act(900, Act::Idle);
    s.tells(VerdictId::SilentHang, onset, onset + 900.0);
}

#[test]
fn forge_tells_of_the_decode_and_of_the_end() {
    let mut s = sampled(RX6800, "python3 launch.py");
    s.say(FORGE);
    s.say("Moving model(s) has taken 0.09 seconds");
    s.act(4, Act::Vae);
    s.part_bar(24, 24, 24, 1, "Total progress:");
    s.act(900, Act::Idle);
    s.is_calm(&[], VerdictId::IdleWaiting);
}

#[test]
fn the_decode_hangs() {
    let forge = || {
        let mut s = sampled(RX7900XTX, "python3 launch.py");
        s.say(FORGE);
        s
    };
    for (act, verdict) in [
        (Act::Idle, VerdictId::SilentHang),
        (Act::Cpu1, VerdictId::SpinHang),
        (Act::Wedged, VerdictId::BusyIdle),
    ] {
        let mut s = forge();
        s.act(3, Act::Vae);
        let onset = s.now();
        s.act(300, act);
        s.is_fault(verdict, Phase::VaeDecode, onset + 15.0, onset + 240.0);
    }

    let mut s = sampled(RX6700XT, "python3 launch.py --listen");
    let onset = s.now();
    s.say("MIOpen(HIP): Info [FindConvFwdAlgorithm] requestAlgoCount = 1, workspace = 0");
    s.say("MIOpen(HIP): Info [GenericSearch] ConvHipImplicitGemmFwdXdlops: Searching the best solution among 4123...");
    s.act(500, Act::Cpu1);
    s.is_fault(
        VerdictId::FindStall,
        Phase::VaeDecode,
        onset + 30.0,
        onset + 300.0,
    );
}

#[test]
fn the_decode_fails() {
    for (words, verdict) in [
        (
            "Traceback (most recent call last):\n  File \"wgp.py\", line 7, in generate\ntorch.OutOfMemoryError: HIP out of memory. Tried to allocate 9.00 GiB. GPU 0 has a total capacity of 23.98 GiB of which 1.05 GiB is free.",
            VerdictId::GpuOom,
        ),
        (
            "10:14:25-100 ERROR    VAE decode: Input type (float) and bias type (c10::BFloat16) should be the same",
            VerdictId::DtypeMismatch,
        ),
        (
            "torch.OutOfMemoryError: Allocation on device",
            VerdictId::GpuOom,
        ),
        (
            "/opt/app/processing.py:732: RuntimeWarning: invalid value encountered in cast\n  x_sample = x_sample.astype(np.uint8)",
            VerdictId::NanOutput,
        ),
    ] {
        for decoded in [2, 12] {
            let mut s = sampled(RX7900XTX, "python3 webui.py");
            s.act(decoded, Act::Vae);
            let onset = s.now();
            s.say(words);
            s.act(60, Act::Idle);
            s.is_fault(verdict, Phase::VaeDecode, onset, onset + 10.0);
        }
    }
}

#[test]
fn the_next_job_has_nothing_to_do_with_it() {
    let mut s = sampled(RX7900XTX, "python3 webui.py");
    s.act(2, Act::Vae);
    s.say(FORGE);
    s.act(4, Act::Vae);
    s.bar(24, 60, "");
    s.act(60, Act::Sample);
    s.act(300, Act::Idle);
    s.is_calm(&[], VerdictId::IdleWaiting);
}
