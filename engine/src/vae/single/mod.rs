//! Checkpoints of one file without a configuration, as FramePack's and ComfyUI's users have them.

mod names;
mod shapes;

use std::path::{Path, PathBuf};

use self::names::Naming;
use super::config::Config;
use super::{Model, agree};
use crate::error::{Error, Result};
use crate::weights::{Description, Weights};

/// What checkpoints of several parts put before the autoencoder's names.
const PREFIXES: [&str; 3] = ["", "vae.", "first_stage_model."];

/// What helps where the file and the configuration beside it are of two models.
const TWO_MODELS: &str = "the two are not of one model; put the config.json of this file in its place, or put the file where no \
     config.json is (its tensors alone tell the model then)";

/// The models that can be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Hunyuan,
    Wan,
}

/// Opens a checkpoint of one file: tells the model by its tensors' names, and its configuration by a `config.json`
/// beside it or else by their shapes.
pub(super) fn open(path: &Path) -> Result<Model> {
    let weights = Weights::open(path)?;
    let wrong = |reason: String| Error::File {
        path: path.to_owned(),
        reason,
    };
    let Some((prefix, kind, naming)) = recognise(&weights) else {
        let example = weights.names().next().unwrap_or("none");
        return Err(wrong(format!(
            "not the autoencoder of HunyuanVideo or WAN: its first tensor is {example}"
        )));
    };
    let weights = weights.renamed(|name| naming.rename(name.strip_prefix(prefix)?))?;
    let foreign = match (beside(path)?, kind) {
        (Some((said, config @ Config::Hunyuan(_))), Kind::Hunyuan)
        | (Some((said, config @ Config::Wan(_))), Kind::Wan) => {
            let weights = weights.described(Description {
                path: said,
                cure: TWO_MODELS,
            });
            agree::check(&config, &weights)?;
            return Ok(Model {
                config,
                weights,
                foreign: None,
            });
        }
        (other, _) => other.map(|(said, _)| said),
    };
    let config = match kind {
        Kind::Hunyuan => shapes::hunyuan(&weights),
        Kind::Wan => shapes::wan(&weights),
    };
    Ok(Model {
        config: config.map_err(wrong)?,
        weights,
        foreign,
    })
}

/// The model of these tensors, whose names they have, and what stands before each.
fn recognise(weights: &Weights) -> Option<(&'static str, Kind, Naming)> {
    PREFIXES.into_iter().find_map(|prefix| {
        let has = |name: &str| weights.has(&format!("{prefix}{name}"));
        let count =
            |name: &dyn Fn(usize) -> String| (0..64).take_while(|&at| has(&name(at))).count();
        let (kind, naming) = if has("decoder.up_blocks.0.resnets.0.conv1.conv.weight") {
            (Kind::Hunyuan, Naming::Diffusers)
        } else if has("decoder.up.0.block.0.conv1.conv.weight") {
            let levels = count(&|at| format!("decoder.up.{at}.block.0.conv1.conv.weight"));
            (Kind::Hunyuan, Naming::Comfy { levels })
        } else if has("decoder.mid_block.resnets.0.norm1.gamma") {
            (Kind::Wan, Naming::Diffusers)
        } else if has("decoder.upsamples.0.upsamples.0.residual.2.weight") {
            (Kind::Wan, Naming::Wan22)
        } else if has("decoder.middle.0.residual.0.gamma") {
            let blocks = 1 + count(&|at| format!("decoder.upsamples.{at}.residual.2.weight"));
            (Kind::Wan, Naming::Wan21 { blocks })
        } else {
            return None;
        };
        Some((prefix, kind, naming))
    })
}

/// The `config.json` beside a file, where there is one of an autoencoder that can be loaded; an error where that is wrong:
/// the shapes of tensors do not tell everything that it does. One of something else (of a folder of many checkpoints)
/// says nothing about this file.
fn beside(path: &Path) -> Result<Option<(PathBuf, Config)>> {
    let config = path.with_file_name("config.json");
    if !config.is_file() {
        return Ok(None);
    }
    match Config::text(&config) {
        Ok(text) if Config::is_of_ours(&text) => {
            let read = Config::read(&config)?;
            Ok(Some((config, read)))
        }
        Ok(_) | Err(Error::File { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}
