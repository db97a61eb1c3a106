//! Settings of a profile that a workload follows by its arguments.

use super::adapter::AdapterKind;
use crate::model::Bytes;
use crate::profile::resolve::NoArgument;

/// The arguments that make a workload follow a setting (`vae_device` = `cpu`), behind
/// those that its command has already.
///
/// ComfyUI's are those of its `comfy/cli_args.py`; `--disable-pinned-memory` exists since
/// pull request 10656 of November 2025 (0.3.68). FramePack has no argument that concerns
/// memory or the GPU, and of other programs we know none.
///
/// # Errors
/// The reason when a setting cannot be followed that way.
pub fn arguments(
    kind: AdapterKind,
    command: &[String],
    name: &str,
    value: &str,
) -> Result<Vec<String>, NoArgument> {
    let argument = match kind {
        AdapterKind::Comfyui => comfyui(name, value).map_err(NoArgument::Wrong)?,
        _ => None,
    };
    let Some(argument) = argument else {
        return Err(NoArgument::None(unknown(kind, name)));
    };
    match argument.first().and_then(|flag| rival(flag, command)) {
        Some(own) => Err(NoArgument::None(format!(
            "your command has {own}, and {} of {kind} takes only one of its kind",
            argument.join(" ")
        ))),
        None => Ok(argument),
    }
}

fn unknown(kind: AdapterKind, name: &str) -> String {
    let whose = match kind {
        AdapterKind::Comfyui => "ComfyUI has no argument for it",
        AdapterKind::Framepack => "FramePack has no argument for it",
        AdapterKind::Diffusers | AdapterKind::Generic => {
            "no argument of this program is known for it"
        }
    };
    format!("{whose} (a profile may name one: [workload.arguments] {name})")
}

/// Flags of ComfyUI's `cli_args.py` of which a command may have one: argparse ends the
/// program when it meets two.
const RIVALS: [&[&str]; 2] = [
    &["--fp16-vae", "--fp32-vae", "--bf16-vae"],
    &[
        "--gpu-only",
        "--highvram",
        "--normalvram",
        "--lowvram",
        "--novram",
        "--cpu",
    ],
];

/// A flag of the command that excludes `flag`.
fn rival<'c>(flag: &str, command: &'c [String]) -> Option<&'c str> {
    let group = RIVALS.iter().find(|g| g.contains(&flag))?;
    let own = command.iter().map(String::as_str);
    own.into_iter().find(|c| *c != flag && group.contains(c))
}

/// Words for one setting of ComfyUI, none if it cannot follow, or what is wrong with the value.
fn comfyui(name: &str, value: &str) -> Result<Option<Vec<String>>, String> {
    let flag = |f: &str| Ok(Some(vec![f.to_owned()]));
    let bad = |want: &str| Err(format!("`{name} = {value}`: write {want}"));
    match (name, value) {
        ("vae_device", "cpu") => flag("--cpu-vae"),
        // What ComfyUI does anyway.
        ("vae_device", "gpu" | "cuda")
        | ("block_swap" | "lowvram", "0" | "off" | "false")
        | ("pinned_memory", "on" | "true") => Ok(Some(Vec::new())),
        ("vae_dtype", "float32") => flag("--fp32-vae"),
        ("vae_dtype", "float16") => flag("--fp16-vae"),
        ("vae_dtype", "bfloat16") => flag("--bf16-vae"),
        ("preserved_memory", _) => match gib(value) {
            Some(n) => Ok(Some(vec!["--reserve-vram".to_owned(), n])),
            None => bad("a size, such as `6 GiB`"),
        },
        ("block_swap" | "lowvram", _) => flag("--lowvram"),
        ("pinned_memory", "off" | "false") => flag("--disable-pinned-memory"),
        ("vae_device", _) => bad("`cpu` or `gpu`"),
        ("vae_dtype", _) => bad("`float32`, `float16` or `bfloat16`"),
        ("pinned_memory", _) => bad("`on` or `off`"),
        _ => Ok(None),
    }
}

/// A size as a number of GiB, which is what `--reserve-vram` takes; a bare number is GiB.
fn gib(value: &str) -> Option<String> {
    let bytes = value.parse::<Bytes>().ok();
    #[expect(
        clippy::cast_precision_loss,
        reason = "sizes of memory are far below 2^53 bytes"
    )]
    let from_bytes = bytes.map(|b| b.0 as f64 / Bytes::gib(1).0 as f64);
    let n = from_bytes.or_else(|| value.trim().parse::<f64>().ok())?;
    if !n.is_finite() || !(0.0..10_000.0).contains(&n) {
        return None;
    }
    let text = format!("{n:.2}");
    Some(text.trim_end_matches('0').trim_end_matches('.').to_owned())
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
