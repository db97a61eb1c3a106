//! HunyuanVideo's autoencoder in one file: Tencent's names, which are diffusers' own, or those of ComfyUI's
//! repackaged file (facts from diffusers' `convert_hunyuan_video_to_diffusers.py` and ComfyUI's `diffusers_convert.py`).

use super::super::family::{Config, Rename, SingleFile};
use super::super::single_file::{Found, count, count_names, join, side};
use super::HunyuanConfig;
use crate::weights::Weights;

pub(super) const SINGLE_FILE: SingleFile = SingleFile { naming, config };

fn naming(has: &dyn Fn(&str) -> bool) -> Option<Rename> {
    if has("decoder.up_blocks.0.resnets.0.conv1.conv.weight") {
        return Some(Box::new(|name| Some(name.to_owned())));
    }
    if !has("decoder.up.0.block.0.conv1.conv.weight") {
        return None;
    }
    let levels = count_names(has, |at| {
        format!("decoder.up.{at}.block.0.conv1.conv.weight")
    });
    Some(Box::new(move |name| {
        let parts: Vec<&str> = name.split('.').collect();
        comfy(&parts, levels)
    }))
}

/// diffusers' name for ComfyUI's, whose decoder counts its `levels` from the video inwards; absent: the tensor is not
/// needed.
fn comfy(parts: &[&str], levels: usize) -> Option<String> {
    let (half, rest) = match parts {
        [half @ ("encoder" | "decoder"), rest @ ..] => (*half, rest),
        // quant_conv and post_quant_conv
        _ => return Some(join(parts)),
    };
    let renamed = match rest {
        ["mid", "attn_1", "norm", rest @ ..] => {
            format!("mid_block.attentions.0.group_norm.{}", join(rest))
        }
        ["mid", "attn_1", "proj_out", rest @ ..] => {
            format!("mid_block.attentions.0.to_out.0.{}", join(rest))
        }
        ["mid", "attn_1", one @ ("q" | "k" | "v"), rest @ ..] => {
            format!("mid_block.attentions.0.to_{one}.{}", join(rest))
        }
        ["mid", block @ ("block_1" | "block_2"), rest @ ..] => {
            let at = usize::from(*block == "block_2");
            format!("mid_block.resnets.{at}.{}", resnet(rest))
        }
        [side @ ("down" | "up"), level, rest @ ..] => {
            let level: usize = level.parse().ok()?;
            let at = if *side == "up" {
                levels.checked_sub(level + 1)?
            } else {
                level
            };
            match rest {
                ["block", number, rest @ ..] => {
                    format!("{side}_blocks.{at}.resnets.{number}.{}", resnet(rest))
                }
                ["downsample" | "upsample", rest @ ..] => {
                    format!("{side}_blocks.{at}.{side}samplers.0.{}", join(rest))
                }
                _ => return None,
            }
        }
        ["norm_out", rest @ ..] => format!("conv_norm_out.{}", join(rest)),
        rest => join(rest),
    };
    Some(format!("{half}.{renamed}"))
}

/// What lies within a residual block of ComfyUI's.
fn resnet(parts: &[&str]) -> String {
    match parts {
        ["nin_shortcut", rest @ ..] => format!("conv_shortcut.{}", join(rest)),
        rest => join(rest),
    }
}

/// Levels of the published `HunyuanVideo` autoencoder.
const LEVELS: usize = 4;

/// The configuration of weights named as diffusers names them. No shape tells the groups and the scaling factor: those
/// of the published model are the defaults.
fn config(weights: &Weights) -> Found<Config> {
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
    Ok(Config::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_conversion_scripts() {
        for (from, to) in [
            (
                "decoder.up.3.block.0.nin_shortcut.conv.weight",
                "decoder.up_blocks.0.resnets.0.conv_shortcut.conv.weight",
            ),
            (
                "decoder.up.1.upsample.conv.conv.bias",
                "decoder.up_blocks.2.upsamplers.0.conv.conv.bias",
            ),
            (
                "encoder.down.2.downsample.conv.conv.weight",
                "encoder.down_blocks.2.downsamplers.0.conv.conv.weight",
            ),
            (
                "encoder.mid.attn_1.proj_out.weight",
                "encoder.mid_block.attentions.0.to_out.0.weight",
            ),
            ("decoder.norm_out.weight", "decoder.conv_norm_out.weight"),
            ("post_quant_conv.weight", "post_quant_conv.weight"),
        ] {
            let parts: Vec<&str> = from.split('.').collect();
            assert_eq!(comfy(&parts, 4).as_deref(), Some(to), "{from}");
        }
        let foreign = [
            "decoder", "up", "9", "block", "0", "conv1", "conv", "weight",
        ];
        assert_eq!(comfy(&foreign, 4), None);
    }
}
