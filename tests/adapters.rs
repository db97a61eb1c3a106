//! Adapters over captured logs (tests/logs: tiny runs of real diffusers classes on a
//! CPU, both streams in one file) and over short logs of the programs' wordings.

#[path = "adapters/launchers.rs"]
mod launchers;
#[path = "adapters/programs.rs"]
mod programs;

use std::time::Instant;

use framepack_tui::model::{Event, FindMark, JobChange, Line, PhaseChange, Stream};
use framepack_tui::workload::adapter::{self, Adapter, AdapterKind, LaunchInfo};
use framepack_tui::workload::lines::LineSplitter;
use proptest::prelude::*;

fn lines(bytes: &[u8]) -> Vec<Line> {
    let mut out = Vec::new();
    let mut s = LineSplitter::new(1, Stream::Stderr);
    s.feed(bytes, Instant::now(), &mut out);
    s.flush(&mut out);
    out
}

fn make(kind: AdapterKind, argv: &str) -> Box<dyn Adapter + Send> {
    let launch = LaunchInfo {
        argv: argv.split_whitespace().map(str::to_owned).collect(),
        on_cpu: false,
    };
    adapter::new(kind, &launch)
}

/// A word for each event that is not progress: `sampling 1/3`, `job started`.
fn story(events: &[Event]) -> Vec<String> {
    let words = |e: &Event| match e {
        Event::Phase(PhaseChange {
            phase,
            section,
            sections,
            on_cpu,
        }) => {
            let of = sections.map_or("?".to_owned(), |n| n.to_string());
            let at = section.map_or(String::new(), |k| format!(" {k}/{of}"));
            let cpu = if *on_cpu { " cpu" } else { "" };
            Some(format!("{phase}{at}{cpu}"))
        }
        Event::Job(JobChange::Started) => Some("job started".to_owned()),
        Event::Job(JobChange::Waiting) => Some("job waiting".to_owned()),
        Event::Job(JobChange::Done) => Some("job done".to_owned()),
        Event::Job(JobChange::Failed { why: Some(why) }) => Some(format!("job failed: {why}")),
        Event::Job(JobChange::Failed { why: None }) => Some("job failed".to_owned()),
        Event::Find(FindMark::Opened { .. }) => Some("find opened".to_owned()),
        Event::Find(FindMark::Closed { .. }) => Some("find closed".to_owned()),
        Event::Find(_) | Event::Progress(_) => None,
        other => panic!("an adapter gives no {other:?}"),
    };
    events.iter().filter_map(words).collect()
}

fn feed(a: &mut dyn Adapter, text: &str) -> Vec<String> {
    let events: Vec<Event> = lines(text.as_bytes())
        .iter()
        .flat_map(|l| a.feed(l))
        .collect();
    story(&events)
}

fn whole(kind: AdapterKind, argv: &str, text: &str) -> Vec<String> {
    let mut a = make(kind, argv);
    let mut all = story(&a.start());
    all.extend(feed(a.as_mut(), text));
    all
}

const READY: &str = "* Running on local URL:  http://0.0.0.0:7860\n";
const BURST: &str = "Unloaded DynamicSwap_LlamaModel as complete.\n\
    Unloaded CLIPTextModel as complete.\n\
    Unloaded SiglipVisionModel as complete.\n\
    Unloaded AutoencoderKLHunyuanVideo as complete.\n\
    Unloaded DynamicSwap_HunyuanVideoTransformer3DModelPacked as complete.\n";

#[test]
fn a_framepack_script_from_start_to_end() {
    let mut a = make(AdapterKind::Framepack, "python tiny_framepack.py --out o");
    let mut all = story(&a.start());
    all.extend(feed(a.as_mut(), include_str!("logs/framepack_script.log")));
    all.extend(story(&a.finish(true)));
    // a script's job begins with its first sign, not with the process
    let mut want = vec!["startup", "job started", "offload", "vae_encode"];
    for k in ["1/3", "2/3", "3/3"] {
        for p in ["model_load", "sampling", "offload", "vae_decode", "save"] {
            want.push(Box::leak(format!("{p} {k}").into_boxed_str()));
        }
    }
    want.extend(["done 3/3", "job done"]);
    assert_eq!(all, want);
    assert!(!a.is_server());
}

