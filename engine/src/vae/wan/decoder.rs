//! Latents to video.

use candle_core::Tensor;

use super::super::layers::{Loader, from_clip, to_clip};
use super::super::precision::not_finite;
use super::super::strategy::{Strategy, Tiling};
use super::super::stream::{Carry, FrameSink, Frames};
use super::super::tiles::{self, TIME};
use super::super::{DecoderNetwork, Observer, Vae};
use super::WanConfig;
use super::blocks::{Causal, Middle, Resnet, gamma};
use super::cache::{Caches, Slots};
use super::resample::{Spread, Upsample};
use super::{chunks, step, unpatch};
use crate::error::{Result, argument};
use crate::ops::{Clip, ConvLayer, Executor, Prologue};

/// Residual blocks, what enlarges their result, and the shortcut around both.
#[derive(Debug)]
struct Level {
    resnets: Vec<Resnet>,
    upsample: Option<Upsample>,
    shortcut: Option<Spread>,
}

impl Level {
    fn run(&self, exec: Executor<'_>, clip: Clip, caches: &mut Caches) -> Result<Clip> {
        let around = self.shortcut.as_ref().map(|_| clip.clone());
        let mut clip = clip;
        for resnet in &self.resnets {
            clip = resnet.run(exec, clip, caches)?;
        }
        if let Some(upsample) = &self.upsample {
            clip = upsample.run(exec, clip, caches)?;
        }
        if let Some((shortcut, around)) = self.shortcut.as_ref().zip(around) {
            clip = clip.add(&shortcut.run(&around, caches)?)?;
        }
        Ok(clip)
    }
}

/// The decoder, loaded.
#[derive(Debug)]
pub(super) struct Decoder {
    config: WanConfig,
    slots: Slots,
    post_quant: ConvLayer,
    conv_in: Causal,
    middle: Middle,
    levels: Vec<Level>,
    norm_out: Tensor,
    conv_out: Causal,
}

impl Decoder {
    pub(super) fn load(config: &WanConfig, root: &Loader<'_>) -> Result<Self> {
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
        // in the order in which clips go through: of another model's weights the first is named
        let post_quant = root.under("post_quant_conv").conv(&[z, z, 1, 1, 1])?;
        let conv_in = Causal::load(&at.under("conv_in"), z, top, [3; 3], &mut slots)?;
        let middle = Middle::load(&at.under("mid_block"), top, &mut slots)?;
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
                .then(|| Spread::new(inputs, width, time, root.exec))
                .transpose()?;
            levels.push(Level {
                resnets,
                upsample,
                shortcut,
            });
            inputs = if enlarges { narrow } else { width };
        }
        Ok(Self {
            post_quant,
            conv_in,
            middle,
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
        })
    }

    /// All tiles of a chunk before the next one, each with caches of its own.
    fn tiled(
        &self,
        exec: Executor<'_>,
        latents: &Clip,
        tiling: &Tiling,
        from: Option<&Carry>,
        observer: &mut dyn Observer,
        sink: &mut FrameSink<'_>,
    ) -> Result<()> {
        let clip = to_clip(exec, latents, self.config.z_dim, "latents")?;
        let ratio = self.config.ratio();
        let (_, frames, h, w, _) = clip.dims5()?;
        let step = step(tiling, ratio)?;
        let space = tiling.decoder_space(ratio, self.config.patch())?;
        let tiles = tiles::count(h, w, space);
        let carry = from.cloned().unwrap_or_default();
        carry.check(frames)?;
        let mut caches = Caches::of_tiles(&self.slots, tiles, &carry.tensors, carry.next == 0)?;
        let (mut given, next) = (carry.frames(), carry.next);
        drop(carry);
        let total = chunks(0, frames, step).count() * tiles;
        let mut done = total - chunks(next, frames, step).count() * tiles;
        for (start, count) in exec.until_steady(chunks(next, frames, step)) {
            let chunk = clip.narrow(TIME, start, count)?.contiguous()?;
            let last = start + count == frames;
            let name = if last { "last tile" } else { "tile" };
            let mut each = caches.iter_mut();
            let video = tiles::in_space(&chunk, space, |tile| {
                let Some(caches) = each.next() else {
                    return argument("more tiles than were counted");
                };
                caches.last = last;
                let video = exec.repeat_keeping(name, tile, caches, |tile, caches| {
                    self.tile(exec, tile, caches, observer)
                })?;
                caches.first = false;
                done += 1;
                observer.pieces(done, total)?;
                Ok(video)
            })?;
            drop(chunk);
            // before the clamp, which makes numbers of NaN
            exec.check_finite(&video, || not_finite("the decoder", video.dtype()))?;
            let video = unpatch(&video, self.config.patch())?.clamp(-1.0, 1.0)?;
            let first = given;
            given += video.dim(TIME)?;
            sink(Frames {
                first,
                video: from_clip(&video)?,
                next: start + count,
                state: exec.state(|| Caches::tensors(&caches)),
            })?;
        }
        Ok(())
    }

    /// One tile of one chunk.
    fn tile(
        &self,
        exec: Executor<'_>,
        clip: &Clip,
        caches: &mut Caches,
        observer: &mut dyn Observer,
    ) -> Result<Clip> {
        let (_, frames, h, w, _) = clip.dims5()?;
        let plain = Prologue::none(frames, h, w);
        let clip = exec.conv3d(clip.into(), &plain, &self.post_quant, None)?;
        self.chunk(exec, &clip, caches, observer)
    }

    fn chunk(
        &self,
        exec: Executor<'_>,
        clip: &Clip,
        caches: &mut Caches,
        observer: &mut dyn Observer,
    ) -> Result<Clip> {
        let clip = self.conv_in.run(exec, clip, None, None, caches)?;
        observer.see("decoder.conv_in", &clip)?;
        let mut clip = self.middle.run(exec, clip, caches)?;
        observer.see("decoder.mid_block", &clip)?;
        for (i, level) in self.levels.iter().enumerate() {
            clip = level.run(exec, clip, caches)?;
            observer.see(&format!("decoder.up_blocks.{i}"), &clip)?;
        }
        let video = self
            .conv_out
            .run(exec, &clip, Some(&self.norm_out), None, caches)?;
        observer.see("decoder.conv_out", &video)?;
        Ok(video)
    }
}

impl DecoderNetwork for Decoder {
    fn decode(
        &self,
        exec: Executor<'_>,
        latents: &Clip,
        strategy: &Strategy,
        from: Option<&Carry>,
        observer: &mut dyn Observer,
        sink: &mut FrameSink<'_>,
    ) -> Result<()> {
        match strategy {
            Strategy::Tiled(tiling) => self.tiled(exec, latents, tiling, from, observer, sink),
            Strategy::Exact { .. } => super::super::family::no_exact(),
        }
    }
}
