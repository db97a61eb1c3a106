//! `diagnose` on what people paste of each program: whose log it is, what happened, and a
//! cure that fits what the program computes with. The texts are of our own making.

use std::fs;

use framepack_tui::diagnose::report::Report;
use framepack_tui::diagnose::{Source, diagnose};
use framepack_tui::model::{Phase, VerdictId};

fn judge(text: &str) -> Report {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("pasted.txt");
    fs::write(&path, text).unwrap();
    diagnose(&Source::at(&path).unwrap()).unwrap()
}

struct Pasted {
    text: &'static str,
    program: &'static str,
    phase: Phase,
    verdict: VerdictId,
    /// A word of the cure.
    cure: &'static str,
    /// What the cure must not speak of.
    not: &'static str,
}

const PASTED: &[Pasted] = &[
    Pasted {
        text: "[INFO ] ggml_extend.hpp:65   - ggml_vulkan: Found 1 Vulkan devices:\n\
            [INFO ] ggml_extend.hpp:65   - ggml_vulkan: 0 = AMD Radeon RX 7800 XT (RADV NAVI32) (radv) | uma: 0 | fp16: 1\n\
            [INFO ] stable-diffusion.cpp:720  - loading diffusion model from 'wan.gguf'\n\
            [INFO ] stable-diffusion.cpp:6914 - generate_video 832x480x33\n\
            [INFO ] stable-diffusion.cpp:6552 - get_learned_condition completed, taking 2.20s\n\
            \r  |====>     | 19/20 - 9.00s/it\r  |=========| 20/20 - 9.00s/it\n\
            [INFO ] stable-diffusion.cpp:7155 - generating latent video completed, taking 181.00s\n\
            [ERROR] ggml_extend.hpp:72   - ggml_vulkan: Device memory allocation of size 9663676416 failed.\n\
            [ERROR] ggml_extend.hpp:72   - ggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory\n\
            [ERROR] ggml_extend.hpp:2234 - wan_vae: failed to allocate the compute buffer\n\
            [ERROR] stable-diffusion.cpp:6585 - decode_first_stage failed for video\n\
            [ERROR] main.cpp:952  - generate failed\n",
        program: "stable-diffusion.cpp",
        phase: Phase::VaeDecode,
        verdict: VerdictId::GpuOom,
        cure: "--vae-tiling",
        not: "MIOPEN",
    },
    Pasted {
        text: "Loading Model 'ckpts/wan2.2_i2v_14B_int8.safetensors' ...\n\
            Loading Text Encoder 'ckpts/umt5-xxl-int8.safetensors' ...\n\
            \u{20} 0%|          | 0/20 [00:00<?, ?it/s]\n\
            Traceback (most recent call last):\n\
            \u{20} File \"/home/u/Wan2GP/wgp.py\", line 7868, in generate_media\n\
            \u{20}   samples = wan_model.generate(\n\
            RuntimeError: HIP error: invalid device function\n",
        program: "wangp",
        phase: Phase::Sampling,
        verdict: VerdictId::NoKernelImage,
        cure: "torch[device-all]",
        not: "",
    },
    Pasted {
        text: "[2026-11-02 18:20:01,114]::[InvokeAI]::INFO --> Executing queue item 12, session 5d10 on cuda:0\n\
            [2026-11-02 18:20:03,520]::[ModelManagerService]::INFO --> [MODEL CACHE] Loaded model 'b0aa:unet' (UNet2DConditionModel) onto cuda device in 1.20s.\n\
            [2026-11-02 18:20:07,520]::[ModelManagerService]::INFO --> [MODEL CACHE] Loaded model 'b0aa:vae' (AutoencoderKL) onto cuda device in 0.20s.\n\
            [2026-11-02 18:20:09,000]::[InvokeAI]::ERROR --> Error while invoking session 5d10, invocation 77e0 (l2i): HIP out of memory. Tried to allocate 9.00 GiB. GPU 0 has a total capacity of 15.98 GiB of which 2.00 GiB is free.\n\
            [2026-11-02 18:20:09,100]::[InvokeAI]::INFO --> Graph stats: 5d10\n",
        program: "invokeai",
        phase: Phase::VaeDecode,
        verdict: VerdictId::GpuOom,
        cure: "til",
        not: "",
    },
    Pasted {
        text: "Starting worker function for job 3f0c\n\
            latent_padding_size = 0, is_last_section = True\n\
            Traceback (most recent call last):\n\
            \u{20} File \"/o/FramePack-Studio/modules/pipelines/worker.py\", line 840, in worker\n\
            torch.OutOfMemoryError: HIP out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 15.98 GiB of which 1.00 GiB is free.\n\
            Finishing job 3f0c with status JobStatus.FAILED\n",
        program: "framepack-studio",
        phase: Phase::ModelLoad,
        verdict: VerdictId::GpuOom,
        cure: "",
        not: "",
    },
    Pasted {
        text: "INFO:musubi_tuner.wan_generate_video:Using device: cuda\n\
            INFO:musubi_tuner.wan_generate_video:Loading DiT model from d.safetensors\n\
            Traceback (most recent call last):\n\
            \u{20} File \"/o/musubi-tuner/src/musubi_tuner/wan_generate_video.py\", line 2301, in main\n\
            RuntimeError: HIP error: no kernel image is available for execution on the device\n",
        program: "musubi-tuner",
        phase: Phase::ModelLoad,
        verdict: VerdictId::NoKernelImage,
        cure: "torch[device-all]",
        not: "",
    },
    // a page that is up before its models are loaded
    Pasted {
        text: "$ python entry_with_update.py\n\
            Fooocus version: 2.5.5\n\
            Running on local URL:  http://127.0.0.1:7865\n\
            Traceback (most recent call last):\n\
            \u{20} File \"/home/u/comfyui/f/modules/async_worker.py\", line 25, in worker\n\
            RuntimeError: No HIP GPUs are available\n",
        program: "fooocus",
        phase: Phase::Startup,
        verdict: VerdictId::GpuUnavailable,
        cure: "rocminfo",
        not: "ComfyUI",
    },
    // an excerpt that begins with the lines of ComfyUI's memory management
    Pasted {
        text: "Total VRAM 8176 MB, total RAM 32013 MB\n\
            Set vram state to: NORMAL_VRAM\n\
            App started successful. Use the app with http://127.0.0.1:7865/\n\
            [Parameters] Seed = 5\n\
            [Fooocus] Encoding positive #1 ...\n\
            Traceback (most recent call last):\n\
            \u{20} File \"/o/f/modules/core.py\", line 12, in f\n\
            torch.cuda.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB\n",
        program: "fooocus",
        phase: Phase::TextEncode,
        verdict: VerdictId::GpuOom,
        cure: "--always-low-vram",
        not: "ComfyUI",
    },
    // the backend's lines stand behind SwarmUI's own mark
    Pasted {
        text: "10:02:01.100 [Init] Self-Start ComfyUI-0 on port 7821 started.\n\
            10:02:05.100 [Info] User local requested 1 image with model 'x.safetensors'\n\
            10:02:05.300 [Debug] [ComfyUI-0/STDERR] got prompt\n\
            10:02:06.300 [Debug] [ComfyUI-0/STDERR] Requested to load Flux\n\
            10:02:09.300 [Warning] [ComfyUI-0/STDERR] Traceback (most recent call last):\n\
            10:02:09.300 [Warning] [ComfyUI-0/STDERR]   File \"/s/dlbackend/ComfyUI/execution.py\", line 12, in f\n\
            10:02:09.300 [Warning] [ComfyUI-0/STDERR] torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB\n",
        program: "swarmui",
        phase: Phase::ModelLoad,
        verdict: VerdictId::GpuOom,
        cure: "--lowvram",
        not: "",
    },
    Pasted {
        text: "Easy Diffusion - v3.0\n\
            INFO:     Uvicorn running on http://0.0.0.0:9000 (Press CTRL+C to quit)\n\
            10:02:09.100 INFO cuda:0 Session s1 starting task 7 on Radeon\n\
            \u{20} 0%|          | 0/25 [00:00<?, ?it/s]\r  4%|4         | 1/25 [00:02<00:48,  2.00s/it]\n\
            Traceback (most recent call last):\n\
            \u{20} File \"/o/e/ui/easydiffusion/tasks/render_images.py\", line 90, in run\n\
            torch.cuda.OutOfMemoryError: HIP out of memory. Tried to allocate 1.20 GiB\n",
        program: "easy-diffusion",
        phase: Phase::Sampling,
        verdict: VerdictId::GpuOom,
        cure: "GPU Memory Usage",
        not: "ComfyUI",
    },
    // no phase stands for a training: its steps are read as those of a generation
    Pasted {
        text: "running training / 学習開始\n\
            steps:   0%|          | 0/2000 [00:00<?, ?it/s]\r\n\
            epoch 1/10\n\
            Traceback (most recent call last):\n\
            \u{20} File \"/o/k/train_network.py\", line 1115, in <module>\n\
            torch.OutOfMemoryError: HIP out of memory. Tried to allocate 640.00 MiB\n",
        program: "sd-scripts",
        phase: Phase::Sampling,
        verdict: VerdictId::GpuOom,
        cure: "--gradient_checkpointing",
        not: "ComfyUI",
    },
    // Forge tells of a job only by the models that it moves for it
    Pasted {
        text: "Launching Web UI with arguments: --listen\n\
            Running on local URL:  http://127.0.0.1:7860\n\
            [Memory Management] Target: JointTextEncoder, Free GPU: 10704.50 MB\n\
            Traceback (most recent call last):\n\
            \u{20} File \"/o/forge/modules_forge/main_thread.py\", line 30, in work\n\
            RuntimeError: HIP error: invalid device function\n",
        program: "webui",
        phase: Phase::TextEncode,
        verdict: VerdictId::NoKernelImage,
        cure: "torch",
        not: "ComfyUI",
    },
    // a folder's name says nothing of the program
    Pasted {
        text: "Checkpoint files will always be loaded safely.\n\
            Total VRAM 24560 MB, total RAM 31993 MB\n\
            got prompt\n\
            Requested to load WAN21\n\
            Traceback (most recent call last):\n\
            \u{20} File \"/home/u/Fooocus/SwarmUI/easy-diffusion/ComfyUI/execution.py\", line 1, in f\n\
            RuntimeError: HIP error: invalid device function\n",
        program: "comfyui",
        phase: Phase::ModelLoad,
        verdict: VerdictId::NoKernelImage,
        cure: "torch",
        not: "",
    },
];

