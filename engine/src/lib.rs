//! Decodes and encodes video latents without Python.
//!
//! | module | what |
//! | --- | --- |
//! | [`ops`] | the operations, behind one trait, and the processor's way of doing them |
//! | [`plan`] | how much memory a run takes, and which way of running fits |
//! | [`vae`] | the autoencoders: HunyuanVideo, WAN 2.1 and 2.2; chunks and tiles |
//! | [`weights`] | safetensors files, read on demand |
//! | [`video`] | videos as files: mp4, gif, pictures |
//! | [`worker`] | the process that decodes or encodes one file under a supervisor |
//! | [`error`] | what can go wrong |
//!
//! `worker` uses the others, `vae` uses `ops` and `weights`; these and `video` know only `error`.
//!
//! ```no_run
//! use std::sync::Arc;
//! use framepack_engine::{ops::cpu::Cpu, vae::{Model, Run, Tiling, Unobserved}};
//!
//! # fn main() -> framepack_engine::Result<()> {
//! # let latents = candle_core::Tensor::zeros((1, 16, 3, 60, 60), candle_core::DType::F32, &candle_core::Device::Cpu)?;
//! let decoder = Model::open("model/vae".as_ref())?.decoder(Arc::new(Cpu))?;
//! let latents = decoder.unscale(&latents)?;
//! let tiling = Tiling { space: Some(Run { length: 256, stride: 192 }), time: None };
//! let video = decoder.decode(&latents, &tiling, &mut Unobserved)?;
//! # Ok(())
//! # }
//! ```

pub mod error;
pub mod ops;
pub mod plan;
pub mod vae;
pub mod video;
pub mod weights;
pub mod worker;

pub use candle_core::Device;
pub use error::{Error, Result};
