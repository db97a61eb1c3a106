//! Latents of the vault, and the autoencoder that they were made for.

use std::path::{Path, PathBuf};

use crate::cli::CliError;
use crate::vault::{Digest, Entry, Kind, State, Vault};

/// The entry that is meant: by its name or number, else the newest whole latents. Its data are checked.
pub(super) fn entry(asked: &str) -> Result<Entry, CliError> {
    let vault = Vault::open_default()?;
    let entries = vault.list()?;
    let entry = if asked.is_empty() {
        let whole = |e: &&Entry| e.kind == Kind::Latents && matches!(e.state, State::Whole(_));
        entries
            .iter()
            .find(whole)
            .cloned()
            .ok_or(CliError::NoLatents)?
    } else {
        Vault::find(&entries, asked)?
    };
    let bad = |why: String| CliError::BadEntry {
        name: entry.name.clone(),
        why,
    };
    match &entry.state {
        State::Torn(why) => return Err(bad(format!("it is torn: {why}"))),
        State::Foreign(why) => return Err(bad(why.clone())),
        State::Whole(_) if !matches!(entry.kind, Kind::Latents | Kind::Section) => {
            return Err(bad(format!(
                "it is a {}, and only latents and sections can be decoded",
                entry.kind.word()
            )));
        }
        State::Whole(_) => {}
    }
    match Digest::of(&entry) {
        Ok(Digest::Differs) => Err(bad(
            "its data were changed after they had been written".to_owned()
        )),
        Ok(Digest::Holds | Digest::NotTold) => Ok(entry),
        Err(e) => Err(bad(format!("its data cannot be read: {e}"))),
    }
}

/// The folder of the autoencoder that the dead run had loaded, where it is still there.
pub(super) fn model(entry: &Entry) -> Result<PathBuf, CliError> {
    let path = entry.says("vae_path");
    let found = path.and_then(|path| {
        let named = PathBuf::from(path);
        [Some(named), in_hub(path)]
            .into_iter()
            .flatten()
            .find(|place| is_model(place))
    });
    found.ok_or_else(|| {
        let of = entry.decoder().unwrap_or("its decoder");
        let from = path.map_or_else(String::new, |path| format!(", loaded from {path}"));
        CliError::BadEntry {
            name: entry.name.clone(),
            why: format!(
                "the autoencoder ({of}{from}) is not found on this machine: name its folder with --model"
            ),
        }
    })
}

fn is_model(place: &Path) -> bool {
    place.join("config.json").is_file() || place.join("vae/config.json").is_file()
}

/// `owner/name` in the cache of Hugging Face's library: `models--owner--name/snapshots/…`, where each snapshot is a
/// folder as it lies on the hub.
fn in_hub(name: &str) -> Option<PathBuf> {
    let (owner, model) = name.split_once('/')?;
    if owner.is_empty() || model.contains('/') {
        return None;
    }
    let variable = |name: &str| {
        std::env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    let cache = variable("HF_HUB_CACHE")
        .or_else(|| Some(variable("HF_HOME")?.join("hub")))
        .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("huggingface/hub")))
        .or_else(|| Some(variable("HOME")?.join(".cache/huggingface/hub")))?;
    let snapshots = cache
        .join(format!("models--{owner}--{model}"))
        .join("snapshots");
    let places = std::fs::read_dir(snapshots).ok()?.flatten();
    places
        .map(|entry| entry.path())
        .find(|place| is_model(place))
}
