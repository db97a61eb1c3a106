//! Latents to a video.

use std::path::Path;
use std::sync::Arc;

use candle_core::{Device, Tensor};
use serde_json::json;

use super::job::{channels, open_model};
use super::latents::Latents;
use super::parts::{Digest, Parts};
use super::sizes::{Grid, free_memory};
use super::watch::Watch;
use super::{Place, Ready, Work, say};
use crate::error::{Error, Result, argument};
use crate::vae::{Carry, Config, Model, Tiling};
use crate::video::{self, Size};

/// Everything about a decode that is known before its first frame.
struct Plan {
    model: Model,
    latents: Tensor,
    scaling_applied: bool,
    tiling: Tiling,
    size: Size,
    frames: usize,
    fps: f64,
}

pub(super) fn run(work: &Work<'_>) -> Result<()> {
    work.told.phase("model_load", json!({}));
    let plan = Plan::of(work)?;
    plan.tell(work);
    let digest = plan.digest(work)?;
    let output = &work.job.output;
    let in_the_way = output.symlink_metadata().is_ok() && !work.job.force;
    if in_the_way && !Parts::exist(output) {
        return Err(Error::Exists(output.clone()));
    }
    let mut parts = Parts::open(output, &digest, plan.size)?;
    if parts.has_finished(output) {
        // killed between the last step and its end
        wrote(output);
        parts.remove();
        return Ok(());
    }
    if in_the_way {
        return Err(Error::Exists(output.clone()));
    }
    let (done, carry) = parts.resume(plan.frames, &Device::Cpu)?;
    if done > 0 {
        say(&format!(
            "{done} of {} frames are there from an earlier attempt",
            plan.frames
        ));
    }
    if done < plan.frames {
        plan.decode(work, carry.as_ref(), &mut parts)?;
    }
    plan.save(work, parts)
}

impl Plan {
    fn of(work: &Work<'_>) -> Result<Self> {
        let job = work.job;
        let model = open_model(&job.model)?;
        let config = model.config();
        let file = Latents::look(&job.input)?;
        let channels = channels(config);
        let [_, _, t, h, w] = file.fits(channels, job.item)?;
        let grid = Grid::of(config);
        let [frames, height, width] = grid.video([t, h, w]);
        let told = file.says("fps").and_then(|fps| fps.parse().ok());
        let usual = match config {
            Config::Hunyuan(_) => 24.0,
            Config::Wan(_) => 16.0,
        };
        let scaling = job.scaling_applied.or(file.scaling_applied());
        if scaling.is_none() {
            say(
                "the latents are taken as a diffusion model leaves them (else: --scaling-applied true)",
            );
        }
        Ok(Self {
            latents: file.read(channels, job.item)?,
            scaling_applied: scaling.unwrap_or(false),
            tiling: grid.tiling(
                [frames, height, width],
                work.settings,
                work.place(),
                free_memory(),
            ),
            size: Size { width, height },
            frames,
            fps: job.fps.or(told).unwrap_or(usual),
            model,
        })
    }

    fn tell(&self, work: &Work<'_>) {
        let Size { width, height } = self.size;
        let class = class(self.model.config());
        say(&format!(
            "{class}: {} frames of {width} x {height} pixels{}",
            self.frames,
            cut(&self.tiling)
        ));
        if let Some(run) = self.tiling.space {
            let overlap = run.length - run.stride;
            work.told.send(
                "fix",
                json!({ "what": "tiles", "vae_tile": run.length, "vae_overlap": overlap }),
            );
        }
        if let Some(run) = self.tiling.time {
            work.told
                .send("fix", json!({ "what": "chunks", "frames": run.length }));
        }
    }

    /// Of everything that the frames depend on.
    fn digest(&self, work: &Work<'_>) -> Result<String> {
        let place = work.place();
        let dtype = work.settings.dtype().filter(|_| place == Place::Card);
        let mut digest = Digest::default();
        digest.add("engine", env!("CARGO_PKG_VERSION").as_bytes());
        digest.add("model", format!("{:?}", self.model.config()).as_bytes());
        for (path, _, _) in self.model.weights().files()? {
            digest.add_file(&path)?;
        }
        let numbers: Vec<f32> = self.latents.flatten_all()?.to_vec1()?;
        let bytes: Vec<u8> = numbers.into_iter().flat_map(f32::to_le_bytes).collect();
        digest.add("latents", &bytes);
        let more = format!(
            "{:?} {} {:?} {place:?} {dtype:?}",
            self.latents.dims(),
            self.scaling_applied,
            self.tiling
        );
        digest.add("settings", more.as_bytes());
        Ok(digest.word())
    }

