//! Latents to a video.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use candle_core::{DType, Device, Storage, Tensor};
use serde_json::json;

use super::attempt::Try;
use super::job::{channels, fps, open_model};
use super::latents::Latents;
use super::parts::{Digest, FORMAT, Parts, Stop};
use super::told::AT_ONCE;
use super::watch::Watch;
use super::{Job, Ready, Work, say, sizes};
use crate::error::{Error, Result, argument};
use crate::ops::Backend;
use crate::plan::{self, Choice, Half, Room, Way};
use crate::vae::precision::word;
use crate::vae::{Chunk, Config, Model};
use crate::video::{self, Kind, MOST_GIF_FPS, Size};

/// Everything about a decode that is known before its first frame.
struct Plan {
    model: Model,
    latents: Tensor,
    scaling_applied: bool,
    /// Frames, height and width of the latents.
    grid: [usize; 3],
    size: Size,
    frames: usize,
    fps: f64,
    /// Weights that are not used were told of.
    unused: Cell<bool>,
}

pub(super) fn run(work: &Work<'_>) -> Result<()> {
    work.job.check_place()?;
    work.told.phase("model_load", json!({}));
    let plan = Plan::of(work)?;
    // not after hours of work
    video::writable(Kind::of(&work.job.output)?, plan.size, plan.fps)?;
    let mut now = Try::first(work.place(), work.dtype());
    loop {
        let mut choice = None;
        let e = match plan.attempt(work, &now, &mut choice) {
            Ok(()) => return Ok(()),
            Err(e) => e,
        };
        let Some((next, what, to)) = now.after(&e, choice) else {
            return Err(e);
        };
        work.retreat(&e, what, to);
        now = next;
    }
}

impl Plan {
    fn of(work: &Work<'_>) -> Result<Self> {
        let job = work.job;
        let model = open_model(job)?;
        let config = model.config();
        let file = Latents::look(&job.input)?;
        file.made_for(class(config))?;
        let channels = channels(config);
        let [_, _, t, h, w] = file.fits(channels, job.item)?;
        sizes::possible(config, [t, h, w]).map_err(|reason| Error::File {
            path: job.input.clone(),
            reason,
        })?;
        work.about(&model);
        for remark in file.remarks() {
            say(&remark);
        }
        let ratio = config.ratio();
        let (width, height) = (w * ratio.space, h * ratio.space);
        let frames = (t - 1) * ratio.time + 1;
        let usual = match config {
            Config::Hunyuan(_) => 24.0,
            Config::Wan(_) => 16.0,
        };
        let told = file.says("fps").and_then(|text| {
            let fps = fps(text);
            if fps.is_none() && job.fps.is_none() {
                say(&format!(
                    "the latents say {text:?} frames a second, which no video has: {usual} are taken (else: --fps)"
                ));
            }
            fps
        });
        let scaling = job.scaling_applied.or(file.scaling_applied());
        if scaling.is_none() {
            say(
                "the latents are taken as a diffusion model leaves them (else: --scaling-applied true)",
            );
        }
        say(&format!(
            "{}: {frames} frames of {width} x {height} pixels",
            class(config)
        ));
        let fps = playable(job, job.fps.or(told).unwrap_or(usual))?;
        Ok(Self {
            latents: file.read(channels, job.item)?,
            scaling_applied: scaling.unwrap_or(false),
            grid: [t, h, w],
            size: Size { width, height },
            frames,
            fps,
            model,
            unused: Cell::new(false),
        })
    }

