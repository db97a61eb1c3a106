//! Which program a part of a cure is for.

use crate::workload::adapter::AdapterKind;

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

/// The program of a word in events; none: a later version knows it.
fn kind(program: &str) -> Option<AdapterKind> {
    program.parse().ok()
}

/// Whether what is meant for one program holds for another: it is the same, was made from it, or
/// starts it.
fn holds_for(one: AdapterKind, program: &str) -> bool {
    let rest = program.strip_prefix(one.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        || run_by(program) == Some(one.as_str())
}

/// Whether a part names other programs than the one that ran. A program that is not known, and
/// one that starts others of its user's choice, may be any of them.
pub(super) fn is_of_another(part: &str, program: &str) -> bool {
    let Some(own) = kind(program).filter(|k| !k.may_be_any()) else {
        return false;
    };
    let mut named = AdapterKind::ALL.iter().filter(|k| k.is_named_in(part));
    named.clone().next().is_some() && named.all(|k| !holds_for(*k, own.as_str()))
}

/// The program that another one starts: its cures hold as well.
pub(super) fn run_by(program: &str) -> Option<&'static str> {
    Some(kind(program)?.starts()?.as_str())
}

/// Whether a cure tells to start another program than the one that ran.
pub(super) fn starts_another(cure: &str, program: &str) -> bool {
    let knows_own = kind(program).is_some_and(|k| !k.may_be_any() && !k.is_guess());
    let mut all = AdapterKind::ALL.iter();
    knows_own && all.any(|k| k.is_started_by(cure) && !holds_for(*k, program))
}

/// Where the arguments of a cure belong, in a program that starts another.
pub(super) fn place_of_arguments(cure: &str, program: &str) -> Option<&'static str> {
    let advises = cure.contains("ComfyUI with --") || cure.contains("tart with --");
    kind(program)?.place_of_arguments().filter(|_| advises)
}

/// Whether a program is not written in Python.
pub(super) fn is_native(program: &str) -> bool {
    kind(program).is_some_and(AdapterKind::is_native)
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
            "onetrainer",
        ] {
            assert!(starts_another("Restart ComfyUI first", other), "{other}");
            assert!(is_of_another(part, other), "{other}");
        }
        for own in [
            "comfyui",
            "swarmui",
            "krita-ai-diffusion",
            "stability-matrix",
            "generic",
            "diffusers",
            "",
        ] {
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
