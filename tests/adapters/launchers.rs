//! Programs that start others, trainings, and pages over a library: five logs of each in our own
//! words, in the wording of the programs' sources. A log begins with the program.

use framepack_tui::workload::adapter::AdapterKind::{
    self, EasyDiffusion, Fooocus, Krita, OneTrainer, SdScripts, StabilityMatrix, Swarmui,
};

use super::programs::denoised;
use super::whole;

/// A program's command, and its five logs, each with what it means.
struct Program {
    kind: AdapterKind,
    argv: &'static str,
    /// What stands before each log.
    start: &'static str,
    logs: [(&'static str, &'static str); 5],
}

/// `<bar>` stands for a bar of four steps, `<half>` for one that stands at its first step.
const PROGRAMS: &[Program] = &[
    Program {
        kind: Fooocus,
        argv: "python entry_with_update.py",
        start: "Fooocus version: 2.5.5\nRunning on local URL:  http://127.0.0.1:7865\n",
        logs: [
            // a page whose worker still loads its models
            ("Loading support files ...\n", "startup"),
            (
                "App started successful. Use the app with http://127.0.0.1:7865/\n",
                "startup, job waiting, idle",
            ),
            (
                "App started successful. Use the app with http://127.0.0.1:7865/\n[Parameters] Seed = 5\n[Fooocus] Encoding positive #1 ...\nRequested to load SDXL\n<bar>Total time: 21.50 seconds\n",
                "startup, job waiting, idle, job started, unknown, text_encode, model_load, sampling, vae_decode, done, job done, job waiting, idle",
            ),
            (
                "App started successful. Use the app with http://127.0.0.1:7865/\n[Parameters] Seed = 5\n[Fooocus] Loading models ...\nTraceback (most recent call last):\n  File \"/o/Fooocus/modules/async_worker.py\", line 1471, in worker\ntorch.cuda.OutOfMemoryError: HIP out of memory\n\nTotal time: 3.20 seconds\n",
                "startup, job waiting, idle, job started, unknown, model_load, job failed: torch.cuda.OutOfMemoryError: HIP out of memory, job waiting, idle",
            ),
            (
                "App started successful. Use the app with http://127.0.0.1:7865/\n[Parameters] Seed = 5\n[Fooocus] Downloading upscale models ...\n",
                "startup, job waiting, idle, job started, unknown, download",
            ),
        ],
    },
    Program {
        kind: EasyDiffusion,
        argv: "python scripts/check_modules.py --launch-uvicorn",
        start: "Easy Diffusion - v3.0\n",
        logs: [
            ("Checking required packages\n", "startup"),
            (
                "INFO:     Uvicorn running on http://0.0.0.0:9000 (Press CTRL+C to quit)\n",
                "startup, job waiting, idle",
            ),
            (
                "INFO:     Uvicorn running on http://0.0.0.0:9000 (Press CTRL+C to quit)\nINFO cuda:0 Session s1 starting task 7 on Radeon\nINFO cuda:0 loading stable-diffusion model from /m/a.safetensors to device: cuda:0\nINFO cuda:0 loaded stable-diffusion model\n<bar>INFO cuda:0 Session s1 task 7 completed.\n",
                "startup, job waiting, idle, job started, unknown, model_load, unknown, sampling, vae_decode, done, job done, job waiting, idle",
            ),
            (
                "INFO:     Uvicorn running on http://0.0.0.0:9000 (Press CTRL+C to quit)\nINFO cuda:0 Session s1 starting task 7 on Radeon\n<half>Traceback (most recent call last):\n  File \"/o/ed/ui/easydiffusion/tasks/render_images.py\", line 90, in run\nRuntimeError: HIP error: invalid device function\n",
                "startup, job waiting, idle, job started, unknown, sampling, job failed: RuntimeError: HIP error: invalid device function, job waiting, idle",
            ),
            (
                "INFO:     Uvicorn running on http://0.0.0.0:9000 (Press CTRL+C to quit)\nINFO cuda:0 Session s1 starting task 7 on Radeon\n<half>",
                "startup, job waiting, idle, job started, unknown, sampling",
            ),
        ],
    },
    Program {
        kind: Swarmui,
        argv: "./SwarmUI",
        start: "=== SwarmUI v0.9.7 Starting ===\n",
        logs: [
            (
                "Self-Start ComfyUI-0 on port 7821 is loading...\n",
                "startup",
            ),
            (
                "To see the GUI go to: http://127.0.0.1:7821\n",
                "startup, job waiting, idle",
            ),
            (
                "To see the GUI go to: http://127.0.0.1:7821\nUser local requested 1 image with model 'x.safetensors'\ngot prompt\nRequested to load SDXL\n<bar>Requested to load AutoencoderKL\nPrompt executed in 9.10 seconds\nGenerated an image in 9.30 sec\n",
                "startup, job waiting, idle, job started, unknown, model_load, sampling, vae_decode, done, job done, job waiting, idle",
            ),
            (
                "To see the GUI go to: http://127.0.0.1:7821\nUser local requested 1 image with model 'x.safetensors'\ngot prompt\n!!! Exception during processing !!! HIP out of memory\nPrompt executed in 1.10 seconds\n",
                "startup, job waiting, idle, job started, unknown, model_load, job failed: HIP out of memory, job waiting, idle",
            ),
            (
                "To see the GUI go to: http://127.0.0.1:7821\nUser local requested 4 images with model 'x.safetensors'\ngot prompt\n<half>Processing interrupted\nPrompt executed in 3.10 seconds\n",
                "startup, job waiting, idle, job started, unknown, model_load, sampling, job waiting, idle",
            ),
        ],
    },
    Program {
        kind: SdScripts,
        argv: "python sdxl_train_network.py --config_file a.toml",
        start: "prepare tokenizers\nload StableDiffusion checkpoint: /m/a.safetensors\n",
        logs: [
            (
                "loading u-net: <All keys matched successfully>\n",
                "startup, model_load",
            ),
            (
                "running training / 学習開始\n  num train images * repeats / 学習画像の数×繰り返し回数: 400\n<half>",
                "startup, model_load, job started",
            ),
            (
                "running training / 学習開始\n<bar>saving checkpoint: /o/a.safetensors\nmodel saved.\n",
                "startup, model_load, job started",
            ),
            (
                "running training / 学習開始\n<half>Traceback (most recent call last):\n  File \"/o/k/sdxl_train_network.py\", line 190, in <module>\ntorch.OutOfMemoryError: HIP out of memory\n",
                "startup, model_load, job started",
            ),
            (
                "caching latents...\n<half>",
                "startup, model_load, job started",
            ),
        ],
    },
    Program {
        kind: StabilityMatrix,
        argv: "StabilityMatrix.AppImage",
        start: "",
        logs: [
            (
                "Cloning into '/home/u/StabilityMatrix/Data/Packages/ComfyUI'...\n",
                "startup",
            ),
            (
                "Collecting torch\nInstalling collected packages: torch\n",
                "startup",
            ),
            (
                "StabilityMatrix.Core.Exceptions.ProcessException: pip exited with code 1\n",
                "startup",
            ),
            ("<half>", "startup, job started, sampling"),
            ("<bar>", "startup, job started, sampling, unknown"),
        ],
    },
    Program {
        kind: Krita,
        argv: "krita",
        start: "INFO Extension initialized, Version: 1.46.0, Python: 3.10.7\nINFO Starting server with python -su main.py --port 8188\n",
        logs: [
            (
                "INFO Checkpoint files will always be loaded safely.\n",
                "startup",
            ),
            (
                "INFO To see the GUI go to: http://127.0.0.1:8188\n",
                "startup, job waiting, idle",
            ),
            (
                "INFO To see the GUI go to: http://127.0.0.1:8188\nINFO got prompt\nINFO Requested to load SDXL\n<bar>INFO Requested to load AutoencoderKL\nINFO Prompt executed in 9.10 seconds\n",
                "startup, job waiting, idle, job started, model_load, sampling, vae_decode, done, job done, job waiting, idle",
            ),
            (
                "INFO To see the GUI go to: http://127.0.0.1:8188\nINFO got prompt\nERROR Job 6d9f failed: Server execution error: HIP out of memory\nINFO Prompt executed in 2.00 seconds\n",
                "startup, job waiting, idle, job started, model_load, job failed: Server execution error: HIP out of memory, job waiting, idle",
            ),
            (
                "INFO To see the GUI go to: http://127.0.0.1:8188\nINFO got prompt\n<half>INFO Processing interrupted\nINFO Prompt executed in 3.10 seconds\n",
                "startup, job waiting, idle, job started, model_load, sampling, job waiting, idle",
            ),
        ],
    },
    Program {
        kind: OneTrainer,
        argv: "python scripts/train_ui.py",
        start: "Starting UI...\n",
        logs: [
            ("No backup found, continuing without backup...\n", "startup"),
            (
                "Clearing cache directory /w/cache! You can disable this if you want to continue using the same cache.\nepoch:   0%|          | 0/2 [00:00<?, ?it/s]\nstep:  25%|##        | 1/4 [00:01<00:03, 1.00s/it]\n",
                "startup, job started, model_load, sampling",
            ),
            (
                "Clearing cache directory /w/cache! You can disable this if you want to continue using the same cache.\nepoch:   0%|          | 0/1 [00:00<?, ?it/s]\nstep:  25%|##        | 1/4 [00:01<00:03, 1.00s/it]\nstep: 100%|##########| 4/4 [00:04<00:00, 1.00s/it]\nepoch: 100%|##########| 1/1 [00:04<00:00, 4.00s/it]\nSaving /w/models/a.safetensors\n",
                "startup, job started, model_load, sampling, done, job done, job waiting, idle",
            ),
            (
                "Clearing cache directory /w/cache! You can disable this if you want to continue using the same cache.\nstep:  25%|##        | 1/4 [00:01<00:03, 1.00s/it]\nTraceback (most recent call last):\n  File \"/o/OneTrainer/modules/trainer/GenericTrainer.py\", line 685, in train\ntorch.OutOfMemoryError: HIP out of memory\n",
                "startup, job started, model_load, sampling, job failed: torch.OutOfMemoryError: HIP out of memory, job waiting, idle",
            ),
            (
                "Clearing cache directory /w/cache! You can disable this if you want to continue using the same cache.\nstep:  25%|##        | 1/4 [00:01<00:03, 1.00s/it]\nCreating Backup /w/backup/a\nstep:  50%|#####     | 2/4 [00:02<00:02, 1.00s/it]\n",
                "startup, job started, model_load, sampling, save, sampling",
            ),
        ],
    },
];

#[test]
fn five_logs_of_each() {
    let half = denoised("", 4);
    let half = half.split('\r').nth(2).unwrap_or_default();
    let mut wrong = Vec::new();
    for p in PROGRAMS {
        for (log, want) in p.logs {
            let text = format!("{}{log}", p.start);
            let text = text.replace("<bar>", &denoised("", 4));
            let text = text.replace("<half>", &format!("{half}\n"));
            let got = whole(p.kind, p.argv, &text).join(", ");
            if got != want {
                wrong.push(format!("{}: {log}\n  got  {got}\n  want {want}", p.kind));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
