//! The adapter that a command line suggests.

use super::{AdapterKind, comfyui, framepack, tqdm, wording};

/// Files that lie in ComfyUI's folder.
const COMFY_MARKERS: &[&str] = &["comfy", "comfy_execution", "custom_nodes", "nodes.py"];

/// Programs that run a Python program named further on.
const PYTHON_RUNNERS: &[&str] = &["accelerate", "torchrun", "uv", "conda", "poetry", "pipenv"];

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn runs_python(program: &str) -> bool {
    let name = base(program);
    name.starts_with("python") || name.starts_with("pypy") || PYTHON_RUNNERS.contains(&name)
}

/// The script or module of a Python command line, with its path.
pub(super) fn script(argv: &[String]) -> Option<&str> {
    let file = argv.iter().find(|a| {
        let end = a.len().saturating_sub(3);
        !a.starts_with('-') && a.get(end..).is_some_and(|e| e.eq_ignore_ascii_case(".py"))
    });
    let module = || {
        argv.first().filter(|p| runs_python(p))?;
        let at = argv.iter().position(|a| a == "-m")?;
        argv.get(at + 1)
    };
    file.or_else(module).map(String::as_str)
}

/// Whether a line of a script imports diffusers, or something of it.
pub(super) fn imports_diffusers(text: &str) -> bool {
    text.lines().any(|line| {
        let mut words = line.split_whitespace();
        let imports = matches!(words.next(), Some("import" | "from"));
        let module = words.next().unwrap_or_default();
        let module = module.split(['.', ',', ';']).next();
        imports && module == Some("diffusers")
    })
}

pub(super) fn kind(argv: &[String], cwd: &str, names_in_cwd: &[String]) -> AdapterKind {
    let Some(program) = argv.first() else {
        return AdapterKind::Generic;
    };
    if crate::model::worker::is_own_worker(argv) {
        return AdapterKind::Generic;
    }
    let script = script(argv);
    // Values of options are left out: a model called FramePack is no FramePack program.
    let named = format!("{program} {}", script.unwrap_or_default()).to_lowercase();
    let here = |name: &str| names_in_cwd.iter().any(|n| n == name);
    let script_name = script.map(base).unwrap_or_default();
    if named.contains("framepack")
        || script_name.starts_with("demo_gradio")
        || here("diffusers_helper")
    {
        return AdapterKind::Framepack;
    }
    let markers = COMFY_MARKERS.iter().filter(|m| here(m)).count();
    let comfy_folder = cwd.to_lowercase().contains("comfyui");
    if named.contains("comfyui") || (script_name == "main.py" && (markers >= 2 || comfy_folder)) {
        return AdapterKind::Comfyui;
    }
    if script.is_some() || runs_python(program) {
        AdapterKind::Diffusers
    } else {
        AdapterKind::Generic
    }
}

/// Lines that are looked at.
const MOST_LINES: usize = 20_000;

/// Words of lines that FramePack and its forks print, and hardly anybody else.
const FRAMEPACK: &[&str] = &["FramePack", "hunyuan_video_packed", "latent_padding"];
/// The same of ComfyUI. `got prompt` begins each of its jobs.
const COMFYUI: &[&str] = &[
    "got prompt",
    "Requested to load ",
    "Prompt executed in ",
    "!!! Exception during processing",
    "custom_nodes",
    "comfy/model_management.py",
];
/// The same of Python programs with torch.
const PYTHON: &[&str] = &[
    "Traceback (most recent call last)",
    "Loading pipeline components",
    "Loading checkpoint shards",
    "diffusers",
    "torch.",
];

/// The kind that the lines of a console show: the first line that only one program prints,
/// else words that are typical of one.
pub(super) fn kind_of_lines<'a>(lines: impl Iterator<Item = &'a str>) -> AdapterKind {
    let (mut framepack, mut comfyui, mut python) = (0, 0, 0);
    for line in lines.take(MOST_LINES) {
        let text = wording::without_prefix(line);
        if comfyui::is_unmistakable(text) {
            return AdapterKind::Comfyui;
        }
        if framepack::is_unmistakable(text) {
            return AdapterKind::Framepack;
        }
        let says = |words: &[&str]| i32::from(words.iter().any(|w| text.contains(w)));
        framepack += says(FRAMEPACK);
        comfyui += says(COMFYUI);
        python += says(PYTHON) + i32::from(tqdm::parse(text).is_some());
    }
    match (framepack, comfyui, python) {
        (0, 0, 0) => AdapterKind::Generic,
        (0, 0, _) => AdapterKind::Diffusers,
        (f, c, _) if f > c => AdapterKind::Framepack,
        _ => AdapterKind::Comfyui,
    }
}

/// Whether the command line suggests a server that waits for jobs.
pub(super) fn expects_server(kind: AdapterKind, argv: &[String]) -> bool {
    let name = base(script(argv).unwrap_or_default());
    match kind {
        AdapterKind::Comfyui => !argv.iter().any(|a| a == "--quick-test-for-ci"),
        _ => ["gradio", "server", "webui", "launch.py"]
            .iter()
            .any(|w| name.contains(w)),
    }
}

/// Whether the user asked for the CPU altogether.
pub(super) fn asks_for_cpu(argv: &[String]) -> bool {
    argv.iter().any(|a| a == "--cpu" || a == "--device=cpu")
        || argv.windows(2).any(|w| w[0] == "--device" && w[1] == "cpu")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str, cwd: &str, names: &[&str]) -> AdapterKind {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        kind(&words, cwd, &names)
    }

    #[test]
    fn by_command_line_and_folder() {
        use AdapterKind::{Comfyui, Diffusers, Framepack, Generic};
        for (line, cwd, names, want) in [
            ("python3 demo_gradio.py --port 1", "/x", &[][..], Framepack),
            (
                "python /a/FramePack/demo_gradio_f1.py",
                "/x",
                &[],
                Framepack,
            ),
            ("venv/bin/python tiny_framepack.py", "/x", &[], Framepack),
            ("python studio.py", "/x", &["diffusers_helper"], Framepack),
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
            ("sd-cli -m model.gguf", "/x", &[], Generic),
            ("", "/x", &[], Generic),
        ] {
            assert_eq!(of(line, cwd, names), want, "{line}");
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
        use AdapterKind::{Comfyui, Diffusers, Framepack, Generic};
        for (text, want) in [
            ("got prompt\nTraceback (most recent call last):", Comfyui),
            ("[INFO] To see the GUI go to: http://x", Comfyui),
            ("Unloaded DynamicSwap_LlamaModel as complete.", Framepack),
            ("  File \"/o/FramePack/demo_gradio.py\", line 1", Framepack),
            ("Loading pipeline components...: 10%", Diffusers),
            (" 41%|####      | 12/29 [00:19<00:26, 1.57s/it]", Diffusers),
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
}
