//! The configuration of a checkpoint without one, from the shapes of its tensors. What no shape tells is a fact of
//! the published models: HunyuanVideo's groups of 32 and its scaling factor are the defaults of
//! `AutoencoderKLHunyuanVideo`; the means and deviations of WAN's latents are the defaults of `AutoencoderKLWan` (2.1) and
//! those of `convert_wan_to_diffusers.py` (2.2).

use super::super::config::{Config, HunyuanConfig, WanConfig};
use crate::weights::Weights;

/// Says what is missing or does not fit together.
type Found<T> = std::result::Result<T, String>;

/// A number of a tensor's shape.
fn side(weights: &Weights, name: &str, at: usize) -> Found<usize> {
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
fn count(weights: &Weights, name: impl Fn(usize) -> String) -> usize {
    // no model has more: what is beyond is refused by the configuration's own check
    (0..64).take_while(|&at| weights.has(&name(at))).count()
}

/// Levels of the published `HunyuanVideo` autoencoder.
const LEVELS: usize = 4;

/// The configuration of `HunyuanVideo` weights named as diffusers names them.
pub(super) fn hunyuan(weights: &Weights) -> Found<Config> {
    let conv = |level: usize, resnet: usize| {
        format!("decoder.up_blocks.{level}.resnets.{resnet}.conv1.conv.weight")
    };
    let levels = count(weights, |level| conv(level, 0));
    // of another number the same upsamplers may stand for several ratios
    if levels != LEVELS {
        return Err(format!(
            "{levels} levels, where HunyuanVideo's autoencoder has {LEVELS}: put the config.json of this model beside the file"
        ));
    }
    let widths: Found<Vec<usize>> = (0..levels)
        .rev()
        .map(|level| side(weights, &conv(level, 0), 0))
        .collect();
    let enlarging = count(weights, |level| {
        format!("decoder.up_blocks.{level}.upsamplers.0.conv.conv.weight")
    });
    let encoder = "encoder.conv_in.conv.weight";
    let config = HunyuanConfig {
        in_channels: if weights.has(encoder) {
            side(weights, encoder, 1)?
        } else {
            3
        },
        out_channels: side(weights, "decoder.conv_out.conv.weight", 0)?,
        latent_channels: side(weights, "decoder.conv_in.conv.weight", 1)?,
        layers_per_block: count(weights, |resnet| conv(0, resnet)).saturating_sub(1),
        spatial_compression_ratio: 1 << enlarging.min(16),
        mid_block_add_attention: weights.has("decoder.mid_block.attentions.0.to_q.weight"),
        ..HunyuanConfig::default().with_levels(widths?)
    };
    config.check()?;
    Ok(Config::Hunyuan(config))
}

/// The configuration of WAN weights named as diffusers names them.
pub(super) fn wan(weights: &Weights) -> Found<Config> {
    let conv = |level: usize, resnet: usize| {
        format!("decoder.up_blocks.{level}.resnets.{resnet}.conv1.weight")
    };
    let is_residual = weights.has("decoder.up_blocks.0.upsampler.resample.1.weight");
    let sampler = if is_residual {
        "upsampler"
    } else {
        "upsamplers.0"
    };
    let levels = count(weights, |level| conv(level, 0));
    let base = side(weights, "decoder.norm_out.gamma", 0)?.max(1);
    let mut dim_mult = Vec::new();
    for level in (0..levels).rev() {
        let width = side(weights, &conv(level, 0), 0)?;
        if !width.is_multiple_of(base) {
            return Err(format!("levels of {width} and of {base} channels"));
        }
        dim_mult.push(width / base);
    }
    let z_dim = side(weights, "decoder.conv_in.weight", 1)?;
    let encoder = "encoder.conv_in.weight";
    let out_channels = side(weights, "decoder.conv_out.weight", 0)?;
    let patch = if is_residual { 2 } else { 1 };
    let (latents_mean, latents_std) = latents(z_dim);
    let config = WanConfig {
        base_dim: if weights.has(encoder) {
            side(weights, encoder, 0)?
        } else {
            base
        },
        decoder_base_dim: Some(base),
        z_dim,
        dim_mult,
        num_res_blocks: count(weights, |resnet| conv(0, resnet)).saturating_sub(1),
        temperal_downsample: (0..levels.saturating_sub(1))
            .rev()
            .map(|level| {
                weights.has(&format!(
                    "decoder.up_blocks.{level}.{sampler}.time_conv.weight"
                ))
            })
            .collect(),
        is_residual,
        in_channels: if weights.has(encoder) {
            side(weights, encoder, 1)?
        } else {
            out_channels
        },
        out_channels,
        patch_size: is_residual.then_some(patch),
        scale_factor_spatial: patch << (levels.clamp(1, 16) - 1),
        latents_mean,
        latents_std,
        ..WanConfig::default()
    };
    config.check()?;
    Ok(Config::Wan(config))
}

/// Means and deviations of a diffusion model's latents of this many channels, where they are no defaults (those are of
/// the 2.1 kind); nothing where no published model has as many.
fn latents(channels: usize) -> (Option<Vec<f64>>, Option<Vec<f64>>) {
    match channels {
        48 => (Some(WAN22.0.to_vec()), Some(WAN22.1.to_vec())),
        _ => (None, None),
    }
}

/// Mean and deviation by channel.
const WAN22: ([f64; 48], [f64; 48]) = (
    [
        -0.2289, -0.0052, -0.1323, -0.2339, -0.2799, 0.0174, 0.1838, 0.1557, -0.1382, 0.0542,
        0.2813, 0.0891, 0.1570, -0.0098, 0.0375, -0.1825, -0.2246, -0.1207, -0.0698, 0.5109,
        0.2665, -0.2108, -0.2158, 0.2502, -0.2055, -0.0322, 0.1109, 0.1567, -0.0729, 0.0899,
        -0.2799, -0.1230, -0.0313, -0.1649, 0.0117, 0.0723, -0.2839, -0.2083, -0.0520, 0.3748,
        0.0152, 0.1957, 0.1433, -0.2944, 0.3573, -0.0548, -0.1681, -0.0667,
    ],
    [
        0.4765, 1.0364, 0.4514, 1.1677, 0.5313, 0.4990, 0.4818, 0.5013, 0.8158, 1.0344, 0.5894,
        1.0901, 0.6885, 0.6165, 0.8454, 0.4978, 0.5759, 0.3523, 0.7135, 0.6804, 0.5833, 1.4146,
        0.8986, 0.5659, 0.7069, 0.5338, 0.4889, 0.4917, 0.4069, 0.4999, 0.6866, 0.4093, 0.5709,
        0.6065, 0.6415, 0.4944, 0.5726, 1.2042, 0.5458, 1.6887, 0.3971, 1.0600, 0.3943, 0.5537,
        0.5444, 0.4089, 0.7468, 0.7744,
    ],
);
