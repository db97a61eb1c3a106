//! Which files of a folder are the weights.
//!
//! Names as diffusers makes them (`utils/constants.py`, `_add_variant` of `utils/hub_utils.py`): of a variant `fp16` the
//! file is `diffusion_pytorch_model.fp16.safetensors`, the index `diffusion_pytorch_model.safetensors.index.fp16.json`,
//! and the shards are those that the index names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result, io};

/// What all names of weights begin with.
const STEM: &str = "diffusion_pytorch_model";

/// The name under which diffusers saves a model that fits one file.
pub(super) const SINGLE: &str = "diffusion_pytorch_model.safetensors";

/// The index of a model in several files.
pub(super) const INDEX: &str = "diffusion_pytorch_model.safetensors.index.json";

/// What the index of a variant is called, up to that.
const INDEX_STEM: &str = "diffusion_pytorch_model.safetensors.index";

/// Endings of PyTorch's pickles.
const PICKLES: [&str; 4] = ["bin", "pt", "pth", "ckpt"];

/// The weights of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// In one file.
    One(PathBuf),
    /// In those that this index names.
    Several(PathBuf),
}

/// What was found in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) found: Found,
    /// That of diffusers' `variant=`, where the folder has no other.
    pub(super) variant: Option<String>,
    /// The single file beside an index.
    pub(super) passed_over: Option<PathBuf>,
}

/// Finds the weights. Of an index and a single file the index is taken, as diffusers does: `save_pretrained` leaves an
/// older single file where it is.
pub(super) fn find(folder: &Path) -> Result<Choice> {
    let (single, index) = (folder.join(SINGLE), folder.join(INDEX));
    let plain = |found, passed_over| Choice {
        found,
        variant: None,
        passed_over,
    };
    if index.is_file() {
        let passed_over = single.exists().then_some(single);
        return Ok(plain(Found::Several(index), passed_over));
    }
    if single.exists() {
        return Ok(plain(Found::One(single), None));
    }
    if index.exists() {
        return Ok(plain(Found::Several(index), None));
    }
    let mut names: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(io(folder))? {
        let entry = entry.map_err(io(folder))?;
        names.extend(entry.file_name().into_string());
    }
    names.sort_unstable();
    // of each the single file and the index
    let mut variants: BTreeMap<String, [Option<PathBuf>; 2]> = BTreeMap::new();
    for name in &names {
        if let Some(variant) = between(name, &format!("{INDEX_STEM}."), ".json") {
            variants.entry(variant.to_owned()).or_default()[1] = Some(folder.join(name));
        }
        if let Some(variant) = between(name, &format!("{STEM}."), ".safetensors")
            && !is_shard(name)
        {
            variants.entry(variant.to_owned()).or_default()[0] = Some(folder.join(name));
        }
    }
    if variants.len() > 1 {
        let all: Vec<String> = variants.into_keys().collect();
        return Err(Error::File {
            path: folder.to_owned(),
            reason: format!(
                "several variants of the weights are in it ({}): name the file of one, or leave one in the folder",
                all.join(", ")
            ),
        });
    }
    let (variant, found, passed_over) = match variants.pop_first() {
        Some((variant, [single, Some(index)])) => (variant, Found::Several(index), single),
        Some((variant, [Some(single), None])) => (variant, Found::One(single), None),
        _ => return Ok(plain(missing(folder, &names)?, None)),
    };
    Ok(Choice {
        found,
        variant: Some(variant),
        passed_over,
    })
}

/// What a folder with these names lacks: opening it tells that it is not there. Pickles are refused.
fn missing(folder: &Path, names: &[String]) -> Result<Found> {
    let weights = |name: &&String| name.starts_with(STEM);
    let pickle = |name: &&String| {
        let end = Path::new(name.as_str()).extension();
        end.is_some_and(|end| PICKLES.iter().any(|known| end == *known))
    };
    if let Some(name) = names.iter().find(|name| weights(name) && pickle(name)) {
        let variant = between(name, &format!("{STEM}."), ".bin").filter(|_| !is_shard(name));
        let variant = variant.map_or_else(String::new, |v| format!(", variant=\"{v}\""));
        let dir = folder.display();
        return Err(Error::File {
            path: folder.join(name),
            reason: format!(
                "a pickle of PyTorch, which can run any program when it is read; only safetensors are read. Convert it once with \
                 diffusers and the class that config.json names: \
                 CLASS.from_pretrained(\"{dir}\"{variant}).save_pretrained(\"{dir}\", safe_serialization=True)"
            ),
        });
    }
    if names.iter().any(|name| weights(&name) && is_shard(name)) {
        return Ok(Found::Several(folder.join(INDEX)));
    }
    Ok(Found::One(folder.join(SINGLE)))
}

/// What stands between these two, if something does.
fn between<'a>(name: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let inner = name.strip_prefix(begin)?.strip_suffix(end)?;
    (!inner.is_empty()).then_some(inner)
}

/// Whether a file is one of several: `…-00001-of-00003…`.
fn is_shard(name: &str) -> bool {
    let Some((before, after)) = name.split_once("-of-") else {
        return false;
    };
    let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    digit(before.chars().next_back()) && digit(after.chars().next())
}
