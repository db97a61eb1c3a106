//! `AutoencoderKLWan`.

use super::super::config::{MAX_BLOCKS, MAX_CHANNELS, MAX_LAYERS, within};

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
    /// Frames of the video per frame of the latents; diffusers takes a null too, and asks only the levels.
    #[serde(deserialize_with = "of_the_levels")]
    pub scale_factor_temporal: usize,
    /// What is added to the diffusion model's latents, by channel; absent: diffusers' default, see
    /// [`WanConfig::scaling`].
    pub latents_mean: Option<Vec<f64>>,
    /// What they are multiplied by before; absent: the same.
    pub latents_std: Option<Vec<f64>>,
}

/// diffusers' defaults of `latents_mean` and `latents_std`, which are those of WAN 2.1, by channel.
const WAN21: ([f64; 16], [f64; 16]) = (
    [
        -0.7571, -0.7089, -0.9113, 0.1075, -0.1745, 0.9653, -0.1517, 1.5508, 0.4134, -0.0715,
        0.5517, -0.3632, -0.1922, -0.9497, 0.2503, -0.2921,
    ],
    [
        2.8184, 1.4541, 2.3275, 2.6558, 1.2196, 1.7708, 2.6052, 2.0743, 3.2687, 2.1526, 2.8652,
        1.5579, 1.6382, 1.1253, 2.8251, 1.9160,
    ],
);

/// Frames of the video per frame of the latents, in every published model.
const TIME: usize = 4;

/// A number, or null for what the levels make.
fn of_the_levels<'de, D: serde::Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    Ok(<Option<usize> as serde::Deserialize>::deserialize(from)?.unwrap_or(TIME))
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
            scale_factor_temporal: TIME,
            latents_mean: None,
            latents_std: None,
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
        if frames != TIME {
            return Err(format!(
                "time is compressed by {frames} (temperal_downsample); {TIME} can be loaded"
            ));
        }
        if self.scale_factor_temporal != TIME {
            return Err(format!(
                "scale_factor_temporal is {}, but by temperal_downsample time is compressed by {TIME}",
                self.scale_factor_temporal
            ));
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
            let count = values.as_ref().map_or(self.z_dim, Vec::len);
            if count != self.z_dim {
                return Err(format!(
                    "{field} has {count} entries for {} channels (z_dim)",
                    self.z_dim
                ));
            }
        }
        let mut stds = self.latents_std.iter().flatten();
        if let Some(std) = stds.find(|std| **std <= 0.0) {
            return Err(format!("latents_std has {std}, which scales nothing"));
        }
        Ok(())
    }

    /// Mean and deviation of the diffusion model's latents, by channel: what is told, else diffusers' defaults. `None`:
    /// one of them is not told, and the defaults are for another number of channels.
    pub fn scaling(&self) -> Option<(&[f64], &[f64])> {
        let mean = self.or_default(self.latents_mean.as_deref(), &WAN21.0)?;
        Some((
            mean,
            self.or_default(self.latents_std.as_deref(), &WAN21.1)?,
        ))
    }

    fn or_default<'a>(
        &self,
        told: Option<&'a [f64]>,
        default: &'static [f64; 16],
    ) -> Option<&'a [f64]> {
        told.or_else(|| (self.z_dim == default.len()).then_some(default))
    }

    pub(crate) fn decoder_base(&self) -> usize {
        self.decoder_base_dim.unwrap_or(self.base_dim)
    }

    pub(crate) fn patch(&self) -> usize {
        self.patch_size.unwrap_or(1)
    }
}
