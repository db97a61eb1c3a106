//! WAN's autoencoder in one file: diffusers' names, or WAN's own (facts from diffusers'
//! `convert_wan_to_diffusers.py`).

use super::super::family::{Config, Rename, SingleFile};
use super::super::single_file::{Found, count, count_names, join, side};
use super::WanConfig;
use crate::weights::Weights;

pub(super) const SINGLE_FILE: SingleFile = SingleFile { naming, config };

fn naming(has: &dyn Fn(&str) -> bool) -> Option<Rename> {
    if has("decoder.mid_block.resnets.0.norm1.gamma") {
        return Some(Box::new(|name| Some(name.to_owned())));
    }
    // the 2.1 kind has the blocks of all levels of the decoder in one row, this many a level
    let blocks = if has("decoder.upsamples.0.upsamples.0.residual.2.weight") {
        None
    } else if has("decoder.middle.0.residual.0.gamma") {
        let resnets = count_names(has, |at| {
            format!("decoder.upsamples.{at}.residual.2.weight")
        });
        Some(1 + resnets)
    } else {
        return None;
    };
    Some(Box::new(move |name| {
        let parts: Vec<&str> = name.split('.').collect();
        wan(&parts, blocks)
    }))
}

/// diffusers' name for WAN's own; absent: the tensor is not needed.
fn wan(parts: &[&str], blocks: Option<usize>) -> Option<String> {
    let (half, rest) = match parts {
        ["conv1", rest @ ..] => return Some(format!("quant_conv.{}", join(rest))),
        ["conv2", rest @ ..] => return Some(format!("post_quant_conv.{}", join(rest))),
        [half @ ("encoder" | "decoder"), rest @ ..] => (*half, rest),
        _ => return None,
    };
    let renamed = match rest {
        ["conv1", rest @ ..] => format!("conv_in.{}", join(rest)),
        ["head", "0", rest @ ..] => format!("norm_out.{}", join(rest)),
        ["head", "2", rest @ ..] => format!("conv_out.{}", join(rest)),
        ["middle", "1", rest @ ..] => format!("mid_block.attentions.0.{}", join(rest)),
        ["middle", number @ ("0" | "2"), rest @ ..] => {
            let at = usize::from(*number == "2");
            format!("mid_block.resnets.{at}.{}", wan_resnet(rest)?)
        }
        ["downsamples" | "upsamples", rest @ ..] => {
            let side = if half == "encoder" { "down" } else { "up" };
            wan_block(side, rest, blocks)?
        }
        _ => return None,
    };
    Some(format!("{half}.{renamed}"))
}

/// A block of a level: residual, or what changes the size.
fn wan_block(side: &str, parts: &[&str], blocks: Option<usize>) -> Option<String> {
    match (parts, blocks) {
        // 2.1, the encoder: numbered in one row by diffusers too
        ([number, rest @ ..], Some(_)) if side == "down" => {
            let inner = wan_resnet(rest).or_else(|| resample(rest))?;
            Some(format!("down_blocks.{number}.{inner}"))
        }
        ([number, rest @ ..], Some(blocks)) => {
            let number: usize = number.parse().ok()?;
            let (level, at) = (number / blocks, number % blocks);
            Some(match wan_resnet(rest) {
                Some(inner) => format!("up_blocks.{level}.resnets.{at}.{inner}"),
                None => format!("up_blocks.{level}.upsamplers.0.{}", resample(rest)?),
            })
        }
        ([level, "downsamples" | "upsamples", number, rest @ ..], None) => {
            Some(match wan_resnet(rest) {
                Some(inner) => format!("{side}_blocks.{level}.resnets.{number}.{inner}"),
                None => format!("{side}_blocks.{level}.{side}sampler.{}", resample(rest)?),
            })
        }
        _ => None,
    }
}

/// What lies within a residual block.
fn wan_resnet(parts: &[&str]) -> Option<String> {
    let (inner, rest) = match parts {
        ["residual", "0", rest @ ..] => ("norm1", rest),
        ["residual", "2", rest @ ..] => ("conv1", rest),
        ["residual", "3", rest @ ..] => ("norm2", rest),
        ["residual", "6", rest @ ..] => ("conv2", rest),
        ["shortcut", rest @ ..] => ("conv_shortcut", rest),
        _ => return None,
    };
    Some(format!("{inner}.{}", join(rest)))
}

/// What lies within a change of size.
fn resample(parts: &[&str]) -> Option<String> {
    matches!(parts, ["resample" | "time_conv", ..]).then(|| join(parts))
}

/// The configuration of weights named as diffusers names them. No shape tells means and deviations of the latents:
/// those of the published models are diffusers' defaults (2.1) and [`WAN22`].
fn config(weights: &Weights) -> Found<Config> {
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
    Ok(Config::new(config))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_conversion_scripts() {
        for (from, to) in [
            ("conv2.weight", "post_quant_conv.weight"),
            (
                "decoder.upsamples.4.shortcut.weight",
                "decoder.up_blocks.1.resnets.0.conv_shortcut.weight",
            ),
            (
                "decoder.upsamples.11.resample.1.bias",
                "decoder.up_blocks.2.upsamplers.0.resample.1.bias",
            ),
            (
                "decoder.upsamples.14.residual.6.bias",
                "decoder.up_blocks.3.resnets.2.conv2.bias",
            ),
            (
                "encoder.downsamples.5.time_conv.weight",
                "encoder.down_blocks.5.time_conv.weight",
            ),
        ] {
            let parts: Vec<&str> = from.split('.').collect();
            assert_eq!(wan(&parts, Some(4)).as_deref(), Some(to), "{from}");
        }
        for (from, to) in [
            (
                "decoder.upsamples.1.upsamples.3.time_conv.bias",
                "decoder.up_blocks.1.upsampler.time_conv.bias",
            ),
            (
                "encoder.downsamples.0.downsamples.1.residual.3.gamma",
                "encoder.down_blocks.0.resnets.1.norm2.gamma",
            ),
            (
                "encoder.middle.2.residual.2.weight",
                "encoder.mid_block.resnets.1.conv1.weight",
            ),
        ] {
            let parts: Vec<&str> = from.split('.').collect();
            assert_eq!(wan(&parts, None).as_deref(), Some(to), "{from}");
        }
        assert_eq!(wan(&["model", "diffusion_model", "head"], Some(4)), None);
    }
}
