//! Measures the CUDA backend and holds it against reference outputs.
//!
//! ```text
//! measure operations                   attention, convolutions and sums against the processor's, at sizes that fixtures do not have
//! measure fixtures FOLDER              every case of engine/tests/fixtures, in every precision and way
//! measure decode MODEL FILE OPTIONS    FILE: safetensors with z, and out where there is something to compare with
//! measure engines DTYPE CxO,TxHxW …    what cuDNN's engines take for 3x3x3 taps
//! ```
//! Options of `decode`: `--dtype bf16|f16|f32`, `--cap GIB`, `--times N`, `--chunk FRAMES`, `--tile LENGTH,STRIDE`, `--runs LENGTH,STRIDE`, `--scratch MIB`,
//! `--exact GIB` (the budget), `--against NAME` (of the
//! tensor to compare with), `--plan 1` (what the
//! planner chooses), `--no-dnn 1`, `--fuse 1`, `--profile 1`.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use candle_core::{DType, Device, Tensor};
use framepack_engine::ops::cpu::Cpu;
use framepack_engine::ops::{Axis, Backend, Norm, Prologue, Sight};
use framepack_engine::plan::{Half, Job, Room, Way, choose};
use framepack_engine::vae::{Decoder, Model, Run, Tiling, Unobserved};
use framepack_engine_cuda::{Cuda, Options};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

macro_rules! say {
    ($($words:tt)*) => {
        writeln!(std::io::stdout(), $($words)*)?
    };
}

#[derive(serde::Deserialize)]
struct Cases {
    cases: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    tile_min_stride: Option<[usize; 2]>,
    frames_min_stride: Option<[usize; 2]>,
}

fn run([length, stride]: [usize; 2]) -> Run {
    Run { length, stride }
}

/// The largest difference, and the root of its mean square over that of `want`.
fn difference(got: &Tensor, want: &Tensor) -> Result<(f32, f64)> {
    let got = got.to_device(&Device::Cpu)?;
    if got.dims() != want.dims() {
        return Err(format!("{:?} where {:?} was due", got.dims(), want.dims()).into());
    }
    let (got, want) = (
        got.flatten_all()?.to_vec1::<f32>()?,
        want.flatten_all()?.to_dtype(DType::F32)?.to_vec1::<f32>()?,
    );
    let (mut most, mut off, mut all) = (0f32, 0f64, 0f64);
    for (a, b) in got.iter().zip(&want) {
        let d = (a - b).abs();
        most = if d.is_nan() { f32::NAN } else { most.max(d) };
        off += f64::from(d) * f64::from(d);
        all += f64::from(*b) * f64::from(*b);
    }
    Ok((most, (off / all).sqrt()))
}

