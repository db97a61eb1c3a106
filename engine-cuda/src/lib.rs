//! The engine's operations on NVIDIA cards, on candle's CUDA device.
//!
//! | module | what |
//! | --- | --- |
//! | [`doors`] | opens CUDA's libraries, so that the program starts without them |
//! | [`pool`] | the memory pool with its cap and counters |
//! | `conv`, `attention`, `norm` | the operations |
//! | `dnn`, `blas`, `memory` | cuDNN, cuBLAS, own kernels (`kernels/*.cuh`): addresses in, errors out |
//! | `plan` | slabs and folded axes: numbers only |
//! | `copies` | parts of clips into others |
//! | `kept` | what is made once for several operations |
//!
//! Clips are channels-last in one of three precisions; sums are in single precision, statistics in double.

mod attention;
mod blas;
mod compare;
mod conv;
mod copies;
mod dnn;
pub mod doors;
mod error;
mod kept;
mod memory;
mod norm;
mod plan;
pub mod pool;
mod profile;
mod sizing;

use std::sync::{Mutex, PoisonError};

use candle_core::cuda_backend::cudarc::driver::{CudaContext, sys};
use candle_core::cuda_backend::cudarc::nvrtc::Ptx;
use candle_core::{DType, Device, Tensor};
use framepack_engine::ops::{
    AttentionMask, Axis, Backend, Conv3d, ConvInput, ConvSize, GroupSums, Pending, Prologue,
};

use crate::blas::{Blas, Matrix, Product};
use crate::conv::Folds;
use crate::dnn::{Data, Dnn, Shape, Sums};
use crate::error::{Result, argument, wrap};
use crate::memory::{Buffer, Kernels};
use crate::pool::Pool;
use crate::profile::Profile;
use crate::sizing::Sizing;

/// The kernels, as the compiler left them.
const KERNELS: &str = include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx"));

/// How a device is used.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The card, counted as CUDA does.
    pub ordinal: usize,
    /// F32, F16 or BF16.
    pub dtype: DType,
    /// The most bytes of tensors and buffers; `None`: what the card has.
    pub cap: Option<u64>,
    /// Whether convolutions may be cuDNN's; else they are matrix products.
    pub dnn: bool,
    /// Whether bias and shortcut may be summed up in cuDNN's own kernel. It compiles such kernels when they are first
    /// needed, a fifth of a second for each size of clip, and gains about what a kernel of ours takes: nothing
    /// for a single decode.
    pub fuse: bool,
    /// Bytes that an operation may use beside its input and output; `None`: a share of the cap.
    pub scratch: Option<usize>,
    /// Whether [`Cuda::profile`] is wanted: every piece of work is then waited for.
    pub profile: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ordinal: 0,
            dtype: DType::BF16,
            cap: None,
            dnn: true,
            fuse: false,
            scratch: None,
            profile: false,
        }
    }
}

/// A card.
pub struct Cuda {
    device: Device,
    dtype: DType,
    kernels: Kernels,
    blas: Blas,
    dnn: Option<Mutex<Dnn>>,
    fuse: bool,
    sizing: Sizing,
    folds: Folds,
    // the last field, since the others have memory of it
    pool: Pool,
}

impl std::fmt::Debug for Cuda {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cuda")
            .field("device", &self.device)
            .field("dtype", &self.dtype)
            .field("sizing", &self.sizing)
            .field("pool", &self.pool)
            .finish_non_exhaustive()
    }
}

impl Cuda {
    /// Opens the libraries and the card.
    ///
    /// # Errors
    /// In words for the user: what is missing on this machine, that the driver is too old, or what it refused.
    pub fn new(options: Options) -> Result<Self> {
        if !matches!(options.dtype, DType::F32 | DType::F16 | DType::BF16) {
            return argument(format!("{:?} is not computed in", options.dtype));
        }
        let found = doors::open().map_err(|missing| error::Error::Device(missing.to_string()))?;
        check_driver()?;
        let context = CudaContext::new(options.ordinal).map_err(wrap)?;
        let pool = Pool::new(context.cu_device(), options.cap)?;
        let device = Device::new_cuda_with_stream(options.ordinal)?;
        let cuda = device.as_cuda_device()?.clone();
        // SAFETY: everything is enqueued on the one stream of this device, so that no events need say what is done.
        unsafe { cuda.disable_event_tracking() };
        let stream = cuda.cuda_stream();
        let module = context.load_module(Ptx::from_src(KERNELS)).map_err(wrap)?;
        let sizing = Sizing::of(&options, found);
        Ok(Self {
            dtype: options.dtype,
            fuse: options.fuse,
            dnn: if sizing.dnn {
                Some(Mutex::new(Dnn::new(&stream)?))
            } else {
                None
            },
            blas: Blas(cuda.cublas_handle()),
            kernels: Kernels::new(module, stream, Profile::new(options.profile)),
            folds: Folds::new(sizing.kept()),
            sizing,
            pool,
            device,
        })
    }

