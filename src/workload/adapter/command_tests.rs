//! Which program a command line or a console shows.

use super::super::AdapterKind;
use super::*;

fn kind(argv: &[String], cwd: &str, names_in: impl Fn(&str) -> Vec<String>) -> AdapterKind {
    AdapterKind::detect(argv, cwd, names_in)
}

fn kind_of_lines<'a>(lines: impl Iterator<Item = &'a str>) -> AdapterKind {
    AdapterKind::detect_lines(lines)
}

fn expects_server(kind: AdapterKind, argv: &[String]) -> bool {
    kind.serves(argv)
}

fn of(line: &str, cwd: &str, names: &[&str]) -> AdapterKind {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
    kind(&words, cwd, |_| names.clone())
}

#[test]
fn by_command_line_and_folder() {
    use AdapterKind::{
        Comfyui, Diffusers, Framepack, FramepackStudio, Generic, StableDiffusionCpp,
    };
    for (line, cwd, names, want) in [
        ("python3 demo_gradio.py --port 1", "/x", &[][..], Framepack),
        (
            "python /a/FramePack/demo_gradio_f1.py",
            "/x",
            &[],
            Framepack,
        ),
        ("venv/bin/python tiny_framepack.py", "/x", &[], Framepack),
        // a fork with a queue of its own has a console of its own
        (
            "python studio.py",
            "/x",
            &["diffusers_helper"],
            FramepackStudio,
        ),
        ("python fork.py", "/x", &["diffusers_helper"], Framepack),
        (
            "python main.py --lowvram",
            "/x",
            &["comfy", "nodes.py"],
            Comfyui,
        ),
        ("python main.py", "/home/u/ComfyUI", &[], Comfyui),
        ("python /o/ComfyUI/main.py", "/", &[], Comfyui),
        ("python main.py", "/x", &["main.py"], Diffusers),
        (
            "accelerate launch gen.py --model FramePackI2V",
            "/x",
            &[],
            Diffusers,
        ),
        ("python -m wan.generate", "/x", &[], Diffusers),
        (
            "/usr/bin/framepack-tui worker decode a",
            "/x",
            &["diffusers_helper"],
            Generic,
        ),
        ("sd-cli -m model.gguf", "/x", &[], StableDiffusionCpp),
        ("", "/x", &[], Generic),
    ] {
        assert_eq!(of(line, cwd, names), want, "{line}");
    }
}

#[test]
fn neither_the_interpreter_nor_an_argument_decides() {
    use AdapterKind::{
        Comfyui, Diffusers, Framepack, FramepackStudio, Generic, StableDiffusionCpp,
    };
    for (line, cwd, want) in [
        ("/x/framepack/.venv/bin/python gen.py", "/x", Diffusers),
        ("/x/ComfyUI/venv/bin/python3.12 gen.py", "/x", Diffusers),
        ("/x/FramePack/bin/accelerate launch gen.py", "/x", Diffusers),
        ("python /home/u/framepack-tui/tests/gen.py", "/x", Diffusers),
        ("python gen.py", "/home/u/framepack-tui", Diffusers),
        ("python tests/gen.py", "/home/u/framepack-tui", Diffusers),
        ("python framepack_tui_check.py", "/x", Diffusers),
        ("python /home/u/comfyui/tools/gen.py", "/x", Diffusers),
        ("python gen.py", "/home/u/comfyui", Diffusers),
        ("python main.py", "/home/u/comfyui-nodes/tests", Diffusers),
        ("python gen.py /m/FramePackI2V_HY", "/x", Diffusers),
        ("python gen.py --config framepack.py", "/x", Diffusers),
        ("python -m wan.generate demo_gradio.py", "/x", Diffusers),
        ("python -c pass demo_gradio.py", "/x", Diffusers),
        ("python -u - framepack.py", "/x", Diffusers),
        ("uv run --with framepack gen.py", "/x", Diffusers),
        ("uv run gen.py -m framepack", "/x", Diffusers),
        ("uv run python -m pkg", "/x", Diffusers),
        ("torchrun --nproc-per-node 2 -m pkg.train", "/x", Diffusers),
        ("sd-cli -m /models/framepack.gguf", "/x", StableDiffusionCpp),
        (
            "/opt/framepack/bin/sd-cli -m a.gguf",
            "/x",
            StableDiffusionCpp,
        ),
        ("/home/u/framepack-tui/run.sh", "/x", Generic),
        // and what is FramePack or ComfyUI by any way of starting it
        ("/a/bin/python -u -X dev demo_gradio.py", "/x", Framepack),
        ("python -m framepack.cli", "/x", Framepack),
        ("uv run demo_gradio_f1.py", "/x", Framepack),
        ("env A=1 nice python3 FramePack_batch.py", "/x", Framepack),
        (
            "python /o/FramePack-Studio/studio.py",
            "/x",
            FramepackStudio,
        ),
        ("python studio.py", "/o/framepack-studio/", FramepackStudio),
        ("/opt/bin/framepack --port 1", "/x", Framepack),
        ("uv run main.py", "/o/ComfyUI/", Comfyui),
        ("python ./ComfyUI-master/main.py", "/o", Comfyui),
        ("/usr/bin/comfyui --listen", "/x", Comfyui),
    ] {
        assert_eq!(of(line, cwd, &[]), want, "{line} in {cwd}");
    }
}

