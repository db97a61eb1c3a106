//! Sums for the group norm.

use std::sync::Arc;

use candle_core::Tensor;
use candle_core::cuda_backend::cudarc::driver::{CudaSlice, DevicePtr};
use framepack_engine::ops::{GroupSums, Pending};

use crate::Cuda;
use crate::conv::WIDE;
use crate::error::{Result, argument, wrap};
use crate::memory::{Launch, address, long};

/// Threads of a block.
const THREADS: usize = 512;

/// Blocks that share a batch entry at most: some for each multiprocessor.
const SHARES: usize = 1024;

/// Pixels that a row of threads should at least add up.
const PIXELS: usize = 32;

/// [`framepack_engine::ops::Backend::begin_group_sums`].
pub(crate) fn begin_group_sums(cuda: &Cuda, clip: &Tensor, groups: usize) -> Result<Pending> {
    let (batch, t, h, w, channels) = clip.dims5()?;
    let pixels = t * h * w;
    if batch * pixels == 0
        || groups == 0
        || channels == 0
        || !channels.is_multiple_of(groups)
        || channels > WIDE * THREADS
    {
        return argument(format!(
            "a clip {:?} cannot be normalised in {groups} groups",
            clip.dims()
        ));
    }
    let clip = clip.contiguous()?;
    let stream = cuda.kernels.stream();
    let vectors = channels.div_ceil(WIDE);
    let rows = THREADS / vectors;
    let shares = pixels.div_ceil(rows * PIXELS).clamp(1, SHARES);
    let numbers = 2 * groups;
    // SAFETY: the kernels write all numbers before any is read.
    let empty = |count: usize| cuda.twice(|| unsafe { stream.alloc::<f64>(count) }.map_err(wrap));
    let (partial, sums) = (empty(batch * shares * numbers)?, empty(batch * numbers)?);
    let at = |slice: &CudaSlice<f64>| slice.device_ptr(stream).0;
    let int = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    let launch = Launch {
        blocks: (shares, batch),
        threads: THREADS,
        shared: 2 * vectors * WIDE * size_of::<f64>(),
    };
    let arguments = (
        address(&clip, cuda.dtype, stream)?,
        at(&partial),
        long(pixels),
        int(channels),
        int(groups),
    );
    cuda.kernels
        .launch("group_sums", cuda.dtype, launch, &arguments)?;
    let launch = Launch {
        blocks: (batch, 1),
        threads: 1024,
        shared: 0,
    };
    let arguments = (at(&partial), at(&sums), int(shares), int(numbers));
    cuda.kernels
        .launch_named("add_shares", launch, &arguments)?;
    #[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 numbers")]
    let count = (pixels * channels / groups) as f64;
    let stream = Arc::clone(stream);
    Ok(Pending::new(move || {
        let all = stream.clone_dtoh(&sums).map_err(wrap)?;
        Ok(GroupSums {
            batch,
            count,
            sums: all.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect(),
        })
    }))
}
