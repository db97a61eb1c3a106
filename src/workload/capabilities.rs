//! Settings of a profile that a workload follows by its arguments.

use super::adapter::AdapterKind;
use crate::profile::resolve::NoArgument;

/// The arguments that make a workload follow a setting (`vae_device` = `cpu`), behind
/// those that its command has already.
///
/// Each program names its own (`adapter/program/`). FramePack has no argument that concerns
/// memory or the GPU.
///
/// # Errors
/// The reason when a setting cannot be followed that way.
pub fn arguments(
    kind: AdapterKind,
    command: &[String],
    name: &str,
    value: &str,
) -> Result<Vec<String>, NoArgument> {
    let argument = kind.arguments(name, value).map_err(NoArgument::Wrong)?;
    let Some(argument) = argument else {
        return Err(NoArgument::None(unknown(kind, name)));
    };
    match argument.first().and_then(|flag| rival(kind, flag, command)) {
        Some(own) => Err(NoArgument::None(format!(
            "your command has {own}, and {} of {kind} takes only one of its kind",
            argument.join(" ")
        ))),
        None => Ok(argument),
    }
}

fn unknown(kind: AdapterKind, name: &str) -> String {
    let whose = if kind.is_guess() {
        "no argument of this program is known for it".to_owned()
    } else {
        format!("{} has no argument for it", kind.title())
    };
    format!("{whose} (a profile may name one: [workload.arguments] {name})")
}

/// A flag of the command that excludes `flag`.
fn rival<'c>(kind: AdapterKind, flag: &str, command: &'c [String]) -> Option<&'c str> {
    let group = kind.rival_flags().iter().find(|g| g.contains(&flag))?;
    let own = command.iter().map(String::as_str);
    own.into_iter().find(|c| *c != flag && group.contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: AdapterKind, name: &str, value: &str) -> Result<Vec<String>, String> {
        arguments(kind, &[], name, value).map_err(words)
    }

    fn words(why: NoArgument) -> String {
        match why {
            NoArgument::None(why) | NoArgument::Wrong(why) => why,
        }
    }

    #[test]
    fn comfyui_follows_by_arguments() {
        for (name, value, words) in [
            ("vae_device", "cpu", "--cpu-vae"),
            ("vae_device", "gpu", ""),
            ("vae_dtype", "float32", "--fp32-vae"),
            ("preserved_memory", "6.5 GiB", "--reserve-vram 6.5"),
            ("preserved_memory", "18", "--reserve-vram 18"),
            ("block_swap", "20", "--lowvram"),
            ("lowvram", "true", "--lowvram"),
            ("pinned_memory", "off", "--disable-pinned-memory"),
        ] {
            let got = of(AdapterKind::Comfyui, name, value).unwrap();
            assert_eq!(got.join(" "), words, "{name} = {value}");
        }
    }

    #[test]
    fn what_nobody_follows_is_said() {
        for kind in AdapterKind::ALL {
            let e = of(*kind, "vae_tile", "256").unwrap_err();
            assert!(e.contains("[workload.arguments] vae_tile"), "{e}");
        }
        assert!(of(AdapterKind::Framepack, "vae_device", "cpu").is_err());
        let e = of(AdapterKind::Comfyui, "vae_dtype", "fp8").unwrap_err();
        assert!(e.contains("float32"), "{e}");
        assert!(of(AdapterKind::Comfyui, "preserved_memory", "-3").is_err());
    }

    #[test]
    fn a_flag_of_the_command_that_excludes_ours_is_named() {
        let command = ["python", "main.py", "--fp16-vae"].map(str::to_owned);
        let of = |value| arguments(AdapterKind::Comfyui, &command, "vae_dtype", value);
        let e = words(of("float32").unwrap_err());
        assert!(e.contains("--fp16-vae") && e.contains("--fp32-vae"), "{e}");
        assert_eq!(
            of("float16").unwrap(),
            ["--fp16-vae"],
            "the same is no rival"
        );
    }
}