fn fixtures(folder: &Path) -> Result<bool> {
    let mut good = true;
    for (dtype, dnn, scratch) in [
        (DType::F32, true, None),
        (DType::F32, false, None),
        (DType::F32, true, Some(300_000)),
        (DType::BF16, true, None),
        (DType::BF16, false, None),
        (DType::F16, true, None),
        (DType::F16, true, Some(300_000)),
    ] {
        let options = Options {
            dtype,
            dnn,
            scratch,
            cap: Some(2 << 30),
            ..Options::default()
        };
        let cuda = Arc::new(Cuda::new(options)?);
        let bound = match dtype {
            DType::F32 => 3e-5,
            DType::F16 => 3e-2,
            _ => 2e-1,
        };
        for name in ["hunyuan_vae_tiny", "wan21_vae_tiny", "wan22_vae_tiny"] {
            let at = folder.join(name);
            let cases: Cases = serde_json::from_slice(&std::fs::read(at.join("cases.json"))?)?;
            let tensors =
                candle_core::safetensors::load(at.join("cases.safetensors"), &Device::Cpu)?;
            let model = Model::open(&at)?;
            let decoder = model.decoder(cuda.clone())?;
            let mut worst = (0f32, 0f64);
            let mut note =
                |what: &str, got: framepack_engine::Result<Tensor>, want: &Tensor| -> Result<()> {
                    let (most, mean) = match got {
                        Ok(got) => difference(&got, want)?,
                        Err(error) => {
                            say!("{name} {what}: {error}");
                            (f32::NAN, f64::NAN)
                        }
                    };
                    if most.is_nan() || most > bound {
                        good = false;
                        say!("  over the bound: {name} {what}: {most:.2e}, mean {mean:.1e}");
                    }
                    worst = (worst.0.max(most), worst.1.max(mean));
                    Ok(())
                };
            for case in &cases.cases {
                let mut tilings = vec![Tiling {
                    space: case.tile_min_stride.map(run),
                    time: case.frames_min_stride.map(run),
                }];
                if name.starts_with("wan") {
                    tilings.push(Tiling {
                        time: Some(run([12, 12])),
                        ..tilings[0]
                    });
                }
                for tiling in tilings {
                    let video = decoder.decode(
                        &tensors[&format!("{}.z", case.name)],
                        &tiling,
                        &mut Unobserved,
                    );
                    note(&case.name, video, &tensors[&format!("{}.out", case.name)])?;
                }
            }
            let moments = model.encoder(cuda.clone())?.encode(
                &tensors["encode.x"],
                &Tiling::default(),
                &mut Unobserved,
            );
            note("encode", moments, &tensors["encode.moments"])?;
            say!(
                "{name} {dtype:?} dnn {dnn} scratch {scratch:?}: largest error {:.2e}, relative {:.1e} (bound {bound:.0e})",
                worst.0,
                worst.1
            );
        }
        let usage = cuda.pool().usage()?;
        cuda.release()?;
        say!(
            "  pool: {:?}, after release {:?}",
            usage,
            cuda.pool().usage()?
        );
    }
    Ok(good)
}

/// Random numbers that need no library.
fn random(shape: &[usize], seed: u32) -> Result<Tensor> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let numbers: Vec<f32> = (0..shape.iter().product::<usize>())
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect();
    Ok(Tensor::from_vec(numbers, shape, &Device::Cpu)?)
}

/// Compares one operation; the relative difference of single precision must be small.
fn operations() -> Result<bool> {
    let mut good = true;
    let mut note = |what: String, got: &Tensor, want: &Tensor| -> Result<()> {
        let (most, mean) = difference(&got.to_dtype(DType::F32)?, want)?;
        good &= mean < 1e-5;
        say!("{what}: largest {most:.1e}, relative {mean:.1e}");
        Ok(())
    };
    for dnn in [true, false] {
        let cuda = Cuda::new(Options {
            dtype: DType::F32,
            dnn,
            ..Options::default()
        })?;
        let on_card = |tensor: &Tensor| tensor.to_device(cuda.device());
        for (frames, side, channels) in [(2, 40, 16), (2, 67, 16), (5, 48, 16), (3, 56, 24)] {
            let qkv = (random(&[1, frames, side, side, 3 * channels], 1)? * 3.0)?;
            for sight in [Sight::Causal, Sight::Frame] {
                let got = cuda.attention(&on_card(&qkv)?, sight)?;
                note(
                    format!("attention {frames}x{side}x{side} {sight:?}"),
                    &got,
                    &Cpu.attention(&qkv, sight)?,
                )?;
            }
        }
        for (inputs, outputs, size, enlarged) in [
            (16, 24, [5, 33, 41], false),
            (24, 16, [5, 17, 23], true),
            (16, 3, [3, 40, 300], false),
            (3, 16, [3, 30, 50], false),
            (40, 12, [2, 20, 40], false),
        ] {
            let [t, h, w] = size;
            let clip = random(&[2, t, h, w, inputs], 2)?;
            let weight = random(&[outputs, inputs, 3, 3, 3], 3)?;
            let bias = random(&[outputs], 4)?;
            let wide = |axis: Axis| if enlarged { axis.doubled() } else { axis };
            let first = Axis::identity(t);
            let axes = [
                if enlarged {
                    first.doubled_after_first()
                } else {
                    first
                }
                .replicate(2, 0),
                wide(Axis::identity(h)).replicate(1, 1),
                wide(Axis::identity(w)).zeros(1, 1),
            ];
            let gamma = random(&[inputs], 5)?;
            let convolve = |backend: &dyn Backend, stride: [usize; 3]| -> Result<Tensor> {
                let conv = backend.load_conv(
                    &weight.to_device(backend.device())?,
                    Some(&bias.to_device(backend.device())?),
                )?;
                let gamma = gamma.to_device(backend.device())?;
                let prologue = Prologue {
                    norm: Norm::Rms(&gamma),
                    silu: true,
                    axes: axes.clone(),
                };
                let clip = clip.to_device(backend.device())?;
                Ok(backend.conv3d((&clip).into(), &prologue, &conv.with_stride(stride), None)?)
            };
            for stride in [[1, 1, 1], [2, 2, 2], [1, 2, 2]] {
                note(
                    format!(
                        "convolution {inputs}->{outputs} {size:?} enlarged {enlarged} stride {stride:?}"
                    ),
                    &convolve(&cuda, stride)?,
                    &convolve(&Cpu, stride)?,
                )?;
            }
        }
        let clip = random(&[2, 9, 150, 170, 32], 6)?;
        let sums = |backend: &dyn Backend| -> Result<Tensor> {
            let sums = backend
                .group_sums(&clip.to_device(backend.device())?, 8)?
                .sums;
            let numbers: Vec<f32> = sums
                .iter()
                .flat_map(|(a, b)| [*a as f32, *b as f32])
                .collect();
            let count = numbers.len();
            Ok(Tensor::from_vec(numbers, count, &Device::Cpu)?)
        };
        note("group sums".into(), &sums(&cuda)?, &sums(&Cpu)?)?;
    }
    Ok(good)
}

