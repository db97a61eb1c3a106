//! Latents to video.

use super::super::layers::{GroupNorm, Loader, from_clip, to_clip};
use super::super::precision::not_finite;
use super::super::strategy::{Run, Strategy, Tiling};
use super::super::stream::{Carry, FrameSink, Frames};
use super::super::tiles::{self, Seam, TIME};
use super::super::{DecoderNetwork, Observer, Vae};
use super::HunyuanConfig;
use super::blocks::{Causal, Middle, Resnet, axes};
use crate::error::Result;
use crate::ops::{Axis, Clip, Executor};
use crate::weights::Scope;

/// Residual blocks and what enlarges their result.
#[derive(Debug)]
pub(super) struct Level {
    pub(super) resnets: Vec<Resnet>,
    pub(super) upsample: Option<Upsample>,
}

/// Nearest neighbours, then a convolution.
#[derive(Debug)]
pub(super) struct Upsample {
    pub(super) conv: Causal,
    time: bool,
    space: bool,
}

impl Upsample {
    /// The larger clip's axes, read from those of the smaller.
    pub(super) fn enlarge(&self, [t, h, w]: [Axis; 3]) -> [Axis; 3] {
        let wide = |axis: Axis| if self.space { axis.doubled() } else { axis };
        let t = if self.time {
            t.doubled_after_first()
        } else {
            t
        };
        [t, wide(h), wide(w)]
    }

    fn run(&self, exec: Executor<'_>, clip: &Clip) -> Result<Clip> {
        self.conv
            .run(exec, clip, self.enlarge(axes(clip)?), None, None)
    }
}

/// The decoder, loaded.
#[derive(Debug)]
pub(super) struct Decoder {
    /// Where the weights are: some are wanted again in another form.
    pub(super) scope: Option<Scope>,
    pub(super) config: HunyuanConfig,
    post_quant: Causal,
    conv_in: Causal,
    middle: Middle,
    pub(super) levels: Vec<Level>,
    pub(super) norm_out: GroupNorm,
    pub(super) conv_out: Causal,
}

impl Decoder {
    pub(super) fn load(config: &HunyuanConfig, root: &Loader<'_>) -> Result<Self> {
        let at = root.under("decoder");
        let widths: Vec<usize> = config.block_out_channels.iter().rev().copied().collect();
        let groups = config.norm_num_groups;
        let (top, last) = (widths[0], widths[widths.len() - 1]);
        let latent = config.latent_channels;
        let attention = config.mid_block_add_attention;
        // in the order in which clips go through: of another model's weights the first is named
        let post_quant = Causal::load(&root.under("post_quant_conv"), latent, latent, 1)?;
        let conv_in = Causal::load(&at.under("conv_in.conv"), latent, top, 3)?;
        let middle = Middle::load(&at.under("mid_block"), top, groups, attention)?;
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
        Ok(Self {
            scope: root.scope().cloned(),
            config: config.clone(),
            post_quant,
            conv_in,
            middle,
            levels,
            norm_out: GroupNorm::load(&at.under("conv_norm_out"), last, groups)?,
            conv_out: Causal::load(&at.under("conv_out.conv"), last, config.out_channels, 3)?,
        })
    }

    /// Runs of frames of tiles, each run cross-faded with the one before it.
    fn tiled(
        &self,
        exec: Executor<'_>,
        latents: &Clip,
        tiling: &Tiling,
        from: Option<&Carry>,
        observer: &mut dyn Observer,
        sink: &mut FrameSink<'_>,
    ) -> Result<()> {
        let clip = to_clip(exec, latents, self.config.latent_channels, "latents")?;
        let ratio = self.config.ratio();
        let (_, t, h, w, _) = clip.dims5()?;
        let space = tiling.decoder_space(ratio, 1)?;
        let frames = (t - 1) * ratio.time + 1;
        // one run where there are no others: it is longer than the clip, and never cross-faded
        let all = (
            Run {
                length: t,
                stride: t,
            },
            Run {
                length: frames,
                stride: frames,
            },
        );
        let runs = tiling.time(ratio)?;
        let runs = runs.filter(|(run, _)| t > run.length).unwrap_or(all);
        let seam = from.map_or(Ok(Seam::default()), |carry| seam(carry, t))?;
        let tiles = tiles::count(h, w, space);
        let total = runs_in(t, runs.0) * tiles;
        let mut done = seam.start / runs.0.stride * tiles;
        let mut tile = |tile: &Clip| {
            let video = exec.repeat("tile", tile, |tile| self.tile(exec, tile, observer))?;
            done += 1;
            observer.pieces(done, total)?;
            Ok(video)
        };
        tiles::in_time(
            &clip,
            runs,
            frames,
            seam,
            |run| exec.repeat("run", run, |run| tiles::in_space(run, space, &mut tile)),
            |video, seam| {
                exec.check_finite(&video, || not_finite("the decoder", video.dtype()))?;
                let tail = seam.tail.iter().map(|tail| (TAIL.to_owned(), tail.clone()));
                sink(Frames {
                    first: seam.given - video.dim(TIME)?,
                    video: from_clip(&video)?,
                    next: seam.start.min(t),
                    state: tail.collect(),
                })
            },
        )
    }

    /// What comes before the levels, at the latents' own size.
    pub(super) fn begin(
        &self,
        exec: Executor<'_>,
        clip: &Clip,
        observer: &mut dyn Observer,
    ) -> Result<Clip> {
        let clip = self.post_quant.plain(exec, clip)?;
        observer.see("post_quant_conv", &clip)?;
        let clip = self.conv_in.plain(exec, &clip)?;
        observer.see("decoder.conv_in", &clip)?;
        self.middle.run(exec, clip, |module, clip| {
            observer.see(&format!("decoder.{module}"), clip)
        })
    }

    /// One tile of one run.
    fn tile(&self, exec: Executor<'_>, clip: &Clip, observer: &mut dyn Observer) -> Result<Clip> {
        let mut clip = self.begin(exec, clip, observer)?;
        for (i, level) in self.levels.iter().enumerate() {
            for resnet in &level.resnets {
                clip = resnet.run(exec, clip)?;
            }
            if let Some(upsample) = &level.upsample {
                clip = upsample.run(exec, &clip)?;
            }
            observer.see(&format!("decoder.up_blocks.{i}"), &clip)?;
        }
        let norm = self.norm_out.of(exec, &clip)?;
        let video = self
            .conv_out
            .run(exec, &clip, axes(&clip)?, Some(&norm), None)?;
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
            Strategy::Exact { budget } => self.exact(exec, latents, *budget, from, observer, sink),
        }
    }
}

/// Name of the frames that the next run is cross-faded with.
const TAIL: &str = "tail";

/// Runs of a clip of `t` latent frames; one that would only give a frame again is none.
fn runs_in(t: usize, run: Run) -> usize {
    (0..t)
        .step_by(run.stride)
        .filter(|start| *start == 0 || start + 1 < t)
        .count()
}

/// Where an earlier decode of `t` latent frames stopped.
fn seam(carry: &Carry, t: usize) -> Result<Seam> {
    carry.check(t)?;
    Ok(Seam {
        start: carry.next,
        given: carry.given,
        tail: carry.tensors.get(TAIL).cloned().map(Clip::from),
    })
}