    /// The pool that all memory comes from.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The card's name.
    pub fn name(&self) -> Result<String> {
        self.kernels.stream().context().name().map_err(wrap)
    }

    /// Bytes that the card has free, whoever holds the rest; what the pool holds and does not use is not counted.
    pub fn free(&self) -> Result<u64> {
        let (free, _) = self
            .kernels
            .stream()
            .context()
            .mem_get_info()
            .map_err(wrap)?;
        Ok(free as u64)
    }

    /// Whether convolutions are cuDNN's.
    pub fn has_dnn(&self) -> bool {
        self.dnn.is_some()
    }

    /// Allocates; where the pool has no room for it in one piece, once more after what is free was put together.
    pub(crate) fn twice<T>(&self, allocate: impl Fn() -> Result<T>) -> Result<T> {
        match allocate() {
            Err(e) if e.is_out_of_memory() => {
                self.compact()?;
                allocate()
            }
            other => other,
        }
    }

    /// Bytes on the card for one operation.
    pub(crate) fn buffer(&self, bytes: usize) -> Result<Buffer> {
        self.twice(|| Buffer::new(bytes, self.kernels.stream()))
    }

    /// Waits until everything enqueued is done.
    pub fn synchronize(&self) -> Result<()> {
        self.kernels.stream().synchronize().map_err(wrap)
    }

    /// Gives everything that is not in use back to the card: after the models are dropped, all of it.
    pub fn release(&self) -> Result<()> {
        self.compact()
    }

    /// Bytes of weights in another form that are kept from one convolution to the next: until memory is put together or
    /// released, and never more than a plan of memory counts.
    pub fn kept(&self) -> usize {
        self.folds.bytes()
    }

    /// Forgets what the profile has.
    pub fn profile_from_here(&self) {
        self.kernels.profile.clear();
    }

    /// Where the time went, a line each, the longest first; nothing where [`Options::profile`] was not set.
    pub fn profile(&self) -> Vec<String> {
        self.kernels.profile.lines()
    }

    /// What each of cuDNN's engines takes for a convolution of these channels in and out, input and taps, with and
    /// without the sums in one graph: a line each.
    pub fn compare_engines(
        &self,
        channels: [usize; 2],
        input: [usize; 3],
        taps: [usize; 3],
    ) -> Result<Vec<String>> {
        let shape = Shape {
            dtype: self.dtype,
            input,
            inputs: channels[0],
            outputs: channels[1],
            taps,
            stride: [1; 3],
        };
        compare::engines(self, shape)
    }

    /// A matrix product.
    fn product(&self, what: Product, a: Matrix, b: Matrix, to: Matrix) -> Result<()> {
        let name = || format!("cuBLAS {}x{}x{}", what.rows, what.columns, what.inner);
        let stream = self.kernels.stream();
        self.kernels
            .profile
            .time(stream, name, || self.blas.product(what, a, b, to))
    }

    /// A convolution by cuDNN, with as many of the sums as one of its engines does in the same go: which were done;
    /// `None`: nothing was, since no engine has it.
    fn convolve(&self, shape: Shape, wanted: Sums, data: Data) -> Result<Option<Sums>> {
        let Some(dnn) = &self.dnn else {
            return Ok(None);
        };
        let mut dnn = dnn.lock().unwrap_or_else(PoisonError::into_inner);
        let first = if self.fuse { wanted } else { Sums::default() };
        for sums in [first, Sums::default()] {
            let Some(plan) = dnn.plan(shape, sums, self.sizing.scratch) else {
                continue;
            };
            let stream = self.kernels.stream();
            let workspace = self.buffer(plan.workspace)?;
            let name = || format!("cuDNN {shape} {sums:?} engine {}", plan.engine);
            self.kernels.profile.time(stream, name, || {
                dnn.run(&plan, sums, data, workspace.address())
            })?;
            return Ok(Some(sums));
        }
        Ok(None)
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // what was freed is only free when the work before it is done; a pool that goes before that keeps its memory.
        // Nothing more can be done about an error here.
        let _ = self.release();
    }
}

