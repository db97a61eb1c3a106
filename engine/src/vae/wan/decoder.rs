//! Latents to video.

use std::sync::Arc;

use candle_core::Tensor;

use super::super::config::WanConfig;
use super::super::layers::Loader;
use super::super::precision::finite;
use super::super::tiles::{self, TIME};
use super::super::{Carry, Chunk, Observer, Tiling, from_clip, to_clip};
use super::blocks::{Causal, Middle, Resnet, gamma};
use super::cache::{Caches, Slots};
use super::resample::{Spread, Upsample};
use super::{step, unpatch};
use crate::error::{Result, argument};
use crate::ops::{Backend, Conv3d, Prologue};
use crate::weights::Scope;

/// Residual blocks, what enlarges their result, and the shortcut around both.
#[derive(Debug)]
struct Level {
    resnets: Vec<Resnet>,
    upsample: Option<Upsample>,
    shortcut: Option<Spread>,
}

impl Level {
    fn run(&self, backend: &dyn Backend, clip: Tensor, caches: &mut Caches) -> Result<Tensor> {
        let around = self.shortcut.as_ref().map(|_| clip.clone());
        let mut clip = clip;
        for resnet in &self.resnets {
            clip = resnet.run(backend, clip, caches)?;
        }
        if let Some(upsample) = &self.upsample {
            clip = upsample.run(backend, clip, caches)?;
        }
        if let Some((shortcut, around)) = self.shortcut.as_ref().zip(around) {
            clip = (clip + shortcut.run(&around, caches)?)?;
        }
        Ok(clip)
    }
}

/// The decoder, loaded.
#[derive(Debug)]
pub struct Decoder {
    backend: Arc<dyn Backend>,
    config: WanConfig,
    slots: Slots,
    post_quant: Conv3d,
    conv_in: Causal,
    middle: Middle,
    levels: Vec<Level>,
    norm_out: Tensor,
    conv_out: Causal,
}

impl Decoder {
    /// Loads the weights below `scope`.
    pub fn load(config: &WanConfig, scope: &Scope, backend: Arc<dyn Backend>) -> Result<Self> {
        let root = Loader::new(scope, Arc::clone(&backend));
        let at = root.under("decoder");
        let widths: Vec<usize> = config
            .dim_mult
            .iter()
            .rev()
            .map(|mult| mult * config.decoder_base())
            .collect();
        let (top, last) = (widths[0], widths[widths.len() - 1]);
        let z = config.z_dim;
        let mut slots = Slots::default();
        let mut levels = Vec::new();
        let mut inputs = top;
        for (i, &width) in widths.iter().enumerate() {
            let at = at.under(format_args!("up_blocks.{i}"));
            let count = config.num_res_blocks + 1;
            let resnets = Resnet::row(count, (inputs, width), &mut slots, |j| {
                at.under(format_args!("resnets.{j}"))
            })?;
            // The last level enlarges nothing; the others mirror the encoder's.
            let enlarges = i + 1 < widths.len();
            let time = enlarges && config.temperal_downsample[widths.len() - 2 - i];
            let narrow = if config.is_residual { width } else { width / 2 };
            let place = at.under(if config.is_residual {
                "upsampler"
            } else {
                "upsamplers.0"
            });
            let upsample = enlarges
                .then(|| Upsample::load(&place, width, narrow, time, &mut slots))
                .transpose()?;
            let shortcut = (enlarges && config.is_residual)
                .then(|| Spread::new(inputs, width, time, &*backend))
                .transpose()?;
            levels.push(Level {
                resnets,
                upsample,
                shortcut,
            });
            inputs = if enlarges { narrow } else { width };
        }
        Ok(Self {
            post_quant: root.under("post_quant_conv").conv(&[z, z, 1, 1, 1])?,
            conv_in: Causal::load(&at.under("conv_in"), z, top, [3; 3], &mut slots)?,
            middle: Middle::load(&at.under("mid_block"), top, &mut slots)?,
            levels,
            norm_out: gamma(&at.under("norm_out"), last, 4)?,
            conv_out: Causal::load(
                &at.under("conv_out"),
                last,
                config.out_channels,
                [3; 3],
                &mut slots,
            )?,
            slots,
            config: config.clone(),
            backend,
        })
    }