    /// One try; `chosen`: the planner's way, where it was asked.
    fn attempt(&self, work: &Work<'_>, now: &Try, chosen: &mut Option<Choice>) -> Result<()> {
        let output = &work.job.output;
        let in_the_way = output.symlink_metadata().is_ok() && !work.job.force;
        if in_the_way && !Parts::exist(output) {
            return Err(Error::Exists(output.clone()));
        }
        let asked = sizes::asked(self.model.config(), work.settings);
        let digest = self.digest(now, asked.as_ref())?;
        let mut parts = Parts::open(output, &digest, self.size, self.frames)?;
        if parts.has_finished(output, self.fps) {
            // killed between the last step and its end
            wrote(output);
            parts.remove();
            return Ok(());
        }
        if in_the_way {
            return Err(Error::Exists(output.clone()));
        }
        self.make(work, now, (asked, chosen), &mut parts)
            .map_err(|e| e.with_cure(|e| parts.cure(e)))?;
        // said before what tells that it is ours goes
        wrote(output);
        parts.remove();
        Ok(())
    }

    /// Decodes what is not there yet, and puts the video in its place.
    fn make(
        &self,
        work: &Work<'_>,
        now: &Try,
        (asked, chosen): (Option<Way>, &mut Option<Choice>),
        parts: &mut Parts,
    ) -> Result<()> {
        // a damage is seen before anything is computed on top of it
        parts.check(&mut || work.told.go_on(AT_ONCE))?;
        if parts.frames_there()? < self.frames {
            let ready = work.device(now.place, now.dtype)?;
            let way = match asked {
                Some(way) => way,
                None => self.choose(work, now, &ready, parts, chosen)?,
            };
            self.decode(work, ready, &way, parts)?;
        }
        for text in parts.unfit()? {
            work.problem(&format!("{text}: all frames are there without it"));
        }
        self.save(work, parts)
    }

    /// The planner's way, or that of the frames that are there already, if it still fits: another would give
    /// others.
    fn choose(
        &self,
        work: &Work<'_>,
        now: &Try,
        ready: &Ready,
        parts: &mut Parts,
        chosen: &mut Option<Choice>,
    ) -> Result<Way> {
        let job = self.job();
        let backend = &*ready.backend;
        let weights = self.model.weight_bytes(Half::Decoder, now.dtype);
        let room = sizes::room(work, ready, weights);
        let fits = |way: Way| {
            let peak = plan::peak(&job, backend, &way).ok()?;
            let left = room.left().unwrap_or(u64::MAX);
            (peak <= left && now.failed.is_none()).then_some(Choice { way, peak })
        };
        let before = self.before(work, backend, parts);
        let too_much = before.filter(|_| now.failed.is_none() && is_killed(work, backend, parts));
        let choice = match (too_much, before.and_then(fits)) {
            (Some(way), _) => self.below(work, backend, &room, &way)?,
            (None, Some(choice)) => choice,
            (None, None) => sizes::choose(&job, backend, &room, now.failed.as_ref())?,
        };
        if before != Some(choice.way) {
            parts.begin(&sizes::to_json(&choice.way))?;
        }
        if let Some(run) = &work.settings.run
            && let Err(e) = parts.note_begin(run)
        {
            work.problem(&format!(
                "{e}: should this attempt be killed, the next takes the same way"
            ));
        }
        *chosen = Some(choice);
        Ok(choice.way)
    }

    /// A way that takes half of what `way` takes: the kernel ends a process without a word, and the ladder has one rung for that.
    fn below(
        &self,
        work: &Work<'_>,
        backend: &dyn Backend,
        room: &Room,
        way: &Way,
    ) -> Result<Choice> {
        let job = self.job();
        let half = plan::peak(&job, backend, way)? / 2;
        let choice = sizes::choose(&job, backend, &sizes::at_most(room, half), None)?;
        let before = sizes::words(way);
        if choice.way == *way {
            work.problem(&format!(
                "the attempt before, {before}, ended for want of memory, and there is no smaller way: free memory, or set vae_tile and vae_chunk"
            ));
        } else {
            let e = Error::Memory(format!(
                "the attempt before, {before}, ended without a frame"
            ));
            work.retreat(&e, "tiles", "smaller");
        }
        Ok(choice)
    }

