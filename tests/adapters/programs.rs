//! Each program in its own words: a job that succeeds, one that fails, and a server at rest.
//! The logs are short and of our own making, in the wording of the programs' sources.

use framepack_tui::model::Event;
use framepack_tui::workload::adapter::AdapterKind;

use super::{feed, lines, make, story, whole};

fn step(done: u32, total: u32) -> String {
    let percent = done * 100 / total;
    format!("{percent:3}%|##  | {done}/{total} [00:{done:02}<00:09, 1.00s/it]")
}

/// A bar of denoising from its beginning to its end, closed.
pub(super) fn denoised(name: &str, total: u32) -> String {
    let states: Vec<String> = (0..=total)
        .map(|n| format!("\r{name}{}", step(n, total)))
        .collect();
    format!("{}{}\n", states.concat(), states[states.len() - 1])
}

/// A bar of stable-diffusion.cpp, from its first step on.
fn drawn(total: u32, rate: &str) -> String {
    let states = (1..=total).map(|n| format!("\r  |====>     | {n}/{total} - {rate}"));
    format!("{}\n", states.collect::<String>())
}

fn sampled(kind: AdapterKind, argv: &str, text: &str) -> usize {
    let mut a = make(kind, argv);
    a.start();
    let all = lines(text.as_bytes());
    let events = all.iter().flat_map(|l| a.feed(l));
    events
        .filter(|e| matches!(e, Event::Progress(p) if p.sampling))
        .count()
}

const SD_LOADS: &str = "[INFO ] stable-diffusion.cpp:713  - loading model from 'wan.gguf'\n";

fn sd_image() -> String {
    format!(
        "{SD_LOADS}{}[INFO ] model_loader.cpp:1304 - loading tensors completed, taking 2.10s\n\
         [INFO ] stable-diffusion.cpp:5628 - generate_image 512x512\n\
         [INFO ] stable-diffusion.cpp:5296 - get_learned_condition completed, taking 0.31s\n\
         [INFO ] stable-diffusion.cpp:5679 - generating image: 1/1 - seed 7\n{}\
         [INFO ] stable-diffusion.cpp:5711 - sampling completed, taking 4.00s\n\
         [INFO ] stable-diffusion.cpp:5321 - decoding 1 latents\n{}\
         [INFO ] stable-diffusion.cpp:5387 - latent 1 decoded, taking 1.20s\n\
         [INFO ] stable-diffusion.cpp:5391 - decode_first_stage completed, taking 1.20s\n\
         [INFO ] stable-diffusion.cpp:5861 - generate_image completed in 6.00s\n",
        drawn(9, "1.31GB/s"),
        drawn(4, "1.00s/it"),
        drawn(6, "5.00it/s"),
    )
}

const SD: AdapterKind = AdapterKind::StableDiffusionCpp;

#[test]
fn an_image_of_stable_diffusion_cpp() {
    let mut a = make(SD, "sd-cli -m wan.gguf");
    let mut all = story(&a.start());
    all.extend(feed(a.as_mut(), &sd_image()));
    all.extend(feed(
        a.as_mut(),
        "[INFO ] main.cpp:490  - save result image 0 to 'output.png' (success)\n",
    ));
    all.extend(story(&a.finish(true)));
    let want = [
        "startup",
        "model_load",
        "unknown",
        "job started",
        "sampling",
        "unknown",
        "vae_decode",
        "unknown",
        "save",
        "done",
        "job done",
    ];
    assert_eq!(all, want);
    // neither weights nor tiles are steps
    assert_eq!(sampled(SD, "sd-cli -m wan.gguf", &sd_image()), 4);
}

