//! The worker for NVIDIA cards: the engine's own, with this card as its device.

use std::process::ExitCode;
use std::sync::Arc;

use framepack_engine::Result;
use framepack_engine::worker::{self, DeviceHandle, DeviceMemory, DeviceRequest};
use framepack_engine_cuda::{Cuda, Options};

fn main() -> ExitCode {
    worker::main(std::env::args_os().skip(1), Some(&card)).into()
}

/// The first card that CUDA shows, which `CUDA_VISIBLE_DEVICES` chooses.
fn card(wanted: &DeviceRequest) -> Result<DeviceHandle> {
    let options = Options {
        dtype: wanted.dtype,
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
                free: cuda.free().ok(),
            })
        }
    };
    Ok(DeviceHandle {
        backend: cuda,
        device: format!("cuda:{}", options.ordinal),
        name,
        memory: Some(Box::new(memory)),
    })
}
