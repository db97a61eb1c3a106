//! How much HunyuanVideo's autoencoder takes: the shadow of `vae::hunyuan`, step by step.

use super::shadow::{Clip, Shadow, size};
use crate::ops::Axis;
use crate::vae::HunyuanConfig;

/// A causal convolution of `kernel` taps a side with repeated edges, read through `axes`.
fn causal(
    shadow: &Shadow<'_>,
    clip: &Clip,
    [t, h, w]: [Axis; 3],
    kernel: usize,
    outputs: usize,
    stride: [usize; 3],
) -> Clip {
    let edge = kernel / 2;
    let axes = [
        t.replicate(kernel - 1, 0),
        h.replicate(edge, edge),
        w.replicate(edge, edge),
    ];
    let mut conv = size(clip, outputs, [kernel; 3]);
    conv.stride = stride;
    shadow.conv(&axes, conv)
}

fn plain(shadow: &Shadow<'_>, clip: &Clip, kernel: usize, outputs: usize) -> Clip {
    let axes = clip.size.map(Axis::identity);
    causal(shadow, clip, axes, kernel, outputs, [1; 3])
}

fn resnet(shadow: &Shadow<'_>, clip: Clip, outputs: usize) -> Clip {
    let inner = plain(shadow, &clip, 3, outputs);
    let add = if clip.channels == outputs {
        clip.clone()
    } else {
        shadow.linear(&clip, outputs)
    };
    drop(clip);
    let out = plain(shadow, &inner, 3, outputs);
    drop((inner, add));
    out
}

fn middle(shadow: &Shadow<'_>, config: &HunyuanConfig, clip: Clip) -> Clip {
    let width = clip.channels;
    let mut clip = resnet(shadow, clip, width);
    if config.mid_block_add_attention {
        clip = shadow.attention(&clip);
    }
    resnet(shadow, clip, width)
}

/// What comes before the levels of the decoder.
pub(super) fn begin(shadow: &Shadow<'_>, config: &HunyuanConfig, latents: &Clip) -> Clip {
    let widths = &config.block_out_channels;
    let after = shadow.linear(latents, config.latent_channels);
    let clip = plain(
        shadow,
        &after,
        3,
        widths.last().copied().unwrap_or_default(),
    );
    middle(shadow, config, clip)
}

/// One tile of one run through the decoder.
pub(super) fn decode(shadow: &Shadow<'_>, config: &HunyuanConfig, latents: &Clip) -> Clip {
    let mut clip = begin(shadow, config, latents);
    for (at, &width) in config.block_out_channels.iter().rev().enumerate() {
        for _ in 0..=config.layers_per_block {
            clip = resnet(shadow, clip, width);
        }
        let (time, space) = config.changes(at);
        if time || space {
            let [t, h, w] = clip.size.map(Axis::identity);
            let wide = |axis: Axis| if space { axis.doubled() } else { axis };
            let t = if time { t.doubled_after_first() } else { t };
            clip = causal(shadow, &clip, [t, wide(h), wide(w)], 3, width, [1; 3]);
        }
    }
    plain(shadow, &clip, 3, config.out_channels)
}

/// One tile of one run through the encoder.
pub(super) fn encode(shadow: &Shadow<'_>, config: &HunyuanConfig, video: &Clip) -> Clip {
    let widths = &config.block_out_channels;
    let mut clip = plain(
        shadow,
        video,
        3,
        widths.first().copied().unwrap_or_default(),
    );
    for (at, &width) in widths.iter().enumerate() {
        for _ in 0..config.layers_per_block {
            clip = resnet(shadow, clip, width);
        }
        let (time, space) = config.changes(at);
        if time || space {
            let step = |changes: bool| if changes { 2 } else { 1 };
            let stride = [step(time), step(space), step(space)];
            let axes = clip.size.map(Axis::identity);
            clip = causal(shadow, &clip, axes, 3, width, stride);
        }
    }
    let clip = middle(shadow, config, clip);
    let moments = 2 * config.latent_channels;
    let out = plain(shadow, &clip, 3, moments);
    shadow.linear(&out, moments)
}
