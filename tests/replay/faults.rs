//! Faults, each in another program, on another card and in another wording.

use framepack_tui::model::event::Choice;
use framepack_tui::model::{ActionId, ExitStatus, Phase, VerdictId};

use crate::script::{
    Act, MI300X, RTX4090, RX6700XT, RX6800, RX7900XTX, RX9070XT, STRIX_HALO, Script,
};

#[test]
fn a_silent_decode_under_the_prefixes_of_2026() {
    for prefix in ["[INFO] ", "[2026-02-11 10:22:31.123] [INFO] ", "INFO: "] {
        let mut s = Script::comfyui_decode(RX9070XT, prefix);
        let onset = s.now();
        s.act(120, Act::Idle);
        let got = s.is_fault(
            VerdictId::SilentHang,
            Phase::VaeDecode,
            onset + 45.0,
            onset + 90.0,
        );
        assert!(matches!(got.decisions[0].1.choice, Choice::Restart { .. }));
        assert_eq!(got.main().unwrap().1.action, ActionId::FastFind);
    }
}

#[test]
fn a_silent_decode_behind_a_page_that_polls() {
    let mut s = Script::framepack_decode(MI300X);
    let onset = s.now();
    s.repeat(
        "INFO:     10.0.0.2:4000 - \"GET /heartbeat/x1 HTTP/1.1\" 200 OK",
        2.0,
        70,
    );
    s.act_with(140, Act::Idle, |r| {
        r.net_bps = Some(110_000.0);
        if r.t.rem_euclid(6.0) < 1.0 {
            r.cpu = Some(7.0);
        }
    });
    s.is_fault(
        VerdictId::SilentHang,
        Phase::VaeDecode,
        onset + 45.0,
        onset + 90.0,
    );
}

#[test]
fn a_silent_sampling_of_a_script() {
    let mut s = Script::diffusers(RTX4090);
    s.part_bar(0, 11, 30, 40, "");
    s.act(40, Act::Sample);
    let onset = s.now();
    s.act(120, Act::Idle);
    s.is_fault(
        VerdictId::SilentHang,
        Phase::Sampling,
        onset + 40.0,
        onset + 90.0,
    );
}

#[test]
fn a_silent_load() {
    let mut s = Script::comfyui_prompt(RX6700XT, "");
    let onset = s.now();
    s.act(140, Act::Idle);
    let got = s.is_fault(
        VerdictId::SilentHang,
        Phase::ModelLoad,
        onset + 55.0,
        onset + 110.0,
    );
    // nothing tells of a copy, so nothing points to the engines that copy
    let (_, main) = got.main().unwrap();
    assert_eq!(main.action, ActionId::RetrySame);
}

#[test]
fn a_silent_move_to_the_card() {
    // the program's last words tell of the copy
    let mut s = Script::framepack(RX7900XTX);
    s.say(
        "Unloaded DynamicSwap_LlamaModel as complete.\nLoaded CLIPTextModel to cuda:0 as complete.",
    );
    s.act(10, Act::Encode);
    s.say("latent_padding_size = 0, is_last_section = True");
    s.say("Moving DynamicSwap_HunyuanVideoTransformer3DModelPacked to cuda:0 with preserved memory: 6 GB");
    s.act(4, Act::Load);
    s.act(140, Act::Idle);
    let announced = s.play();

    // the card still fills when nothing is read any more
    let mut s = Script::diffusers(RX6800);
    s.say("Loading checkpoint of the second expert");
    s.act(4, Act::Load);
    let mut vram = 9000.0;
    s.act_with(8, Act::Cpu1, |r| {
        vram += 300.0;
        r.vram_mib = Some(vram);
    });
    s.vram = vram;
    s.act(200, Act::Idle);
    for got in [announced, s.play()] {
        let (_, main) = got.main().expect("a verdict");
        let found = (main.id, main.phase, main.action);
        let want = (VerdictId::SilentHang, Phase::ModelLoad, ActionId::EnvToggle);
        assert_eq!(found, want, "{}", got.story());
    }
}

#[test]
fn a_silent_decode_where_the_card_cannot_be_read() {
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
    // a full bar does not say that a decode follows: the phase is not known, nor is its shorter limit
    let onset = s.now();
    s.act(260, Act::Idle);
    s.is_fault(
        VerdictId::SilentHang,
        Phase::Unknown,
        onset + 40.0,
        onset + 240.0,
    );
}