#[test]
fn high_vram_mode_has_only_sections_bars_and_decoded() {
    let all = whole(
        AdapterKind::Framepack,
        "python tiny_framepack_app.py",
        include_str!("logs/framepack_high_vram.log"),
    );
    let second: Vec<_> = all.iter().filter(|w| w.ends_with(" 2/3")).collect();
    let want = ["model_load", "sampling", "vae_decode", "save"].map(|p| format!("{p} 2/3"));
    assert_eq!(second, want.iter().collect::<Vec<_>>());
    assert_eq!(all.last().unwrap(), "done 3/3");
}

#[test]
fn a_failure_gives_the_programs_own_words() {
    for (log, why) in [
        (
            include_str!("logs/framepack_miopen_error.log"),
            "job failed: RuntimeError: miopenStatusUnknownError",
        ),
        (
            include_str!("logs/framepack_oom.log"),
            "job failed: torch.OutOfMemoryError: HIP out of memory.",
        ),
    ] {
        let all = whole(AdapterKind::Framepack, "python tiny_framepack.py", log);
        let last = all.last().unwrap();
        assert!(last.starts_with(why), "{last}");
        assert_eq!(all[all.len() - 2], "vae_decode 2/3");
    }
}

#[test]
fn an_open_find_stays_open() {
    let all = whole(
        AdapterKind::Framepack,
        "python tiny_framepack.py",
        include_str!("logs/framepack_open_find.log"),
    );
    assert_eq!(all[all.len() - 2..], ["vae_decode 1/3", "find opened"]);
}

#[test]
fn what_a_diffusers_script_does_behind_its_bar_is_not_known() {
    let mut a = make(AdapterKind::Diffusers, "python tiny_wan.py");
    let mut all = story(&a.start());
    all.extend(feed(a.as_mut(), include_str!("logs/wan_script.log")));
    // a full bar says nothing about a decode: `output_type="latent"` has none
    assert_eq!(
        all,
        ["startup", "job started", "sampling", "unknown", "done"]
    );
    assert_eq!(story(&a.finish(true)), ["job done"]);
    let all = whole(
        AdapterKind::Diffusers,
        "python x.py",
        include_str!("logs/framepack_pipeline.log"),
    );
    assert_eq!(
        all.iter().filter(|w| *w == "sampling").count(),
        3,
        "{all:?}"
    );
}

#[test]
fn a_script_that_dies_without_a_word() {
    let mut a = make(AdapterKind::Diffusers, "python x.py");
    a.start();
    let failed = story(&a.finish(false));
    // no words of ours in the place of the program's
    assert_eq!(failed, ["job failed"]);
    let mut a = make(AdapterKind::Diffusers, "python x.py");
    a.start();
    let said = feed(
        a.as_mut(),
        "Traceback (most recent call last):\n  File \"x.py\", line 1\nValueError: bad size\n",
    );
    assert!(
        said.is_empty(),
        "a script may catch what it prints: {said:?}"
    );
    assert_eq!(
        story(&a.finish(false)),
        ["job failed: ValueError: bad size"]
    );
}

fn framepack_section(padding: u32, last: &str) -> String {
    format!(
        "latent_padding_size = {padding}, is_last_section = {last}\n\
         Moving DynamicSwap_HunyuanVideoTransformer3DModelPacked to cuda:0 with preserved memory: 6 GB\n\
         \r  0%|          | 0/25 [00:00<?, ?it/s]\r100%|##########| 25/25 [01:00<00:00, 2.40s/it]\n\
         Offloading DynamicSwap_HunyuanVideoTransformer3DModelPacked from cuda:0 to preserve memory: 8 GB\n\
         Loaded AutoencoderKLHunyuanVideo to cuda:0 as complete.\n\
         Unloaded AutoencoderKLHunyuanVideo as complete.\n\
         Decoded. Current latent shape torch.Size([1]); pixel shape torch.Size([1])\n"
    )
}

