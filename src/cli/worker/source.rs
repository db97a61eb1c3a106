//! Latents of the vault, and the autoencoder that they were made for.

use std::path::{Path, PathBuf};

use crate::cli::CliError;
use crate::cli::run::setup::complain;
use crate::cli::vault::HEADER_CHANGED;
use crate::vault::{Digest, Entry, Kind, State, Vault};

/// The entry that is meant: by its name or number, else the newest whole latents. Its data are checked.
pub(super) fn entry(asked: &str) -> Result<Entry, CliError> {
    let vault = Vault::open_default()?;
    let entries = vault.list()?;
    let entry = if asked.is_empty() {
        let (newest, passed_over) = newest(&entries);
        for text in passed_over {
            complain(&text);
        }
        newest.cloned().ok_or(CliError::NoLatents)?
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
    // of the newest that was looked at already
    match changed(&entry).filter(|_| !asked.is_empty()) {
        Some(why) => Err(bad(why)),
        None => Ok(entry),
    }
}

/// Why an entry that is whole is not what was written, or that it cannot be read.
fn changed(entry: &Entry) -> Option<String> {
    if entry.is_header_changed() {
        return Some(HEADER_CHANGED.to_owned());
    }
    match Digest::of(entry) {
        Ok(Digest::Holds | Digest::NotTold) => None,
        Ok(Digest::Differs) => Some("its data were changed after they had been written".to_owned()),
        Err(e) => Some(format!("its data cannot be read: {e}")),
    }
}

/// The newest latents that are whole and as they were written, and words for each newer file with the name of latents.
fn newest(entries: &[Entry]) -> (Option<&Entry>, Vec<String>) {
    let mut passed_over = Vec::new();
    let mut say = |entry: &Entry, why: &str| {
        let words = format!("newer latents are passed over: {}: {why}", entry.name);
        passed_over.push(words);
    };
    for entry in entries {
        // a link or a pipe is foreign by its kind, whatever it is called
        if !entry.name.starts_with("latents.") {
            continue;
        }
        match &entry.state {
            State::Whole(_) => match changed(entry) {
                None => return (Some(entry), passed_over),
                Some(why) => say(entry, &why),
            },
            State::Torn(why) => say(entry, &format!("torn: {why}")),
            State::Foreign(why) => say(entry, why),
        }
    }
    (None, passed_over)
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A file of one byte; its metadata name the version.
    fn latents() -> Vec<u8> {
        let header = r#"{"__metadata__":{"version":"1"},"latents":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#;
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.bytes().chain([7]));
        bytes
    }

    #[test]
    fn what_is_newer_and_cannot_be_used_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(format!("latents.r.{name}.safetensors"));
        fs::write(at("1"), latents()).unwrap();
        let file = fs::File::options().write(true).open(at("1")).unwrap();
        let before = std::time::SystemTime::now() - std::time::Duration::from_mins(1);
        file.set_modified(before).unwrap();
        fs::write(at("2"), &latents()[..50]).unwrap();
        symlink(at("1"), at("3")).unwrap();
        // whole, but not what its digest was made for
        let other = String::from_utf8(latents()).unwrap();
        let told = r#""version":"1","sha256":"00""#;
        let header = other[8..other.len() - 1].replace(r#""version":"1""#, told);
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.bytes().chain([7]));
        fs::write(at("4"), bytes).unwrap();
        let entries = Vault::at(folder.path()).list().unwrap();
        let (found, passed_over) = newest(&entries);
        assert_eq!(found.unwrap().path, at("1"));
        let said = passed_over.join("\n");
        assert_eq!(passed_over.len(), 3, "{said}");
        assert!(said.contains("latents.r.2.safetensors: torn: "), "{said}");
        assert!(
            said.contains("latents.r.3.safetensors: it is no regular file"),
            "{said}"
        );
        assert!(
            said.contains("latents.r.4.safetensors: its data were changed"),
            "{said}"
        );
    }
}
