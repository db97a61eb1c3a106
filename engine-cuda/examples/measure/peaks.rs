//! The planner's predictions beside the most that was in use of the pool, as a table.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use candle_core::{DType, Device, Tensor};
use framepack_engine::plan::{Job, peak};
use framepack_engine::vae::{Direction, Model, Unobserved};
use framepack_engine_cuda::{Cuda, Options};

use crate::Result;
use crate::case::case;

const MB: f64 = 1e6;
const MIB: u64 = 1 << 20;

/// Decodes random latents of each case once.
pub(crate) fn run(path: &Path, cases: &[String]) -> Result<()> {
    let model = Model::open(path)?;
    let channels = model.config().latent_channels();
    say!("| latents, way | predicted MB | measured MB | off by | s |");
    say!("| --- | --- | --- | --- | --- |");
    let mut most = 0f64;
    for text in cases {
        let (size @ [t, h, w], way) = case(text, MIB)?;
        // a pool of its own: what an earlier case has kept is no part of this one
        let cuda = Arc::new(Cuda::new(Options::default())?);
        let job = Job {
            config: model.config(),
            direction: Direction::Decode,
            batch: 1,
            size,
        };
        let predicted = peak(&job, &*cuda, &way)? as f64 / MB;
        let decoder = model.decoder(cuda.clone())?;
        cuda.synchronize()?;
        let held = cuda.pool().usage()?.used;
        let latents = Tensor::randn(0f32, 1.0, (1, channels, t, h, w), &Device::Cpu)?;
        let latents = latents.to_dtype(DType::F32)?;
        cuda.pool().reset_high()?;
        let start = Instant::now();
        decoder.decode_stream(&latents, &way, None, &mut Unobserved, &mut |_| Ok(()))?;
        cuda.synchronize()?;
        let seconds = start.elapsed().as_secs_f64();
        let measured = (cuda.pool().usage()?.used_high - held) as f64 / MB;
        let off = (predicted / measured - 1.0) * 100.0;
        most = most.max(off.abs());
        say!("| {text} | {predicted:.1} | {measured:.1} | {off:+.1} % | {seconds:.2} |");
    }
    say!("\nfurthest off: {most:.1} %");
    if most > 5.0 {
        return Err("a prediction is more than 5 % off".into());
    }
    Ok(())
}