/// Refuses a driver that is older than the compiler of the kernels.
fn check_driver() -> Result<()> {
    let mut version = 0;
    // SAFETY: one number is written.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }
        .result()
        .map_err(wrap)?;
    let built = i32::try_from(sys::CUDA_VERSION).unwrap_or(i32::MAX);
    let words = |version: i32| format!("{}.{}", version / 1000, version % 1000 / 10);
    if version < built {
        return Err(error::Error::Device(format!(
            "the NVIDIA driver is too old: it knows CUDA {}, this program needs {} (driver 580 or later)",
            words(version),
            words(built)
        )));
    }
    Ok(())
}

impl Backend for Cuda {
    fn device(&self) -> &Device {
        &self.device
    }

    fn dtype(&self) -> DType {
        self.dtype
    }

    fn load_conv(&self, weight: &Tensor, bias: Option<&Tensor>) -> Result<Conv3d> {
        let (outputs, inputs, kt, kh, kw) = weight.dims5()?;
        if let Some(bias) = bias
            && bias.dims() != [outputs]
        {
            return argument(format!("a bias {:?} for {outputs} channels", bias.dims()));
        }
        let padded = inputs.next_multiple_of(conv::WIDE);
        let weight = weight
            .to_device(&self.device)?
            .permute((0, 2, 3, 4, 1))?
            .contiguous()?
            .pad_with_zeros(4, 0, padded - inputs)?
            .to_dtype(self.dtype)?
            .contiguous()?;
        let bias = bias.map(|bias| bias.to_device(&self.device)?.to_dtype(DType::F32));
        Ok(Conv3d::new(
            weight,
            bias.transpose()?,
            [kt, kh, kw],
            (inputs, outputs),
        ))
    }

    fn unload_conv(&self, conv: &Conv3d) -> Result<(Tensor, Option<Tensor>)> {
        let weight = conv
            .weight()
            .narrow(4, 0, conv.channels().0)?
            .permute((0, 4, 1, 2, 3))?
            .contiguous()?
            .to_dtype(DType::F32)?;
        Ok((weight, conv.bias().cloned()))
    }

    fn conv3d(
        &self,
        clip: ConvInput<'_>,
        prologue: &Prologue<'_>,
        conv: &Conv3d,
        add: Option<&Tensor>,
    ) -> Result<Tensor> {
        conv::conv3d(self, clip, prologue, conv, add)
    }

    fn conv_scratch(&self, _batch: usize, axes: &[Axis; 3], conv: ConvSize) -> u64 {
        // entries of a batch are done one after the other
        conv::scratch(self.sizing, axes, conv) as u64
    }

    fn linear_scratch(&self, _batch: usize, size: [usize; 3], channels: [usize; 2]) -> u64 {
        conv::linear_scratch(self.sizing, size, channels) as u64
    }

    fn attention_scratch(&self, frames: usize, tokens: usize, _channels: usize) -> u64 {
        attention::scratch(self.sizing, frames * tokens, tokens) as u64
    }

    // the pool keeps what was freed in the pieces that it was used in
    fn compact(&self) -> Result<()> {
        // however small, they would keep what they lie in
        self.folds.clear();
        self.kernels.clear();
        let stream = self.kernels.stream();
        let name = || "putting free memory together".to_owned();
        self.kernels.profile.time(stream, name, || {
            self.synchronize()?;
            self.pool.release()
        })
    }

    fn join(&self, parts: &[Tensor], axis: usize) -> Result<Tensor> {
        copies::join(self, parts, axis)
    }

    fn put(&self, whole: &Tensor, part: &Tensor, axis: usize, at: usize) -> Result<()> {
        copies::put(self, whole, part, axis, at)
    }

    fn group_sums(&self, clip: &Tensor, groups: usize) -> Result<GroupSums> {
        norm::begin_group_sums(self, clip, groups)?.wait()
    }

    fn begin_group_sums(&self, clip: &Tensor, groups: usize) -> Result<Pending> {
        norm::begin_group_sums(self, clip, groups)
    }

    fn attention(&self, qkv: &Tensor, mask: AttentionMask) -> Result<Tensor> {
        attention::attention(self, qkv, mask)
    }
}