#[test]
fn a_framepack_server_waits_works_and_waits() {
    let mut a = make(AdapterKind::Framepack, "python demo_gradio.py");
    assert_eq!(story(&a.start()), ["startup"]);
    let said = feed(
        a.as_mut(),
        &format!("Loading checkpoint shards: 25%|##   | 1/4 [00:08<00:25, 8.38s/it]\n{READY}"),
    );
    assert_eq!(said, ["model_load", "job waiting", "idle"]);
    for begins in ["offload", "model_load 1/1"] {
        let said = feed(
            a.as_mut(),
            &(BURST.to_owned() + &framepack_section(0, "True")),
        );
        // right behind a decode the same lines are the cleaning up of that job
        assert_eq!(said[..2], ["job started", begins]);
        assert!(said.contains(&"sampling 1/1".to_owned()), "{said:?}");
        assert_eq!(
            said[said.len() - 4..],
            ["done 1/1", "job done", "job waiting", "idle"]
        );
        let after = feed(
            a.as_mut(),
            "Unloaded AutoencoderKLHunyuanVideo as complete.\n",
        );
        assert!(after.is_empty(), "a clean-up is no job: {after:?}");
    }
}

#[test]
fn sections_are_counted_as_far_as_the_paddings_tell() {
    let told = |server: &str, paddings: &[u32]| -> Vec<String> {
        let mut a = make(AdapterKind::Framepack, server);
        a.start();
        feed(a.as_mut(), READY);
        paddings
            .iter()
            .map(|p| {
                let last = if *p == 0 { "True" } else { "False" };
                let said = feed(
                    a.as_mut(),
                    &format!("latent_padding_size = {p}, is_last_section = {last}\n"),
                );
                said.iter().find(|w| w.starts_with("model_load")).unwrap()[11..].to_owned()
            })
            .collect()
    };
    let gradio = "python demo_gradio.py";
    assert_eq!(told(gradio, &[0]), ["1/1"]);
    assert_eq!(told(gradio, &[18, 9, 0]), ["1/3", "2/3", "3/3"]);
    assert_eq!(told(gradio, &[27, 18, 9, 0]), ["1/?", "2/?", "3/4", "4/4"]);
    assert_eq!(
        told(gradio, &[27, 18, 18, 18, 9, 0]),
        ["1/?", "2/?", "3/?", "4/?", "5/6", "6/6"]
    );
    assert_eq!(told(gradio, &[6, 3, 0]), ["1/?", "2/3", "3/3"]);
}

#[test]
fn f1_names_its_sections() {
    let mut a = make(AdapterKind::Framepack, "python demo_gradio_f1.py");
    a.start();
    feed(a.as_mut(), READY);
    let said = feed(a.as_mut(), "section_index = 1, total_latent_sections = 4\n");
    assert_eq!(said, ["job started", "model_load 2/4"]);
}

#[test]
fn a_failed_job_leaves_a_server_waiting() {
    let mut a = make(AdapterKind::Framepack, "python demo_gradio.py");
    a.start();
    feed(a.as_mut(), READY);
    let begin = format!("{BURST}latent_padding_size = 0, is_last_section = True\n");
    feed(a.as_mut(), &begin);
    let traceback = |e: &str| {
        format!(
            "Traceback (most recent call last):\n  File \"demo_gradio.py\", line 1, in worker\n{e}\n{BURST}"
        )
    };
    let said = feed(a.as_mut(), &traceback("RuntimeError: HIP error: x"));
    assert_eq!(
        said,
        [
            "job failed: RuntimeError: HIP error: x",
            "job waiting",
            "idle"
        ]
    );
    let said = feed(a.as_mut(), "Loaded CLIPTextModel to cuda:0 as complete.\n");
    assert_eq!(said, ["job started", "text_encode"]);
    // The user's own wish is no failure.
    let said = feed(
        a.as_mut(),
        &traceback("KeyboardInterrupt: User ends the task."),
    );
    assert_eq!(said, ["job waiting", "idle"]);
}

#[test]
fn a_stumbling_request_does_not_end_the_job() {
    let mut a = make(AdapterKind::Framepack, "python demo_gradio.py");
    a.start();
    feed(a.as_mut(), READY);
    feed(
        a.as_mut(),
        "latent_padding_size = 0, is_last_section = True\n",
    );
    let said = feed(
        a.as_mut(),
        "Traceback (most recent call last):\n  File \"/v/site-packages/uvicorn/protocols/http/h11_impl.py\", line 1, in run_asgi\nRuntimeError: Response content shorter than Content-Length\n",
    );
    assert!(said.is_empty(), "{said:?}");
}

