//! Decodes the latents of a safetensors file, says how long it took and how much memory, and compares
//! with what the file says should come out.
//!
//! `decode MODEL_FOLDER FILE [REPETITIONS]`: FILE has `z`, and `out` where there is something to compare with.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use candle_core::Device;
use framepack_engine::ops::cpu::Cpu;
use framepack_engine::vae::{Model, Tiling, Unobserved};

/// A line of /proc/self/status, in MB.
fn memory(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|line| {
        line.trim_matches([':', ' ', '\t'])
            .split(' ')
            .next()?
            .parse::<f64>()
            .ok()
    });
    kib.map_or(f64::NAN, |kib| kib * 1024.0 / 1e6)
}

/// The processor's time of all threads so far, in seconds: fields 14 and 15 of /proc/self/stat, in hundredths.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks
        .map(|ticks| ticks.parse().unwrap_or(f64::NAN))
        .sum::<f64>()
        / 100.0
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, model, file, rest @ ..] = args.as_slice() else {
        return Err("usage: decode MODEL_FOLDER FILE [REPETITIONS]".into());
    };
    let repetitions: usize = rest.first().map_or(Ok(1), |text| text.parse())?;
    let decoder = Model::open(Path::new(model))?.decoder(Arc::new(Cpu))?;
    let tensors = candle_core::safetensors::load(file, &Device::Cpu)?;
    let latents = tensors.get("z").ok_or("no tensor z")?;
    let loaded = memory("VmHWM");
    let (mut seconds, mut cpu) = (Vec::new(), Vec::new());
    let mut video = None;
    for _ in 0..repetitions {
        drop(video.take());
        let (start, cpu_start) = (Instant::now(), cpu_seconds());
        video = Some(decoder.decode(latents, &Tiling::default(), &mut Unobserved)?);
        seconds.push(start.elapsed().as_secs_f64());
        cpu.push(cpu_seconds() - cpu_start);
    }
    let least = |all: &[f64]| all.iter().copied().fold(f64::INFINITY, f64::min);
    let mut out = std::io::stdout();
    writeln!(
        out,
        "seconds {:.2}  cpu_seconds {:.2}  loaded_mb {loaded:.0}  peak_mb {:.0}",
        least(&seconds),
        least(&cpu),
        memory("VmHWM")
    )?;
    if let Some((video, want)) = video.zip(tensors.get("out")) {
        let error = (video - want)?
            .abs()?
            .flatten_all()?
            .max(0)?
            .to_scalar::<f32>()?;
        writeln!(out, "max_abs_error {error:.2e}")?;
    }
    Ok(())
}
