//! The planner's predictions beside what an allocator that counts sees, as a table.
//!
//! `peaks MODEL CASE…`: MODEL is a folder or a file, a CASE `TxHxW` of latents and then, each behind a comma, any of
//! `tile=LENGTH/STRIDE`, `frames=LENGTH/STRIDE` (pixels and frames of the video), `exact=MB`.

mod case;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use candle_core::{DType, Device, Tensor};
use framepack_engine::ops::cpu::Cpu;
use framepack_engine::plan::{self, Job};
use framepack_engine::vae::{Direction, Model, Tiling, Unobserved};
use peak_alloc::PeakAlloc;

use case::case;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

type Failure = Box<dyn std::error::Error>;

#[expect(clippy::cast_precision_loss, reason = "megabytes with a digit")]
fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().collect();
    let [_, path, cases @ ..] = args.as_slice() else {
        return Err("usage: peaks MODEL CASE...".into());
    };
    let model = Model::open(Path::new(path))?;
    let channels = model.config().latent_channels();
    let decoder = model.decoder(Arc::new(Cpu))?;
    let mut out = std::io::stdout();
    writeln!(
        out,
        "weights: predicted {:.1} MB, measured {:.1} MB\n",
        mb(model.weight_bytes(Direction::Decode, DType::F32)),
        mb(ALLOCATOR.current_usage() as u64)
    )?;
    let latents = |[t, h, w]: [usize; 3]| {
        Tensor::randn(0f32, 1.0, (1, channels, t, h, w), &Device::Cpu)?.to_dtype(DType::F32)
    };
    // threads, and what the matrix product keeps for them, are there from now on
    decoder.decode(&latents([1, 8, 8])?, &Tiling::default(), &mut Unobserved)?;
    writeln!(
        out,
        "| latents, way | predicted MB | measured MB | off by | s |"
    )?;
    writeln!(out, "| --- | --- | --- | --- | --- |")?;
    for text in cases {
        let (size, way) = case(text, 1_000_000)?;
        let job = Job {
            config: model.config(),
            direction: Direction::Decode,
            batch: 1,
            size,
        };
        let predicted = mb(plan::peak(&job, &Cpu, &way)?);
        let latents = latents(size)?;
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let start = Instant::now();
        decoder.decode_stream(&latents, &way, None, &mut Unobserved, &mut |_| Ok(()))?;
        let seconds = start.elapsed().as_secs_f64();
        let measured = mb((ALLOCATOR.peak_usage() - before) as u64);
        let off = (predicted / measured - 1.0) * 100.0;
        writeln!(
            out,
            "| {text} | {predicted:.1} | {measured:.1} | {off:+.1} % | {seconds:.1} |"
        )?;
    }
    Ok(())
}