#[test]
fn bars_that_the_other_stream_overtook_change_nothing() {
    let mut a = make(AdapterKind::Framepack, "python tiny_framepack.py");
    a.start();
    feed(
        a.as_mut(),
        "latent_padding_size = 0, is_last_section = True\n\
         Moving DynamicSwap_X3DTransformer to cuda:0 with preserved memory: 6 GB\n\
         \r  0%|          | 0/25 [00:00<?, ?it/s]\n\
         Offloading DynamicSwap_X3DTransformer from cuda:0 to preserve memory: 8 GB\n\
         Loaded AutoencoderKLHunyuanVideo to cuda:0 as complete.\n",
    );
    let said = feed(
        a.as_mut(),
        "\r 96%|#########6| 24/25 [01:00<00:02, 2.40s/it]\r100%|##########| 25/25 [01:02<00:00, 2.40s/it]\n",
    );
    assert!(said.is_empty(), "{said:?}");
}

#[test]
fn comfyui_of_both_generations() {
    let first = "To see the GUI go to: http://127.0.0.1:8188\ngot prompt\nUsing pytorch attention in VAE\n\
        Requested to load WanTEModel\nloaded completely 9.5e+25 484.05 True\nRequested to load WAN21\n\
        loaded partially 8000.0 7999.9 0\n\r  0%|   | 0/20 [00:00<?, ?it/s]\r100%|###| 20/20 [00:40<00:00,  2.00s/it]\n\
        Requested to load WanVAE\nloaded completely; 6539.30 MB usable, 242.03 MB loaded, full load: True\n\
        Warning: Ran out of memory when regular VAE decoding, retrying with tiled VAE decoding.\n\
        Prompt executed in 00:12:31\n";
    let second: String = first
        .split_inclusive('\n')
        .map(|l| {
            if l.starts_with('\r') {
                l.to_owned()
            } else {
                format!("[INFO] {l}")
            }
        })
        .collect();
    for (kind, text) in [
        (AdapterKind::Comfyui, first.to_owned()),
        (AdapterKind::Comfyui, second.clone()),
        (AdapterKind::Diffusers, second),
    ] {
        let mut a = make(kind, "python main.py");
        a.start();
        let said = feed(a.as_mut(), &text);
        assert_eq!(
            said,
            [
                "job waiting",
                "idle",
                "job started",
                "model_load",
                "text_encode",
                "model_load",
                "sampling",
                "vae_decode",
                "done",
                "job done",
                "job waiting",
                "idle"
            ],
            "{kind}"
        );
        assert_eq!(a.kind(), AdapterKind::Comfyui);
        assert!(a.is_server());
    }
}

#[test]
fn comfyui_failures_interrupts_and_queues() {
    let mut a = make(AdapterKind::Comfyui, "python main.py");
    assert_eq!(story(&a.start()), ["startup"]);
    feed(a.as_mut(), "To see the GUI go to: http://127.0.0.1:8188\n");
    let said = feed(
        a.as_mut(),
        "got prompt\ngot prompt\nRequested to load SD1ClipModel\n\
         !!! Exception during processing !!! HIP error: invalid device function\n\
         Traceback (most recent call last):\n  File \"execution.py\", line 1, in execute\nRuntimeError: HIP error: invalid device function\n",
    );
    assert_eq!(
        said,
        [
            "job started",
            "model_load",
            "text_encode",
            "job failed: HIP error: invalid device function",
            "job waiting",
            "idle"
        ]
    );
    let said = feed(a.as_mut(), "Prompt executed in 2.91 seconds\n");
    assert_eq!(said, ["job started", "model_load"], "the next of the queue");
    let said = feed(
        a.as_mut(),
        "Processing interrupted\nPrompt executed in 1.00 seconds\n",
    );
    assert_eq!(said, ["job waiting", "idle"]);
    let said = feed(a.as_mut(), "got prompt\ninvalid prompt: {'type': 'x'}\n");
    assert_eq!(said, ["job started", "model_load", "job waiting", "idle"]);
}

