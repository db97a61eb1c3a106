//! The exact low-memory decode: group norms and attention see the whole clip, as without tiles, while little more
//! than one clip of each level is in memory.
//!
//! A group norm needs the sums of the whole clip before the first of its numbers can be made, so a level is gone through in
//! passes, each piece by piece: frames, or bands of rows of frames where one is too large. The sums of the pieces add
//! up. Since a causal convolution reads no later frame, the pass that ends a residual block goes from the last frame
//! to the first and writes into the clip that it reads; of bands, the rows that the band below still needs are
//! put aside. What comes out of an upsampling (at the video's own size twice as wide as what follows) need not be kept: it
//! is made again of the smaller clip in each pass, and its shortcut by one convolution with the product of both
//! weights. How much is kept instead of made again follows from the bytes allowed, and so does how each pass is cut up:
//! in bands only where there is no room for frames beside what lies in memory during that pass.

mod memory;
mod passes;
mod region;

use std::collections::BTreeMap;

use self::memory::{LevelPlan, Mode, Sizes, choose, levels};
use self::passes::{Input, Lazy, Passes};
use self::region::{Conv, Grid, Part, Region};
use super::super::Observer;
use super::super::layers::{GroupNorm, Loader, from_clip, to_clip};
use super::super::stream::{Carry, FrameSink, Frames};
use super::super::tiles::TIME;
use super::HunyuanConfig;
use super::blocks::{Causal, Resnet};
use super::decoder::{Decoder, Level, Upsample};
use crate::error::{Result, argument};
use crate::ops::{Clip, ConvSize, Executor, GroupSums};

/// Refuses a decoder that ends with an upsampling, as no published one does: what comes out of one is made again of the
/// level before, by the level after.
pub(super) fn suits(config: &HunyuanConfig) -> Result<()> {
    let last = config.block_out_channels.len().saturating_sub(1);
    let (time, space) = config.changes(last);
    if time || space {
        return argument("the exact mode knows no decoder that ends with an upsampling");
    }
    Ok(())
}

impl Decoder {
    /// Decodes latents (1, C, t, h, w) without tiles, within about `budget` bytes beside weights and the frames
    /// handed out, or with the least that can be done with if that is more. `from` tells which frames were given
    /// before; the rest is gone through all the same.
    ///
    /// The observer sees pieces: the result of every convolution of a level, piece by piece.
    pub(super) fn exact(
        &self,
        exec: Executor<'_>,
        latents: &Clip,
        budget: u64,
        from: Option<&Carry>,
        observer: &mut dyn Observer,
        sink: &mut FrameSink<'_>,
    ) -> Result<()> {
        suits(&self.config)?;
        if latents.dim(0)? != 1 {
            return argument("the exact mode gives the frames of one video at a time");
        }
        let clip = to_clip(exec, latents, self.config.latent_channels, "latents")?;
        let (given, next) = (from.map_or(0, Carry::frames), clip.dim(TIME)?);
        let (_, t, h, w, _) = clip.dims5()?;
        let begun = self.begin(exec, &clip, observer)?;
        drop(clip);
        self.levels(
            exec,
            begun,
            [t, h, w],
            budget,
            observer,
            &mut |first, video| {
                let frames = Frames {
                    first,
                    video: from_clip(video)?,
                    next,
                    state: BTreeMap::new(),
                };
                frames.after(given)?.map_or(Ok(()), &mut *sink)
            },
        )
    }

    /// The levels for latents of (t, h, w), after what comes before them.
    fn levels(
        &self,
        exec: Executor<'_>,
        mut clip: Clip,
        latents: [usize; 3],
        budget: u64,
        observer: &mut dyn Observer,
        each: &mut dyn FnMut(usize, &Clip) -> Result<()>,
    ) -> Result<()> {
        let element = clip.dtype().size_in_bytes() as u64;
        let mut before: Option<&Level> = None;
        let sizes = levels(&self.config, latents);
        let plans: Vec<LevelPlan> = sizes
            .iter()
            .map(|sizes| choose(sizes, exec.backend(), element, budget))
            .collect();
        if let Executor::DryRun(run) = exec {
            // the plans say what their passes take; that of the first level counts the clip that it begins with
            drop(clip);
            run.scratch(plans.iter().map(|plan| plan.peak).max().unwrap_or_default());
            return Ok(());
        }
        let mut done = (0, pieces(&self.levels, &sizes, &plans));
        for (at, (sizes, plan)) in sizes.iter().zip(plans).enumerate() {
            let level = &self.levels[at];
            let mut passes = Passes {
                conv: Conv {
                    exec,
                    size: sizes.size,
                },
                grids: plan.grids,
                observer: &mut *observer,
                module: format!("decoder.up_blocks.{at}"),
                done: &mut done,
            };
            let upsample = before.and_then(|before| before.upsample.as_ref());
            let input = match upsample {
                Some(upsample) => {
                    Input::Lazy(Box::new(self.lazy(exec, at, clip, upsample, plan.mode)?))
                }
                None => Input::Held(clip),
            };
            let next = (at + 1 == self.levels.len()).then_some(&self.norm_out);
            let sums;
            (clip, sums) = run_level(&mut passes, level, input, plan.mode, next)?;
            if let Some(sums) = sums {
                let norm = self.norm_out.with(exec, &sums)?;
                passes.out(&self.conv_out, &norm, &clip, &mut *each)?;
            }
            before = Some(level);
        }
        Ok(())
    }