#[test]
fn a_video_of_stable_diffusion_cpp_decodes_by_its_word() {
    let text = format!(
        "[INFO ] stable-diffusion.cpp:6914 - generate_video 832x480x33\n\
         [INFO ] stable-diffusion.cpp:6294 - IMG2VID\n{}\
         [INFO ] stable-diffusion.cpp:6345 - encode_first_stage completed, taking 900 ms\n\
         [INFO ] stable-diffusion.cpp:6552 - get_learned_condition completed, taking 1.20s\n{}{}\
         [INFO ] stable-diffusion.cpp:7012 - sampling completed, taking 40.00s\n\
         [INFO ] stable-diffusion.cpp:7155 - generating latent video completed, taking 40.10s\n",
        drawn(4, "9.00it/s"),
        drawn(3, "1.50GB/s"),
        drawn(8, "5.00s/it"),
    );
    let all = whole(SD, "sd-cli -M vid_gen -m wan.gguf", &text);
    let want = [
        "startup",
        "job started",
        "unknown",
        "vae_encode",
        "unknown",
        "model_load",
        "unknown",
        "sampling",
        "unknown",
        "vae_decode",
    ];
    assert_eq!(all, want);
}

#[test]
fn a_failure_of_stable_diffusion_cpp_has_its_first_words() {
    let begun = "generate_image 512x512\ngenerating image: 1/1 - seed 7\n";
    for (words, why) in [
        (
            "[ERROR] ggml_extend.hpp:70   - ROCm error: out of memory\nggml.cu:103: ROCm error\n",
            "job failed: ROCm error: out of memory",
        ),
        (
            "terminate called after throwing an instance of 'vk::DeviceLostError'\n  what():  vk::Queue::submit: ErrorDeviceLost\n",
            "job failed: what():  vk::Queue::submit: ErrorDeviceLost",
        ),
        // a warning is no reason
        (
            "[WARN ] stable-diffusion.cpp:793 - loading vae from 'v' failed\n",
            "job failed",
        ),
    ] {
        let mut a = make(SD, "sd-cli -m a");
        a.start();
        feed(a.as_mut(), begun);
        feed(a.as_mut(), words);
        assert_eq!(story(&a.finish(false)), [why]);
    }
}

#[test]
fn a_server_of_stable_diffusion_cpp_has_a_job_only_while_it_generates() {
    let mut a = make(SD, "sd-server -m wan.gguf");
    let mut all = story(&a.start());
    all.extend(feed(
        a.as_mut(),
        &format!("{SD_LOADS}listening on: http://192.168.0.9:1234\n\n"),
    ));
    assert_eq!(all, ["startup", "model_load", "job waiting", "idle"]);
    let job = feed(a.as_mut(), &sd_image());
    assert_eq!(job.first().unwrap(), "job started");
    assert_eq!(job[job.len() - 3..], ["job done", "job waiting", "idle"]);
    let failed = feed(
        a.as_mut(),
        "generate_image 512x512\n\
         [ERROR] ggml_extend.hpp:2234 - flux: failed to allocate the compute buffer\n\
         [ERROR] stable-diffusion.cpp:5716 - sampling for image 1/1 failed after 0.10s\n",
    );
    let why = "job failed: flux: failed to allocate the compute buffer";
    assert_eq!(
        failed,
        ["job started", "unknown", why, "job waiting", "idle"]
    );
    let cancelled = feed(
        a.as_mut(),
        "generate_image 512x512\n[ERROR] stable-diffusion.cpp:5667 - cancelling generation\n",
    );
    assert_eq!(cancelled[2..], ["job waiting", "idle"]);
}

#[test]
fn stable_diffusion_cpp_on_the_cpu_by_its_word() {
    let text = "VAE Autoencoder: Using CPU backend\ngenerate_image 8x8\ndecoding 1 latents\n";
    let all = whole(SD, "sd-cli -m a", text);
    assert_eq!(all.last().unwrap(), "vae_decode cpu");
    let all = whole(
        SD,
        "sd-cli -m a --vae-on-cpu",
        "generate_image 8x8\ndecoding 1 latents\n",
    );
    assert_eq!(all.last().unwrap(), "vae_decode cpu");
}

const WANGP: AdapterKind = AdapterKind::Wangp;
const WANGP_UP: &str = "* Running on local URL:  http://localhost:7860\n";

