//! Every case of the engine's fixtures, in every precision and way.

use std::path::Path;
use std::sync::Arc;

use candle_core::{DType, Device, Tensor};
use framepack_engine::ops::Backend;
use framepack_engine::vae::{Model, Tiling, Unobserved, WanConfig};
use framepack_engine_cuda::{Cuda, Options};

use crate::{Result, difference, pair};

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

/// Folders of the fixtures. The others have channels that are no multiples of anything.
const MODELS: [&str; 7] = [
    "hunyuan_vae_tiny",
    "wan21_vae_tiny",
    "wan22_vae_tiny",
    "others/hunyuan_plain",
    "others/hunyuan_enlarging",
    "others/wan_patched",
    "others/wan_residual",
];

/// Precision, cuDNN or products, bytes of scratch: few make many slabs.
const WAYS: [(DType, bool, Option<usize>); 7] = [
    (DType::F32, true, None),
    (DType::F32, false, None),
    (DType::F32, true, Some(300_000)),
    (DType::BF16, true, None),
    (DType::BF16, false, None),
    (DType::F16, true, None),
    (DType::F16, true, Some(300_000)),
];

/// The largest error of a number and the relative one of a whole clip that are let pass. Half precision has 11 and 8 bits
/// of what the numbers reach, and the models random weights: where that is beyond 1 the first is a share of it.
fn bounds(dtype: DType) -> (f32, f64) {
    match dtype {
        DType::F32 => (3e-5, 1e-5),
        DType::F16 => (1.5e-2, 1e-2),
        _ => (1e-1, 5e-2),
    }
}

/// Whether all are within their bounds.
pub(crate) fn run(folder: &Path) -> Result<bool> {
    let mut good = true;
    for (dtype, dnn, scratch) in WAYS {
        let options = Options {
            dtype,
            dnn,
            scratch,
            cap: Some(2 << 30),
            ..Options::default()
        };
        let cuda = Arc::new(Cuda::new(options)?);
        for name in MODELS {
            let (most, mean) = one(&folder.join(name), &cuda)?;
            let (bound, share) = bounds(dtype);
            say!(
                "{name} {dtype:?} dnn {dnn} scratch {scratch:?}: largest error {most:.2e} (bound {bound:.1e}), relative {mean:.1e} (bound {share:.0e})"
            );
            good &= most <= bound && mean <= share;
        }
        let usage = cuda.pool().usage()?;
        cuda.release()?;
        say!("  pool: {usage:?}, released {:?}", cuda.pool().usage()?);
    }
    Ok(good)
}

/// The largest errors of a model, as [`bounds`] counts them; NaN stays.
fn one(folder: &Path, cuda: &Arc<Cuda>) -> Result<(f32, f64)> {
    let cases: Cases = serde_json::from_slice(&std::fs::read(folder.join("cases.json"))?)?;
    let tensors = candle_core::safetensors::load(folder.join("cases.safetensors"), &Device::Cpu)?;
    let model = Model::open(folder)?;
    let decoder = model.decoder(cuda.clone())?;
    let mut worst = (0f32, 0f64);
    let mut note = |got: &Tensor, want: &str| -> Result<()> {
        let (most, mean) = difference(got, &tensors[want])?;
        let most = most / reach(&tensors[want], cuda.dtype())?;
        let larger = most.is_nan() || most > worst.0;
        worst = (if larger { most } else { worst.0 }, worst.1.max(mean));
        Ok(())
    };
    for case in &cases.cases {
        let own = Tiling {
            space: case.tile_min_stride.map(pair),
            time: case.frames_min_stride.map(pair),
        };
        let longer = Tiling {
            time: Some(pair([12, 12])),
            ..own
        };
        let wan = model.config().of::<WanConfig>().is_some();
        for tiling in std::iter::once(own).chain(wan.then_some(longer)) {
            let latents = &tensors[&format!("{}.z", case.name)];
            let video = decoder.decode(latents, &tiling, &mut Unobserved)?;
            note(&video, &format!("{}.out", case.name))?;
        }
    }
    let encoder = model.encoder(cuda.clone())?;
    let moments = encoder.encode(&tensors["encode.x"], &Tiling::default(), &mut Unobserved)?;
    note(&moments, "encode.moments")?;
    Ok(worst)
}

/// What an error is a share of.
fn reach(want: &Tensor, dtype: DType) -> Result<f32> {
    if dtype == DType::F32 {
        return Ok(1.0);
    }
    let most: f32 = want.abs()?.flatten_all()?.max(0)?.to_scalar()?;
    Ok(most.max(1.0))
}