/// `--name value` of the arguments.
fn options(args: &[String]) -> HashMap<&str, &str> {
    let mut all = HashMap::new();
    for (i, arg) in args.iter().enumerate() {
        if let Some(name) = arg.strip_prefix("--") {
            all.insert(name, args.get(i + 1).map_or("", String::as_str));
        }
    }
    all
}

fn dtype(name: &str) -> Result<DType> {
    Ok(match name {
        "f32" => DType::F32,
        "f16" => DType::F16,
        "bf16" => DType::BF16,
        _ => return Err(format!("{name} is not bf16, f16 or f32").into()),
    })
}

const GIB: f64 = (1u64 << 30) as f64;

fn decode(model: &Path, file: &Path, given: &HashMap<&str, &str>) -> Result<()> {
    let number = |name: &str| given.get(name).map(|text| text.parse::<f64>()).transpose();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "sizes from the command line"
    )]
    let settings = Options {
        dtype: dtype(given.get("dtype").copied().unwrap_or("bf16"))?,
        cap: number("cap")?.map(|gib| (gib * GIB) as u64),
        dnn: !given.contains_key("no-dnn"),
        fuse: given.contains_key("fuse"),
        scratch: number("scratch")?.map(|mib| (mib * 1048576.0) as usize),
        profile: given.contains_key("profile"),
        ..Options::default()
    };
    let cuda = Arc::new(Cuda::new(settings)?);
    let tensors = candle_core::safetensors::load(file, &Device::Cpu)?;
    let latents = tensors["z"].to_dtype(DType::F32)?;
    let start = Instant::now();
    let model = Model::open(model)?;
    let decoder = model.decoder(cuda.clone())?;
    cuda.synchronize()?;
    say!(
        "loaded in {:.2} s, {:.3} GiB",
        start.elapsed().as_secs_f64(),
        cuda.pool().usage()?.used as f64 / GIB
    );
    let pair = |text: &&str| -> Option<Run> {
        let (length, stride) = text.split_once(',')?;
        Some(run([length.parse().ok()?, stride.parse().ok()?]))
    };
    let tiling = Tiling {
        space: given.get("tile").and_then(pair),
        time: given
            .get("chunk")
            .and_then(|text| text.parse().ok())
            .map(|n| run([n, n]))
            .or_else(|| given.get("runs").and_then(pair)),
    };
    let way = match number("exact")? {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a size from the command line"
        )]
        Some(gib) => Way::Exact {
            budget: (gib * GIB) as u64,
        },
        None if given.contains_key("plan") => planned(&model, &latents, &cuda)?,
        None => Way::Tiled(tiling),
    };
    let times = number("times")?.unwrap_or(3.0) as usize;
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
        if round == 0 {
            say!("first {:.3} s", start.elapsed().as_secs_f64());
        } else {
            seconds.push(start.elapsed().as_secs_f64());
        }
    }
    seconds.sort_by(f64::total_cmp);
    let usage = cuda.pool().usage()?;
    say!(
        "RESULT seconds {:.4} all {seconds:.4?} used_high_gib {:.3} reserved_high_gib {:.3} cap_gib {:?}",
        seconds[seconds.len() / 2],
        usage.used_high as f64 / GIB,
        usage.reserved_high as f64 / GIB,
        cuda.pool().cap().map(|cap| cap as f64 / GIB),
    );
    if let Some((video, want)) = video.zip(tensors.get(*given.get("against").unwrap_or(&"out"))) {
        let (most, mean) = difference(&video, want)?;
        say!("DIFFERENCE max {most:.3e} relative_rms {mean:.3e}");
        let frames = want.dim(2)?;
        let each = (0..frames).map(|t| {
            let (got, want) = (video.narrow(2, t, 1)?, want.narrow(2, t, 1)?);
            Ok(format!(
                "{:.3}",
                difference(&got.to_device(&Device::Cpu)?, &want)?.1
            ))
        });
        say!(
            "  by frame: {}",
            each.collect::<Result<Vec<_>>>()?.join(" ")
        );
    }
    for line in cuda.profile() {
        say!("  {line}");
    }
    Ok(())
}

