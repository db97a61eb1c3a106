//! Latents to video.

use std::sync::Arc;

use candle_core::Tensor;

use super::super::config::HunyuanConfig;
use super::super::layers::{GroupNorm, Loader};
use super::super::tiles::{self, Ratio, TIME};
use super::super::{Observer, Tiling, from_clip, to_clip};
use super::blocks::{Causal, Middle, Resnet, axes};
use crate::error::Result;
use crate::ops::{Axis, Backend};
use crate::weights::Scope;

/// Residual blocks and what enlarges their result.
#[derive(Debug)]
struct Level {
    resnets: Vec<Resnet>,
    upsample: Option<Upsample>,
}

/// Nearest neighbours, then a convolution.
#[derive(Debug)]
struct Upsample {
    conv: Causal,
    time: bool,
    space: bool,
}

impl Upsample {
    fn run(&self, backend: &dyn Backend, clip: &Tensor) -> Result<Tensor> {
        let [t, h, w] = axes(clip)?;
        let wide = |axis: Axis| if self.space { axis.doubled() } else { axis };
        let t = if self.time {
            t.doubled_after_first()
        } else {
            t
        };
        self.conv
            .run(backend, clip, [t, wide(h), wide(w)], None, None)
    }
}

/// The decoder, loaded.
#[derive(Debug)]
pub struct Decoder {
    backend: Arc<dyn Backend>,
    channels: usize,
    ratio: Ratio,
    scaling_factor: f64,
    post_quant: Causal,
    conv_in: Causal,
    middle: Middle,
    levels: Vec<Level>,
    norm_out: GroupNorm,
    conv_out: Causal,
}

impl Decoder {
    /// Loads the weights below `scope`.
    pub fn load(config: &HunyuanConfig, scope: &Scope, backend: Arc<dyn Backend>) -> Result<Self> {
        let root = Loader::new(scope, Arc::clone(&backend));
        let at = root.under("decoder");
        let widths: Vec<usize> = config.block_out_channels.iter().rev().copied().collect();
        let groups = config.norm_num_groups;
        let (top, last) = (widths[0], widths[widths.len() - 1]);
        let mut levels = Vec::new();
        let mut inputs = top;
        for (i, &width) in widths.iter().enumerate() {
            let at = at.under(format_args!("up_blocks.{i}"));
            let resnets = Resnet::row(&at, config.layers_per_block + 1, inputs, width, groups)?;
            let (time, space) = config.changes(i);
            let conv = at.under("upsamplers.0.conv.conv");
            let upsample = (time || space).then(|| {
                Ok::<_, crate::Error>(Upsample {
                    conv: Causal::load(&conv, width, width, 3)?,
                    time,
                    space,
                })
            });
            levels.push(Level {
                resnets,
                upsample: upsample.transpose()?,
            });
            inputs = width;
        }
        let latent = config.latent_channels;
        Ok(Self {
            channels: latent,
            ratio: Ratio {
                space: config.spatial_compression_ratio,
                time: config.temporal_compression_ratio,
            },
            scaling_factor: config.scaling_factor,
            post_quant: Causal::load(&root.under("post_quant_conv"), latent, latent, 1)?,
            conv_in: Causal::load(&at.under("conv_in.conv"), latent, top, 3)?,
            middle: Middle::load(
                &at.under("mid_block"),
                top,
                groups,
                config.mid_block_add_attention,
            )?,
            levels,
            norm_out: GroupNorm::load(&at.under("conv_norm_out"), last, groups)?,
            conv_out: Causal::load(&at.under("conv_out.conv"), last, config.out_channels, 3)?,
            backend,
        })
    }

    /// Latents as the diffusion model leaves them, brought to what [`Decoder::decode`] takes.
    pub fn unscale(&self, latents: &Tensor) -> Result<Tensor> {
        Ok(latents.affine(1.0 / self.scaling_factor, 0.0)?)
    }

    /// Latents (B, C, t, h, w) to video (B, 3, 4t-3, 8h, 8w), not clamped.
    pub fn decode(
        &self,
        latents: &Tensor,
        tiling: &Tiling,
        observer: &mut dyn Observer,
    ) -> Result<Tensor> {
        let clip = to_clip(latents, self.channels, "latents", &*self.backend)?;
        let space = tiling.decoder_space(self.ratio, 1)?;
        let runs = tiling.time(self.ratio)?;
        let mut each =
            |clip: &Tensor| tiles::in_space(clip, space, |tile| self.piece(tile, observer));
        let t = clip.dim(TIME)?;
        let video = match runs {
            Some((from, to)) if t > from.length => {
                tiles::in_time(&clip, from, to, (t - 1) * self.ratio.time + 1, each)?
            }
            _ => each(&clip)?,
        };
        from_clip(&video)
    }

    /// One tile of one run.
    fn piece(&self, clip: &Tensor, observer: &mut dyn Observer) -> Result<Tensor> {
        let backend = &*self.backend;
        let clip = self.post_quant.plain(backend, clip)?;
        observer.after("post_quant_conv", &clip)?;
        let clip = self.conv_in.plain(backend, &clip)?;
        observer.after("decoder.conv_in", &clip)?;
        let mut clip = self.middle.run(backend, clip, |module, clip| {
            observer.after(&format!("decoder.{module}"), clip)
        })?;
        for (i, level) in self.levels.iter().enumerate() {
            for resnet in &level.resnets {
                clip = resnet.run(backend, clip)?;
            }
            if let Some(upsample) = &level.upsample {
                clip = upsample.run(backend, &clip)?;
            }
            observer.after(&format!("decoder.up_blocks.{i}"), &clip)?;
        }
        let norm = self.norm_out.of(backend, &clip)?;
        let video = self
            .conv_out
            .run(backend, &clip, axes(&clip)?, Some(&norm), None)?;
        observer.after("decoder.conv_out", &video)?;
        Ok(video)
    }
}
