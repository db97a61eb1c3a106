//! Which program a part of a cure is for.

/// How cures name the programs, and the adapters that stand for each.
const NAMES: &[(&str, &[&str])] = &[
    ("ComfyUI", &["comfyui", "swarmui"]),
    ("SwarmUI", &["swarmui"]),
    ("Fooocus", &["fooocus"]),
    ("Easy Diffusion", &["easy-diffusion"]),
    ("sd-scripts", &["sd-scripts"]),
    ("SD.Next", &["sdnext"]),
    ("InvokeAI", &["invokeai"]),
    ("stable-diffusion.cpp", &["stable-diffusion.cpp"]),
    ("diffusers", &["diffusers"]),
    ("WanGP", &["wangp"]),
    ("FramePack", &["framepack"]),
    ("musubi-tuner", &["musubi-tuner"]),
    ("web UI", &["webui"]),
];

/// Words of Python's packages, which a program in C++ has not.
const OF_PYTHON: &[&str] = &[
    "pip ",
    "wheel",
    "xformers",
    "PyTorch",
    "torchvision",
    "custom_nodes",
    "--disable-all-custom-nodes",
    "`torch",
    " torch ",
    " torch,",
    "venv",
];

/// Whether a part names other programs than the one that ran. A program that is not known, and
/// one without switches of its own, may be any of them.
pub(super) fn is_of_another(part: &str, program: &str) -> bool {
    if matches!(program, "" | "generic") {
        return false;
    }
    let mut named = NAMES
        .iter()
        .filter(|(name, _)| part.contains(name))
        .peekable();
    named.peek().is_some()
        && named.all(|(_, adapters)| !adapters.iter().any(|a| program.starts_with(a)))
}

/// The program that another one starts: its cures hold as well.
pub(super) fn run_by(program: &str) -> Option<&'static str> {
    (program == "swarmui").then_some("comfyui")
}

/// Whether a cure tells to start another program than the one that ran.
pub(super) fn starts_another(cure: &str, program: &str) -> bool {
    let known = NAMES
        .iter()
        .any(|(_, adapters)| adapters.iter().any(|a| program.starts_with(a)));
    let starts = |name: &str| cure.contains(&format!("tart {name}"));
    let own = |adapters: &[&str]| adapters.iter().any(|a| program.starts_with(a));
    known
        && program != "diffusers"
        && NAMES
            .iter()
            .any(|(name, adapters)| starts(name) && !own(adapters))
}

/// Where the arguments of a cure belong, in a program that starts another.
pub(super) fn place_of_arguments(cure: &str, program: &str) -> Option<&'static str> {
    let place = match program {
        // mcmonkeyprojects/SwarmUI, issue 1114
        "swarmui" => {
            "In SwarmUI such arguments belong into ExtraArgs of the ComfyUI backend (Server, Backends)."
        }
        // LykosAI/StabilityMatrix, README: Searchable launch options
        "stability-matrix" => {
            "In Stability Matrix such arguments belong into the package's launch options."
        }
        _ => return None,
    };
    let advises = cure.contains("ComfyUI with --") || cure.contains("tart with --");
    advises.then_some(place)
}

/// Whether a program is not written in Python.
pub(super) fn is_native(program: &str) -> bool {
    program == "stable-diffusion.cpp"
}

/// Whether a cure speaks of Python's packages.
pub(super) fn is_of_python(cure: &str) -> bool {
    OF_PYTHON.iter().any(|word| cure.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_for_another_program_is_known() {
        let part = "ComfyUI: --lowvram; ";
        assert!(is_of_another(part, "sdnext"));
        assert!(is_of_another(part, "stable-diffusion.cpp"));
        assert!(!is_of_another(part, "comfyui"));
        assert!(!is_of_another(part, "generic"));
        assert!(!is_of_another("--lowvram", "sdnext"));
        assert!(!is_of_another("FramePack or ComfyUI", "framepack-studio"));
        assert!(!is_of_another("ComfyUI: --cache-none", "swarmui"));
        for other in [
            "fooocus",
            "easy-diffusion",
            "sd-scripts",
            "sdnext",
            "invokeai",
        ] {
            assert!(starts_another("Restart ComfyUI first", other), "{other}");
            assert!(is_of_another(part, other), "{other}");
        }
        for own in ["comfyui", "swarmui", "generic", "diffusers", ""] {
            assert!(
                !starts_another("Start ComfyUI with --lowvram", own),
                "{own}"
            );
        }
        assert!(place_of_arguments("Start ComfyUI with --lowvram", "swarmui").is_some());
        assert_eq!(place_of_arguments("Reboot.", "swarmui"), None);
        assert!(is_native("stable-diffusion.cpp") && !is_native("comfyui"));
        assert!(is_of_python("run `pip install x`") && !is_of_python("add --vae-tiling"));
    }
}