#[test]
fn wangp_has_a_job_from_its_model_to_its_file() {
    let mut a = make(WANGP, "python wgp.py");
    a.start();
    // a model that is read before the page is up is no job
    let early = feed(
        a.as_mut(),
        &format!("Loading Model 'ckpts/wan.safetensors' ...\n{WANGP_UP}"),
    );
    assert_eq!(early, ["model_load", "job waiting", "idle"]);
    let text = format!(
        "Loading Model 'ckpts/ltx.safetensors' ...\n\
         Loading Text Encoder 'ckpts/umt5.safetensors' ...\n{}\
         New video saved to Path: outputs/2026_a.mp4\n",
        denoised("", 4)
    );
    let all = feed(a.as_mut(), &text);
    let want = [
        "job started",
        "model_load",
        "sampling",
        "unknown",
        "done",
        "job done",
        "job waiting",
        "idle",
    ];
    assert_eq!(all, want);
    // the next window begins with its bar
    let next = feed(a.as_mut(), &denoised("", 4));
    assert_eq!(next, ["job started", "sampling", "unknown"]);
}

#[test]
fn a_generation_of_wangp_that_its_user_stops_or_that_fails_is_over() {
    let mut a = make(WANGP, "python wgp.py");
    a.start();
    feed(a.as_mut(), WANGP_UP);
    // the loop over the steps returns, and the bar is closed
    let half = format!("\r{}\r{}\r{}\n", step(0, 20), step(7, 20), step(7, 20));
    let stopped = feed(a.as_mut(), &half);
    assert_eq!(stopped, ["job started", "sampling", "job waiting", "idle"]);
    // one that is only repainted goes on
    let mut a = make(WANGP, "python wgp.py");
    a.start();
    feed(a.as_mut(), WANGP_UP);
    let hung = format!("\r{}\r{}\r{}\r", step(0, 20), step(7, 20), step(7, 20));
    assert_eq!(feed(a.as_mut(), &hung), ["job started", "sampling"]);
    let failed = feed(
        a.as_mut(),
        "Traceback (most recent call last):\n  File \"/o/Wan2GP/wgp.py\", line 7868, in generate_media\n    samples = wan_model.generate(\ntorch.OutOfMemoryError: HIP out of memory. Tried to allocate 4.00 GiB\n",
    );
    let why = "job failed: torch.OutOfMemoryError: HIP out of memory. Tried to allocate 4.00 GiB";
    assert_eq!(failed, [why, "job waiting", "idle"]);
}

#[test]
fn wangp_without_a_page_tells_each_task() {
    let text = "WanGP CLI Mode - Processing queue: q.zip\n\n[Task 1/1] a cat...\n\
        \r  [0/1] Prompt 1/1 | Encoding Prompt\r  [1/20] Prompt 1/1 | Denoising\
        \r  [20/20] Prompt 1/1 | VAE Decoding \nNew video saved to Path: o/a.mp4\n\n  Task 1 completed\n";
    let mut a = make(WANGP, "python wgp.py --process q.zip");
    let mut all = story(&a.start());
    all.extend(feed(a.as_mut(), text));
    all.extend(story(&a.finish(true)));
    let want = [
        "startup",
        "job started",
        "unknown",
        "text_encode",
        "sampling",
        "vae_decode",
        "done",
        "job done",
    ];
    assert_eq!(all, want);
}

const INVOKE: AdapterKind = AdapterKind::Invokeai;

fn invoke(text: &str) -> String {
    let said = |line| format!("[2026-02-01 10:00:30,000]::[InvokeAI]::INFO --> {line}\n");
    text.lines().map(said).collect()
}

fn invoke_model(class: &str) -> String {
    format!("Loaded model 'b0aa:x' ({class}) onto cuda device in 1.90s. Total model size: 9.00MB")
}

