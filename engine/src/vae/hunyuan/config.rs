//! `AutoencoderKLHunyuanVideo`.

use super::super::config::{MAX_BLOCKS, MAX_CHANNELS, MAX_LAYERS, within};

/// `AutoencoderKLHunyuanVideo`: the arguments that change what is computed, with diffusers' defaults.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(default)]
pub struct HunyuanConfig {
    /// Channels of the video.
    pub in_channels: usize,
    /// Channels of the decoded video.
    pub out_channels: usize,
    /// Channels of the latents.
    pub latent_channels: usize,
    /// Channels of each level, from the video's inwards.
    pub block_out_channels: Vec<usize>,
    /// Residual blocks of a level of the encoder; the decoder has one more.
    pub layers_per_block: usize,
    /// Groups of the group norms.
    pub norm_num_groups: usize,
    /// Pixels of the video per pixel of the latents, along one side.
    pub spatial_compression_ratio: usize,
    /// Frames of the video per frame of the latents.
    pub temporal_compression_ratio: usize,
    /// Whether the middle has an attention.
    pub mid_block_add_attention: bool,
    /// What latents are multiplied by for the diffusion model.
    pub scaling_factor: f64,
    /// The activation.
    pub act_fn: String,
    /// The kinds of the encoder's blocks, one for each level.
    pub down_block_types: Vec<String>,
    /// The kinds of the decoder's blocks, likewise.
    pub up_block_types: Vec<String>,
}

/// The one kind of the encoder's blocks.
const DOWN: &str = "HunyuanVideoDownBlock3D";
/// The one kind of the decoder's blocks.
const UP: &str = "HunyuanVideoUpBlock3D";

/// So many blocks of one kind.
fn kinds(kind: &str, levels: usize) -> Vec<String> {
    vec![kind.to_owned(); levels]
}

impl Default for HunyuanConfig {
    fn default() -> Self {
        Self {
            in_channels: 3,
            out_channels: 3,
            latent_channels: 16,
            block_out_channels: vec![128, 256, 512, 512],
            layers_per_block: 2,
            norm_num_groups: 32,
            spatial_compression_ratio: 8,
            temporal_compression_ratio: 4,
            mid_block_add_attention: true,
            scaling_factor: 0.476_986,
            act_fn: "silu".to_owned(),
            down_block_types: kinds(DOWN, 4),
            up_block_types: kinds(UP, 4),
        }
    }
}

impl HunyuanConfig {
    pub(in crate::vae) fn check(&self) -> std::result::Result<(), String> {
        let levels = self.block_out_channels.len();
        within("the number of block_out_channels", levels, 1..=MAX_BLOCKS)?;
        within("layers_per_block", self.layers_per_block, 1..=MAX_LAYERS)?;
        within("norm_num_groups", self.norm_num_groups, 1..=MAX_CHANNELS)?;
        for (field, channels) in [
            ("in_channels", self.in_channels),
            ("out_channels", self.out_channels),
            ("latent_channels", self.latent_channels),
        ] {
            within(field, channels, 1..=MAX_CHANNELS)?;
        }
        for &channels in &self.block_out_channels {
            within("block_out_channels", channels, 1..=MAX_CHANNELS)?;
            if !channels.is_multiple_of(self.norm_num_groups) {
                return Err(format!(
                    "{channels} channels do not make {} groups (norm_num_groups)",
                    self.norm_num_groups
                ));
            }
        }
        let space = self.spatial_compression_ratio;
        if !space.is_power_of_two() || space.ilog2() as usize > levels {
            return Err(format!(
                "spatial_compression_ratio {space} cannot be made by {levels} blocks"
            ));
        }
        if self.temporal_compression_ratio != 4 || levels < 3 {
            return Err(format!(
                "temporal_compression_ratio is {} over {levels} blocks; 4 over 3 or more can be loaded",
                self.temporal_compression_ratio
            ));
        }
        if !(self.scaling_factor.is_finite() && self.scaling_factor > 0.0) {
            return Err(format!(
                "scaling_factor {} scales nothing",
                self.scaling_factor
            ));
        }
        // diffusers knows it by two names, in any case
        let act_fn = self.act_fn.to_lowercase();
        if !matches!(act_fn.as_str(), "silu" | "swish") {
            return Err(format!("act_fn is {:?}; silu can be computed", self.act_fn));
        }
        self.check_kinds()
    }

    /// diffusers makes as many blocks as there are kinds: of fewer than levels it is another model, without a word.
    fn check_kinds(&self) -> std::result::Result<(), String> {
        let levels = self.block_out_channels.len();
        for (field, all, known) in [
            ("down_block_types", &self.down_block_types, DOWN),
            ("up_block_types", &self.up_block_types, UP),
        ] {
            if let Some(kind) = all.iter().find(|kind| *kind != known) {
                return Err(format!(
                    "a block of the kind {kind:?} is not known ({field}; {known} is)"
                ));
            }
            if all.len() != levels {
                return Err(format!(
                    "{field} has {} entries (4 where it is left out) for {levels} levels (block_out_channels)",
                    all.len()
                ));
            }
        }
        Ok(())
    }

    /// The same with as many blocks as there are levels.
    pub(in crate::vae) fn with_levels(mut self, block_out_channels: Vec<usize>) -> Self {
        let levels = block_out_channels.len();
        self.down_block_types = kinds(DOWN, levels);
        self.up_block_types = kinds(UP, levels);
        self.block_out_channels = block_out_channels;
        self
    }

    /// Whether level `at` of the decoder (or the encoder, counted likewise) changes time, and whether space.
    pub(crate) fn changes(&self, at: usize) -> (bool, bool) {
        let levels = self.block_out_channels.len();
        let time = self.temporal_compression_ratio.ilog2() as usize;
        let space = self.spatial_compression_ratio.ilog2() as usize;
        (at + 1 + time >= levels && at + 1 != levels, at < space)
    }
}
