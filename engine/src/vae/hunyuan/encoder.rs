//! Video to latents.

use super::super::layers::{GroupNorm, Loader, from_clip, to_clip};
use super::super::precision::not_finite;
use super::super::strategy::{Ratio, Tiling};
use super::super::tiles::{self, Seam, TIME};
use super::super::{EncoderNetwork, Observer, Vae};
use super::HunyuanConfig;
use super::blocks::{Causal, Middle, Resnet, axes};
use crate::error::Result;
use crate::ops::{Clip, Executor};

/// Residual blocks and the convolution with a stride that makes their result smaller.
#[derive(Debug)]
struct Level {
    resnets: Vec<Resnet>,
    downsample: Option<Causal>,
}

/// The encoder, loaded.
#[derive(Debug)]
pub(super) struct Encoder {
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
    pub(super) fn load(config: &HunyuanConfig, root: &Loader<'_>) -> Result<Self> {
        let at = root.under("encoder");
        let widths = &config.block_out_channels;
        let groups = config.norm_num_groups;
        let (first, last) = (widths[0], widths[widths.len() - 1]);
        let conv_in = Causal::load(&at.under("conv_in.conv"), config.in_channels, first, 3)?;
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
            conv_in,
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
        })
    }

    /// One tile of one run.
    fn tile(&self, exec: Executor<'_>, clip: &Clip, observer: &mut dyn Observer) -> Result<Clip> {
        let mut clip = self.conv_in.plain(exec, clip)?;
        observer.see("encoder.conv_in", &clip)?;
        for (i, level) in self.levels.iter().enumerate() {
            for resnet in &level.resnets {
                clip = resnet.run(exec, clip)?;
            }
            if let Some(downsample) = &level.downsample {
                clip = downsample.plain(exec, &clip)?;
            }
            observer.see(&format!("encoder.down_blocks.{i}"), &clip)?;
        }
        let clip = self.middle.run(exec, clip, |module, clip| {
            observer.see(&format!("encoder.{module}"), clip)
        })?;
        let norm = self.norm_out.of(exec, &clip)?;
        let clip = self
            .conv_out
            .run(exec, &clip, axes(&clip)?, Some(&norm), None)?;
        observer.see("encoder.conv_out", &clip)?;
        self.quant.plain(exec, &clip)
    }
}

impl EncoderNetwork for Encoder {
    fn encode(
        &self,
        exec: Executor<'_>,
        video: &Clip,
        tiling: &Tiling,
        observer: &mut dyn Observer,
    ) -> Result<Clip> {
        let clip = to_clip(exec, video, self.channels, "a video")?;
        self.ratio.check(&clip)?;
        let steps = tiling.encoder_space(self.ratio, 1)?;
        let runs = tiling.time(self.ratio)?;
        let mut each = |run: &Clip| {
            tiles::in_space(run, steps, |tile| {
                exec.repeat("tile", tile, |tile| self.tile(exec, tile, observer))
            })
        };
        let t = clip.dim(TIME)?;
        let moments = match runs {
            Some((to, from)) if t > from.length => {
                let frames = (t - 1) / self.ratio.time + 1;
                let mut parts = Vec::new();
                let sink = |part, _: &Seam| {
                    parts.push(part);
                    Ok(())
                };
                let run = |run: &Clip| exec.repeat("run", run, &mut each);
                tiles::in_time(&clip, (from, to), frames, Seam::default(), run, sink)?;
                Clip::cat(&parts, TIME)?
            }
            _ => each(&clip)?,
        };
        exec.check_finite(&moments, || not_finite("the encoder", moments.dtype()))?;
        from_clip(&moments)
    }
}