#[test]
fn a_vae_on_the_cpu_is_known_from_the_start() {
    let mut a = make(AdapterKind::Comfyui, "python main.py --cpu-vae");
    a.start();
    let said = feed(
        a.as_mut(),
        "VAE load device: cpu, offload device: cpu, dtype: torch.float32\nTo see the GUI go to: http://x\ngot prompt\n\
         \r 50%|# | 1/2 [00:01<00:01,  1.00s/it]\r100%|##| 2/2 [00:02<00:00,  1.00s/it]\nPrompt executed in 9.00 seconds\n",
    );
    assert!(said.contains(&"vae_decode cpu".to_owned()), "{said:?}");
    assert!(said.contains(&"sampling".to_owned()), "{said:?}");
}

#[test]
fn a_rung_on_the_cpu_marks_the_vae_only() {
    let launch = LaunchInfo {
        argv: vec!["python".into(), "tiny_wan.py".into()],
        on_cpu: true,
    };
    let mut a = adapter::new(AdapterKind::Diffusers, &launch);
    let mut said = story(&a.start());
    said.extend(feed(a.as_mut(), include_str!("logs/wan_script.log")));
    assert_eq!(
        said,
        [
            "startup",
            "job started",
            "sampling",
            // not known to be the decode, but it may be one, and this rung has it on the CPU
            "unknown cpu",
            "done"
        ]
    );
}

#[test]
fn the_delight_step_of_hunyuan3d_keeps_its_phase() {
    let mut a = make(AdapterKind::Comfyui, "python main.py");
    a.start();
    let said = feed(
        a.as_mut(),
        "To see the GUI go to: http://x\ngot prompt\nHy3D: loading delight pipeline x\n\
         image in shape torch.Size([1, 3, 512, 512])\n\r  2%|  | 1/50 [00:24<19:57, 24.44s/it]\r100%|##| 50/50 [20:00<00:00, 24.44s/it]\n\
         Decoded mesh with 12 vertices and 34 faces\n",
    );
    assert_eq!(
        said[2..],
        ["job started", "model_load", "delight", "mesh_post"]
    );
}

#[test]
fn downloads_end_when_the_last_file_is_there() {
    let mut a = make(AdapterKind::Diffusers, "python x.py");
    a.start();
    let said = feed(
        a.as_mut(),
        "\rFetching 2 files:   0%|  | 0/2 [00:00<?, ?it/s]\rmodel.safetensors:  12%|# | 1.2G/9.8G [00:10<01:20, 105MB/s]\
         \rmodel.safetensors: 100%|##| 9.8G/9.8G [01:30<00:00, 105MB/s]\rFetching 2 files: 100%|##| 2/2 [01:31<00:00, 45.0s/it]\n\
         Loading pipeline components...:  50%|# | 3/6 [00:02<00:02,  1.20it/s]\n",
    );
    assert_eq!(said, ["download", "model_load"]);
}

#[test]
fn a_server_of_unknown_make_is_idle_after_its_last_step() {
    let mut a = make(AdapterKind::Diffusers, "python wgp.py");
    a.start();
    let said = feed(
        a.as_mut(),
        &format!(
            "{READY}\r 50%|# | 1/2 [00:01<00:01,  1.00s/it]\r100%|##| 2/2 [00:02<00:00,  1.00s/it]\n"
        ),
    );
    assert_eq!(
        said,
        [
            "job waiting",
            "idle",
            "job started",
            "sampling",
            "done",
            "job done",
            "job waiting",
            "idle"
        ]
    );
}

#[test]
fn an_unknown_program_counts_no_denoising_steps_unless_it_says_so() {
    // a bar without a name is a sign of a job all the same, of which no more is known
    let all = whole(
        AdapterKind::Generic,
        "sd -m x",
        "\r 50%|# | 1/2 [00:01<00:01,  1.00s/it]\r",
    );
    assert_eq!(all, ["startup", "job started", "unknown"]);
    let all = whole(
        AdapterKind::Generic,
        "sd -m x",
        "sampling step 3/20\ndecoding 1 latents\n",
    );
    assert_eq!(all, ["startup", "job started", "sampling", "vae_decode"]);
}