fn once(decoder: &Decoder, latents: &Tensor, way: &Way, cuda: &Cuda) -> Result<Tensor> {
    let mut parts = Vec::new();
    decoder.decode_way(latents, way, None, &mut Unobserved, &mut |chunk| {
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
fn planned(model: &Model, latents: &Tensor, cuda: &Cuda) -> Result<Way> {
    let (batch, _, t, h, w) = latents.dims5()?;
    let job = Job {
        config: model.config(),
        half: Half::Decoder,
        batch,
        size: [t, h, w],
    };
    let room = Room {
        cap: cuda.pool().cap(),
        held: cuda.pool().usage()?.used,
        ..Room::default()
    };
    let choice = choose(&job, cuda, &room).ok_or("nothing fits")?;
    say!(
        "planned {:?}: {:.3} GiB beside the weights",
        choice.way,
        choice.peak as f64 / GIB
    );
    Ok(choice.way)
}

fn engines(precision: &str, shapes: &[String]) -> Result<()> {
    let options = Options {
        dtype: dtype(precision)?,
        ..Options::default()
    };
    let cuda = Cuda::new(options)?;
    for shape in shapes {
        let numbers: Vec<usize> = shape
            .split([',', 'x'])
            .map(str::parse)
            .collect::<std::result::Result<_, _>>()?;
        let [inputs, outputs, t, h, w, rest @ ..] = numbers.as_slice() else {
            return Err(format!("{shape}: CxO,TxHxW,KTxKHxKW").into());
        };
        let taps = if let [a, b, c] = rest {
            [*a, *b, *c]
        } else {
            [3; 3]
        };
        for line in cuda.compare_engines([*inputs, *outputs], [*t, *h, *w], taps)? {
            say!("{shape} {line}");
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["operations"] => {
            if !operations()? {
                return Err("an operation differs from the processor's".into());
            }
            Ok(())
        }
        ["fixtures", folder] => {
            if !fixtures(Path::new(folder))? {
                return Err("some cases are over their bound".into());
            }
            Ok(())
        }
        ["decode", model, file, ..] => {
            decode(Path::new(model), Path::new(file), &options(&args[3..]))
        }
        ["engines", precision, ..] => engines(precision, &args[2..]),
        _ => Err("usage: measure fixtures|decode|engines …".into()),
    }
}