#[test]
fn each_program_by_its_command() {
    use AdapterKind::{
        Diffusers, Generic, Invokeai, MusubiTuner, Sdnext, StableDiffusionCpp, Wangp, Webui,
    };
    for (line, cwd, want) in [
        (
            "./build/bin/sd -m sd.safetensors -p cat",
            "/x",
            StableDiffusionCpp,
        ),
        (
            "sd-server --diffusion-model a.gguf",
            "/x",
            StableDiffusionCpp,
        ),
        // the find and replace of the same name
        ("sd before after file.txt", "/x", Generic),
        ("sd -p before after", "/x", Generic),
        ("python wgp.py --listen", "/x", Wangp),
        ("python /o/Wan2GP/wgp.py --process q.zip", "/x", Wangp),
        ("/v/bin/invokeai-web --root /r", "/x", Invokeai),
        ("python -m invokeai.app.run_app", "/x", Invokeai),
        ("/v/bin/python /v/bin/invokeai-web", "/x", Invokeai),
        (
            "python wan_generate_video.py --task t2v-14B",
            "/x",
            MusubiTuner,
        ),
        (
            "python src/musubi_tuner/hv_generate_video.py",
            "/x",
            MusubiTuner,
        ),
        (
            "accelerate launch fpack_generate_video.py",
            "/x",
            MusubiTuner,
        ),
        (
            "python -m musubi_tuner.qwen_image_generate_image",
            "/x",
            MusubiTuner,
        ),
        // its training is no generation
        ("accelerate launch wan_train_network.py", "/x", Diffusers),
        ("python launch.py --listen", "/o/sdnext", Sdnext),
        ("python launch.py", "/o/stable-diffusion-webui-forge", Webui),
        ("python launch.py", "/o/other", Diffusers),
    ] {
        assert_eq!(of(line, cwd, &[]), want, "{line} in {cwd}");
    }
}

#[test]
fn servers_are_told_from_what_runs_one_job() {
    let words = |l: &str| -> Vec<String> { l.split(' ').map(str::to_owned).collect() };
    for (line, serves) in [
        ("sd-cli -m a.gguf", false),
        ("sd-server -m a.gguf", true),
        ("python wgp.py", true),
        ("python wgp.py --process q.json", false),
        ("invokeai-web", true),
        ("python wan_generate_video.py", false),
    ] {
        let kind = of(line, "/x", &[]);
        assert_eq!(kind.serves(&words(line)), serves, "{line}");
    }
}

#[test]
fn a_decode_on_the_cpu_by_arguments() {
    let words = |l: &str| -> Vec<String> { l.split(' ').map(str::to_owned).collect() };
    for (line, on_cpu) in [
        ("sd-cli -m a --vae-on-cpu", true),
        ("sd-cli -m a --backend te=cpu,vae=cpu", true),
        ("sd-cli -m a --backend cpu", true),
        ("sd-cli -m a --backend te=cpu", false),
        ("sd-cli -m a", false),
    ] {
        let kind = AdapterKind::StableDiffusionCpp;
        assert_eq!(kind.decodes_on_cpu(&words(line)), on_cpu, "{line}");
    }
}

#[test]
fn the_folder_of_the_script_is_the_one_whose_files_count() {
    use AdapterKind::{Diffusers, Framepack, FramepackStudio};
    let names = |folder: &str| -> Vec<String> {
        let names: &[&str] = match folder {
            "/o/fork" => &["diffusers_helper", "studio.py"],
            _ => &["gen.py"],
        };
        names.iter().map(|n| (*n).to_owned()).collect()
    };
    for (line, cwd, want) in [
        ("python /o/fork/studio.py", "/x", FramepackStudio),
        ("python fork/studio.py", "/o/", FramepackStudio),
        ("python ./studio.py", "/o/fork", FramepackStudio),
        ("python -m studio", "/o/fork", Framepack),
        ("bash start.sh", "/o/fork", Framepack),
        ("python /home/u/gen.py", "/o/fork", Diffusers),
        ("python gen.py", "/o/FramePack", Diffusers),
    ] {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assert_eq!(kind(&words, cwd, names), want, "{line} in {cwd}");
    }
}

