//! `config.json` as diffusers writes it.

use std::path::Path;

use super::FAMILIES;
use super::family::{Config, Family, listed};
use crate::error::{Error, Result};

/// The largest configuration that is read.
const MAX_CONFIG: u64 = 1 << 20;

/// Beyond these no model is: a configuration that asks for more is damaged or hostile.
pub(super) const MAX_BLOCKS: usize = 8;
pub(super) const MAX_LAYERS: usize = 16;
pub(super) const MAX_CHANNELS: usize = 8192;

/// The one field that says what the others mean.
#[derive(serde::Deserialize)]
struct Class {
    #[serde(rename = "_class_name")]
    name: String,
}

/// The family of a class.
fn family_of(class: &str) -> Option<&'static Family> {
    FAMILIES
        .iter()
        .copied()
        .find(|family| family.class == class)
}

/// The class that the text of a `config.json` names, if a model of it can be loaded; the rest may be wrong.
pub(super) fn class_of(text: &[u8]) -> Option<&'static str> {
    let class = serde_json::from_slice::<Class>(text).ok()?;
    Some(family_of(&class.name)?.class)
}

impl Config {
    /// Reads and checks a `config.json`.
    pub fn read(path: &Path) -> Result<Self> {
        let text = Self::text(path)?;
        Self::parse(&text).map_err(|reason| Error::File {
            path: path.to_owned(),
            reason,
        })
    }

    /// The text of a `config.json`, if it is no longer than one can be.
    pub(super) fn text(path: &Path) -> Result<Vec<u8>> {
        let io = |source| Error::Io {
            path: path.to_owned(),
            source,
        };
        let size = std::fs::metadata(path).map_err(io)?.len();
        if size > MAX_CONFIG {
            return Err(Error::File {
                path: path.to_owned(),
                reason: format!("{size} bytes are no configuration"),
            });
        }
        crate::error::read(path)
    }

    /// Reads and checks the text of a `config.json`; an error fits after the file's name.
    pub fn parse(text: &[u8]) -> std::result::Result<Self, String> {
        let class: Class = serde_json::from_slice(text)
            .map_err(|error| format!("not the configuration of a diffusers model: {error}"))?;
        family_of(&class.name).map_or_else(
            || {
                let classes: Vec<&str> = FAMILIES.iter().map(|family| family.class).collect();
                Err(format!(
                    "_class_name is {:?}; {} can be loaded: give the folder `vae`",
                    class.name,
                    listed(&classes, "and")
                ))
            },
            |family| (family.parse)(text),
        )
    }
}

/// The fields of a configuration; an error names the first that is wrong.
pub(super) fn fields<C: serde::de::DeserializeOwned>(
    text: &[u8],
) -> std::result::Result<C, String> {
    let whole = match serde_json::from_slice(text) {
        Ok(config) => return Ok(config),
        Err(error) => error,
    };
    // serde tells what is wrong, and where in the text, but not of which field: each is tried by itself
    let all: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let wrong = all.into_iter().find_map(|(name, value)| {
        let shown = value.to_string();
        let alone = serde_json::Map::from_iter([(name.clone(), value)]);
        let error = serde_json::from_value::<C>(alone.into()).err()?;
        let shown: String = shown.chars().take(40).collect();
        Some(format!("{name} is {shown}: {error}"))
    });
    // one that stands there twice, say
    Err(wrong.unwrap_or_else(|| whole.to_string()))
}