#[test]
fn what_people_paste_of_each_program() {
    for p in PASTED {
        let report = judge(p.text);
        let program = report.read.first().map(|r| r.program.as_str());
        assert_eq!(program, Some(p.program), "{}", p.text);
        assert_eq!(report.workload.adapter, p.program, "{}", p.text);
        assert_eq!(report.phase, p.phase, "{}", p.text);
        assert_eq!(report.verdict, p.verdict, "{}", p.text);
        let remedy = format!("{:?}", report.action);
        assert!(remedy.contains(p.cure), "{}: {remedy}", p.program);
        assert!(p.not.is_empty() || !remedy.contains(p.not), "{remedy}");
    }
}

#[test]
fn a_server_at_rest_has_no_fault() {
    for text in [
        "[INFO ] stable-diffusion.cpp:720  - loading diffusion model from 'a.gguf'\nlistening on: http://127.0.0.1:1234\n",
        "Loading Model 'ckpts/wan.safetensors' ...\n* Running on local URL:  http://localhost:7860\nNew video saved to Path: outputs/a.mp4\n",
        "[2026-11-02 18:20:01,114]::[InvokeAI]::INFO --> Uvicorn running on http://127.0.0.1:9090\n[2026-11-02 18:20:01,114]::[InvokeAI]::INFO --> Executing queue item 1, session 1f\n[2026-11-02 18:21:01,114]::[InvokeAI]::INFO --> Graph stats: 1f\n",
        "Starting worker function for job 3f\nFinishing job 3f with status JobStatus.COMPLETED\n",
    ] {
        let report = judge(text);
        assert!(report.verdict.is_no_fault(), "{text}: {}", report.verdict);
    }
}
