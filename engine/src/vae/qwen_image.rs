//! `AutoencoderKLQwenImage`: the 2.1 kind of WAN's autoencoder, trained further on pictures. Its weights have WAN's
//! names, its configuration has names of its own, and a picture is a video of one frame.

use candle_core::Tensor;

use super::config::{MAX_CHANNELS, fields, within};
use super::family::{Config, DecoderNetwork, EncoderNetwork, Family, Networks, Vae};
use super::layers::Loader;
use super::strategy::{Direction, Ratio, Run};
use super::wan::WanConfig;
use crate::error::Result;

pub(super) const FAMILY: Family = Family {
    class: "AutoencoderKLQwenImage",
    name: "Qwen-Image",
    word: "QwenImage",
    agent_names: &[],
    parse: |text| {
        let fields: Fields = fields(text)?;
        within("input_channels", fields.input_channels, 1..=MAX_CHANNELS)?;
        let config = WanConfig::from(fields);
        config.check()?;
        Ok(Config::new(QwenImageConfig(config)))
    },
    // the published file has the names of WAN's, and is decoded as such
    single_file: None,
};

/// The arguments of `AutoencoderKLQwenImage` that change what is computed, with diffusers' defaults.
#[derive(Debug, serde::Deserialize)]
#[serde(default)]
struct Fields {
    base_dim: usize,
    z_dim: usize,
    dim_mult: Vec<usize>,
    num_res_blocks: usize,
    attn_scales: Vec<f64>,
    temperal_downsample: Vec<bool>,
    input_channels: usize,
    latents_mean: Option<Vec<f64>>,
    latents_std: Option<Vec<f64>>,
}

impl Default for Fields {
    fn default() -> Self {
        // all of them are WAN 2.1's
        let wan = WanConfig::default();
        Self {
            base_dim: wan.base_dim,
            z_dim: wan.z_dim,
            dim_mult: wan.dim_mult,
            num_res_blocks: wan.num_res_blocks,
            attn_scales: wan.attn_scales,
            temperal_downsample: wan.temperal_downsample,
            input_channels: wan.in_channels,
            latents_mean: wan.latents_mean,
            latents_std: wan.latents_std,
        }
    }
}

impl From<Fields> for WanConfig {
    fn from(fields: Fields) -> Self {
        // no more levels than can be loaded: their check comes after this
        let halvings = fields.temperal_downsample.len().min(16);
        Self {
            base_dim: fields.base_dim,
            z_dim: fields.z_dim,
            dim_mult: fields.dim_mult,
            num_res_blocks: fields.num_res_blocks,
            attn_scales: fields.attn_scales,
            temperal_downsample: fields.temperal_downsample,
            in_channels: fields.input_channels,
            out_channels: fields.input_channels,
            scale_factor_spatial: 1 << halvings,
            latents_mean: fields.latents_mean,
            latents_std: fields.latents_std,
            ..Self::default()
        }
    }
}

/// The configuration, as the WAN model that it describes.
#[derive(Debug)]
struct QwenImageConfig(WanConfig);

impl Vae for QwenImageConfig {
    fn family(&self) -> &'static Family {
        &FAMILY
    }

    fn ratio(&self) -> Ratio {
        self.0.ratio()
    }

    fn latent_channels(&self) -> usize {
        self.0.latent_channels()
    }

    fn colours(&self, direction: Direction) -> usize {
        self.0.colours(direction)
    }

    fn fps(&self) -> f64 {
        self.0.fps()
    }

    /// A picture has one frame, so that only tiles make a decode smaller.
    fn runs(&self, frames: usize) -> Vec<Option<Run>> {
        if frames == 1 {
            vec![None]
        } else {
            self.0.runs(frames)
        }
    }

    fn overlap(&self, latents: usize) -> usize {
        self.0.overlap(latents)
    }

    fn unscale(&self, latents: &Tensor) -> Result<Tensor> {
        self.0.unscale(latents)
    }
}

impl Networks for QwenImageConfig {
    fn decoder(&self, root: &Loader<'_>) -> Result<Box<dyn DecoderNetwork>> {
        self.0.decoder(root)
    }

    fn encoder(&self, root: &Loader<'_>) -> Result<Box<dyn EncoderNetwork>> {
        self.0.encoder(root)
    }
}