/// Refuses a field whose value is outside of `range`.
pub(super) fn within(
    field: &str,
    value: usize,
    range: std::ops::RangeInclusive<usize>,
) -> std::result::Result<(), String> {
    if range.contains(&value) {
        Ok(())
    } else {
        Err(format!(
            "{field} is {value}, outside of {} to {}",
            range.start(),
            range.end()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vae::{HunyuanConfig, WanConfig};

    fn refused(text: &str) -> String {
        Config::parse(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn the_real_models_are_the_defaults() {
        let parse = |text: &str| Config::parse(text.as_bytes()).unwrap();
        assert_eq!(
            parse(r#"{"_class_name":"AutoencoderKLHunyuanVideo"}"#).of(),
            Some(&HunyuanConfig::default())
        );
        assert_eq!(
            parse(r#"{"_class_name":"AutoencoderKLWan"}"#).of(),
            Some(&WanConfig::default())
        );
        let config = HunyuanConfig::default();
        assert_eq!(
            [0, 1, 2, 3].map(|at| config.changes(at)),
            [(false, true), (true, true), (true, true), (false, false)]
        );
    }

    /// As `AutoencoderKLWan` has them in the signature of its constructor.
    #[test]
    fn what_a_configuration_leaves_out_is_what_diffusers_takes() {
        let wan = |fields: &str| {
            let text = format!(r#"{{"_class_name":"AutoencoderKLWan"{fields}}}"#);
            let config = Config::parse(text.as_bytes()).unwrap();
            config.of::<WanConfig>().unwrap().clone()
        };
        let none = wan("");
        let (mean, std) = none.scaling().unwrap();
        assert_eq!((mean.len(), std.len()), (16, 16));
        let ends = |of: &[f64]| (of.first().copied(), of.last().copied());
        assert_eq!(ends(mean), (Some(-0.7571), Some(-0.2921)));
        assert_eq!(ends(std), (Some(2.8184), Some(1.916)));
        // each by itself
        let half = ["0.5"; 16].join(",");
        let told = wan(&format!(r#","latents_mean":[{half}]"#));
        assert_eq!(told.scaling(), Some((&[0.5; 16][..], std)));
        // a null is in diffusers' signature
        assert_eq!(wan(r#","scale_factor_temporal":null"#), none);
        // for another number of channels it has none
        let other = wan(r#","z_dim":12"#);
        assert_eq!(other.scaling(), None);
        let twelve = ["0.5"; 12].join(",");
        let other = wan(&format!(r#","z_dim":12,"latents_std":[{twelve}]"#));
        assert_eq!(other.scaling(), None);
        for silu in ["swish", "SiLU"] {
            let text =
                format!(r#"{{"_class_name":"AutoencoderKLHunyuanVideo","act_fn":"{silu}"}}"#);
            assert!(Config::parse(text.as_bytes()).is_ok(), "{silu}");
        }
    }

    #[test]
    fn what_cannot_be_loaded_is_said() {
        assert!(refused("{}").starts_with(
            "not the configuration of a diffusers model: missing field `_class_name`"
        ));
        assert!(refused(r#"{"_class_name":"UNet2D"}"#).contains("give the folder `vae`"));
        let hunyuan = |field: &str| {
            refused(&format!(
                r#"{{"_class_name":"AutoencoderKLHunyuanVideo",{field}}}"#
            ))
        };
        assert_eq!(
            hunyuan(r#""norm_num_groups":7"#),
            "128 channels do not make 7 groups (norm_num_groups)"
        );
        assert_eq!(
            hunyuan(r#""act_fn":"gelu""#),
            "act_fn is \"gelu\"; silu can be computed"
        );
        assert_eq!(
            hunyuan(r#""layers_per_block":100000"#),
            "layers_per_block is 100000, outside of 1 to 16"
        );
        assert_eq!(
            hunyuan(r#""block_out_channels":[]"#),
            "the number of block_out_channels is 0, outside of 1 to 8"
        );
        assert!(
            hunyuan(r#""temporal_compression_ratio":8"#).contains("4 over 3 or more can be loaded")
        );
        assert!(hunyuan(r#""spatial_compression_ratio":0"#).contains("cannot be made by 4 blocks"));
        assert!(hunyuan(r#""scaling_factor":0"#).contains("scales nothing"));
        assert!(hunyuan(r#""up_block_types":["X"]"#).contains("a block of the kind \"X\""));
        let up = |count| {
            format!(
                "[{}]",
                [r#""HunyuanVideoUpBlock3D""#].repeat(count).join(",")
            )
        };
        assert_eq!(
            hunyuan(&format!(r#""up_block_types":{}"#, up(2))),
            "up_block_types has 2 entries (4 where it is left out) for 4 levels (block_out_channels)"
        );
        assert!(
            hunyuan(&format!(r#""down_block_types":{}"#, up(4)))
                .contains("HunyuanVideoDownBlock3D is")
        );
        // what is left out is four blocks of each, however many levels there are
        let five = r#""block_out_channels":[64,64,64,64,64]"#;
        assert!(hunyuan(five).starts_with("down_block_types has 4 entries"));
        assert_eq!(
            hunyuan(r#""latent_channels":-1"#),
            "latent_channels is -1: invalid value: integer `-1`, expected usize"
        );
        assert_eq!(
            hunyuan(r#""layers_per_block":2,"mid_block_add_attention":"yes""#),
            "mid_block_add_attention is \"yes\": invalid type: string \"yes\", expected a boolean"
        );
        assert!(
            hunyuan(r#""act_fn":"silu","act_fn":"gelu""#).starts_with("duplicate field `act_fn`")
        );
    }

    #[test]
    fn what_cannot_be_loaded_of_wan_is_said() {
        let wan =
            |field: &str| refused(&format!(r#"{{"_class_name":"AutoencoderKLWan",{field}}}"#));
        assert_eq!(
            wan(r#""dim_mult":[1,2]"#),
            "temperal_downsample has 3 entries for 2 levels"
        );
        assert_eq!(
            wan(r#""latents_mean":[1]"#),
            "latents_mean has 1 entries for 16 channels (z_dim)"
        );
        let sixteen = |x: &str| format!("[{}]", vec![x; 16].join(","));
        let (means, none) = (sixteen("0.5"), sixteen("0"));
        assert_eq!(
            wan(&format!(r#""latents_mean":{means},"latents_std":{none}"#)),
            "latents_std has 0, which scales nothing"
        );
        assert!(wan(r#""patch_size":2"#).contains("patches of 2 make 16"));
        assert!(
            wan(r#""temperal_downsample":[true,true,true]"#).contains("time is compressed by 8")
        );
        assert!(wan(r#""attn_scales":[0.5]"#).contains("attn_scales"));
        assert_eq!(
            wan(r#""scale_factor_temporal":8"#),
            "scale_factor_temporal is 8, but by temperal_downsample time is compressed by 4"
        );
    }
}