#[test]
fn tuning_that_only_warnings_tell_of_ends_with_the_next_step() {
    let mut a = make(AdapterKind::Comfyui, "python main.py");
    a.start();
    let said = feed(
        a.as_mut(),
        "To see the GUI go to: http://x\ngot prompt\n\
         MIOpen(HIP): Warning [SearchImpl] Searching the best solution in the 9 dim space. Please, be patient...\n\
         MIOpen(HIP): Warning [SearchImpl] Runs left: 97, min time so far: 3.900, curr time: 14.000\n\
         Prompt executed in 233.81 seconds\n",
    );
    assert_eq!(
        said[4..],
        [
            "find opened",
            "done",
            "job done",
            "job waiting",
            "idle",
            "find closed"
        ]
    );
}

#[test]
fn a_script_has_no_job_before_its_first_sign_of_a_generation() {
    for (kind, words) in [
        (
            AdapterKind::Diffusers,
            "encoding the prompt on the other machine\n",
        ),
        (
            AdapterKind::Generic,
            "Saving video to the archive\nLoading model\n",
        ),
        (
            AdapterKind::Diffusers,
            "Loading VAE decoder from ae.safetensors\n",
        ),
        (
            AdapterKind::Generic,
            "Decoding video frames of the upload\n",
        ),
        (
            AdapterKind::Diffusers,
            "\r  3%|# | 12/400 [00:01<00:30, 12.0files/s]\r  4%|# | 16/400 [00:02<00:30, 12.0files/s]\n",
        ),
        (
            AdapterKind::Generic,
            "\r 10%|# | 1.2MiB/9.8MiB [00:01<00:10, 105kB/s]\rUploading: 20%|# | 1/5 [00:01<00:04, 1.0it/s]\n",
        ),
        (
            AdapterKind::Generic,
            "Baking the bread\nremeshing the net\n",
        ),
    ] {
        let mut a = make(kind, "python x.py");
        let mut said = story(&a.start());
        said.extend(feed(a.as_mut(), words));
        said.extend(story(&a.finish(true)));
        assert!(
            !said.iter().any(|w| w.starts_with("job")),
            "{words}: {said:?}"
        );
    }
    for (kind, words, phase) in [
        (
            AdapterKind::Diffusers,
            "\r 10%|# | 1/10 [00:01<00:09, 1.0s/it]\n",
            "sampling",
        ),
        (
            AdapterKind::Generic,
            "Decoding 3 latents with the VAE\n",
            "vae_decode",
        ),
        (
            AdapterKind::Generic,
            "VAE encoding: 10%|# | 1/10 [00:01<00:09, 1.0s/it]\n",
            "vae_decode",
        ),
        (
            AdapterKind::Comfyui,
            "Requested to load WAN21\n",
            "model_load",
        ),
        (AdapterKind::Diffusers, "Baking texture\n", "texture"),
        (
            AdapterKind::Framepack,
            "latent_padding_size = 0, is_last_section = True\n",
            "model_load 1/1",
        ),
    ] {
        let mut a = make(kind, "python x.py --quick-test-for-ci");
        a.start();
        let said = feed(a.as_mut(), words);
        assert_eq!(said, ["job started", phase], "{words}");
    }
}

#[test]
fn a_script_that_fails_before_its_job_gives_its_last_exception() {
    let mut a = make(AdapterKind::Diffusers, "python x.py");
    a.start();
    let said = feed(
        a.as_mut(),
        "Loading pipeline\nTraceback (most recent call last):\n  File \"x.py\", line 1\nOSError: no such model\n",
    );
    assert_eq!(said, ["model_load"]);
    assert_eq!(
        story(&a.finish(false)),
        ["job failed: OSError: no such model"]
    );
}