#[test]
fn a_script_that_imports_diffusers_says_so() {
    for text in [
        "import torch\nfrom diffusers import WanPipeline\n",
        "def f():\n    import diffusers",
        "from diffusers.utils import export_to_video",
        "import diffusers, torch",
    ] {
        assert!(imports_diffusers(text), "{text}");
    }
    for text in [
        "",
        "import torch\n# from diffusers import x",
        "from diffusers_helper import y",
        "print('import diffusers')",
    ] {
        assert!(!imports_diffusers(text), "{text}");
    }
}

#[test]
fn by_the_lines_of_a_console() {
    use AdapterKind::{
        Comfyui, Diffusers, Framepack, FramepackStudio, Generic, Invokeai, MusubiTuner, Sdnext,
        StableDiffusionCpp, Wangp, Webui,
    };
    for (text, want) in [
        ("got prompt\nTraceback (most recent call last):", Comfyui),
        ("[INFO] To see the GUI go to: http://x", Comfyui),
        ("Unloaded DynamicSwap_LlamaModel as complete.", Framepack),
        ("  File \"/o/FramePack/demo_gradio.py\", line 1", Framepack),
        ("Loading pipeline components...: 10%", Diffusers),
        (" 41%|####      | 12/29 [00:19<00:26, 1.57s/it]", Diffusers),
        ("ggml_vulkan: Found 1 Vulkan devices:", StableDiffusionCpp),
        (
            "[INFO ] stable-diffusion.cpp:713 - loading model from 'a'",
            StableDiffusionCpp,
        ),
        (
            "[2026-01-02 03:04:05,678]::[InvokeAI]::INFO --> Invoke",
            Invokeai,
        ),
        ("Executing queue item 3, session 1f", Invokeai),
        ("Loading Model 'ckpts/wan.safetensors' ...", Wangp),
        ("New video saved to Path: outputs/a.mp4", Wangp),
        (
            "INFO:musubi_tuner.wan_generate_video:Using device: cuda",
            MusubiTuner,
        ),
        ("Starting worker function for job 3f", FramepackStudio),
        ("Launching Web UI with arguments: --listen", Webui),
        ("10:14:01-120331 INFO     Starting SD.Next", Sdnext),
        ("hello\nworld", Generic),
    ] {
        assert_eq!(kind_of_lines(text.lines()), want, "{text}");
    }
}

#[test]
fn servers_and_cpu_by_arguments() {
    let words = |l: &str| -> Vec<String> { l.split(' ').map(str::to_owned).collect() };
    let fp = AdapterKind::Framepack;
    assert!(expects_server(fp, &words("python demo_gradio.py")));
    assert!(!expects_server(fp, &words("python tiny_framepack.py")));
    assert!(expects_server(
        AdapterKind::Comfyui,
        &words("python main.py")
    ));
    assert!(asks_for_cpu(&words("python main.py --cpu")));
    assert!(asks_for_cpu(&words("python x.py --device cpu")));
    assert!(!asks_for_cpu(&words("python x.py --cpu-vae --device cuda")));
}

#[test]
fn a_restart_means_what_the_documentation_says() {
    let docs = include_str!("../../../docs/programs.md");
    for kind in AdapterKind::ALL {
        let after = kind.after_restart();
        let row = format!("| `{kind}` | {} | {} |", after.job, after.kept);
        assert!(docs.contains(&row), "docs/programs.md lacks: {row}");
        // a server that loses its job says so in its own words, and never of a kept one
        let lost = after
            .warning
            .is_none_or(|w| w.contains("cannot be sent again"));
        assert!(lost, "{kind}");
    }
    for kind in [
        "stable-diffusion.cpp",
        "wangp",
        "invokeai",
        "framepack-studio",
        "musubi-tuner",
    ] {
        let kind: AdapterKind = kind.parse().unwrap();
        assert!(kind.after_restart().warning.is_some(), "{kind}");
    }
    let own = |name: &str| name.parse::<AdapterKind>().unwrap().after_restart();
    assert!(own("comfyui").job.contains("your word"));
    assert!(own("stable-diffusion.cpp").kept.starts_with("nothing"));
}