    /// Latents as the diffusion model leaves them, brought to what the decoder takes: times
    /// the deviation plus the mean, by channel.
    pub fn unscale(&self, latents: &Tensor) -> Result<Tensor> {
        let Some((mean, deviation)) = self.config.scaling() else {
            return argument(format!(
                "nothing says how latents of {} channels are scaled: config.json has no latents_mean and latents_std, and \
                 diffusers' defaults are for 16; add the model's own to config.json, or say that it is done already \
                 (--scaling-applied true)",
                self.config.z_dim
            ));
        };
        let values = |values: &[f64]| -> Result<Tensor> {
            let all = Tensor::new(values, latents.device())?.to_dtype(latents.dtype())?;
            Ok(all.reshape((1, values.len(), 1, 1, 1))?)
        };
        let (mean, deviation) = (values(mean)?, values(deviation)?);
        Ok(latents.broadcast_mul(&deviation)?.broadcast_add(&mean)?)
    }

    /// Latents (B, C, t, h, w) to video (B, 3, 4t-3, 8h, 8w) (2.2: 16h, 16w), clamped to -1..1, chunk by chunk: all
    /// tiles of a chunk before the next one, each with caches of its own.
    pub(in super::super) fn decode(
        &self,
        latents: &Tensor,
        tiling: &Tiling,
        from: Option<&Carry>,
        observer: &mut dyn Observer,
        sink: &mut dyn FnMut(Chunk) -> Result<()>,
    ) -> Result<()> {
        let clip = to_clip(latents, self.config.z_dim, "latents", &*self.backend)?;
        let ratio = self.config.ratio();
        let (_, frames, h, w, _) = clip.dims5()?;
        let step = step(tiling, ratio)?;
        let space = tiling.decoder_space(ratio, self.config.patch())?;
        let tiles = tiles::count(h, w, space);
        let mut carry = from.cloned().unwrap_or_default();
        carry.check(frames)?;
        let mut caches = Caches::of_tiles(&self.slots, tiles, &carry.tensors, carry.next == 0)?;
        carry.tensors.clear();
        let chunks = |from: usize| (frames - from).div_ceil(step);
        let total = (1 + chunks(1)) * tiles;
        while carry.next < frames {
            let count = if carry.next == 0 {
                1
            } else {
                step.min(frames - carry.next)
            };
            let mut done =
                total - (usize::from(carry.next == 0) + chunks(carry.next.max(1))) * tiles;
            let chunk = clip.narrow(TIME, carry.next, count)?.contiguous()?;
            let mut each = caches.iter_mut();
            let video = tiles::in_space(&chunk, space, |tile| {
                let Some(caches) = each.next() else {
                    return argument("more tiles than were counted");
                };
                let video = self.piece(tile, caches, observer)?;
                done += 1;
                observer.pieces(done, total)?;
                Ok(video)
            })?;
            drop(chunk);
            // before the clamp, which makes numbers of what is none
            finite("the decoder", &video)?;
            let video = unpatch(&video, self.config.patch())?.clamp(-1f32, 1f32)?;
            let first = carry.given;
            carry.given += video.dim(TIME)?;
            carry.next += count;
            sink(Chunk {
                first,
                video: from_clip(&video)?,
                carry: Carry {
                    tensors: Caches::tensors(&caches),
                    ..carry.clone()
                },
            })?;
        }
        Ok(())
    }

    /// One tile of one chunk.
    fn piece(
        &self,
        clip: &Tensor,
        caches: &mut Caches,
        observer: &mut dyn Observer,
    ) -> Result<Tensor> {
        let (_, frames, h, w, _) = clip.dims5()?;
        let clip = self.backend.conv3d(
            clip.into(),
            &Prologue::none(frames, h, w),
            &self.post_quant,
            None,
        )?;
        let video = self.chunk(&clip, caches, observer)?;
        caches.first = false;
        Ok(video)
    }

    fn chunk(
        &self,
        clip: &Tensor,
        caches: &mut Caches,
        observer: &mut dyn Observer,
    ) -> Result<Tensor> {
        let backend = &*self.backend;
        let clip = self.conv_in.run(backend, clip, None, None, caches)?;
        observer.after("decoder.conv_in", &clip)?;
        let mut clip = self.middle.run(backend, clip, caches)?;
        observer.after("decoder.mid_block", &clip)?;
        for (i, level) in self.levels.iter().enumerate() {
            clip = level.run(backend, clip, caches)?;
            observer.after(&format!("decoder.up_blocks.{i}"), &clip)?;
        }
        let video = self
            .conv_out
            .run(backend, &clip, Some(&self.norm_out), None, caches)?;
        observer.after("decoder.conv_out", &video)?;
        Ok(video)
    }
}
