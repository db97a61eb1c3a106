//! Honest work and honest waiting that look like a hang: no alarm, no suspicion.

use framepack_tui::model::{ExitStatus, VerdictId};

use crate::case::Happening;
use crate::script::{Act, MI300X, RTX4090, RX6700XT, RX7900XTX, RX9070XT, STRIX_HALO, Script};

const FP_SAVED: &str = "Decoded. Current latent shape torch.Size([1, 16, 9, 68, 90]); pixel shape torch.Size([1, 3, 33, 544, 720])";

#[test]
fn an_idle_server_polled_by_a_page_with_a_helper_thread_at_full_speed() {
    let mut s = Script::framepack(RX7900XTX);
    s.repeat(
        "INFO:     127.0.0.1:51240 - \"GET /queue/status HTTP/1.1\" 200 OK",
        5.0,
        300,
    );
    s.act_with(1500, Act::Idle, |r| {
        r.cpu = Some(100.3);
        r.net_bps = Some(120_000.0);
    });
    s.is_calm(&[(900.0, VerdictId::IdleWaiting)], VerdictId::IdleWaiting);
}

#[test]
fn a_counter_that_stays_full_after_the_job() {
    let mut s = Script::comfyui_decode(RX9070XT, "");
    s.act(20, Act::Vae);
    s.say("Prompt executed in 154.20 seconds");
    s.act_with(900, Act::Idle, |r| {
        r.busy = Some(100.0);
        r.power = Some(48.0);
    });
    s.is_calm(&[], VerdictId::IdleWaiting);
}

#[test]
fn an_apu_whose_power_does_not_move_and_that_is_honestly_busy() {
    let mut s = Script::diffusers(STRIX_HALO);
    s.always = Some(|r| r.power = Some(12.0));
    s.bar(20, 100, "");
    s.act(100, Act::Sample);
    s.act(600, Act::Vae);
    s.exit(ExitStatus::Code(0));
    s.is_calm(&[], VerdictId::Finished);
}

#[test]
fn weights_from_a_slow_disk() {
    let mut s = Script::comfyui_prompt(RX7900XTX, "[INFO] ");
    s.act(600, Act::Hdd);
    let loading = s.now() - 20.0;
    s.bar(20, 60, "");
    s.act(60, Act::Sample);
    s.is_calm(&[(loading, VerdictId::LoadingIo)], VerdictId::Healthy);
}

#[test]
fn an_encoder_that_is_read_while_its_phase_runs() {
    let mut s = Script::new(RX7900XTX, "diffusers", "python3 generate.py");
    s.act(20, Act::Startup);
    s.say("Encoding prompt");
    s.act(200, Act::Hdd);
    let loading = s.now() - 20.0;
    s.act(10, Act::Encode);
    s.is_calm(&[(loading, VerdictId::LoadingIo)], VerdictId::Healthy);
}

#[test]
fn weights_from_the_page_cache_by_memory_map() {
    let mut s = Script::new(RTX4090, "diffusers", "python3 generate.py");
    s.act(20, Act::Startup);
    s.say("Loading pipeline");
    s.act_with(200, Act::Idle, |r| {
        r.cpu = Some(2.0);
        r.faults = Some(9000.0);
    });
    s.is_calm(&[], VerdictId::Healthy);
}

#[test]
fn a_download_with_dips() {
    let mut s = Script::new(RTX4090, "diffusers", "python3 generate.py");
    s.act(10, Act::Startup);
    for k in 0..3 {
        s.part_bar(
            30 * k,
            30 * k + 30,
            100,
            60,
            "Downloading model-00001-of-00004.safetensors:",
        );
        s.act(60, Act::Download);
        s.act(20 + 11 * k, Act::Idle);
    }
    let waiting = s.now() - 5.0;
    s.part_bar(
        90,
        100,
        100,
        30,
        "Downloading model-00001-of-00004.safetensors:",
    );
    s.act(29, Act::Download);
    s.is_calm(
        &[(waiting, VerdictId::DownloadWait)],
        VerdictId::DownloadWait,
    );
}

#[test]
fn an_apu_whose_readings_do_not_move() {
    let mut s = Script::new(STRIX_HALO, "comfyui", "python3 main.py");
    s.always = Some(|r| {
        r.busy = Some(0.0);
        r.power = Some(31.0);
        r.vram_mib = Some(512.0);
        r.gtt_mib = Some(400.0);
    });
    s.act(12, Act::Startup);
    s.say("To see the GUI go to: http://127.0.0.1:8188");
    s.act(8, Act::Idle);
    s.say("got prompt");
    s.act(30, Act::Load);
    s.bar(20, 400, "");
    s.act(400, Act::Sample);
    s.say("Requested to load WanVAE");
    s.act(900, Act::Vae);
    s.say("Prompt executed in 900.00 seconds");
    s.act(30, Act::Idle);
    s.is_calm(&[], VerdictId::IdleWaiting);
}