#[test]
fn a_silent_decode_under_a_counter_that_was_full_from_the_start() {
    let mut s = Script::new(RX7900XTX, "diffusers", "python3 generate.py");
    s.always = Some(|r| r.busy = Some(100.0));
    s.act(60, Act::Startup);
    s.bar(20, 60, "");
    s.act(60, Act::Sample);
    // a full bar does not say that a decode follows: the phase is not known
    let onset = s.now();
    s.act(150, Act::Idle);
    s.is_fault(
        VerdictId::BusyIdle,
        Phase::Unknown,
        onset + 45.0,
        onset + 180.0,
    );
}

/// No power limit, and never seen at work: power per busy percent against its own rest.
#[test]
fn an_apu_that_is_wedged_in_its_first_job() {
    let mut s = Script::new(STRIX_HALO, "diffusers", "python3 generate.py");
    s.act(5, Act::Startup);
    // the CPU shares the package
    s.act_with(55, Act::Startup, |r| r.power = Some(34.0));
    s.bar(20, 20, "");
    s.act_with(20, Act::Startup, |r| r.power = Some(34.0));
    // a full bar does not say that a decode follows: the phase is not known
    let onset = s.now();
    s.act_with(240, Act::Wedged, |r| r.power = Some(14.0));
    s.is_fault(
        VerdictId::BusyIdle,
        Phase::Unknown,
        onset + 60.0,
        onset + 200.0,
    );
}

#[test]
fn a_hang_after_the_machine_slept() {
    let mut s = Script::framepack_decode(RX7900XTX);
    s.act(20, Act::Vae);
    s.sleep(5000);
    let awake = s.now();
    s.act(120, Act::Idle);
    s.is_fault(
        VerdictId::SilentHang,
        Phase::VaeDecode,
        awake + 45.0,
        awake + 90.0,
    );
}

#[test]
fn a_loop_in_sampling() {
    let mut s = Script::diffusers(RTX4090);
    s.part_bar(0, 11, 30, 40, "");
    s.act(40, Act::Sample);
    let onset = s.now();
    s.act(300, Act::Cpu1);
    s.is_fault(
        VerdictId::SpinHang,
        Phase::Sampling,
        onset + 115.0,
        onset + 240.0,
    );
}

#[test]
fn a_wedged_queue() {
    let mut s = Script::framepack_decode(RX7900XTX);
    let onset = s.now();
    s.act(240, Act::Wedged);
    s.is_fault(
        VerdictId::BusyIdle,
        Phase::VaeDecode,
        onset + 55.0,
        onset + 180.0,
    );
}

#[test]
fn a_queue_that_is_wedged_before_the_card_was_seen_at_work() {
    let mut s = Script::diffusers(RX7900XTX);
    s.say("Encoding prompt");
    let onset = s.now();
    s.act(240, Act::Wedged);
    s.is_fault(
        VerdictId::BusyIdle,
        Phase::TextEncode,
        onset + 115.0,
        onset + 200.0,
    );
}

#[test]
fn a_search_that_does_not_advance() {
    let mut s = Script::framepack_decode(RX6700XT);
    s.say("MIOpen(HIP): Command [LogCmdFindConvolution] ./bin/MIOpenDriver convfp16 -n 1 -c 512 -H 68 -W 90 -k 512 -y 3 -x 3");
    s.say("MIOpen(HIP): Info [EvaluateInvokers] Evaluating Solver: ConvDirectNaiveConvFwd");
    let onset = s.now();
    s.act(300, Act::Cpu1);
    s.is_fault(
        VerdictId::FindStall,
        Phase::VaeDecode,
        onset + 115.0,
        onset + 180.0,
    );
}

#[test]
fn an_allocator_storm_without_end() {
    let mut s = Script::framepack_decode(RX7900XTX);
    let onset = s.now();
    s.repeat(
        "HSA exception: MemoryRegion::BlockAllocator::alloc failed.",
        0.4,
        400,
    );
    s.act(170, Act::Cpu1);
    s.is_fault(
        VerdictId::BlockAllocator,
        Phase::VaeDecode,
        onset + 40.0,
        onset + 90.0,
    );
}

