//! A video to latents.

use std::collections::HashMap;
use std::sync::Arc;

use candle_core::{Device, Tensor};
use safetensors::tensor::TensorView;
use serde_json::json;

use super::decode::wrote;
use super::job::{fitting, open_model};
use super::latents::Latents;
use super::reporter::AT_ONCE;
use super::watch::Watch;
use super::{Ready, Work, say, sizes};
use crate::error::{Error, RAISE_LIMIT, Result, argument, io};
use crate::plan;
use crate::vae::{Direction, Model, Strategy};
use crate::video::{self, Frames};

/// The run that wrote latents, as the vault names it.
const RUN: &str = "run";

pub(super) fn run(work: &Work<'_>) -> Result<()> {
    let (job, reporter) = (work.job, work.reporter);
    job.check_place()?;
    if job.output.symlink_metadata().is_ok() && !job.force {
        if is_of_this_run(work) {
            // killed between the last step and its end
            wrote(&job.output);
            return Ok(());
        }
        return Err(Error::Exists(job.output.clone()));
    }
    reporter.phase("model_load", json!({}));
    let model = open_model(job)?;
    work.about(&model);
    let frames = video::read(&job.input, sizes::limits(), &mut || {
        reporter.check_cancelled(AT_ONCE)
    })?;
    for text in &frames.problems {
        work.problem(text);
    }
    let ratio = model.config().ratio();
    let size = fitting(ratio, frames.count(), frames.size)
        .and_then(|size| sizes::encodable(model.config(), size, work.place()).map(|()| size))
        .map_err(|reason| Error::File {
            path: job.input.clone(),
            reason,
        })?;
    let [count, height, width] = size;
    say(&format!(
        "{}: {count} frames of {width} x {height} pixels",
        model.config().class()
    ));
    if count < frames.count() {
        say(&format!(
            "the last {} of {} frames are left out: their number must be a multiple of {} plus 1",
            frames.count() - count,
            frames.count(),
            ratio.time
        ));
    }
    let fps = frames.fps;
    let video = numbers(&frames, size)?;
    drop(frames);
    let ready = work.device(work.place(), work.dtype())?;
    let backend = Arc::clone(&ready.backend);
    let plan = plan::Job {
        config: model.config(),
        direction: Direction::Encode,
        batch: 1,
        size,
    };
    let strategy = strategy(work, &ready, &model, &plan)?;
    let tiling = match strategy {
        Strategy::Tiled(tiling) => tiling,
        Strategy::Exact { .. } => return argument("only a decoder has an exact mode"),
    };
    say(&format!(
        "encoding on {}, {}",
        ready.name,
        sizes::words(&strategy)
    ));
    let encoder = model.encoder(Arc::clone(&backend))?;
    if let Some(text) = model.unused(Direction::Encode) {
        work.problem(&text);
    }
    reporter.phase(
        "vae_encode",
        json!({ "model": model.config().class(), "shape": video.dims() }),
    );
    let mut watch = Watch::new(reporter, work.settings.piece_limit());
    let moments = encoder.encode(&video, &tiling, &mut watch)?;
    // the mean; the other half is the logarithm of the variance
    let latents = moments
        .narrow(1, 0, model.config().latent_channels())?
        .to_device(&Device::Cpu)?
        .contiguous()?;
    reporter.phase("save", json!({}));
    write(work, &model, &latents, fps)?;
    wrote(&job.output);
    Ok(())
}

/// As the settings say, else as the planner chooses.
fn strategy(
    work: &Work<'_>,
    ready: &Ready,
    model: &Model,
    plan: &plan::Job<'_>,
) -> Result<Strategy> {
    if let Some(strategy) = sizes::asked(model.config(), work.settings) {
        return Ok(strategy);
    }
    let backend = &*ready.backend;
    let weights = model.weight_bytes(Direction::Encode, backend.dtype());
    let mut budget = sizes::budget(work, ready, weights);
    // nothing tells which way was too much
    if let (true, true, Some(left)) = (
        work.settings.is_host_short(),
        backend.device().is_cpu(),
        budget.left(),
    ) {
        budget = sizes::at_most(&budget, left / 2);
    }
    Ok(sizes::choose(plan, backend, &budget, None)?.strategy)
}

/// Whether an earlier attempt of this very run has written what stands at the output: latents say of which run they are.
fn is_of_this_run(work: &Work<'_>) -> bool {
    let run = work.settings.run.as_deref();
    let there = Latents::look(&work.job.output).ok();
    there.is_some_and(|latents| run.is_some() && latents.says(RUN) == run)
}