#[test]
fn kernels_compiled_inside_the_process() {
    let mut s = Script::framepack_decode(RX9070XT);
    s.act_with(540, Act::Cpu1, |r| r.faults = Some(4000.0));
    s.act(30, Act::Vae);
    s.is_calm(&[], VerdictId::Healthy);
}

#[test]
fn kernels_compiled_on_all_cores_without_a_word() {
    let mut s = Script::framepack_decode(RX6700XT);
    s.act(540, Act::CpuMany);
    s.act(30, Act::Vae);
    s.is_calm(&[], VerdictId::Healthy);
}

#[test]
fn kernels_compiled_by_helpers() {
    let mut s = Script::comfyui_prompt(RX9070XT, "");
    s.part_bar(0, 0, 20, 1, "");
    s.act_with(1200, Act::Cpu1, |r| {
        r.children = vec!["clang-19".to_owned()];
    });
    let warm = s.now() - 5.0;
    s.part_bar(1, 20, 20, 60, "");
    s.act(60, Act::Sample);
    s.is_calm(&[(warm, VerdictId::CompileWarmup)], VerdictId::Healthy);
}

#[test]
fn compilation_that_the_program_announces() {
    let mut s = Script::diffusers(MI300X);
    s.say("Compiling the transformer with inductor, this takes several minutes");
    s.act(900, Act::Cpu1);
    let warm = s.now() - 5.0;
    s.bar(30, 60, "");
    s.act(60, Act::Sample);
    s.is_calm(&[(warm, VerdictId::CompileWarmup)], VerdictId::Healthy);
}

#[test]
fn an_announced_decode_on_the_cpu() {
    let mut s = Script::framepack_decode(RX7900XTX);
    s.say("[VAE Decode] GPU decode failed: HIP out of memory");
    s.say("[VAE Decode] Falling back to CPU decode");
    s.act(1500, Act::CpuMany);
    let decoding = s.now() - 5.0;
    s.say(FP_SAVED);
    s.act(120, Act::Idle);
    s.is_calm(&[(decoding, VerdictId::CpuPhase)], VerdictId::IdleWaiting);
}

#[test]
fn no_algorithm_that_the_program_answers_itself() {
    let mut s = Script::framepack_decode(RX7900XTX);
    s.say("MIOpen Error: /src/ocl/convolutionocl.cpp:275: No suitable algorithm was found to execute the required convolution");
    s.say("[MIOpen Fallback] conv3d: running on CPU");
    s.act(400, Act::Cpu1);
    let decoding = s.now() - 5.0;
    s.act(3, Act::Vae);
    s.is_calm(&[(decoding, VerdictId::CpuPhase)], VerdictId::CpuPhase);
}

#[test]
fn memory_that_ran_out_and_a_retry_in_tiles() {
    let mut s = Script::comfyui_decode(RX6700XT, "");
    s.say(
        "Warning: Ran out of memory when regular VAE decoding, retrying with tiled VAE decoding.",
    );
    s.act(90, Act::Vae);
    s.say("Prompt executed in 240.00 seconds");
    s.act(60, Act::Idle);
    s.is_calm(&[], VerdictId::IdleWaiting);
}

#[test]
fn an_allocator_storm_that_passes() {
    let mut s = Script::framepack_decode(RX7900XTX);
    s.repeat(
        "HSA exception: MemoryRegion::BlockAllocator::alloc failed.",
        0.2,
        60,
    );
    s.act(12, Act::Cpu1);
    s.act(60, Act::Vae);
    s.say(FP_SAVED);
    s.act(120, Act::Idle);
    s.is_calm(&[], VerdictId::IdleWaiting);
}

#[test]
fn a_pause_of_an_hour() {
    let mut s = Script::framepack_decode(RX7900XTX);
    s.happens(Happening::Stopped);
    s.act(3600, Act::Idle);
    let paused = s.now() - 5.0;
    s.happens(Happening::Continued);
    s.act(5, Act::Idle);
    s.act(30, Act::Vae);
    s.is_calm(&[(paused, VerdictId::Paused)], VerdictId::Healthy);
}