#[test]
fn invokeai_has_a_job_between_its_queue_item_and_its_statistics() {
    let mut a = make(INVOKE, "invokeai-web");
    a.start();
    let up = "Uvicorn running on http://127.0.0.1:9090 (Press CTRL+C to quit)";
    assert_eq!(feed(a.as_mut(), &invoke(up)), ["job waiting", "idle"]);
    let head = format!(
        "Executing queue item 12, session 5d10 on cuda:0\n{}\n{}",
        invoke_model("CLIPTextModel"),
        invoke_model("UNet2DConditionModel"),
    );
    let tail = format!(
        "{}\nGraph stats: 5d10\n                          Node   Calls   Seconds  VRAM Change\nTOTAL GRAPH EXECUTION TIME:   5.410s",
        invoke_model("AutoencoderKL")
    );
    let text = format!(
        "{}{}{}",
        invoke(&head),
        denoised("Denoising: ", 4),
        invoke(&tail)
    );
    let want = [
        "job started",
        "unknown",
        "text_encode",
        "unknown",
        "sampling",
        "unknown",
        "vae_decode",
        "done",
        "job done",
        "job waiting",
        "idle",
    ];
    assert_eq!(feed(a.as_mut(), &text), want);
    // beside its jobs it hashes models and clears its cache
    let idle = format!(
        "{}{}",
        denoised("", 3),
        invoke("Model cache keep-alive timeout of 5 minutes expired. Clearing 2 unlocked model(s)")
    );
    assert!(feed(a.as_mut(), &idle).is_empty());
}

#[test]
fn an_error_of_invokeai_ends_its_job_once() {
    let mut a = make(INVOKE, "invokeai-web");
    a.start();
    feed(
        a.as_mut(),
        &invoke("Uvicorn running on http://127.0.0.1:9090"),
    );
    let text = "Executing queue item 12, session 5d10\n\
        Error while invoking session 5d10, invocation 77e0 (denoise_latents): HIP out of memory\n\
        Traceback (most recent call last):\n  File \"a.py\", line 1, in f\ntorch.OutOfMemoryError: HIP out of memory\n\nGraph stats: 5d10\n";
    let want = [
        "job started",
        "unknown",
        "job failed: HIP out of memory",
        "job waiting",
        "idle",
    ];
    assert_eq!(feed(a.as_mut(), &invoke(text)), want);
}

const STUDIO: AdapterKind = AdapterKind::FramepackStudio;

#[test]
fn a_job_of_framepack_studio_ends_with_its_queues_word() {
    let mut a = make(STUDIO, "python studio.py");
    a.start();
    feed(a.as_mut(), super::READY);
    let text = format!(
        "Starting job 3f, current job was None\nStarting worker function for job 3f\n\
         Worker starting for model type: Original\n{}{}",
        super::framepack_section(0, "True"),
        "Saved metadata\n"
    );
    let all = feed(a.as_mut(), &text);
    let want = [
        "job started",
        "unknown",
        "model_load 1/1",
        "sampling 1/1",
        "offload 1/1",
        "vae_decode 1/1",
        "save 1/1",
        "unknown 1/1",
    ];
    assert_eq!(all, want);
    let end = feed(
        a.as_mut(),
        "Combined video saved to: out/3f_combined.mp4\nFinishing job 3f with status JobStatus.COMPLETED\n",
    );
    assert_eq!(end[end.len() - 3..], ["job done", "job waiting", "idle"]);
    // and the clean-up behind it is none
    let after = feed(
        a.as_mut(),
        "Unloaded AutoencoderKLHunyuanVideo as complete.\n",
    );
    assert!(after.is_empty(), "{after:?}");
}