#[test]
fn an_allocator_storm_then_silence() {
    let mut s = Script::framepack_decode(RX7900XTX);
    s.repeat(
        "HSA exception: MemoryRegion::BlockAllocator::alloc failed.",
        0.4,
        8,
    );
    s.act(4, Act::Cpu1);
    let onset = s.now();
    s.act(120, Act::Idle);
    s.is_fault(
        VerdictId::BlockAllocator,
        Phase::VaeDecode,
        onset + 40.0,
        onset + 90.0,
    );
}

#[test]
fn no_algorithm_in_a_server_that_lives_on() {
    let mut s = Script::framepack_decode(RX9070XT);
    let onset = s.now();
    s.say("MIOpen Error: /src/ocl/convolutionocl.cpp:275: No suitable algorithm was found to execute the required convolution");
    s.say("Traceback (most recent call last):\n  File \"demo_gradio.py\", in worker\nRuntimeError: miopenStatusUnknownError");
    s.act(60, Act::Idle);
    let got = s.is_fault(VerdictId::NoAlgorithm, Phase::VaeDecode, onset, onset + 5.0);
    assert_eq!(got.decisions[0].1.choice, Choice::Advise);
    let idle = got
        .shown()
        .find(|(t, v)| *t >= onset && v.id == VerdictId::IdleWaiting);
    assert!(idle.is_none(), "{}", got.story());
    assert!(
        !got.decisions[0].1.skipped.is_empty(),
        "names what it cannot take"
    );
}

#[test]
fn device_memory_in_the_words_of_comfyui() {
    let mut s = Script::comfyui_prompt(RTX4090, "[INFO] ");
    s.part_bar(0, 2, 20, 10, "");
    s.act(10, Act::Sample);
    let onset = s.now();
    s.say("!!! Exception during processing !!! Allocation on device 0 would exceed allowed memory. (out of memory)");
    s.say("Traceback (most recent call last):\n  File \"execution.py\", in execute\ntorch.OutOfMemoryError: Allocation on device 0");
    s.say("Got an OOM, unloading all loaded models.");
    s.say("Prompt executed in 31.00 seconds");
    s.act(60, Act::Idle);
    s.is_fault(VerdictId::GpuOom, Phase::Sampling, onset, onset + 5.0);
}

#[test]
fn ends_of_a_job_are_told_apart() {
    let host = "Traceback (most recent call last):\n  File \"generate.py\", line 9, in <module>\nMemoryError";
    let error = "Traceback (most recent call last):\n  File \"generate.py\", line 9, in <module>\nValueError: height must be a multiple of 16";
    for (said, status, want) in [
        ("", ExitStatus::Signal(11), VerdictId::CrashSegv),
        ("", ExitStatus::Signal(9), VerdictId::Killed),
        ("", ExitStatus::Signal(15), VerdictId::Killed),
        ("", ExitStatus::Code(3), VerdictId::AppError),
        (error, ExitStatus::Code(1), VerdictId::AppError),
        (host, ExitStatus::Code(1), VerdictId::HostOom),
        // what was printed long before explains no signal
        (error, ExitStatus::Signal(9), VerdictId::Killed),
    ] {
        let mut s = Script::diffusers(RX7900XTX);
        s.part_bar(0, 11, 30, 40, "");
        s.act(40, Act::Sample);
        let onset = s.now();
        if !said.is_empty() {
            s.say(said);
        }
        s.exit(status);
        let got = s.is_fault(want, Phase::Sampling, onset, onset + 5.0);
        let (_, main) = got.main().unwrap();
        // beside it what was printed may stand as a finding of its own
        let of_it = main.findings.iter().filter(|f| f.verdict == want);
        let mut cites = of_it.flat_map(|f| &f.cites);
        let quotes = cites.any(|c| c.text.contains("multiple of 16"));
        assert_eq!(
            quotes,
            want == VerdictId::AppError && said == error,
            "{}",
            main.sentence
        );
    }
}

#[test]
fn the_kernel_ends_the_program_for_want_of_memory() {
    let mut s = Script::comfyui_prompt(RTX4090, "");
    let onset = s.now();
    s.kernel("Out of memory: Killed process 31337 (python3) total-vm:9kB, anon-rss:1kB");
    s.exit(ExitStatus::Signal(9));
    s.is_fault(VerdictId::HostOom, Phase::ModelLoad, onset, onset + 5.0);

    // another program was the victim
    let mut s = Script::comfyui_prompt(RTX4090, "");
    s.kernel("Out of memory: Killed process 99 (chrome) total-vm:9kB, anon-rss:1kB");
    s.exit(ExitStatus::Signal(9));
    s.is_fault(VerdictId::Killed, Phase::ModelLoad, onset, onset + 5.0);
}

