//! Addresses of tensors, buffers and launches: what the kernels and libraries are called with.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::cudarc::driver::{
    CudaFunction, CudaModule, CudaSlice, CudaStream, DevicePtr, DeviceRepr, LaunchArgs,
    LaunchConfig, PushKernelArg,
};
use candle_core::cuda_backend::{CudaStorage, CudaStorageSlice};
use candle_core::{DType, Storage, Tensor};

use crate::Cuda;
use crate::error::{Result, argument, wrap};
use crate::profile::Profile;

/// A count as kernels take it.
pub(crate) fn long(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Bytes of a number.
pub(crate) fn size_of(dtype: DType) -> usize {
    dtype.size_in_bytes()
}

/// A tensor of whatever was in memory.
pub(crate) fn uninitialised(shape: &[usize], cuda: &Cuda) -> Result<Tensor> {
    // SAFETY: every caller writes all numbers before the tensor leaves this crate.
    cuda.twice(|| Ok(unsafe { Tensor::empty(shape, cuda.dtype, &cuda.device) }?))
}

/// The address of the first number of a tensor without gaps, which must be of this kind. Valid while the tensor lives:
/// work that uses it is in the order of the device's one stream.
pub(crate) fn address(tensor: &Tensor, dtype: DType, stream: &CudaStream) -> Result<u64> {
    let (storage, layout) = tensor.storage_and_layout();
    let Some((start, _)) = layout.contiguous_offsets() else {
        return argument("a tensor with gaps where one without is needed");
    };
    let Storage::Cuda(storage) = &*storage else {
        return argument("a tensor that is not on the card");
    };
    if storage.dtype() != dtype {
        return argument(format!(
            "a tensor of {:?} where {dtype:?} is computed in",
            storage.dtype()
        ));
    }
    let base = base(storage, stream)?;
    Ok(base + (start * size_of(dtype)) as u64)
}

/// The address of a storage's first number.
pub(crate) fn base(storage: &CudaStorage, stream: &CudaStream) -> Result<u64> {
    Ok(match &storage.slice {
        CudaStorageSlice::F32(all) => all.device_ptr(stream).0,
        CudaStorageSlice::F16(all) => all.device_ptr(stream).0,
        CudaStorageSlice::BF16(all) => all.device_ptr(stream).0,
        _ => return argument("a tensor of whole numbers"),
    })
}

/// Bytes on the card for one operation.
#[derive(Debug)]
pub(crate) struct Buffer {
    memory: Option<CudaSlice<u8>>,
    stream: Arc<CudaStream>,
}

impl Buffer {
    pub(crate) fn new(bytes: usize, stream: &Arc<CudaStream>) -> Result<Self> {
        let memory = (bytes > 0)
            // SAFETY: buffers are written before they are read.
            .then(|| unsafe { stream.alloc::<u8>(bytes) })
            .transpose()
            .map_err(wrap)?;
        Ok(Self {
            memory,
            stream: Arc::clone(stream),
        })
    }

    pub(crate) fn address(&self) -> u64 {
        self.memory
            .as_ref()
            .map_or(0, |memory| memory.device_ptr(&self.stream).0)
    }
}

/// The kernels, and the maps of axes that are on the card.
#[derive(Debug)]
pub(crate) struct Kernels {
    module: Arc<CudaModule>,
    stream: Arc<CudaStream>,
    pub(crate) profile: Profile,
    functions: Mutex<HashMap<String, CudaFunction>>,
    maps: Mutex<HashMap<Vec<i32>, Arc<CudaSlice<i32>>>>,
}

/// Maps that are kept: a decode uses some dozens.
const MAPS: usize = 512;

/// Arguments of a kernel, in order.
pub(crate) trait Arguments {
    /// Puts them behind each other.
    fn push<'a>(&'a self, to: &mut LaunchArgs<'a>);
}

macro_rules! arguments {
    ($($name:ident)+) => {
        impl<$($name: DeviceRepr),+> Arguments for ($($name,)+) {
            #[expect(non_snake_case, reason = "one name for the type and its value")]
            fn push<'a>(&'a self, to: &mut LaunchArgs<'a>) {
                let ($($name,)+) = self;
                $(to.arg($name);)+
            }
        }
    };
}
arguments!(A B C D);
arguments!(A B C D E);
arguments!(A B C D E F);
arguments!(A B C D E F G);
arguments!(A B C D E F G H);
arguments!(A B C D E F G H I);

/// The end of a kernel's name for this kind of number.
fn kind(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "f16",
        DType::BF16 => "bf16",
        _ => "f32",
    }
}

/// Blocks, threads of a block, bytes of shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch {
    pub(crate) blocks: (usize, usize),
    pub(crate) threads: usize,
    pub(crate) shared: usize,
}

impl Launch {
    /// As many threads as `items`, up to what fills a card several times; the kernels go round for the rest.
    pub(crate) fn over(items: usize) -> Self {
        Self {
            blocks: (items.div_ceil(256).clamp(1, 1 << 16), 1),
            threads: 256,
            shared: 0,
        }
    }
}

fn small(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

impl Kernels {
    pub(crate) fn new(module: Arc<CudaModule>, stream: Arc<CudaStream>, profile: Profile) -> Self {
        Self {
            module,
            stream,
            profile,
            functions: Mutex::default(),
            maps: Mutex::default(),
        }
    }

    pub(crate) fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// Enqueues the kernel `name`_`dtype`.
    pub(crate) fn launch(
        &self,
        name: &str,
        dtype: DType,
        launch: Launch,
        arguments: &impl Arguments,
    ) -> Result<()> {
        self.launch_named(&format!("{name}_{}", kind(dtype)), launch, arguments)
    }

    /// Enqueues the kernel of exactly this name.
    pub(crate) fn launch_named(
        &self,
        name: &str,
        launch: Launch,
        arguments: &impl Arguments,
    ) -> Result<()> {
        let function = self.function(name)?;
        let mut call = self.stream.launch_builder(&function);
        arguments.push(&mut call);
        let config = LaunchConfig {
            grid_dim: (small(launch.blocks.0), small(launch.blocks.1), 1),
            block_dim: (small(launch.threads), 1, 1),
            shared_mem_bytes: small(launch.shared),
        };
        // SAFETY: callers give what the kernel of this name takes, with addresses of memory sized for it.
        let launch = || unsafe { call.launch(config) }.map_err(wrap);
        self.profile
            .time(&self.stream, || name.to_owned(), launch)?;
        Ok(())
    }

    fn function(&self, name: &str) -> Result<CudaFunction> {
        let mut all = self
            .functions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(name) {
            return Ok(known.clone());
        }
        let function = self.module.load_function(name).map_err(wrap)?;
        all.insert(name.to_owned(), function.clone());
        Ok(function)
    }

    /// Whole numbers on the card.
    pub(crate) fn map(&self, values: &[i32]) -> Result<Arc<CudaSlice<i32>>> {
        let mut all = self.maps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(values) {
            return Ok(Arc::clone(known));
        }
        if all.len() >= MAPS {
            all.clear();
        }
        let map = Arc::new(self.stream.clone_htod(values).map_err(wrap)?);
        all.insert(values.to_vec(), Arc::clone(&map));
        Ok(map)
    }

    /// The address of such numbers.
    pub(crate) fn map_address(&self, map: &CudaSlice<i32>) -> u64 {
        map.device_ptr(&self.stream).0
    }

    /// Forgets the maps.
    pub(crate) fn clear(&self) {
        self.maps
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}
