//! `AutoencoderKLWan`.

use super::super::tiles::Ratio;
use super::{MAX_BLOCKS, MAX_CHANNELS, MAX_LAYERS, within};

/// `AutoencoderKLWan`: the arguments that change what is computed, with diffusers' defaults.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(default)]
pub struct WanConfig {
    /// Channels of the outermost level of the encoder.
    pub base_dim: usize,
    /// The same of the decoder, where it differs.
    pub decoder_base_dim: Option<usize>,
    /// Channels of the latents.
    pub z_dim: usize,
    /// Channels of each level in units of the base.
    pub dim_mult: Vec<usize>,
    /// Residual blocks of a level of the encoder; the decoder has one more.
    pub num_res_blocks: usize,
    /// Levels with attention: none in any known model.
    pub attn_scales: Vec<f64>,
    /// Which levels halve time.
    pub temperal_downsample: Vec<bool>,
    /// The 2.2 kind: shortcuts around whole levels.
    pub is_residual: bool,
    /// Channels of the video, patches counted.
    pub in_channels: usize,
    /// The same of the decoded video.
    pub out_channels: usize,
    /// Pixels of a patch along one side; none: 1.
    pub patch_size: Option<usize>,
    /// Pixels of the video per pixel of the latents, along one side.
    pub scale_factor_spatial: usize,
    /// Frames of the video per frame of the latents.
    pub scale_factor_temporal: usize,
    /// What is added to the diffusion model's latents, by channel.
    pub latents_mean: Vec<f64>,
    /// What they are multiplied by before.
    pub latents_std: Vec<f64>,
}

impl Default for WanConfig {
    fn default() -> Self {
        Self {
            base_dim: 96,
            decoder_base_dim: None,
            z_dim: 16,
            dim_mult: vec![1, 2, 4, 4],
            num_res_blocks: 2,
            attn_scales: Vec::new(),
            temperal_downsample: vec![false, true, true],
            is_residual: false,
            in_channels: 3,
            out_channels: 3,
            patch_size: None,
            scale_factor_spatial: 8,
            scale_factor_temporal: 4,
            latents_mean: Vec::new(),
            latents_std: Vec::new(),
        }
    }
}

impl WanConfig {
    pub(in crate::vae) fn check(&self) -> std::result::Result<(), String> {
        let levels = self.dim_mult.len();
        within("the number of dim_mult", levels, 2..=MAX_BLOCKS)?;
        within("num_res_blocks", self.num_res_blocks, 1..=MAX_LAYERS)?;
        for (field, channels) in [
            ("base_dim", self.base_dim),
            ("decoder_base_dim", self.decoder_base()),
            ("z_dim", self.z_dim),
            ("in_channels", self.in_channels),
            ("out_channels", self.out_channels),
        ] {
            within(field, channels, 1..=MAX_CHANNELS)?;
        }
        for &mult in &self.dim_mult {
            within("dim_mult", mult, 1..=64)?;
            within(
                "dim_mult times base",
                mult * self.base_dim.max(self.decoder_base()),
                1..=MAX_CHANNELS,
            )?;
        }
        if self.temperal_downsample.len() + 1 != levels {
            return Err(format!(
                "temperal_downsample has {} entries for {levels} levels",
                self.temperal_downsample.len()
            ));
        }
        if !self.attn_scales.is_empty() {
            return Err("attn_scales is not empty: no known model has such attentions".to_owned());
        }
        let frames = 1
            << self
                .temperal_downsample
                .iter()
                .filter(|down| **down)
                .count();
        if frames != 4 || self.scale_factor_temporal != 4 {
            return Err(format!("time is compressed by {frames}; 4 can be loaded"));
        }
        let patch = self.patch();
        within("patch_size", patch, 1..=8)?;
        if self.scale_factor_spatial != patch << (levels - 1) {
            return Err(format!(
                "scale_factor_spatial is {}, but {levels} levels and patches of {patch} make {}",
                self.scale_factor_spatial,
                patch << (levels - 1)
            ));
        }
        if !self.in_channels.is_multiple_of(patch * patch)
            || !self.out_channels.is_multiple_of(patch * patch)
        {
            return Err(format!(
                "in_channels and out_channels do not make patches of {patch} x {patch}"
            ));
        }
        for (field, values) in [
            ("latents_mean", &self.latents_mean),
            ("latents_std", &self.latents_std),
        ] {
            if !values.is_empty() && values.len() != self.z_dim {
                return Err(format!(
                    "{field} has {} entries for {} channels (z_dim)",
                    values.len(),
                    self.z_dim
                ));
            }
        }
        if self.latents_mean.is_empty() != self.latents_std.is_empty() {
            return Err("latents_mean and latents_std: one without the other".to_owned());
        }
        if let Some(std) = self.latents_std.iter().find(|std| **std <= 0.0) {
            return Err(format!("latents_std has {std}, which scales nothing"));
        }
        Ok(())
    }

    /// What it makes of sizes.
    pub(crate) fn ratio(&self) -> Ratio {
        Ratio {
            space: self.scale_factor_spatial,
            time: self.scale_factor_temporal,
        }
    }

    pub(crate) fn decoder_base(&self) -> usize {
        self.decoder_base_dim.unwrap_or(self.base_dim)
    }

    pub(crate) fn patch(&self) -> usize {
        self.patch_size.unwrap_or(1)
    }
}
