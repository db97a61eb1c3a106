//! Errors that a program answers itself are no verdict; one that ended a job stays the verdict
//! through the cleaning up that follows.

use framepack_tui::model::VerdictId::{self, AppError, DiskFull, GpuOom};
use framepack_tui::model::{ExitStatus, Health};

use crate::player::Outcome;
use crate::script::{Act, RTX4090, RX6800, RX7900XTX, RX9070XT, Script};

const FULL: &str = "OSError: [Errno 28] No space left on device: 'outputs/a.mp4'";
const OOM: &str = "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 9.46 GiB. GPU 0 has a total capacity of 23.98 GiB of which 2.10 GiB is free.";

/// A traceback whose innermost frame is `frame`.
fn traceback(frame: &str, error: &str) -> String {
    format!("Traceback (most recent call last):\n  File \"{frame}\", line 301, in run\n{error}")
}

/// The error is the verdict within some seconds, and nothing replaces it until the end.
fn stays(s: &Script, want: VerdictId, onset: f64) {
    let got = s.play();
    let story = got.story();
    let first = got.shown().find(|(_, v)| v.id == want);
    let (told, _) = first.unwrap_or_else(|| panic!("never {want}\n{story}"));
    assert!(told >= onset && told <= onset + 15.0, "{told}\n{story}");
    let later = got.shown().find(|(t, v)| *t > told && v.id != want);
    assert!(later.is_none(), "{later:?}\n{story}");
}

#[test]
fn a_job_that_failed_in_comfyui_keeps_its_error_while_models_are_unloaded() {
    let mut s = Script::comfyui_decode(RX7900XTX, "");
    let onset = s.now();
    s.say(
        "!!! Exception during processing !!! [Errno 28] No space left on device: 'outputs/a.mp4'",
    );
    s.say(&traceback("nodes.py", FULL));
    s.say("Prompt executed in 132.60 seconds");
    s.act(2, Act::Idle);
    s.say("Unloading models for lowram load.\n2 models unloaded.");
    s.say("\r100%|####| 20/20 [01:40<00:00,  5.00s/it]");
    s.act(200, Act::Idle);
    stays(&s, DiskFull, onset);
}

#[test]
fn a_request_that_failed_keeps_its_error_while_the_server_frees_the_card() {
    let mut s = Script::new(RTX4090, "server", "python3 server.py");
    s.act(12, Act::Startup);
    s.say("INFO:     Uvicorn running on http://127.0.0.1:8000");
    s.act(10, Act::Idle);
    s.part_bar(0, 12, 24, 30, "");
    s.act(30, Act::Sample);
    let onset = s.now();
    s.say(&traceback("/app/pipeline.py", OOM));
    s.act(2, Act::Idle);
    s.say("freed 12.3 GB\nremoved the temporary frames");
    s.say("\r 50%|##  | 12/24 [00:41<00:12,  1.00s/it]");
    s.act(200, Act::Idle);
    stays(&s, GpuOom, onset);
}

#[test]
fn a_job_of_sdnext_keeps_its_error_behind_the_summary() {
    let mut s = Script::new(RX6800, "server", "python3 launch.py --listen");
    s.act(12, Act::Startup);
    s.say("Local URL: http://127.0.0.1:7860/");
    s.act(10, Act::Idle);
    s.say("10:13:01-100 INFO     Base: pipeline=WanPipeline task=TEXT_2_IMAGE batch=1/1x1");
    s.part_bar(0, 24, 24, 30, "");
    s.act(30, Act::Sample);
    let onset = s.now();
    s.say("10:14:25-100 ERROR    Save failed: OSError: [Errno 28] No space left on device: 'outputs/a.mp4'");
    s.say("10:14:25-300 INFO     Processed: images=0 its=0.00");
    s.act(2, Act::Idle);
    s.say("10:14:28-100 INFO     Offload: models=2");
    s.act(200, Act::Idle);
    stays(&s, DiskFull, onset);
}