#[test]
fn a_machine_that_slept() {
    for told in [true, false] {
        let mut s = Script::framepack_decode(RX7900XTX);
        s.tell_sleep(told);
        s.act(30, Act::Idle);
        s.sleep(7200);
        s.act(30, Act::Idle);
        s.act(30, Act::Vae);
        s.is_calm_but_suspicious(VerdictId::Healthy);
    }
}

#[test]
fn a_shape_whose_mesh_and_texture_are_made_on_one_core() {
    let mut s = Script::new(RX7900XTX, "comfyui-hunyuan3d", "python3 main.py");
    s.act(14, Act::Startup);
    s.say("To see the GUI go to: http://127.0.0.1:8188");
    s.act(5, Act::Idle);
    s.say("got prompt");
    s.act(20, Act::Load);
    s.bar(50, 40, "Diffusion Sampling::");
    s.act(40, Act::Sample);
    s.bar(100, 30, "FlashVDM Volume Decoding:");
    s.act(30, Act::Vae);
    s.act(700, Act::Cpu1);
    let meshing = s.now() - 5.0;
    s.say("Decoded mesh with 421133 vertices and 842310 faces");
    s.act(300, Act::Cpu1);
    s.say("Baking texture");
    s.act(400, Act::Cpu1);
    s.say("Prompt executed in 00:25:11");
    s.act(60, Act::Idle);
    s.is_calm(&[(meshing, VerdictId::CpuPhase)], VerdictId::IdleWaiting);
}

#[test]
fn a_video_encoded_by_a_helper_while_the_counter_stays_full() {
    let mut s = Script::comfyui_decode(RX9070XT, "");
    s.act(20, Act::Vae);
    s.act_with(400, Act::CpuMany, |r| {
        r.busy = Some(100.0);
        r.power = Some(46.0);
        r.children = vec!["ffmpeg-linux-x8".to_owned()];
    });
    let encoding = s.now() - 5.0;
    s.say("Prompt executed in 700.10 seconds");
    s.act(20, Act::Idle);
    s.is_calm(&[(encoding, VerdictId::CpuPhase)], VerdictId::IdleWaiting);
}

#[test]
fn a_native_call_of_a_minute_that_holds_the_interpreter() {
    let mut s = Script::diffusers(RX7900XTX);
    s.part_bar(0, 5, 30, 30, "");
    s.act(30, Act::Sample);
    s.act(58, Act::Cpu1);
    s.part_bar(6, 30, 30, 60, "");
    s.act(60, Act::Sample);
    s.is_calm(&[], VerdictId::Healthy);
}

#[test]
fn a_container_in_which_the_card_cannot_be_read() {
    let mut s = Script::new(RX7900XTX, "diffusers", "python3 generate.py");
    s.always = Some(|r| {
        r.busy = None;
        r.power = None;
        r.vram_mib = None;
        r.gtt_mib = None;
    });
    s.act(60, Act::Startup);
    s.bar(20, 100, "");
    s.act(100, Act::Sample);
    s.act(400, Act::Vae);
    s.say("Saved output.mp4");
    s.exit(ExitStatus::Code(0));
    s.is_calm(&[], VerdictId::Finished);
}

#[test]
fn a_process_that_cannot_be_read_is_never_judged() {
    let mut s = Script::framepack_decode(RX7900XTX);
    s.act_with(900, Act::Idle, |r| r.cpu = None);
    s.is_calm_but_suspicious(VerdictId::Healthy);
}

#[test]
fn a_script_that_says_nothing_and_works() {
    let mut s = Script::new(RX7900XTX, "diffusers", "python3 -u generate.py");
    s.act(20, Act::Startup);
    s.act(60, Act::Load);
    s.act(1200, Act::Sample);
    s.act(400, Act::Vae);
    s.exit(ExitStatus::Code(0));
    s.is_calm(&[], VerdictId::Finished);
}

#[test]
fn a_naive_kernel_of_a_quarter_of_an_hour() {
    let mut s = Script::framepack_decode(RX7900XTX);
    s.act_with(900, Act::Vae, |r| {
        r.busy = Some(100.0);
        r.power = Some(160.0);
    });
    s.say(FP_SAVED);
    s.act(10, Act::Idle);
    s.is_calm(&[], VerdictId::IdleWaiting);
}

#[test]
fn a_traceback_that_was_survived() {
    let mut s = Script::new(RTX4090, "comfyui", "python3 main.py");
    s.act(5, Act::Startup);
    s.say("Traceback (most recent call last):\n  File \"nodes.py\", line 1, in load_custom_node\nModuleNotFoundError: No module named 'insightface'\nCannot import custom_nodes/pack module for custom nodes");
    s.act(5, Act::Startup);
    s.say("To see the GUI go to: http://127.0.0.1:8188");
    s.act(60, Act::Idle);
    s.is_calm(&[], VerdictId::IdleWaiting);
}

