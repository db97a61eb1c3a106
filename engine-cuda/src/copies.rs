//! Copies of parts of clips, by the card's own means: candle's kernel for them moves two bytes at a time.

use candle_core::cuda_backend::cudarc::driver::result;
use candle_core::{Storage, Tensor};

use crate::Cuda;
use crate::error::{Result, argument, wrap};
use crate::memory::{address, base, size_of, uninitialised};

/// [`framepack_engine::ops::Backend::join`].
pub(crate) fn join(cuda: &Cuda, parts: &[Tensor], axis: usize) -> Result<Tensor> {
    let (Some(first), false) = (parts.first(), parts.len() == 1) else {
        return Ok(Tensor::cat(parts, axis)?);
    };
    let shape = joined(parts, axis);
    let own = parts.iter().all(|part| part.dtype() == cuda.dtype);
    let (Some(shape), true) = (shape, own && first.elem_count() > 0) else {
        // candle knows how, or says what does not fit
        return Ok(Tensor::cat(parts, axis)?);
    };
    let whole = uninitialised(&shape, cuda)?;
    let mut at = 0;
    for part in parts {
        put(cuda, &whole, part, axis, at)?;
        at += part.dim(axis)?;
    }
    Ok(whole)
}

/// The shape of all in one, if they agree in all else.
fn joined(parts: &[Tensor], axis: usize) -> Option<Vec<usize>> {
    let mut shape = parts.first()?.dims().to_vec();
    *shape.get_mut(axis)? = 0;
    for part in parts {
        let dims = part.dims();
        let fits = |(i, (a, b)): (usize, (&usize, &usize))| i == axis || a == b;
        if dims.len() != shape.len() || !dims.iter().zip(&shape).enumerate().all(fits) {
            return None;
        }
        shape[axis] += dims[axis];
    }
    Some(shape)
}

/// [`framepack_engine::ops::Backend::put`].
pub(crate) fn put(
    cuda: &Cuda,
    whole: &Tensor,
    part: &Tensor,
    axis: usize,
    at: usize,
) -> Result<()> {
    let (to, from) = (whole.dims(), part.dims());
    let fits = |i: usize| {
        if i == axis {
            at + from[i] <= to[i]
        } else {
            from[i] == to[i]
        }
    };
    if from.len() != to.len() || axis >= to.len() || !(0..to.len()).all(fits) {
        return argument(format!(
            "{from:?} does not fit into {to:?} from {at} on along axis {axis}"
        ));
    }
    let compact;
    let (part, step) = if let Some(step) = step(from, part.stride(), axis) {
        (part, step)
    } else {
        compact = part.contiguous()?;
        (&compact, from[axis..].iter().product())
    };
    let stream = cuda.kernels.stream();
    let bytes = size_of(cuda.dtype);
    let inner: usize = to[axis + 1..].iter().product();
    let (row, target) = (from[axis] * inner * bytes, to[axis] * inner * bytes);
    let source = start(part, cuda)?;
    let goal = address(whole, cuda.dtype, stream)? + (at * inner * bytes) as u64;
    let rows: usize = from[..axis].iter().product();
    let copy = |(to, from): (u64, u64), bytes: usize| {
        // SAFETY: both tensors live, and the sizes were checked to lie within them.
        unsafe { result::memcpy_dtod_async(to, from, bytes, stream.cu_stream()) }.map_err(wrap)
    };
    let name = || "copies of parts".to_owned();
    cuda.kernels.profile.time(stream, name, || {
        if row == target && step * bytes == row {
            return copy((goal, source), rows * row);
        }
        (0..rows).try_for_each(|i| {
            let (to, from) = (i * target, i * step * bytes);
            copy((goal + to as u64, source + from as u64), row)
        })
    })
}

