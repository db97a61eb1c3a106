//! Video to latents.

use std::sync::Arc;

use candle_core::Tensor;

use super::super::config::HunyuanConfig;
use super::super::layers::{GroupNorm, Loader};
use super::super::precision::finite;
use super::super::tiles::{self, Ratio, Seam, TIME};
use super::super::{Observer, Tiling, from_clip, to_clip};
use super::blocks::{Causal, Middle, Resnet, axes};
use crate::error::Result;
use crate::ops::Backend;
use crate::weights::Scope;

/// Residual blocks and the convolution with a stride that makes their result smaller.
#[derive(Debug)]
struct Level {
    resnets: Vec<Resnet>,
    downsample: Option<Causal>,
}

/// The encoder, loaded.
#[derive(Debug)]
pub struct Encoder {
    backend: Arc<dyn Backend>,
    channels: usize,
    ratio: Ratio,
    conv_in: Causal,
    levels: Vec<Level>,
    middle: Middle,
    norm_out: GroupNorm,
    conv_out: Causal,
    quant: Causal,
}

impl Encoder {
    /// Loads the weights below `scope`.
    pub fn load(config: &HunyuanConfig, scope: &Scope, backend: Arc<dyn Backend>) -> Result<Self> {
        let root = Loader::new(scope, Arc::clone(&backend));
        let at = root.under("encoder");
        let widths = &config.block_out_channels;
        let groups = config.norm_num_groups;
        let (first, last) = (widths[0], widths[widths.len() - 1]);
        let mut levels = Vec::new();
        let mut inputs = first;
        for (i, &width) in widths.iter().enumerate() {
            let at = at.under(format_args!("down_blocks.{i}"));
            let resnets = Resnet::row(&at, config.layers_per_block, inputs, width, groups)?;
            let (time, space) = config.changes(i);
            let step = |changes: bool| if changes { 2 } else { 1 };
            let conv = at.under("downsamplers.0.conv.conv");
            let downsample = (time || space).then(|| {
                let conv = Causal::load(&conv, width, width, 3)?;
                Ok::<_, crate::Error>(conv.with_stride([step(time), step(space), step(space)]))
            });
            levels.push(Level {
                resnets,
                downsample: downsample.transpose()?,
            });
            inputs = width;
        }
        let moments = 2 * config.latent_channels;
        Ok(Self {
            channels: config.in_channels,
            ratio: config.ratio(),
            conv_in: Causal::load(&at.under("conv_in.conv"), config.in_channels, first, 3)?,
            levels,
            middle: Middle::load(
                &at.under("mid_block"),
                last,
                groups,
                config.mid_block_add_attention,
            )?,
            norm_out: GroupNorm::load(&at.under("conv_norm_out"), last, groups)?,
            conv_out: Causal::load(&at.under("conv_out.conv"), last, moments, 3)?,
            quant: Causal::load(&root.under("quant_conv"), moments, moments, 1)?,
            backend,
        })
    }

    /// Video (B, 3, 4t-3, 8h, 8w) to moments (B, 2C, t, h, w).
    pub fn encode(
        &self,
        video: &Tensor,
        tiling: &Tiling,
        observer: &mut dyn Observer,
    ) -> Result<Tensor> {
        let clip = to_clip(video, self.channels, "a video", &*self.backend)?;
        self.ratio.check(&clip)?;
        let steps = tiling.encoder_space(self.ratio, 1)?;
        let runs = tiling.time(self.ratio)?;
        let mut each =
            |clip: &Tensor| tiles::in_space(clip, steps, |tile| self.piece(tile, observer));
        let t = clip.dim(TIME)?;
        let moments = match runs {
            Some((to, from)) if t > from.length => {
                let frames = (t - 1) / self.ratio.time + 1;
                let mut parts = Vec::new();
                let sink = |part, _: &Seam| {
                    parts.push(part);
                    Ok(())
                };
                tiles::in_time(&clip, (from, to), frames, Seam::default(), each, sink)?;
                Tensor::cat(&parts, TIME)?
            }
            _ => each(&clip)?,
        };
        finite("the encoder", &moments)?;
        from_clip(&moments)
    }

    /// One tile of one run.
    fn piece(&self, clip: &Tensor, observer: &mut dyn Observer) -> Result<Tensor> {
        let backend = &*self.backend;
        let mut clip = self.conv_in.plain(backend, clip)?;
        observer.after("encoder.conv_in", &clip)?;
        for (i, level) in self.levels.iter().enumerate() {
            for resnet in &level.resnets {
                clip = resnet.run(backend, clip)?;
            }
            if let Some(downsample) = &level.downsample {
                clip = downsample.plain(backend, &clip)?;
            }
            observer.after(&format!("encoder.down_blocks.{i}"), &clip)?;
        }
        let clip = self.middle.run(backend, clip, |module, clip| {
            observer.after(&format!("encoder.{module}"), clip)
        })?;
        let norm = self.norm_out.of(backend, &clip)?;
        let clip = self
            .conv_out
            .run(backend, &clip, axes(&clip)?, Some(&norm), None)?;
        observer.after("encoder.conv_out", &clip)?;
        self.quant.plain(backend, &clip)
    }
}