#[test]
fn a_silent_decode_while_someone_watches_a_film() {
    let mut s = Script::comfyui_decode(RX7900XTX, "");
    let onset = s.now();
    s.act_with(120, Act::Idle, |r| r.net_bps = Some(3e6));
    s.is_fault(
        VerdictId::SilentHang,
        Phase::VaeDecode,
        onset + 45.0,
        onset + 90.0,
    );
}

#[test]
fn a_download_that_receives_nothing() {
    let mut s = Script::new(RTX4090, "diffusers", "python3 generate.py");
    s.act(10, Act::Startup);
    // a bar that is named after a file and counts no bytes would be a load
    s.part_bar(
        0,
        30,
        100,
        60,
        "Downloading model-00001-of-00004.safetensors:",
    );
    s.act(60, Act::Download);
    let onset = s.now();
    // the verdict stands after a minute; a restart would cost what was fetched, and the
    // network may come back, so it waits for a quarter of an hour
    s.act(800, Act::Idle);
    s.tells(VerdictId::DownloadStall, onset + 55.0, onset + 75.0);
}

#[test]
fn a_download_that_receives_nothing_for_a_quarter_of_an_hour() {
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
    let onset = s.now();
    s.act(1000, Act::Idle);
    s.is_fault(
        VerdictId::DownloadStall,
        Phase::Download,
        onset + 55.0,
        onset + 930.0,
    );
}

/// Those that notice when a number of the rules changes, for [`crate::mutation`].
pub(crate) const ALL: &[(&str, fn())] = &[
    (
        "faults::a_silent_move_to_the_card",
        a_silent_move_to_the_card,
    ),
    (
        "faults::a_silent_decode_under_the_prefixes_of_2026",
        a_silent_decode_under_the_prefixes_of_2026,
    ),
    (
        "faults::a_silent_decode_behind_a_page_that_polls",
        a_silent_decode_behind_a_page_that_polls,
    ),
    (
        "faults::a_silent_sampling_of_a_script",
        a_silent_sampling_of_a_script,
    ),
    ("faults::a_silent_load", a_silent_load),
    (
        "faults::a_silent_decode_where_the_card_cannot_be_read",
        a_silent_decode_where_the_card_cannot_be_read,
    ),
    (
        "faults::a_silent_decode_under_a_counter_that_was_full_from_the_start",
        a_silent_decode_under_a_counter_that_was_full_from_the_start,
    ),
    (
        "faults::an_apu_that_is_wedged_in_its_first_job",
        an_apu_that_is_wedged_in_its_first_job,
    ),
    (
        "faults::a_hang_after_the_machine_slept",
        a_hang_after_the_machine_slept,
    ),
    ("faults::a_loop_in_sampling", a_loop_in_sampling),
    ("faults::a_wedged_queue", a_wedged_queue),
    (
        "faults::a_queue_that_is_wedged_before_the_card_was_seen_at_work",
        a_queue_that_is_wedged_before_the_card_was_seen_at_work,
    ),
    (
        "faults::a_search_that_does_not_advance",
        a_search_that_does_not_advance,
    ),
    (
        "faults::an_allocator_storm_without_end",
        an_allocator_storm_without_end,
    ),
    (
        "faults::an_allocator_storm_then_silence",
        an_allocator_storm_then_silence,
    ),
    (
        "faults::no_algorithm_in_a_server_that_lives_on",
        no_algorithm_in_a_server_that_lives_on,
    ),
    (
        "faults::device_memory_in_the_words_of_comfyui",
        device_memory_in_the_words_of_comfyui,
    ),
    (
        "faults::ends_of_a_job_are_told_apart",
        ends_of_a_job_are_told_apart,
    ),
    (
        "faults::the_kernel_ends_the_program_for_want_of_memory",
        the_kernel_ends_the_program_for_want_of_memory,
    ),
    (
        "faults::a_silent_decode_while_someone_watches_a_film",
        a_silent_decode_while_someone_watches_a_film,
    ),
    (
        "faults::a_download_that_receives_nothing",
        a_download_that_receives_nothing,
    ),
];
