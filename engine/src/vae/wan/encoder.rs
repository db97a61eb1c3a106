//! Video to latents.

use candle_core::Tensor;

use super::super::layers::{Loader, from_clip, to_clip};
use super::super::precision::not_finite;
use super::super::strategy::Tiling;
use super::super::tiles;
use super::super::{EncoderNetwork, Observer, Vae};
use super::WanConfig;
use super::blocks::{Causal, Middle, Resnet, gamma};
use super::cache::{Caches, Slots};
use super::resample::{Downsample, Gather};
use super::{in_chunks, patch, step};
use crate::error::Result;
use crate::ops::{Clip, ConvLayer, Executor, Prologue};

/// Residual blocks, what makes their result smaller, and the shortcut around both.
#[derive(Debug)]
struct Level {
    resnets: Vec<Resnet>,
    downsample: Option<Downsample>,
    shortcut: Option<Gather>,
}

impl Level {
    fn run(&self, exec: Executor<'_>, clip: Clip, caches: &mut Caches) -> Result<Clip> {
        let around = self
            .shortcut
            .map(|shortcut| shortcut.run(&clip))
            .transpose()?;
        let mut clip = clip;
        for resnet in &self.resnets {
            clip = resnet.run(exec, clip, caches)?;
        }
        if let Some(downsample) = &self.downsample {
            clip = downsample.run(exec, &clip, caches)?;
        }
        match around {
            Some(around) => clip.add(&around),
            None => Ok(clip),
        }
    }
}

/// The encoder, loaded.
#[derive(Debug)]
pub(super) struct Encoder {
    config: WanConfig,
    slots: Slots,
    conv_in: Causal,
    levels: Vec<Level>,
    middle: Middle,
    norm_out: Tensor,
    conv_out: Causal,
    quant: ConvLayer,
}

impl Encoder {
    pub(super) fn load(config: &WanConfig, root: &Loader<'_>) -> Result<Self> {
        let at = root.under("encoder");
        let widths: Vec<usize> = config
            .dim_mult
            .iter()
            .map(|mult| mult * config.base_dim)
            .collect();
        let last = widths[widths.len() - 1];
        let moments = 2 * config.z_dim;
        let mut slots = Slots::default();
        let (inside, base) = (config.in_channels, config.base_dim);
        let conv_in = Causal::load(&at.under("conv_in"), inside, base, [3; 3], &mut slots)?;
        let mut levels = Vec::new();
        let mut inputs = config.base_dim;
        // The 2.1 kind numbers all blocks of all levels in one row.
        let mut flat = 0..;
        for (i, &width) in widths.iter().enumerate() {
            let level = at.under(format_args!("down_blocks.{i}"));
            let mut next = |inner: String| {
                if config.is_residual {
                    level.under(inner)
                } else {
                    at.under(format_args!(
                        "down_blocks.{}",
                        flat.next().unwrap_or_default()
                    ))
                }
            };
            let count = config.num_res_blocks;
            let resnets = Resnet::row(count, (inputs, width), &mut slots, |j| {
                next(format!("resnets.{j}"))
            })?;
            let shrinks = i + 1 < widths.len();
            let time = shrinks && config.temperal_downsample[i];
            let downsample = shrinks
                .then(|| Downsample::load(&next("downsampler".to_owned()), width, time, &mut slots))
                .transpose()?;
            let shortcut = config
                .is_residual
                .then(|| Gather::new(inputs, width, time, shrinks))
                .transpose()?;
            levels.push(Level {
                resnets,
                downsample,
                shortcut,
            });
            inputs = width;
        }
        Ok(Self {
            conv_in,
            levels,
            middle: Middle::load(&at.under("mid_block"), last, &mut slots)?,
            norm_out: gamma(&at.under("norm_out"), last, 4)?,
            conv_out: Causal::load(&at.under("conv_out"), last, moments, [3; 3], &mut slots)?,
            quant: root
                .under("quant_conv")
                .conv(&[moments, moments, 1, 1, 1])?,
            slots,
            config: config.clone(),
        })
    }

    /// One tile, all its frames, `step` at a time after the first.
    fn tile(
        &self,
        exec: Executor<'_>,
        clip: &Clip,
        step: usize,
        observer: &mut dyn Observer,
    ) -> Result<Clip> {
        let moments = in_chunks(exec, clip, step, &self.slots, |chunk, caches| {
            self.chunk(exec, chunk, caches, observer)
        })?;
        let (_, t, h, w, _) = moments.dims5()?;
        let plain = Prologue::none(t, h, w);
        exec.conv3d((&moments).into(), &plain, &self.quant, None)
    }

    fn chunk(
        &self,
        exec: Executor<'_>,
        clip: &Clip,
        caches: &mut Caches,
        observer: &mut dyn Observer,
    ) -> Result<Clip> {
        let mut clip = self.conv_in.run(exec, clip, None, None, caches)?;
        observer.see("encoder.conv_in", &clip)?;
        for (i, level) in self.levels.iter().enumerate() {
            clip = level.run(exec, clip, caches)?;
            observer.see(&format!("encoder.levels.{i}"), &clip)?;
        }
        let clip = self.middle.run(exec, clip, caches)?;
        observer.see("encoder.mid_block", &clip)?;
        self.conv_out
            .run(exec, &clip, Some(&self.norm_out), None, caches)
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
        let p = self.config.patch();
        let clip = to_clip(exec, video, self.config.in_channels / p / p, "a video")?;
        let ratio = self.config.ratio();
        ratio.check(&clip)?;
        let step = step(tiling, ratio)? * ratio.time;
        let steps = tiling.encoder_space(ratio, p)?;
        let moments = tiles::in_space(&patch(&clip, p)?, steps, |tile| {
            exec.repeat("tile", tile, |tile| self.tile(exec, tile, step, observer))
        })?;
        exec.check_finite(&moments, || not_finite("the encoder", moments.dtype()))?;
        from_clip(&moments)
    }
}
