//! Checkpoints of one file without a configuration, as FramePack's and ComfyUI's users have them.

use std::path::{Path, PathBuf};

use super::family::{Config, Family, Rename, SingleFile, listed};
use super::{FAMILIES, Model, config, validate};
use crate::error::{Error, Result};
use crate::weights::{Description, Weights};

/// What checkpoints of several parts put before the autoencoder's names.
const PREFIXES: [&str; 3] = ["", "vae.", "first_stage_model."];

/// What helps where the file and the configuration beside it are of two models.
const TWO_MODELS: &str = "the two are not of one model; put the config.json of this file in its place, or put the file where no \
     config.json is (its tensors alone tell the model then)";

/// Opens a checkpoint of one file: its tensors' names tell the family, and a `config.json` beside it or else their
/// shapes tell its configuration.
pub(super) fn open(path: &Path) -> Result<Model> {
    let weights = Weights::open(path)?;
    let wrong = |reason: String| Error::File {
        path: path.to_owned(),
        reason,
    };
    let Some(found) = recognise(&weights) else {
        let example = weights.names().next().unwrap_or("none");
        let names: Vec<&str> = FAMILIES
            .iter()
            .filter(|family| family.single_file.is_some())
            .map(|family| family.name)
            .collect();
        return Err(wrong(format!(
            "not the autoencoder of {}: its first tensor is {example}",
            listed(&names, "or")
        )));
    };
    let weights = weights.renamed(|name| (found.rename)(name.strip_prefix(found.prefix)?))?;
    let foreign = match beside(path)? {
        Some((said, config)) if config.class() == found.family.class => {
            let weights = weights.described(Description {
                path: said,
                cure: TWO_MODELS,
            });
            validate::check(&config, &weights)?;
            return Ok(Model {
                config,
                weights,
                foreign: None,
            });
        }
        other => other.map(|(said, _)| said),
    };
    Ok(Model {
        config: (found.files.config)(&weights).map_err(wrong)?,
        weights,
        foreign,
    })
}

/// What the names of a checkpoint's tensors tell.
struct Recognised {
    /// What stands before each of its names.
    prefix: &'static str,
    family: &'static Family,
    files: &'static SingleFile,
    rename: Rename,
}

fn recognise(weights: &Weights) -> Option<Recognised> {
    PREFIXES.into_iter().find_map(|prefix| {
        let has = |name: &str| weights.has(&format!("{prefix}{name}"));
        FAMILIES.iter().find_map(|&family| {
            let files = family.single_file.as_ref()?;
            let rename = (files.naming)(&has)?;
            Some(Recognised {
                prefix,
                family,
                files,
                rename,
            })
        })
    })
}

/// The `config.json` beside a file, where there is one of an autoencoder that can be loaded; an error where that is wrong:
/// the shapes of tensors do not tell everything that it does. One of something else (of a folder of many checkpoints)
/// says nothing about this file.
fn beside(path: &Path) -> Result<Option<(PathBuf, Config)>> {
    let said = path.with_file_name("config.json");
    if !said.is_file() {
        return Ok(None);
    }
    match Config::text(&said) {
        Ok(text) if config::class_of(&text).is_some() => {
            let read = Config::read(&said)?;
            Ok(Some((said, read)))
        }
        Ok(_) | Err(Error::File { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

/// An error says what is missing or does not fit together.
pub(super) type Found<T> = std::result::Result<T, String>;

/// A number of a tensor's shape.
pub(super) fn side(weights: &Weights, name: &str, at: usize) -> Found<usize> {
    let Ok(shape) = weights.shape(name) else {
        return Err(format!(
            "weight {name}: missing: the file is of another model, or incomplete"
        ));
    };
    shape
        .get(at)
        .copied()
        .ok_or_else(|| format!("weight {name}: has the shape {shape:?}"))
}

/// How many of `name(0)`, `name(1)`, … there are.
pub(super) fn count(weights: &Weights, name: impl Fn(usize) -> String) -> usize {
    count_names(&|name| weights.has(name), name)
}

/// The same of names that `has` knows.
pub(super) fn count_names(has: &dyn Fn(&str) -> bool, name: impl Fn(usize) -> String) -> usize {
    // no model has more: what is beyond is refused by the configuration's own check
    (0..64).take_while(|&at| has(&name(at))).count()
}

/// The parts of a name joined again.
pub(super) fn join(parts: &[&str]) -> String {
    parts.join(".")
}
