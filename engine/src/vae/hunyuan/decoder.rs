//! Latents to video.

use std::sync::Arc;

use candle_core::Tensor;

use super::super::config::HunyuanConfig;
use super::super::layers::{GroupNorm, Loader};
use super::super::precision::finite;
use super::super::tiles::{self, Run, Seam, TIME};
use super::super::{Carry, Chunk, Observer, Tiling, from_clip, to_clip};
use super::blocks::{Causal, Middle, Resnet, axes};
use crate::error::Result;
use crate::ops::{Axis, Backend};
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

    fn run(&self, backend: &dyn Backend, clip: &Tensor) -> Result<Tensor> {
        self.conv
            .run(backend, clip, self.enlarge(axes(clip)?), None, None)
    }
}

/// The decoder, loaded.
#[derive(Debug)]
pub struct Decoder {
    pub(super) backend: Arc<dyn Backend>,
    /// Where the weights are: some are wanted again in another form.
    pub(super) scope: Scope,
    pub(super) config: HunyuanConfig,
    post_quant: Causal,
    conv_in: Causal,
    middle: Middle,
    pub(super) levels: Vec<Level>,
    pub(super) norm_out: GroupNorm,
    pub(super) conv_out: Causal,
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
            scope: scope.clone(),
            config: config.clone(),
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

    /// Latents as the diffusion model leaves them, brought to what the decoder takes.
    pub fn unscale(&self, latents: &Tensor) -> Result<Tensor> {
        Ok(latents.affine(1.0 / self.config.scaling_factor, 0.0)?)
    }

    /// Latents (B, C, t, h, w) to video (B, 3, 4t-3, 8h, 8w), not clamped, run by run.
    pub(in super::super) fn decode(
        &self,
        latents: &Tensor,
        tiling: &Tiling,
        from: Option<&Carry>,
        observer: &mut dyn Observer,
        sink: &mut dyn FnMut(Chunk) -> Result<()>,
    ) -> Result<()> {
        let clip = to_clip(
            latents,
            self.config.latent_channels,
            "latents",
            &*self.backend,
        )?;
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
        tiles::in_time(
            &clip,
            runs,
            frames,
            seam,
            |clip| {
                tiles::in_space(clip, space, |tile| {
                    let video = self.piece(tile, observer)?;
                    done += 1;
                    observer.pieces(done, total)?;
                    Ok(video)
                })
            },
            |video, seam| {
                finite("the decoder", &video)?;
                let tail = seam.tail.iter().map(|tail| (TAIL.to_owned(), tail.clone()));
                sink(Chunk {
                    first: seam.given - video.dim(TIME)?,
                    video: from_clip(&video)?,
                    carry: Carry {
                        given: seam.given,
                        next: seam.start.min(t),
                        tensors: tail.collect(),
                    },
                })
            },
        )
    }

    /// What comes before the levels, at the latents' own size.
    pub(super) fn begin(&self, clip: &Tensor, observer: &mut dyn Observer) -> Result<Tensor> {
        let backend = &*self.backend;
        let clip = self.post_quant.plain(backend, clip)?;
        observer.after("post_quant_conv", &clip)?;
        let clip = self.conv_in.plain(backend, &clip)?;
        observer.after("decoder.conv_in", &clip)?;
        self.middle.run(backend, clip, |module, clip| {
            observer.after(&format!("decoder.{module}"), clip)
        })
    }

    /// One tile of one run.
    fn piece(&self, clip: &Tensor, observer: &mut dyn Observer) -> Result<Tensor> {
        let backend = &*self.backend;
        let mut clip = self.begin(clip, observer)?;
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
        tail: carry.tensors.get(TAIL).cloned(),
    })
}