    /// The way of an earlier attempt. One that cannot be read, or is none of this model, is as good as none, and said.
    fn before(&self, work: &Work<'_>, backend: &dyn Backend, parts: &Parts) -> Option<Way> {
        let told = match parts.way() {
            Ok(told) => told?,
            Err(e) => {
                work.problem(&format!("{e}: the decode begins anew"));
                return None;
            }
        };
        let suits = |way: &Way| plan::peak(&self.job(), backend, way).is_ok();
        let way = sizes::from_json(&told).filter(suits);
        if way.is_none() {
            work.problem(&format!(
                "{}: says nothing of how this video can be decoded: the decode begins anew",
                parts.way_path().display()
            ));
        }
        way
    }

    fn job(&self) -> plan::Job<'_> {
        plan::Job {
            config: self.model.config(),
            half: Half::Decoder,
            batch: 1,
            size: self.grid,
        }
    }

    /// Of everything that the frames depend on, but the way where the planner chooses it.
    fn digest(&self, now: &Try, asked: Option<&Way>) -> Result<String> {
        let mut digest = Digest::default();
        digest.add("frames", FORMAT);
        digest.add("engine", env!("CARGO_PKG_VERSION").as_bytes());
        digest.add("model", format!("{:?}", self.model.config()).as_bytes());
        for (path, _, _) in self.model.weights().files()? {
            digest.add_file(&path)?;
        }
        let (storage, _layout) = self.latents.storage_and_layout();
        // as they were read: on the processor, one behind the other
        match &*storage {
            Storage::Cpu(numbers) => digest.add_numbers("latents", numbers.as_slice()?),
            _ => return argument("the latents are not where they were read"),
        }
        let more = format!(
            "{:?} {} {asked:?} {:?} {:?}",
            self.latents.dims(),
            self.scaling_applied,
            now.place,
            now.dtype
        );
        digest.add("settings", more.as_bytes());
        Ok(digest.word())
    }

    fn decode(&self, work: &Work<'_>, ready: Ready, way: &Way, parts: &mut Parts) -> Result<()> {
        let told = work.told;
        let Ready { backend, name, .. } = ready;
        let dtype = backend.dtype();
        // a state is part of what the decode takes
        let most = plan::peak(&self.job(), &*backend, way)?;
        let Stop {
            frames: done,
            carry,
            unfit,
        } = parts.resume(backend.device(), most)?;
        let instead = match done {
            0 => "the decode begins anew".to_owned(),
            1 => "the decode goes on after the first frame".to_owned(),
            _ => format!("the decode goes on after {done} frames"),
        };
        for text in parts.unfit()?.into_iter().chain(unfit) {
            work.problem(&format!("{text}: {instead}"));
        }
        if done > 0 {
            say(&format!(
                "{done} of {} frames are there from an earlier attempt",
                self.frames
            ));
        }
        say(&format!("decoding on {name}, {}", sizes::words(way)));
        told.send("fix", json!({ "what": "plan", "way": sizes::words(way) }));
        let decoder = self.model.decoder(Arc::clone(&backend))?;
        if let Some(text) = self
            .model
            .unused(Half::Decoder)
            .filter(|_| !self.unused.replace(true))
        {
            work.problem(&text);
        }
        let mut latents = self.latents.clone();
        if !self.scaling_applied {
            latents = decoder.unscale(&latents)?;
        }
        told.phase(
            "vae_decode",
            json!({ "model": class(self.model.config()), "shape": latents.dims() }),
        );
        let mut watch = Watch::new(told, work.settings.piece_limit());
        let total = self.frames;
        let mut sink = |chunk: Chunk| {
            let bytes = eight_bit(&chunk.video, dtype)?;
            if let Some(text) = parts.keep(chunk.first, &bytes, &chunk.carry)? {
                work.problem(&text);
            }
            say(&format!("{} of {total} frames", chunk.carry.frames()));
            told.between()
        };
        decoder.decode_way(&latents, way, carry.as_ref(), &mut watch, &mut sink)
    }

    fn save(&self, work: &Work<'_>, parts: &mut Parts) -> Result<()> {
        let (told, output) = (work.told, &work.job.output);
        told.phase("save", json!({}));
        // all frames are there: the video needs the room more
        parts.drop_states()?;
        let total = self.frames;
        video::write(
            (output, &parts.whole()),
            (self.size, self.fps),
            work.job.force,
            parts.frames()?,
            |done| {
                told.progress(done, total, "frames");
                told.between()
            },
            |whole| parts.finishing(whole, self.fps),
        )
    }
}