#[test]
fn bars_named_after_a_file_are_loads_unless_they_count_bytes() {
    for (bar, phase) in [
        (
            "Loading dit.safetensors:   0%|  | 0/69 [00:00<?, ?it/s]\n",
            "model_load",
        ),
        (
            "model-00001-of-00002.safetensors:  11%|# | 8/69 [00:01<00:09, 6.1it/s]\n",
            "model_load",
        ),
        ("Loading dit.safetensors: 12/69\n", "model_load"),
        ("umt5_xxl.gguf: 12/400 tensors\n", "model_load"),
        (
            "Load: x.pth:  50%|## | 2/4 [00:01<00:01, 1.0it/s]\n",
            "model_load",
        ),
        ("Reading ae.sft\n", "model_load"),
        (
            "flux1-dev.sft (bf16):  50%|## | 2/4 [00:01<00:01, 1.0layer/s]\n",
            "model_load",
        ),
        (
            "dit.safetensors:  11%|# | 1.1GB/9.8GB [00:01<00:09]\n",
            "download",
        ),
        (
            "dit.safetensors:  11%|# | 1.1M/9.8M [00:01<00:09, 1.1MiB/s]\n",
            "download",
        ),
        (
            "Fetching vae.pth:  50%|## | 2/4 [00:01<00:01, 1.0it/s]\n",
            "download",
        ),
        (
            "x.gguf (downloading):  50%|## | 2/4 [00:01<00:01, 1.0it/s]\n",
            "download",
        ),
    ] {
        let mut a = make(AdapterKind::Diffusers, "python x.py");
        a.start();
        assert_eq!(feed(a.as_mut(), bar), [phase], "{bar}");
    }
}

#[test]
fn a_load_ends_when_its_bar_is_full_and_a_download_when_another_bar_moves() {
    let mut a = make(AdapterKind::Diffusers, "python x.py");
    a.start();
    let said = feed(
        a.as_mut(),
        "t5.gguf: 1/2 tensors\nt5.gguf: 2/2 tensors\nLoading dit.sft:  50%|# | 1/2 [00:01<00:01, 1.0it/s]\n\
         Loading dit.sft: 100%|##| 2/2 [00:02<00:00, 1.0it/s]\n",
    );
    assert_eq!(said, ["model_load", "unknown", "model_load", "unknown"]);
    // left at half, for the file was there already
    let said = feed(
        a.as_mut(),
        "vae.pth:  50%|# | 1.0M/2.0M [00:01<00:01, 1.0MB/s]\nLoading shards:  50%|# | 1/2 [00:01<00:01, 1.0it/s]\n\
         lora.pth:  50%|# | 1.0M/2.0M [00:01<00:01, 1.0MB/s]\nlora.pth: 100%|##| 2.0M/2.0M [00:02<00:00, 1.0MB/s]\n\
         \r  0%|  | 0/4 [00:00<?, ?it/s]\n",
    );
    assert_eq!(
        said,
        [
            "download",
            "model_load",
            "download",
            "model_load",
            "job started",
            "sampling"
        ]
    );
}

#[test]
fn a_full_bar_of_steps_says_nothing_of_a_decode() {
    for (kind, bar) in [
        (
            AdapterKind::Diffusers,
            "\r 50%|# | 1/2 [00:01<00:01, 1.0s/it]\r100%|##| 2/2 [00:02<00:00, 1.0s/it]\n",
        ),
        (
            AdapterKind::Diffusers,
            "Denoising step 1/2\nDenoising step 2/2\n",
        ),
        (
            AdapterKind::Generic,
            "Sampling:  50%|# | 1/2 [00:01<00:01, 1.0s/it]\nSampling: 100%|##| 2/2 [00:02<00:00, 1.0s/it]\n",
        ),
        (
            AdapterKind::Generic,
            "  |==>   | 1/2 - 1.23s/it\n  |=====>| 2/2 - 1.23s/it\n",
        ),
        (
            AdapterKind::Diffusers,
            "\r 50%|# | 1/2 [00:01<00:01, 1.0steps/s]\r100%|##| 2/2 [00:02<00:00, 1.0steps/s]\n",
        ),
    ] {
        let mut a = make(kind, "sd x");
        a.start();
        let said = feed(a.as_mut(), bar);
        assert_eq!(
            said.last().map(String::as_str),
            Some("unknown"),
            "{bar}: {said:?}"
        );
        // a line that says so, and a program that is known, are another thing
        let said = feed(a.as_mut(), "decoding 1 latents\n");
        assert_eq!(said, ["vae_decode"], "{bar}");
    }
}

