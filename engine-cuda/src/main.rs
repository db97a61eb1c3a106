//! The worker for NVIDIA cards: the engine's own, with this card as its device.

use std::process::ExitCode;
use std::sync::Arc;

use candle_core::DType;
use framepack_engine::worker::{self, DeviceMemory, Made, Wanted};
use framepack_engine::{Error, Result};
use framepack_engine_cuda::{Cuda, Options};

fn main() -> ExitCode {
    worker::main(std::env::args_os().skip(1), Some(&card)).into()
}

/// The first card that CUDA shows, which `CUDA_VISIBLE_DEVICES` chooses.
fn card(wanted: &Wanted) -> Result<Made> {
    let options = Options {
        dtype: precision(wanted.dtype.as_deref())?,
        cap: wanted.cap,
        ..Options::default()
    };
    let cuda = Arc::new(Cuda::new(options)?);
    let name = cuda.name()?;
    let memory = {
        let cuda = Arc::clone(&cuda);
        move || {
            let usage = cuda.pool().usage().ok()?;
            Some(DeviceMemory {
                allocated: usage.used,
                reserved: usage.reserved,
                peak: usage.used_high,
            })
        }
    };
    Ok(Made {
        backend: cuda,
        device: format!("cuda:{}", options.ordinal),
        name,
        memory: Some(Box::new(memory)),
    })
}

/// The precision of this name; where none is asked for, the one that every card since Ampere has and no model
/// overflows.
fn precision(name: Option<&str>) -> Result<DType> {
    Ok(match name {
        None | Some("bfloat16") => DType::BF16,
        Some("float16") => DType::F16,
        Some("float32") => DType::F32,
        Some(other) => {
            return Err(Error::Argument(format!(
                "{other} is not float32, float16 or bfloat16"
            )));
        }
    })
}
