//! The adapter that a command line suggests.

use super::{AdapterKind, comfyui, framepack, tqdm, wording};

/// Files that lie in ComfyUI's folder.
const COMFY_MARKERS: &[&str] = &["comfy", "comfy_execution", "custom_nodes", "nodes.py"];

/// Programs that run a Python program named further on.
const PYTHON_RUNNERS: &[&str] = &["accelerate", "torchrun", "uv", "conda", "poetry", "pipenv"];

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// `/usr/bin/python3.11`, `python`, `pypy3`.
fn is_interpreter(word: &str) -> bool {
    let name = base(word);
    let version = name
        .strip_prefix("python")
        .or_else(|| name.strip_prefix("pypy"));
    version.is_some_and(|v| {
        let v = v.strip_suffix('t').unwrap_or(v);
        v.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    })
}

fn runs_python(program: &str) -> bool {
    is_interpreter(program) || PYTHON_RUNNERS.contains(&base(program))
}

/// The Python code that a command line runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Code<'a> {
    /// A file, as it is named.
    File(&'a str),
    /// `-m MODULE`.
    Module(&'a str),
}

impl<'a> Code<'a> {
    fn of(argv: &'a [String]) -> Option<Self> {
        if let Some(at) = argv.iter().position(|word| is_interpreter(word)) {
            return Self::of_interpreter(&argv[at + 1..]);
        }
        let runner = argv.first().is_some_and(|p| runs_python(p));
        let mut words = argv.iter();
        while let Some(word) = words.next() {
            if runner && word == "-m" {
                return words.next().map(|module| Self::Module(module));
            }
            let end = word.len().saturating_sub(3);
            let is_file = word
                .get(end..)
                .is_some_and(|e| e.eq_ignore_ascii_case(".py"));
            if is_file && !word.starts_with('-') {
                return Some(Self::File(word));
            }
        }
        None
    }

    /// What stands behind the options of Python itself; the words after it are its own.
    fn of_interpreter(words: &'a [String]) -> Option<Self> {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(options) = word.strip_prefix('-') else {
                return Some(Self::File(word));
            };
            if let Some(long) = options.strip_prefix('-') {
                if long == "check-hash-based-pycs" {
                    words.next();
                }
                continue;
            }
            let Some((at, letter)) = options
                .char_indices()
                .find(|(_, letter)| "cmWX".contains(*letter))
            else {
                if options.is_empty() {
                    // the program comes from standard input
                    return None;
                }
                continue;
            };
            let value = Some(&options[at + 1..]).filter(|v| !v.is_empty());
            let value = value.or_else(|| words.next().map(String::as_str));
            match letter {
                'm' => return value.map(Self::Module),
                'c' => return None,
                _ => {}
            }
        }
        None
    }

    const fn named(self) -> &'a str {
        match self {
            Self::File(named) | Self::Module(named) => named,
        }
    }

    /// The name that its author gave it: of a file without its folder, of a module its package.
    fn own_name(self) -> &'a str {
        match self {
            Self::File(path) => base(path),
            Self::Module(module) => module.split('.').next().unwrap_or(module),
        }
    }

    /// The folder that it lies in. A module is found from the working directory.
    fn folder(self, cwd: &str) -> String {
        let Self::File(path) = self else {
            return cwd.to_owned();
        };
        match path.strip_prefix("./").unwrap_or(path).rsplit_once('/') {
            None => cwd.to_owned(),
            Some((folder, _)) if path.starts_with('/') => folder.to_owned(),
            Some((folder, _)) => format!("{}/{folder}", cwd.trim_end_matches('/')),
        }
    }
}

/// The script or module of a Python command line, with its path.
pub(super) fn script(argv: &[String]) -> Option<&str> {
    Code::of(argv).map(Code::named)
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

/// Whether a name is FramePack's or that of a fork. Our own is neither.
fn is_framepack(name: &str) -> bool {
    let name = name.to_lowercase().replace('_', "-");
    name.contains("framepack") && !name.contains(env!("CARGO_PKG_NAME"))
}

/// The kind by the script, module or program that is run and by the folder it lies in.
/// Other words say nothing: a model called FramePack is no FramePack program, and any
/// program may run from an environment in FramePack's folder.
pub(super) fn kind(
    argv: &[String],
    cwd: &str,
    names_in: impl Fn(&str) -> Vec<String>,
) -> AdapterKind {
    let Some(program) = argv.first() else {
        return AdapterKind::Generic;
    };
    if crate::model::worker::is_own_worker(argv) {
        return AdapterKind::Generic;
    }
    let code = Code::of(argv);
    let python = code.is_some() || runs_python(program);
    let name = match code {
        Some(code) => code.own_name(),
        None if python => "",
        None => base(program),
    };
    let folder = code.map_or_else(|| cwd.to_owned(), |code| code.folder(cwd));
    let names = names_in(&folder);
    let here = |name: &str| names.iter().any(|n| n == name);
    let folder = base(folder.trim_end_matches('/'));

    let in_framepack = here("diffusers_helper")
        // the name of the folder counts where its files could not be read
        || (python && names.is_empty() && is_framepack(folder));
    if is_framepack(name) || name.starts_with("demo_gradio") || in_framepack {
        return AdapterKind::Framepack;
    }
    let in_comfyui = COMFY_MARKERS.iter().filter(|m| here(m)).count() >= 2
        || folder.to_lowercase().starts_with("comfyui");
    if name.to_lowercase().contains("comfyui") || (name == "main.py" && in_comfyui) {
        return AdapterKind::Comfyui;
    }
    if python {
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
        kind(&words, cwd, |_| names.clone())
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
    fn neither_the_interpreter_nor_an_argument_decides() {
        use AdapterKind::{Comfyui, Diffusers, Framepack, Generic};
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
            ("sd-cli -m /models/framepack.gguf", "/x", Generic),
            ("/opt/framepack/bin/sd-cli -m a.gguf", "/x", Generic),
            ("/home/u/framepack-tui/run.sh", "/x", Generic),
            // and what is FramePack or ComfyUI by any way of starting it
            ("/a/bin/python -u -X dev demo_gradio.py", "/x", Framepack),
            ("python -m framepack.cli", "/x", Framepack),
            ("uv run demo_gradio_f1.py", "/x", Framepack),
            ("env A=1 nice python3 FramePack_batch.py", "/x", Framepack),
            ("python /o/FramePack-Studio/studio.py", "/x", Framepack),
            ("python studio.py", "/o/framepack-studio/", Framepack),
            ("/opt/bin/framepack --port 1", "/x", Framepack),
            ("uv run main.py", "/o/ComfyUI/", Comfyui),
            ("python ./ComfyUI-master/main.py", "/o", Comfyui),
            ("/usr/bin/comfyui --listen", "/x", Comfyui),
        ] {
            assert_eq!(of(line, cwd, &[]), want, "{line} in {cwd}");
        }
    }

    #[test]
    fn the_folder_of_the_script_is_the_one_whose_files_count() {
        use AdapterKind::{Diffusers, Framepack};
        let names = |folder: &str| -> Vec<String> {
            let names: &[&str] = match folder {
                "/o/fork" => &["diffusers_helper", "studio.py"],
                _ => &["gen.py"],
            };
            names.iter().map(|n| (*n).to_owned()).collect()
        };
        for (line, cwd, want) in [
            ("python /o/fork/studio.py", "/x", Framepack),
            ("python fork/studio.py", "/o/", Framepack),
            ("python ./studio.py", "/o/fork", Framepack),
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
