//! Which program a part of a cure is for.

/// How cures name the programs, and the adapters that stand for each.
const NAMES: &[(&str, &[&str])] = &[
    ("ComfyUI", &["comfyui"]),
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
        assert!(is_native("stable-diffusion.cpp") && !is_native("comfyui"));
        assert!(is_of_python("run `pip install x`") && !is_of_python("add --vae-tiling"));
    }
}