#[test]
fn a_job_of_framepack_studio_that_fails_or_is_cancelled() {
    for (words, end) in [
        (
            "Traceback (most recent call last):\n  File \"modules/pipelines/worker.py\", line 1, in worker\nRuntimeError: HIP error: invalid device function\nFinishing job 3f with status JobStatus.FAILED\n",
            "job failed: RuntimeError: HIP error: invalid device function",
        ),
        (
            "Finishing job 3f with status JobStatus.FAILED\n",
            "job failed",
        ),
        (
            "Finishing job 3f with status JobStatus.CANCELLED\n",
            "unknown",
        ),
    ] {
        let mut a = make(STUDIO, "python studio.py");
        a.start();
        feed(a.as_mut(), super::READY);
        let begun = feed(a.as_mut(), "Starting worker function for job 3f\n");
        let all = [begun, feed(a.as_mut(), words)].concat();
        let last = all.len() - 3;
        assert_eq!(all[last..], [end, "job waiting", "idle"], "{all:?}");
    }
}

const MUSUBI: AdapterKind = AdapterKind::MusubiTuner;

fn musubi(text: &str) -> String {
    let said = |line| format!("INFO:musubi_tuner.wan_generate_video:{line}\n");
    text.lines().map(said).collect()
}

#[test]
fn a_script_of_musubi_tuner() {
    let head = musubi(
        "Using device: cuda\nLoading VAE model from v.safetensors\nEncoding image to latent space\nEncoding complete\nLoading high noise DiT model from d.safetensors",
    );
    let tail = musubi(
        "Decoding video from latents: torch.Size([16, 21, 60, 104])\nDecoding complete\nVideo saved to: o/20260101-0001_7.mp4\nDone!",
    );
    let text = format!("{head}{}{tail}", denoised("", 3));
    let mut a = make(MUSUBI, "python wan_generate_video.py");
    let mut all = story(&a.start());
    all.extend(feed(a.as_mut(), &text));
    all.extend(story(&a.finish(true)));
    let want = [
        "startup",
        "model_load",
        "job started",
        "vae_encode",
        "unknown",
        "model_load",
        "sampling",
        "unknown",
        "vae_decode",
        "save",
        "done",
        "job done",
    ];
    assert_eq!(all, want);
}

#[test]
fn sections_of_musubi_tuner_are_decoded_under_a_bar_that_counts_no_steps() {
    let text = format!(
        "{}{}{}{}",
        musubi(
            "Encoding prompt with Text Encoders\nlatent_padding_size = 0, is_last_section = True"
        ),
        denoised("", 3),
        musubi("Decoding video..."),
        denoised("", 5),
    );
    let argv = "python fpack_generate_video.py";
    let all = whole(MUSUBI, argv, &text);
    let want = [
        "startup",
        "job started",
        "text_encode",
        "sampling",
        "unknown",
        "vae_decode",
    ];
    assert_eq!(all, want);
    // three steps, from nought to the end, which is painted twice
    assert_eq!(sampled(MUSUBI, argv, &text), 5);
}

#[test]
fn an_error_of_musubi_tuner_is_its_exception() {
    let mut a = make(MUSUBI, "python wan_generate_video.py");
    a.start();
    feed(a.as_mut(), &musubi("Encoding prompt: a cat"));
    feed(
        a.as_mut(),
        "Traceback (most recent call last):\n  File \"wan_generate_video.py\", line 1, in main\nRuntimeError: no kernel\n",
    );
    assert_eq!(
        story(&a.finish(false)),
        ["job failed: RuntimeError: no kernel"]
    );
}

#[test]
fn musubi_tuner_waits_for_the_next_prompt_of_its_user() {
    let mut a = make(MUSUBI, "python wan_generate_video.py --interactive");
    a.start();
    let all = feed(
        a.as_mut(),
        "Interactive mode. Enter prompts (Ctrl+D or Ctrl+Z (Windows) to exit):\n",
    );
    assert_eq!(all, ["job waiting", "idle"]);
    let text = format!(
        "{}{}{}",
        musubi("Encoding prompt"),
        denoised("", 3),
        musubi(
            "Decoding video from latents: torch.Size([16])\nDecoding complete\nVideo saved to: o/a.mp4"
        )
    );
    let all = feed(a.as_mut(), &text);
    assert_eq!(all.first().unwrap(), "job started");
    assert_eq!(all[all.len() - 3..], ["job done", "job waiting", "idle"]);
}
