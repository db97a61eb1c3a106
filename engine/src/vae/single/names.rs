//! The names of tensors in checkpoints of one file, brought to those of diffusers.
//!
//! Facts from the public conversion scripts: diffusers' `convert_wan_to_diffusers.py` (WAN's own names), its
//! `convert_hunyuan_video_to_diffusers.py` (Tencent's names are diffusers' own) and ComfyUI's `diffusers_convert.py` (the
//! names of ComfyUI's repackaged HunyuanVideo autoencoder).

/// Whose names a checkpoint has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// diffusers' and Tencent's.
    Diffusers,
    /// ComfyUI's of `HunyuanVideo`, whose decoder counts its `levels` from the video inwards.
    Comfy {
        /// How many levels there are.
        levels: usize,
    },
    /// WAN's own, 2.1 kind: the blocks of all levels of the decoder in one row.
    Wan21 {
        /// Blocks of a level, the upsampling counted.
        blocks: usize,
    },
    /// WAN's own, 2.2 kind.
    Wan22,
}

impl Naming {
    /// The name that diffusers has for `name`; `None`: it has none, and the tensor is not needed.
    pub(super) fn rename(self, name: &str) -> Option<String> {
        let parts: Vec<&str> = name.split('.').collect();
        match self {
            Self::Diffusers => Some(name.to_owned()),
            Self::Comfy { levels } => comfy(&parts, levels),
            Self::Wan21 { blocks } => wan(&parts, Some(blocks)),
            Self::Wan22 => wan(&parts, None),
        }
    }
}

/// The parts of a name joined again.
fn join(parts: &[&str]) -> String {
    parts.join(".")
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_conversion_scripts() {
        let comfy = Naming::Comfy { levels: 4 };
        let flat = Naming::Wan21 { blocks: 4 };
        for (naming, from, to) in [
            (
                comfy,
                "decoder.up.3.block.0.nin_shortcut.conv.weight",
                "decoder.up_blocks.0.resnets.0.conv_shortcut.conv.weight",
            ),
            (
                comfy,
                "decoder.up.1.upsample.conv.conv.bias",
                "decoder.up_blocks.2.upsamplers.0.conv.conv.bias",
            ),
            (
                comfy,
                "encoder.down.2.downsample.conv.conv.weight",
                "encoder.down_blocks.2.downsamplers.0.conv.conv.weight",
            ),
            (
                comfy,
                "encoder.mid.attn_1.proj_out.weight",
                "encoder.mid_block.attentions.0.to_out.0.weight",
            ),
            (
                comfy,
                "decoder.norm_out.weight",
                "decoder.conv_norm_out.weight",
            ),
            (comfy, "post_quant_conv.weight", "post_quant_conv.weight"),
            (flat, "conv2.weight", "post_quant_conv.weight"),
            (
                flat,
                "decoder.upsamples.4.shortcut.weight",
                "decoder.up_blocks.1.resnets.0.conv_shortcut.weight",
            ),
            (
                flat,
                "decoder.upsamples.11.resample.1.bias",
                "decoder.up_blocks.2.upsamplers.0.resample.1.bias",
            ),
            (
                flat,
                "decoder.upsamples.14.residual.6.bias",
                "decoder.up_blocks.3.resnets.2.conv2.bias",
            ),
            (
                flat,
                "encoder.downsamples.5.time_conv.weight",
                "encoder.down_blocks.5.time_conv.weight",
            ),
            (
                Naming::Wan22,
                "decoder.upsamples.1.upsamples.3.time_conv.bias",
                "decoder.up_blocks.1.upsampler.time_conv.bias",
            ),
            (
                Naming::Wan22,
                "encoder.downsamples.0.downsamples.1.residual.3.gamma",
                "encoder.down_blocks.0.resnets.1.norm2.gamma",
            ),
            (
                Naming::Wan22,
                "encoder.middle.2.residual.2.weight",
                "encoder.mid_block.resnets.1.conv1.weight",
            ),
        ] {
            assert_eq!(naming.rename(from).as_deref(), Some(to), "{from}");
        }
        assert_eq!(flat.rename("model.diffusion_model.head"), None);
        assert_eq!(comfy.rename("decoder.up.9.block.0.conv1.conv.weight"), None);
    }
}
