//! Whether a configuration and weights are of one model. That is looked at when a model is opened: what the
//! configuration says is what latents are judged by, and it must not be that of another member of the family.

use std::collections::HashSet;

use super::config::{Config, HunyuanConfig, WanConfig};
use crate::error::Result;
use crate::weights::Weights;

/// A tensor that tells the members of a family apart.
struct Telling {
    name: String,
    shape: Vec<usize>,
}

fn telling(name: impl Into<String>, shape: &[usize]) -> Telling {
    Telling {
        name: name.into(),
        shape: shape.to_vec(),
    }
}

/// Refuses weights that are not what `config` describes, by the first tensor that shows it. Weights of one half alone
/// will do: the other is missed when it is asked for.
pub(super) fn check(config: &Config, weights: &Weights) -> Result<()> {
    let all = match config {
        Config::Hunyuan(config) => hunyuan(config),
        Config::Wan(config) => wan(config),
    };
    let part = |name: &str| name.split_once('.').map(|(part, _)| part.to_owned());
    let there: HashSet<String> = weights.names().filter_map(part).collect();
    for Telling { name, shape } in all {
        let half = part(&name).filter(|part| matches!(part.as_str(), "decoder" | "encoder"));
        if half.is_some_and(|half| there.contains(&half)) || weights.has(&name) {
            weights.check_shape(&name, &shape)?;
        }
    }
    Ok(())
}

fn hunyuan(config: &HunyuanConfig) -> Vec<Telling> {
    let z = config.latent_channels;
    let widths: Vec<usize> = config.block_out_channels.iter().rev().copied().collect();
    let (top, last) = (widths[0], widths[widths.len() - 1]);
    let mut all = vec![
        telling("post_quant_conv.weight", &[z, z, 1, 1, 1]),
        telling("decoder.conv_in.conv.weight", &[top, z, 3, 3, 3]),
    ];
    let mut inputs = top;
    for (at, &width) in widths.iter().enumerate() {
        let name = format!("decoder.up_blocks.{at}.resnets.0.conv1.conv.weight");
        all.push(telling(name, &[width, inputs, 3, 3, 3]));
        inputs = width;
    }
    let (outputs, channels) = (config.out_channels, config.in_channels);
    all.extend([
        telling("decoder.conv_out.conv.weight", &[outputs, last, 3, 3, 3]),
        telling("encoder.conv_in.conv.weight", &[last, channels, 3, 3, 3]),
    ]);
    all
}

fn wan(config: &WanConfig) -> Vec<Telling> {
    let (z, base) = (config.z_dim, config.decoder_base());
    let widths: Vec<usize> = config.dim_mult.iter().rev().map(|m| m * base).collect();
    let (top, last) = (widths[0], widths[widths.len() - 1]);
    let mut all = vec![
        telling("post_quant_conv.weight", &[z, z, 1, 1, 1]),
        telling("decoder.conv_in.weight", &[top, z, 3, 3, 3]),
    ];
    let mut inputs = top;
    for (at, &width) in widths.iter().enumerate() {
        let block = format!("decoder.up_blocks.{at}");
        let name = format!("{block}.resnets.0.conv1.weight");
        all.push(telling(name, &[width, inputs, 3, 3, 3]));
        inputs = width;
        if at + 1 < widths.len() {
            // the 2.2 kind has another name for it, and halves nothing
            let (sampler, narrow) = if config.is_residual {
                ("upsampler", width)
            } else {
                ("upsamplers.0", width / 2)
            };
            let name = format!("{block}.{sampler}.resample.1.weight");
            all.push(telling(name, &[narrow, width, 3, 3]));
            inputs = narrow;
        }
    }
    let (first, channels) = (config.base_dim, config.in_channels);
    all.extend([
        telling(
            "decoder.conv_out.weight",
            &[config.out_channels, last, 3, 3, 3],
        ),
        telling("encoder.conv_in.weight", &[first, channels, 3, 3, 3]),
    ]);
    all
}