/// Numbers from one index of the axes before `axis` to the next, if what lies behind has no gaps and these indices are
/// evenly spaced.
fn step(dims: &[usize], strides: &[usize], axis: usize) -> Option<usize> {
    let mut next = 1;
    for i in (axis..dims.len()).rev() {
        if dims[i] > 1 && strides[i] != next {
            return None;
        }
        next *= dims[i];
    }
    let mut found: Option<(usize, usize)> = None;
    for i in (0..axis).rev().filter(|&i| dims[i] > 1) {
        match found {
            None => found = Some((strides[i], strides[i] * dims[i])),
            Some((first, due)) if strides[i] == due => found = Some((first, due * dims[i])),
            Some(_) => return None,
        }
    }
    Some(found.map_or(next, |(first, _)| first))
}

/// The address of the first number, gaps or not.
fn start(part: &Tensor, cuda: &Cuda) -> Result<u64> {
    let (storage, layout) = part.storage_and_layout();
    let Storage::Cuda(storage) = &*storage else {
        return argument("a tensor that is not on the card");
    };
    if part.dtype() != cuda.dtype {
        return argument(format!(
            "a tensor of {:?} where {:?} is computed in",
            part.dtype(),
            cuda.dtype
        ));
    }
    let first = (layout.start_offset() * size_of(cuda.dtype)) as u64;
    Ok(base(storage, cuda.kernels.stream())? + first)
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};

    use super::*;

    /// What copying by [`step`] reads of a clip whose numbers are their places.
    fn read(view: &Tensor, axis: usize) -> Option<Vec<usize>> {
        let dims = view.dims();
        let step = step(dims, view.stride(), axis)?;
        let row: usize = dims[axis..].iter().product();
        let rows: usize = dims[..axis].iter().product();
        let first = view.layout().start_offset();
        let row = |i: usize| first + i * step..first + i * step + row;
        Some((0..rows).flat_map(row).collect())
    }

    fn places(view: &Tensor) -> Vec<usize> {
        let all = view.flatten_all().unwrap().to_vec1::<u32>().unwrap();
        all.into_iter().map(|at| at as usize).collect()
    }

    fn clip(shape: &[usize]) -> Tensor {
        let count = u32::try_from(shape.iter().product::<usize>()).unwrap();
        let all = Tensor::arange(0, count, &Device::Cpu).unwrap();
        all.reshape(shape).unwrap()
    }

    #[test]
    fn views_are_read_row_by_row() {
        let clip = clip(&[1, 4, 5, 3, 2]);
        let views = [
            clip.clone(),
            clip.narrow(1, 1, 2).unwrap(),
            clip.narrow(1, 1, 3).unwrap().narrow(2, 2, 2).unwrap(),
            clip.narrow(1, 3, 1).unwrap().narrow(2, 1, 3).unwrap(),
        ];
        for view in views {
            for axis in [1, 2] {
                let Some(got) = read(&view, axis) else {
                    // rows of several frames do not lie together
                    assert!(axis == 1 && view.dims() == [1, 3, 2, 3, 2]);
                    continue;
                };
                assert_eq!(got, places(&view), "{:?} {axis}", view.dims());
            }
        }
    }

    #[test]
    fn what_lies_unevenly_is_not() {
        let clip = clip(&[2, 4, 5, 3]);
        let frames = clip.narrow(1, 1, 2).unwrap();
        assert_eq!(read(&frames, 2), None);
        assert_eq!(read(&frames, 1), Some(places(&frames)));
        assert_eq!(read(&clip.transpose(2, 3).unwrap(), 1), None);
        assert_eq!(read(&clip.narrow(3, 0, 2).unwrap(), 2), None);
    }

    #[test]
    fn parts_that_agree_are_joined() {
        let part = |shape: &[usize]| Tensor::zeros(shape, DType::F32, &Device::Cpu).unwrap();
        let parts = [part(&[2, 3, 4]), part(&[2, 1, 4])];
        assert_eq!(joined(&parts, 1), Some(vec![2, 4, 4]));
        assert_eq!(joined(&parts, 0), None);
        assert_eq!(joined(&parts, 3), None);
        assert_eq!(joined(&[part(&[2, 3]), part(&[2, 3, 1])], 1), None);
    }
}
