//! One decode, timed.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use candle_core::{DType, Device, Tensor};
use framepack_engine::plan::{Job, MemoryBudget, choose};
use framepack_engine::vae::{Decoder, Direction, Model, Run, Strategy, Tiling, Unobserved};
use framepack_engine_cuda::{Cuda, Options};

use crate::{Result, difference, dtype, pair};

const GIB: f64 = (1u64 << 30) as f64;
const MIB: f64 = (1u64 << 20) as f64;

/// What the command line says.
struct Given<'a>(&'a HashMap<&'a str, &'a str>);

impl Given<'_> {
    fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn number(&self, name: &str) -> Result<Option<f64>> {
        Ok(self.0.get(name).map(|text| text.parse()).transpose()?)
    }

    fn run(&self, name: &str) -> Option<Run> {
        let (length, stride) = self.0.get(name)?.split_once(',')?;
        Some(pair([length.parse().ok()?, stride.parse().ok()?]))
    }

    fn options(&self) -> Result<Options> {
        Ok(Options {
            dtype: dtype(self.0.get("dtype").copied().unwrap_or("bf16"))?,
            cap: self.number("cap")?.map(|gib| (gib * GIB) as u64),
            dnn: !self.has("no-dnn"),
            fuse: self.has("fuse"),
            scratch: self.number("scratch")?.map(|mib| (mib * MIB) as usize),
            profile: self.has("profile"),
            ..Options::default()
        })
    }

    fn way(&self, model: &Model, latents: &Tensor, cuda: &Cuda) -> Result<Strategy> {
        if let Some(gib) = self.number("exact")? {
            return Ok(Strategy::Exact {
                budget: (gib * GIB) as u64,
            });
        }
        if self.has("plan") {
            return planned(model, latents, cuda);
        }
        let chunk = self.number("chunk")?.map(|n| pair([n as usize; 2]));
        Ok(Strategy::Tiled(Tiling {
            space: self.run("tile"),
            time: chunk.or_else(|| self.run("runs")),
        }))
    }
}

/// Decodes the `z` of a file again and again.
pub(crate) fn run(model: &Path, file: &Path, given: &HashMap<&str, &str>) -> Result<()> {
    let given = Given(given);
    let cuda = Arc::new(Cuda::new(given.options()?)?);
    let tensors = candle_core::safetensors::load(file, &Device::Cpu)?;
    let latents = tensors["z"].to_dtype(DType::F32)?;
    let start = Instant::now();
    let model = Model::open(model)?;
    let decoder = model.decoder(cuda.clone())?;
    cuda.synchronize()?;
    let weights = cuda.pool().usage()?.used as f64 / GIB;
    say!(
        "loaded in {:.2} s, {weights:.3} GiB",
        start.elapsed().as_secs_f64()
    );
    let way = given.way(&model, &latents, &cuda)?;
    let times = given.number("times")?.unwrap_or(3.0) as usize;
    let mut seconds = Vec::new();
    let mut video = None;
    cuda.pool().reset_high()?;
    for round in 0..=times {
        drop(video.take());
        if round == times {
            cuda.profile_from_here();
        }
        let start = Instant::now();
        video = Some(once(&decoder, &latents, &way, &cuda)?);
        seconds.push(start.elapsed().as_secs_f64());
    }
    say!("first {:.3} s", seconds.remove(0));
    seconds.sort_by(f64::total_cmp);
    let usage = cuda.pool().usage()?;
    say!(
        "RESULT seconds {:.4} all {seconds:.4?} used_high_gib {:.3} reserved_high_gib {:.3} cap_gib {:?}",
        seconds.get(seconds.len() / 2).copied().unwrap_or(f64::NAN),
        usage.used_high as f64 / GIB,
        usage.reserved_high as f64 / GIB,
        cuda.pool().cap().map(|cap| cap as f64 / GIB),
    );
    let against = given.0.get("against").copied().unwrap_or("out");
    if let Some((video, want)) = video.zip(tensors.get(against)) {
        compare(&video.to_device(&Device::Cpu)?, want)?;
    }
    for line in cuda.profile() {
        say!("  {line}");
    }
    Ok(())
}

fn once(decoder: &Decoder, latents: &Tensor, way: &Strategy, cuda: &Cuda) -> Result<Tensor> {
    let mut parts = Vec::new();
    decoder.decode_stream(latents, way, None, &mut Unobserved, &mut |chunk| {
        parts.push(chunk.video);
        Ok(())
    })?;
    cuda.synchronize()?;
    Ok(if parts.len() == 1 {
        parts.swap_remove(0)
    } else {
        Tensor::cat(&parts, 2)?
    })
}

/// The way that the planner chooses under the cap.
fn planned(model: &Model, latents: &Tensor, cuda: &Cuda) -> Result<Strategy> {
    let (batch, _, t, h, w) = latents.dims5()?;
    let job = Job {
        config: model.config(),
        direction: Direction::Decode,
        batch,
        size: [t, h, w],
    };
    let room = MemoryBudget {
        cap: cuda.pool().cap(),
        held: cuda.pool().usage()?.used,
        ..MemoryBudget::default()
    };
    let choice = choose(&job, cuda, &room).ok_or("nothing fits")?;
    let peak = choice.peak as f64 / GIB;
    say!(
        "planned {:?}: {peak:.3} GiB beside the weights",
        choice.strategy
    );
    Ok(choice.strategy)
}

/// How far from what it should be, in all and frame by frame.
fn compare(video: &Tensor, want: &Tensor) -> Result<()> {
    let (most, mean) = difference(video, want)?;
    say!("DIFFERENCE max {most:.3e} relative_rms {mean:.3e}");
    let each = (0..want.dim(2)?).map(|t| {
        let mean = difference(&video.narrow(2, t, 1)?, &want.narrow(2, t, 1)?)?.1;
        Ok(format!("{mean:.3}"))
    });
    let frames: Vec<String> = each.collect::<Result<_>>()?;
    say!("  by frame: {}", frames.join(" "));
    Ok(())
}