#[test]
fn a_repaint_begins_no_bar_no_phase_and_no_job() {
    let full = "\r  0%|  | 0/8 [00:00<?, ?it/s]\r 62%|##| 5/8 [00:05<00:03, 1.0s/it]\r100%|##| 8/8 [00:08<00:00, 1.0s/it]\n";
    for repaint in [
        " 62%|##| 5/8 [00:05<00:03, 1.0s/it]",
        " 62%|##| 5/8 [00:41<00:03, 1.0s/it]",
        "100%|##| 8/8 [00:09<00:00, 1.1s/it]",
        "  0%|  | 0/8 [00:33<?, ?it/s]",
    ] {
        let mut a = make(AdapterKind::Diffusers, "python x.py");
        a.start();
        let said = feed(a.as_mut(), full);
        assert_eq!(said, ["job started", "sampling", "unknown"]);
        let said = feed(a.as_mut(), &format!("\r{repaint}\r{repaint}\r{repaint}\n"));
        assert!(said.is_empty(), "{repaint}: {said:?}");
        // a server whose job counts as over at its last step takes up none
        let mut a = make(AdapterKind::Diffusers, "python wgp.py");
        a.start();
        feed(a.as_mut(), &format!("{READY}{full}"));
        let said = feed(a.as_mut(), &format!("\r{repaint}\r{repaint}\n"));
        assert!(said.is_empty(), "{repaint}: {said:?}");
        let said = feed(a.as_mut(), "\r  0%|  | 0/8 [00:00<?, ?it/s]\n");
        assert_eq!(said, ["job started", "sampling"], "{repaint}");
    }
    // two bars painted in turn: the outer one of a script and a decode's
    let mut a = make(AdapterKind::Diffusers, "python x.py");
    a.start();
    feed(
        a.as_mut(),
        "\rclips:  50%|# | 1/2 [00:30<00:30, 30s/it]\rSampling: 100%|##| 8/8 [00:08<00:00, 1.0s/it]\rSampling: 37%|# | 3/8 [00:03<00:05, 1.0s/it]\n",
    );
    let said = feed(
        a.as_mut(),
        "\rDecoding:  25%|# | 1/4 [00:01<00:03, 1.0s/it]\n",
    );
    assert_eq!(said.last().map(String::as_str), Some("vae_decode"));
    for _ in 0..5 {
        let said = feed(
            a.as_mut(),
            "\rSampling: 37%|# | 3/8 [00:03<00:05, 1.0s/it]\rDecoding:  25%|# | 1/4 [00:09<00:03, 9.0s/it]\n",
        );
        assert!(said.is_empty(), "{said:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_give_only_the_four_kinds_and_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        picks in proptest::collection::vec(0usize..12, 0..40),
    ) {
        const PIECES: &[&str] = &[
            READY, BURST, "got prompt\n", "Prompt executed in 1.0 seconds\n",
            "Decoded. x\n", "latent_padding_size = 9, is_last_section = False\n",
            "\r 50%|# | 1/2 [00:01<00:01,  1.00s/it]", "\r100%|##| 2/2 [00:02<00:00,  1.00s/it]\n",
            "Traceback (most recent call last):\n", "ValueError: x\n",
            "section_index = 4294967295, total_latent_sections = 99999999999\n",
            "Loaded AutoencoderKL to cuda:0 as complete.\n",
        ];
        let text: String = picks.iter().map(|p| PIECES[*p]).collect();
        for kind in AdapterKind::ALL {
            let mut a = make(*kind, "python x.py");
            let mut events = a.start();
            for l in lines(&bytes).iter().chain(&lines(text.as_bytes())) {
                events.extend(a.feed(l));
            }
            events.extend(a.finish(true));
            // `story` refuses other kinds; a job never starts twice in a row.
            let jobs: Vec<String> = story(&events).into_iter().filter(|w| w.starts_with("job")).collect();
            prop_assert!(jobs.windows(2).all(|w| w[0] != w[1] || w[0].starts_with("job failed")), "{:?}", jobs);
        }
    }
}
