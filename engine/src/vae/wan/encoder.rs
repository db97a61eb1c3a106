//! Video to latents.

use std::sync::Arc;

use candle_core::Tensor;

use super::super::config::WanConfig;
use super::super::layers::Loader;
use super::super::precision::finite;
use super::super::tiles;
use super::super::{Observer, Tiling, from_clip, to_clip};
use super::blocks::{Causal, Middle, Resnet, gamma};
use super::cache::{Caches, Slots};
use super::resample::{Downsample, Gather};
use super::{in_chunks, patch, step};
use crate::error::Result;
use crate::ops::{Backend, Conv3d, Prologue};
use crate::weights::Scope;

/// Residual blocks, what makes their result smaller, and the shortcut around both.
#[derive(Debug)]
struct Level {
    resnets: Vec<Resnet>,
    downsample: Option<Downsample>,
    shortcut: Option<Gather>,
}

impl Level {
    fn run(&self, backend: &dyn Backend, clip: Tensor, caches: &mut Caches) -> Result<Tensor> {
        let around = self
            .shortcut
            .map(|shortcut| shortcut.run(&clip))
            .transpose()?;
        let mut clip = clip;
        for resnet in &self.resnets {
            clip = resnet.run(backend, clip, caches)?;
        }
        if let Some(downsample) = &self.downsample {
            clip = downsample.run(backend, &clip, caches)?;
        }
        match around {
            Some(around) => Ok((clip + around)?),
            None => Ok(clip),
        }
    }
}

/// The encoder, loaded.
#[derive(Debug)]
pub struct Encoder {
    backend: Arc<dyn Backend>,
    config: WanConfig,
    slots: Slots,
    conv_in: Causal,
    levels: Vec<Level>,
    middle: Middle,
    norm_out: Tensor,
    conv_out: Causal,
    quant: Conv3d,
}

impl Encoder {
    /// Loads the weights below `scope`.
    pub fn load(config: &WanConfig, scope: &Scope, backend: Arc<dyn Backend>) -> Result<Self> {
        let root = Loader::new(scope, Arc::clone(&backend));
        let at = root.under("encoder");
        let widths: Vec<usize> = config
            .dim_mult
            .iter()
            .map(|mult| mult * config.base_dim)
            .collect();
        let last = widths[widths.len() - 1];
        let moments = 2 * config.z_dim;
        let mut slots = Slots::default();
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
            conv_in: Causal::load(
                &at.under("conv_in"),
                config.in_channels,
                config.base_dim,
                [3; 3],
                &mut slots,
            )?,
            levels,
            middle: Middle::load(&at.under("mid_block"), last, &mut slots)?,
            norm_out: gamma(&at.under("norm_out"), last, 4)?,
            conv_out: Causal::load(&at.under("conv_out"), last, moments, [3; 3], &mut slots)?,
            quant: root
                .under("quant_conv")
                .conv(&[moments, moments, 1, 1, 1])?,
            slots,
            config: config.clone(),
            backend,
        })
    }

    /// Video (B, 3, 4t-3, 8h, 8w) (2.2: 16h, 16w) to moments (B, 2C, t, h, w).
    pub fn encode(
        &self,
        video: &Tensor,
        tiling: &Tiling,
        observer: &mut dyn Observer,
    ) -> Result<Tensor> {
        let p = self.config.patch();
        let clip = to_clip(
            video,
            self.config.in_channels / p / p,
            "a video",
            &*self.backend,
        )?;
        let ratio = self.config.ratio();
        ratio.check(&clip)?;
        let step = step(tiling, ratio)? * ratio.time;
        let steps = tiling.encoder_space(ratio, p)?;
        let moments = tiles::in_space(&patch(&clip, p)?, steps, |tile| {
            self.piece(tile, step, observer)
        })?;
        finite("the encoder", &moments)?;
        from_clip(&moments)
    }

    /// One tile, all its frames, `step` at a time after the first.
    fn piece(&self, clip: &Tensor, step: usize, observer: &mut dyn Observer) -> Result<Tensor> {
        let moments = in_chunks(clip, step, &self.slots, |chunk, caches| {
            self.chunk(chunk, caches, observer)
        })?;
        let (_, t, h, w, _) = moments.dims5()?;
        self.backend.conv3d(
            (&moments).into(),
            &Prologue::none(t, h, w),
            &self.quant,
            None,
        )
    }

    fn chunk(
        &self,
        clip: &Tensor,
        caches: &mut Caches,
        observer: &mut dyn Observer,
    ) -> Result<Tensor> {
        let backend = &*self.backend;
        let mut clip = self.conv_in.run(backend, clip, None, None, caches)?;
        observer.after("encoder.conv_in", &clip)?;
        for (i, level) in self.levels.iter().enumerate() {
            clip = level.run(backend, clip, caches)?;
            observer.after(&format!("encoder.levels.{i}"), &clip)?;
        }
        let clip = self.middle.run(backend, clip, caches)?;
        observer.after("encoder.mid_block", &clip)?;
        self.conv_out
            .run(backend, &clip, Some(&self.norm_out), None, caches)
    }
}