#[test]
fn a_long_decode_after_a_search_that_only_warnings_told_of() {
    let mut s = Script::comfyui_decode(RX6700XT, "");
    s.say("MIOpen(HIP): Warning [SearchImpl] Searching the best solution in the 9 dim space. Please, be patient...");
    s.act(40, Act::Cpu1);
    s.say(
        "MIOpen(HIP): Warning [SearchImpl] Runs left: 12, min time so far: 4.80, curr time: 11.0",
    );
    s.act(20, Act::Cpu1);
    s.act(400, Act::Vae);
    s.say("Prompt executed in 640.00 seconds");
    s.act(20, Act::Idle);
    s.is_calm(&[], VerdictId::IdleWaiting);
}

/// Those that notice when a number of the rules changes, for [`crate::mutation`].
pub(crate) const ALL: &[(&str, fn())] = &[
    (
        "quiet::an_idle_server_polled_by_a_page_with_a_helper_thread_at_full_speed",
        an_idle_server_polled_by_a_page_with_a_helper_thread_at_full_speed,
    ),
    (
        "quiet::a_counter_that_stays_full_after_the_job",
        a_counter_that_stays_full_after_the_job,
    ),
    (
        "quiet::an_apu_whose_power_does_not_move_and_that_is_honestly_busy",
        an_apu_whose_power_does_not_move_and_that_is_honestly_busy,
    ),
    ("quiet::weights_from_a_slow_disk", weights_from_a_slow_disk),
    (
        "quiet::an_encoder_that_is_read_while_its_phase_runs",
        an_encoder_that_is_read_while_its_phase_runs,
    ),
    (
        "quiet::weights_from_the_page_cache_by_memory_map",
        weights_from_the_page_cache_by_memory_map,
    ),
    ("quiet::a_download_with_dips", a_download_with_dips),
    (
        "quiet::an_apu_whose_readings_do_not_move",
        an_apu_whose_readings_do_not_move,
    ),
    (
        "quiet::kernels_compiled_inside_the_process",
        kernels_compiled_inside_the_process,
    ),
    (
        "quiet::kernels_compiled_on_all_cores_without_a_word",
        kernels_compiled_on_all_cores_without_a_word,
    ),
    (
        "quiet::kernels_compiled_by_helpers",
        kernels_compiled_by_helpers,
    ),
    (
        "quiet::compilation_that_the_program_announces",
        compilation_that_the_program_announces,
    ),
    (
        "quiet::an_announced_decode_on_the_cpu",
        an_announced_decode_on_the_cpu,
    ),
    (
        "quiet::no_algorithm_that_the_program_answers_itself",
        no_algorithm_that_the_program_answers_itself,
    ),
    (
        "quiet::memory_that_ran_out_and_a_retry_in_tiles",
        memory_that_ran_out_and_a_retry_in_tiles,
    ),
    (
        "quiet::an_allocator_storm_that_passes",
        an_allocator_storm_that_passes,
    ),
    ("quiet::a_pause_of_an_hour", a_pause_of_an_hour),
    ("quiet::a_machine_that_slept", a_machine_that_slept),
    (
        "quiet::a_shape_whose_mesh_and_texture_are_made_on_one_core",
        a_shape_whose_mesh_and_texture_are_made_on_one_core,
    ),
    (
        "quiet::a_video_encoded_by_a_helper_while_the_counter_stays_full",
        a_video_encoded_by_a_helper_while_the_counter_stays_full,
    ),
    (
        "quiet::a_native_call_of_a_minute_that_holds_the_interpreter",
        a_native_call_of_a_minute_that_holds_the_interpreter,
    ),
    (
        "quiet::a_container_in_which_the_card_cannot_be_read",
        a_container_in_which_the_card_cannot_be_read,
    ),
    (
        "quiet::a_process_that_cannot_be_read_is_never_judged",
        a_process_that_cannot_be_read_is_never_judged,
    ),
    (
        "quiet::a_script_that_says_nothing_and_works",
        a_script_that_says_nothing_and_works,
    ),
    (
        "quiet::a_naive_kernel_of_a_quarter_of_an_hour",
        a_naive_kernel_of_a_quarter_of_an_hour,
    ),
    (
        "quiet::a_traceback_that_was_survived",
        a_traceback_that_was_survived,
    ),
    (
        "quiet::a_long_decode_after_a_search_that_only_warnings_told_of",
        a_long_decode_after_a_search_that_only_warnings_told_of,
    ),
];
