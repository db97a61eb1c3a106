//! Settings of a profile that a workload follows by its arguments.

use std::collections::BTreeMap;

use super::adapter::AdapterKind;
use crate::model::Bytes;

/// The arguments that make a workload follow `settings` (`vae_device` = `cpu`).
///
/// ComfyUI's are those of its `comfy/cli_args.py`; `--disable-pinned-memory` exists since
/// pull request 10656 of November 2025 (0.3.68). FramePack has no argument that concerns
/// memory or the GPU, and of other programs we know none.
///
/// # Errors
/// The reason, fit for the user, when a setting cannot be followed that way.
pub fn arguments(
    kind: AdapterKind,
    settings: &BTreeMap<String, String>,
) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    for (name, value) in settings {
        let argument = match kind {
            AdapterKind::Comfyui => comfyui(name, value)?,
            _ => None,
        };
        let Some(argument) = argument else {
            return Err(needs_agent(name, value));
        };
        for word in argument {
            if !out.contains(&word) {
                out.push(word);
            }
        }
    }
    Ok(out)
}

fn needs_agent(name: &str, value: &str) -> String {
    format!(
        "`{name} = {value}` needs the agent inside the program, which this version does not have yet"
    )
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

    fn of(kind: AdapterKind, pairs: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let settings = pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        arguments(kind, &settings)
    }

    #[test]
    fn comfyui_follows_by_arguments() {
        let got = of(
            AdapterKind::Comfyui,
            &[
                ("vae_device", "cpu"),
                ("vae_dtype", "float32"),
                ("preserved_memory", "6.5 GiB"),
                ("block_swap", "20"),
                ("lowvram", "true"),
                ("pinned_memory", "off"),
            ],
        );
        assert_eq!(
            got.unwrap().join(" "),
            "--lowvram --disable-pinned-memory --reserve-vram 6.5 --cpu-vae --fp32-vae"
        );
        let got = of(AdapterKind::Comfyui, &[("preserved_memory", "18")]);
        assert_eq!(got.unwrap(), ["--reserve-vram", "18"]);
    }

    #[test]
    fn what_nobody_follows_is_said() {
        for kind in AdapterKind::ALL {
            let e = of(*kind, &[("vae_tile", "256")]).unwrap_err();
            assert!(e.contains("vae_tile") && e.contains("agent"), "{e}");
            assert_eq!(of(*kind, &[]), Ok(vec![]));
        }
        assert!(of(AdapterKind::Framepack, &[("vae_device", "cpu")]).is_err());
        let e = of(AdapterKind::Comfyui, &[("vae_dtype", "fp8")]).unwrap_err();
        assert!(e.contains("float32"), "{e}");
        assert!(of(AdapterKind::Comfyui, &[("preserved_memory", "-3")]).is_err());
    }
}