/// The first frames as (1, 3, T, H, W) of -1 to 1.
fn numbers(frames: &Frames, [count, height, width]: [usize; 3]) -> Result<Tensor> {
    let bytes = &frames.bytes[..count * frames.size.frame()];
    let mut numbers = Vec::with_capacity(bytes.len());
    for channel in 0..3 {
        let of_channel = bytes[channel..].iter().step_by(3);
        numbers.extend(of_channel.map(|byte| f32::from(*byte) / 127.5 - 1.0));
    }
    let shape = (1, 3, count, height, width);
    Ok(Tensor::from_vec(numbers, shape, &Device::Cpu)?)
}

/// As the vault writes latents (docs/vault.md), whole or not at all.
fn write(work: &Work<'_>, model: &Model, latents: &Tensor, fps: Option<f64>) -> Result<()> {
    let job = work.job;
    let path = job
        .model
        .canonicalize()
        .unwrap_or_else(|_| job.model.clone());
    let mut told: HashMap<String, String> = [
        ("format", "framepack-tui".to_owned()),
        ("version", "1".to_owned()),
        ("program", "framepack-tui".to_owned()),
        ("vae_class", model.config().class().to_owned()),
        ("vae_path", path.display().to_string()),
        ("scaling_applied", "true".to_owned()),
        ("shape", format!("{:?}", latents.dims())),
        ("dtype", "float32".to_owned()),
        ("latent_frames", latents.dim(2)?.to_string()),
    ]
    .map(|(name, text)| (name.to_owned(), text))
    .into();
    if let Some(run) = &work.settings.run {
        told.insert(RUN.to_owned(), run.clone());
    }
    if let Some(fps) = job.fps.or(fps) {
        told.insert("fps".to_owned(), fps.to_string());
    }
    let numbers: Vec<f32> = latents.flatten_all()?.to_vec1()?;
    let bytes: Vec<u8> = numbers.into_iter().flat_map(f32::to_le_bytes).collect();
    let wrong = |e: safetensors::SafeTensorError| Error::File {
        path: job.output.clone(),
        reason: e.to_string(),
    };
    let view =
        TensorView::new(safetensors::Dtype::F32, latents.dims().to_vec(), &bytes).map_err(wrong)?;
    // not by its own function for files, which makes one that nobody else may read
    let bytes = safetensors::serialize([("latents", view)], Some(told)).map_err(wrong)?;
    let cure = |e: &Error| {
        let room = bytes.len().div_ceil(1 << 20);
        let what = if e.is_beyond_limit() {
            format!("a file of {room} MiB is not allowed there: {RAISE_LIMIT}")
        } else {
            format!("make {room} MiB free there")
        };
        format!("{what}, or name an output on another disk, and encode it again: nothing is kept")
    };
    let part = video::free_name(&job.output).map_err(|e| e.with_cure(cure))?;
    video::whole(
        &part,
        |part| std::fs::write(part, &bytes).map_err(io(part)),
        |part| video::into_place(part, &job.output, job.force),
    )
    .map_err(|e| e.with_cure(cure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pixels_of_a_frame_become_a_plane_of_each_colour() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v");
        let size = video::Size {
            width: 2,
            height: 1,
        };
        // two frames, of which the first counts
        let bytes = vec![0, 51, 102, 153, 204, 255, 9, 9, 9, 9, 9, 9];
        let part = folder.path().join("part");
        let all = [Ok(bytes)].into_iter();
        video::write(
            (&path, &part),
            (size, 1.0),
            false,
            all,
            |_| Ok(()),
            |_| Ok(()),
        )
        .unwrap();
        let frames = video::read(&path, video::Limits::NONE, &mut || Ok(())).unwrap();
        let video = numbers(&frames, [1, 1, 2]).unwrap();
        assert_eq!(video.dims(), [1, 3, 1, 1, 2]);
        let numbers: Vec<f32> = video.flatten_all().unwrap().to_vec1().unwrap();
        let bytes: Vec<f32> = numbers
            .iter()
            .map(|x| ((x + 1.0) * 127.5).round())
            .collect();
        assert_eq!(bytes, [0.0, 153.0, 51.0, 204.0, 102.0, 255.0]);
    }

    #[test]
    fn files_of_the_users_are_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join(".z.safetensors.0.part");
        std::fs::write(&taken, "mine").unwrap();
        let free = video::free_name(&folder.path().join("z.safetensors")).unwrap();
        assert_eq!(free, folder.path().join(".z.safetensors.1.part"));
        assert_eq!(std::fs::read(taken).unwrap(), b"mine");
    }
}