#[test]
fn a_job_of_wangp_keeps_its_error_while_its_models_are_unloaded() {
    let mut s = Script::new(RX9070XT, "server", "python3 wgp.py");
    s.act(12, Act::Startup);
    s.say("* Running on local URL:  http://localhost:7860");
    s.act(10, Act::Idle);
    s.part_bar(0, 12, 30, 30, "Denoising");
    s.act(30, Act::Sample);
    let onset = s.now();
    s.say(&traceback("/app/wgp.py", OOM));
    s.act(1, Act::Idle);
    s.say("Unloading transformer\nUnloading text_encoder\nSaving queue to outputs/queue.zip");
    s.act(200, Act::Idle);
    stays(&s, GpuOom, onset);
}

#[test]
fn a_script_keeps_its_error_until_its_end() {
    let mut s = Script::diffusers(RX7900XTX);
    s.bar(20, 60, "");
    s.act(60, Act::Sample);
    s.act(5, Act::Vae);
    let onset = s.now();
    s.say(&traceback("generate.py", FULL));
    s.say("removing the temporary frames\nUnloaded AutoencoderKLWan as complete.");
    s.exit(ExitStatus::Code(1));
    stays(&s, DiskFull, onset);
}

fn never_an_error(got: &Outcome) {
    let error = got
        .shown()
        .find(|(_, v)| matches!(v.id, AppError | GpuOom | DiskFull) || v.health == Health::Failing);
    assert!(error.is_none(), "{error:?}\n{}", got.story());
}

#[test]
fn a_chained_traceback_at_the_start_is_no_verdict() {
    for (app, command) in [
        ("framepack", "python3 chain.py"),
        ("framepack", "python3 demo_gradio.py"),
        ("diffusers", "python3 chain.py"),
        ("server", "python3 launch.py"),
        ("generic", "./chain"),
    ] {
        let mut s = Script::new(RX7900XTX, app, command);
        s.act(8, Act::Startup);
        s.say(&traceback("chain.py", "OSError: name or service not known"));
        s.say("\nThe above exception was the direct cause of the following exception:\n");
        s.say(&traceback(
            "chain.py",
            "RuntimeError: could not fetch ffmpeg",
        ));
        s.say("going on without it");
        s.act(20, Act::Idle);
        s.say("* Running on local URL:  http://127.0.0.1:7860");
        s.act(60, Act::Idle);
        never_an_error(&s.play());
    }
}

#[test]
fn an_error_that_the_program_answers_is_no_verdict() {
    // it goes on in tiles, without memory of the first try
    let mut s = Script::diffusers(RX7900XTX);
    s.say(&traceback("generate.py", OOM));
    s.say("Warning: falling back to the tiled decode");
    s.act(4, Act::Load);
    s.bar(20, 60, "");
    s.act(60, Act::Sample);
    s.say("saved outputs/a.mp4");
    s.exit(ExitStatus::Code(0));
    never_an_error(&s.play());

    // a node pack that cannot be imported
    let mut s = Script::new(RX6800, "comfyui", "python3 main.py");
    s.act(5, Act::Startup);
    s.say(&traceback(
        "custom_nodes/x/__init__.py",
        "ModuleNotFoundError: No module named 'flash_attn'",
    ));
    s.say("Cannot import custom_nodes/x module for custom nodes: No module named 'flash_attn'");
    s.act(5, Act::Startup);
    s.say("To see the GUI go to: http://127.0.0.1:8188");
    s.act(60, Act::Idle);
    never_an_error(&s.play());

    // a server's thread that asks the net, while it waits
    let mut s = Script::framepack(RX9070XT);
    s.act(10, Act::Idle);
    s.say(&traceback(
        "/v/site-packages/httpx/_client.py",
        "httpx.ConnectError: [Errno -2] Name or service not known",
    ));
    s.act(60, Act::Idle);
    never_an_error(&s.play());

    // nothing shows a job, and nothing says that it is over
    let mut s = Script::new(RTX4090, "generic", "python3 wait_for_peer.py");
    s.act(5, Act::Startup);
    s.say(&traceback(
        "wait_for_peer.py",
        "ConnectionRefusedError: [Errno 111] Connection refused",
    ));
    s.say("retrying in 60 s");
    s.act(40, Act::Idle);
    never_an_error(&s.play());
}