    /// The clip of level `at`, to be made of that of the level before.
    fn lazy<'a>(
        &self,
        exec: Executor<'_>,
        at: usize,
        below: Clip,
        upsample: &'a Upsample,
        mode: Mode,
    ) -> Result<Lazy<'a>> {
        let (_, t, h, w, _) = below.dims5()?;
        let shortcut = !mode.whole && self.levels[at].resnets[0].shortcut.is_some();
        Ok(Lazy {
            below: Part::new(below, Region::all([t, h, w])),
            below_size: [t, h, w],
            fused: shortcut
                .then(|| self.fused(exec, at, upsample.conv.conv.size()))
                .transpose()?,
            upsample,
        })
    }

    /// The upsampling before level `at` and the shortcut of its first block in one: the product of the weights.
    fn fused(&self, exec: Executor<'_>, at: usize, upsample: ConvSize) -> Result<Causal> {
        let Some(scope) = self.scope.clone() else {
            return argument("a model without weights computes nothing");
        };
        let root = Loader::of_weights(exec, scope).under("decoder");
        let (inner, inputs) = (upsample.outputs, upsample.inputs);
        let outputs = self.levels[at].resnets[0].conv1.conv.size().outputs;
        let up = root.under(format_args!("up_blocks.{}.upsamplers.0.conv.conv", at - 1));
        let across = root.under(format_args!("up_blocks.{at}.resnets.0.conv_shortcut.conv"));
        let [kt, kh, kw] = upsample.kernel;
        let size = ConvSize {
            outputs,
            ..upsample
        };
        let conv = exec.load_conv(size, || {
            let weight = up.tensor("weight", &[inner, inputs, kt, kh, kw])?;
            let product = across
                .tensor("weight", &[outputs, inner, 1, 1, 1])?
                .reshape((outputs, inner))?;
            let bias = product.matmul(&up.tensor("bias", &[inner])?.reshape((inner, 1))?)?;
            let bias = (bias.flatten_all()? + across.tensor("bias", &[outputs])?)?;
            let weight = product
                .matmul(&weight.reshape((inner, inputs * kt * kh * kw))?)?
                .reshape((outputs, inputs, kt, kh, kw))?;
            Ok((weight, bias))
        })?;
        Ok(Causal { conv })
    }
}

/// How many pieces all passes have.
fn pieces(levels: &[Level], sizes: &[Sizes], plans: &[LevelPlan]) -> usize {
    let (mut upsampled, mut total, mut last) = (false, 0, 0);
    for ((level, sizes), plan) in levels.iter().zip(sizes).zip(plans) {
        let [t, h, _] = sizes.size;
        let count = |grid: Grid| grid.runs(t).count() * grid.bands(h).count();
        let both = |grids: [Grid; 2]| grids.into_iter().map(count).sum::<usize>();
        if upsampled {
            total += count(plan.grids.enlarging);
        }
        let others = level.resnets.len().saturating_sub(1);
        total += both(plan.grids.first) + others * both(plan.grids.others);
        upsampled = level.upsample.is_some();
        last = plan.grids.others[1].runs(t).count();
    }
    // the frames that are given
    total + last
}

/// Runs the residual blocks of a level; gives the sums for `next`, the norm after them.
fn run_level(
    passes: &mut Passes<'_>,
    level: &Level,
    input: Input<'_>,
    mode: Mode,
    next: Option<&GroupNorm>,
) -> Result<(Clip, Option<GroupSums>)> {
    let Some((first, rest)) = level.resnets.split_first() else {
        return argument("a level without residual blocks");
    };
    let (mut input, mut sums) = match input {
        Input::Held(clip) => {
            let sums = first.norm1.sums(passes.conv.exec, &clip)?;
            (Input::Held(clip), Some(sums))
        }
        Input::Lazy(lazy) if mode.whole => {
            let (clip, sums) = passes.enlarge(&lazy, &first.norm1)?;
            (Input::Held(clip), Some(sums))
        }
        Input::Lazy(lazy) => {
            let sums = passes.sums(&lazy, &first.norm1)?;
            (Input::Lazy(lazy), Some(sums))
        }
    };
    for (at, resnet) in level.resnets.iter().enumerate() {
        let next = rest.get(at).map(|resnet| &resnet.norm1).or(next);
        let Some(known) = &sums else {
            return argument("a residual block without the sums before it");
        };
        let clip;
        (clip, sums) = run_resnet(passes, (at, resnet), input, known, mode, next)?;
        input = Input::Held(clip);
    }
    match input {
        Input::Held(clip) => Ok((clip, sums)),
        Input::Lazy(_) => argument("a level without residual blocks"),
    }
}

/// One residual block.
fn run_resnet(
    passes: &mut Passes<'_>,
    (at, resnet): (usize, &Resnet),
    input: Input<'_>,
    sums: &GroupSums,
    mode: Mode,
    next: Option<&GroupNorm>,
) -> Result<(Clip, Option<GroupSums>)> {
    let norm1 = resnet.norm1.with(passes.conv.exec, sums)?;
    match input {
        Input::Held(clip) if !mode.keep && resnet.shortcut.is_none() => {
            let input = Input::Held(clip.clone());
            let (_, sums) = passes.first((at, resnet), &input, &norm1, false)?;
            let norm2 = resnet.norm2.with(passes.conv.exec, &sums)?;
            let sums = passes.again((at, resnet), &clip, (&norm1, &norm2), next)?;
            Ok((clip, sums))
        }
        input => {
            let (inner, sums) = passes.first((at, resnet), &input, &norm1, true)?;
            let Some(inner) = inner else {
                return argument("a clip that was to be kept is missing");
            };
            let norm2 = resnet.norm2.with(passes.conv.exec, &sums)?;
            let sums = passes.second((at, resnet), &input, &inner, &norm2, next)?;
            Ok((inner, sums))
        }
    }
}
