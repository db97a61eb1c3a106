//! Latents to a video.

mod pieces;
mod strategy;

use std::cell::Cell;
use std::path::{Path, PathBuf};

use candle_core::{Storage, Tensor};
use serde_json::json;

use super::attempt::Try;
use super::checkpoint::{CheckpointDir, Digest, FORMAT};
use super::job::{fps, open_model};
use super::latents::Latents;
use super::reporter::AT_ONCE;
use super::{Job, Work, say, sizes};
use crate::error::{Error, Result, argument};
use crate::plan::{self, Choice};
use crate::vae::{Direction, Model, Strategy};
use crate::video::{self, Kind, MOST_GIF_FPS, Size};

/// How often what is damaged as the video is written is decoded again: a disk that fails does it each time.
const MOST_AGAIN: u32 = 2;

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
    work.reporter.phase("model_load", json!({}));
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
        file.made_for(config.family())?;
        let channels = config.latent_channels();
        let [_, _, t, h, w] = file.fits(channels, job.item)?;
        sizes::possible(config, [t, h, w], work.place()).map_err(|reason| Error::File {
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
        let usual = config.fps();
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
            config.class()
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
        if in_the_way && !CheckpointDir::exist(output) {
            return Err(Error::Exists(output.clone()));
        }
        let asked = sizes::asked(self.model.config(), work.settings);
        let digest = self.digest(now, asked.as_ref())?;
        let mut checkpoint = CheckpointDir::open(output, &digest, self.size, self.frames)?;
        if checkpoint.has_finished(output, self.fps) {
            // killed between the last step and its end
            wrote(output);
            checkpoint.remove();
            return Ok(());
        }
        if in_the_way {
            return Err(Error::Exists(output.clone()));
        }
        self.make(work, now, (asked, chosen), &mut checkpoint)
            .map_err(|e| e.with_cure(|e| checkpoint.cure(e)))?;
        // said before what tells that it is ours goes
        wrote(output);
        checkpoint.remove();
        Ok(())
    }

    /// Decodes what is not there yet, and puts the video in its place. What of the frames is found damaged only then is
    /// decoded again by itself.
    fn make(
        &self,
        work: &Work<'_>,
        now: &Try,
        (asked, chosen): (Option<Strategy>, &mut Option<Choice>),
        checkpoint: &mut CheckpointDir,
    ) -> Result<()> {
        let mut again = 0;
        let mut lost: Option<(PathBuf, String)> = None;
        loop {
            // a damage is seen before anything is computed on top of it
            checkpoint.check(&mut || work.reporter.check_cancelled(AT_ONCE))?;
            let is_whole = checkpoint.gaps()?.is_empty();
            if let Some((path, reason)) = lost.take()
                && !checkpoint.is_unfit(&path)
            {
                let instead = if is_whole {
                    "read once more all frames are whole"
                } else {
                    "what is missing is decoded again"
                };
                work.problem(&format!("{}: {reason}: {instead}", path.display()));
            }
            let how = if is_whole {
                None
            } else {
                let ready = work.device(now.place, now.dtype)?;
                let strategy = match asked {
                    Some(strategy) => strategy,
                    None => self.choose(work, now, &ready, checkpoint, (chosen, again == 0))?,
                };
                Some((ready, strategy))
            };
            // what the attempt before has noted was looked at
            note_begin(work, checkpoint);
            if let Some((ready, strategy)) = how {
                self.decode(work, ready, &strategy, checkpoint, again > 0)?;
            }
            for text in checkpoint.unfit()? {
                work.problem(&format!("{text}: all frames are there without it"));
            }
            match self.save(work, checkpoint) {
                Err(Error::Lost { path, reason }) if again == MOST_AGAIN => {
                    return Err(given_up(path, &reason));
                }
                Err(Error::Lost { path, reason }) => lost = Some((path, reason)),
                saved => return saved,
            }
            again += 1;
        }
    }

    fn job(&self) -> plan::Job<'_> {
        plan::Job {
            config: self.model.config(),
            direction: Direction::Decode,
            batch: 1,
            size: self.grid,
        }
    }

    /// Of everything that the frames depend on, but the way where the planner chooses it.
    fn digest(&self, now: &Try, asked: Option<&Strategy>) -> Result<String> {
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

    fn save(&self, work: &Work<'_>, checkpoint: &mut CheckpointDir) -> Result<()> {
        let (reporter, output) = (work.reporter, &work.job.output);
        reporter.phase("save", json!({}));
        // all frames are there: the video needs the room more
        checkpoint.drop_states()?;
        let total = self.frames;
        video::write(
            (output, &checkpoint.whole()),
            (self.size, self.fps),
            work.job.force,
            checkpoint.frames()?,
            |done| {
                reporter.progress(done, total, "frames");
                reporter.check_cancelled_between_pieces()
            },
            |whole| checkpoint.finishing(whole, self.fps),
        )
    }
}

/// Says which run works here: by that the next attempt knows what came of this one, and whoever started it what it left.
fn note_begin(work: &Work<'_>, checkpoint: &CheckpointDir) {
    if let Some(run) = &work.settings.run
        && let Err(e) = checkpoint.note_begin(run)
    {
        work.problem(&format!(
            "{e}: should this attempt be killed, the next takes the same way"
        ));
    }
}

/// Frames that were damaged each time they were read.
fn given_up(path: PathBuf, reason: &str) -> Error {
    Error::Lost {
        path,
        reason: format!(
            "{reason}: no video is made of that, though what was missing was decoded again {MOST_AGAIN} times: something changes the files, or the disk or the memory of this machine fails; what is whole stays, and the same command goes on from it"
        ),
    }
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
}