/// Whether the attempt before was ended for want of the host's memory, and its way made no frame.
fn is_killed(work: &Work<'_>, backend: &dyn Backend, parts: &Parts) -> bool {
    if !backend.device().is_cpu() || !work.settings.is_host_short() {
        return false;
    }
    let Some(run) = &work.settings.run else {
        return false;
    };
    parts.got_nowhere(run).unwrap_or_else(|e| {
        work.problem(&format!("{e}: nothing is known of the attempt before"));
        false
    })
}

/// Frames a second as the output can have them; where that is not what was asked for it is said. A `--fps` that a gif
/// cannot have was refused before.
fn playable(job: &Job, fps: f64) -> Result<f64> {
    match Kind::of(&job.output)? {
        Kind::Gif if fps > MOST_GIF_FPS => {
            say(&format!(
                "the latents say {fps} frames a second, and a gif shows at most {MOST_GIF_FPS}: it is made with {MOST_GIF_FPS}, slower than meant (an .mp4 has them all)"
            ));
            return Ok(MOST_GIF_FPS);
        }
        Kind::Pictures if job.fps.is_some() => {
            say("pictures have no speed: --fps changes nothing here");
        }
        _ => {}
    }
    Ok(fps)
}

/// The supervisor finds the file by this line.
pub(super) fn wrote(output: &Path) {
    say(&format!("Wrote {}", output.display()));
}

pub(super) fn class(config: &Config) -> &'static str {
    match config {
        Config::Hunyuan(_) => "AutoencoderKLHunyuanVideo",
        Config::Wan(_) => "AutoencoderKLWan",
    }
}

/// (1, 3, T, H, W) of -1 to 1 as frames of 8-bit RGB.
fn eight_bit(video: &Tensor, dtype: DType) -> Result<Vec<u8>> {
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
        return Err(Error::NotFinite {
            half: "the decoder",
            dtype: word(dtype),
        });
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
    fn latents_faster_than_a_gif_can_be_give_the_fastest_that_it_can() {
        let job = |output: &str| {
            let words = ["decode", "l", "--model", "m", "--output", output];
            Job::parse(words.map(std::ffi::OsString::from)).unwrap()
        };
        let fps = |output: &str, fps| playable(&job(output), fps).unwrap();
        for (output, told, want) in [
            ("o.gif", 60.0, 50.0),
            ("o.gif", 24.0, 24.0),
            ("o.mp4", 60.0, 60.0),
            ("o", 60.0, 60.0),
        ] {
            let found: f64 = fps(output, told);
            assert!((found - want).abs() < 1e-9, "{output}: {found}");
        }
    }

    #[test]
    fn numbers_become_bytes_and_what_is_none_is_refused() {
        let video = |numbers: [f32; 3]| {
            Tensor::new(&numbers, &Device::Cpu)
                .unwrap()
                .reshape((1, 3, 1, 1, 1))
                .unwrap()
        };
        assert_eq!(
            eight_bit(&video([-1.5, 0.0, 1.0]), DType::F32).unwrap(),
            [0, 128, 255]
        );
        let e = eight_bit(&video([0.0, f32::NAN, 0.0]), DType::F32).unwrap_err();
        assert!(
            matches!(
                e,
                Error::NotFinite {
                    dtype: "float32",
                    ..
                }
            ),
            "{e}"
        );
    }
}
