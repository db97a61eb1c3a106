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