    fn decode(&self, work: &Work<'_>, carry: Option<&Carry>, parts: &mut Parts) -> Result<()> {
        let told = work.told;
        let Ready { backend, name } = work.device()?;
        let decoder = self.model.decoder(Arc::clone(&backend))?;
        let mut latents = self.latents.clone();
        if !self.scaling_applied {
            latents = decoder.unscale(&latents)?;
        }
        let latents = latents.to_device(backend.device())?;
        let carry = carry
            .map(|carry| carry.to_device(backend.device()))
            .transpose()?;
        say(&format!("decoding on {name}"));
        told.phase(
            "vae_decode",
            json!({ "model": class(self.model.config()), "shape": latents.dims() }),
        );
        let mut watch = Watch::new(told, work.settings.piece_limit());
        let total = self.frames;
        decoder.decode_stream(
            &latents,
            &self.tiling,
            carry.as_ref(),
            &mut watch,
            &mut |chunk| {
                let bytes = eight_bit(&chunk.video, chunk.first)?;
                parts.keep(chunk.first, &bytes, &chunk.carry, total)?;
                say(&format!("{} of {total} frames", chunk.carry.frames()));
                told.between()
            },
        )
    }

    fn save(&self, work: &Work<'_>, parts: Parts) -> Result<()> {
        let (told, output) = (work.told, &work.job.output);
        told.phase("save", json!({}));
        let total = self.frames;
        video::write(
            output,
            (self.size, self.fps),
            work.job.force,
            parts.frames()?,
            |done| {
                told.progress(done, total, "frames");
                told.between()
            },
            |whole| parts.finishing(whole),
        )?;
        parts.remove();
        wrote(output);
        Ok(())
    }
}

/// The supervisor finds the file by this line.
fn wrote(output: &Path) {
    say(&format!("Wrote {}", output.display()));
}

pub(super) fn class(config: &Config) -> &'static str {
    match config {
        Config::Hunyuan(_) => "AutoencoderKLHunyuanVideo",
        Config::Wan(_) => "AutoencoderKLWan",
    }
}

fn cut(tiling: &Tiling) -> String {
    let mut words = String::new();
    if let Some(run) = tiling.space {
        words = format!(", tiles of {} every {}", run.length, run.stride);
    }
    if let Some(run) = tiling.time {
        words = format!("{words}, {} frames at a time", run.length);
    }
    words
}

/// (1, 3, T, H, W) of -1 to 1 as frames of 8-bit RGB.
fn eight_bit(video: &Tensor, first: usize) -> Result<Vec<u8>> {
    let (_, channels, _, _, _) = video.dims5()?;
    if channels != 3 {
        return argument(format!(
            "the model gives {channels} channels, a video has 3"
        ));
    }
    let frames = video
        .to_device(&Device::Cpu)?
        .to_dtype(candle_core::DType::F32)?
        .permute((0, 2, 3, 4, 1))?;
    let numbers: Vec<f32> = frames.flatten_all()?.to_vec1()?;
    if numbers.iter().any(|x| !x.is_finite()) {
        return argument(format!(
            "the decoder gave numbers that are none (NaN or infinite) from frame {first} on: the weights or the latents are damaged, or the precision is too low (float32 is the highest)"
        ));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to 0..=255"
    )]
    let byte = |x: f32| ((x.clamp(-1.0, 1.0) / 2.0 + 0.5) * 255.0).round() as u8;
    Ok(numbers.into_iter().map(byte).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_bytes_and_what_is_none_is_refused() {
        let video = |numbers: [f32; 3]| {
            Tensor::new(&numbers, &Device::Cpu)
                .unwrap()
                .reshape((1, 3, 1, 1, 1))
                .unwrap()
        };
        assert_eq!(
            eight_bit(&video([-1.5, 0.0, 1.0]), 0).unwrap(),
            [0, 128, 255]
        );
        let e = eight_bit(&video([0.0, f32::NAN, 0.0]), 4).unwrap_err();
        assert!(e.to_string().contains("from frame 4 on"), "{e}");
    }
}
