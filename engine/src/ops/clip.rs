//! The clips that model code works on: numbers on a device or, in a dry run, only their layout and memory.

use std::rc::{Rc, Weak};

use candle_core::{DType, Device, Layout, Shape, Tensor};

use super::dry_run::{Allocation, Meter};
use crate::error::{Result, argument};

/// A clip, usually (B, T, H, W, C). Clones and views share its memory, as candle's tensors do.
#[derive(Clone, Debug)]
pub(crate) struct Clip(Data);

#[derive(Clone, Debug)]
enum Data {
    Tensor(Tensor),
    Traced(Traced),
}

/// What a dry run has instead of a tensor. The layout is candle's own, so that views, copies of views and results
/// without a copy are told apart by the same rules as in a real run.
#[derive(Clone, Debug)]
struct Traced {
    layout: Layout,
    dtype: DType,
    memory: Rc<Allocation>,
}

impl Traced {
    /// A result without gaps in memory of its own.
    fn fresh(&self, dims: &[usize], dtype: DType) -> Self {
        Self::allocate(self.memory.meter(), dims, dtype)
    }

    fn allocate(meter: &Rc<Meter>, dims: &[usize], dtype: DType) -> Self {
        let bytes = dims.iter().product::<usize>() * dtype.size_in_bytes();
        Self {
            layout: Layout::contiguous(dims),
            dtype,
            memory: Allocation::new(meter, bytes as u64),
        }
    }

    /// The same memory in another layout.
    fn view(&self, layout: Layout) -> Self {
        Self {
            layout,
            dtype: self.dtype,
            memory: Rc::clone(&self.memory),
        }
    }

    fn copied(&self) -> Self {
        self.fresh(self.layout.dims(), self.dtype)
    }

    /// The layout without axis `axis`, or with an axis of one there.
    fn with_axis(&self, axis: usize, present: bool) -> Self {
        let (mut dims, mut strides) = (self.layout.dims().to_vec(), self.layout.stride().to_vec());
        if present {
            let stride = strides.get(axis).copied().unwrap_or(1);
            dims.insert(axis, 1);
            strides.insert(axis, stride);
        } else {
            dims.remove(axis);
            strides.remove(axis);
        }
        let layout = Layout::new(Shape::from(dims), strides, self.layout.start_offset());
        self.view(layout)
    }
}

/// The shape and memory of a clip that a dry run has seen before.
#[derive(Clone, Debug)]
pub(super) struct Outline {
    layout: Layout,
    dtype: DType,
    bytes: u64,
}

impl Outline {
    /// The same, where the memory is somebody else's.
    pub(super) fn without_memory(self) -> Self {
        Self { bytes: 0, ..self }
    }
}

impl From<Tensor> for Clip {
    fn from(tensor: Tensor) -> Self {
        Self(Data::Tensor(tensor))
    }
}

impl From<Traced> for Clip {
    fn from(traced: Traced) -> Self {
        Self(Data::Traced(traced))
    }
}

impl Clip {
    /// A clip of a dry run, in memory of its own.
    pub(super) fn traced(meter: &Rc<Meter>, dims: &[usize], dtype: DType) -> Self {
        Traced::allocate(meter, dims, dtype).into()
    }

    /// A clip of a dry run whose memory somebody else counts.
    pub(super) fn traced_outside(meter: &Rc<Meter>, dims: &[usize], dtype: DType) -> Self {
        Traced {
            layout: Layout::contiguous(dims),
            dtype,
            memory: Allocation::new(meter, 0),
        }
        .into()
    }

    /// A clip like an earlier one, in memory of its own.
    pub(super) fn like(meter: &Rc<Meter>, outline: &Outline) -> Self {
        Traced {
            layout: outline.layout.clone(),
            dtype: outline.dtype,
            memory: Allocation::new(meter, outline.bytes),
        }
        .into()
    }

    /// What [`Clip::like`] needs.
    pub(super) fn outline(&self) -> Result<Outline> {
        match &self.0 {
            Data::Traced(traced) => Ok(Outline {
                layout: traced.layout.clone(),
                dtype: traced.dtype,
                bytes: traced.memory.bytes(),
            }),
            Data::Tensor(_) => argument("a clip with numbers in a dry run"),
        }
    }

    /// The memory of a clip of a dry run, which this does not keep.
    pub(super) fn allocation(&self) -> Option<Weak<Allocation>> {
        match &self.0 {
            Data::Traced(traced) => Some(Rc::downgrade(&traced.memory)),
            Data::Tensor(_) => None,
        }
    }

    /// Whether this is its memory.
    pub(super) fn is_in(&self, allocation: Option<&Weak<Allocation>>) -> bool {
        let own = self.allocation();
        own.zip(allocation)
            .is_some_and(|(own, other)| own.ptr_eq(other))
    }

    /// The numbers.
    ///
    /// # Errors
    /// In a dry run, which has none.
    pub(crate) fn tensor(&self) -> Result<&Tensor> {
        match &self.0 {
            Data::Tensor(tensor) => Ok(tensor),
            Data::Traced(_) => argument("a dry run has no numbers"),
        }
    }

    fn layout(&self) -> &Layout {
        match &self.0 {
            Data::Tensor(tensor) => tensor.layout(),
            Data::Traced(traced) => &traced.layout,
        }
    }

    pub(crate) fn dims(&self) -> &[usize] {
        self.layout().dims()
    }

    pub(crate) fn dim(&self, axis: usize) -> Result<usize> {
        Ok(self.layout().dim(axis)?)
    }

    /// (B, T, H, W, C).
    pub(crate) fn dims5(&self) -> Result<(usize, usize, usize, usize, usize)> {
        Ok(self.layout().shape().dims5()?)
    }

    pub(crate) fn dtype(&self) -> DType {
        match &self.0 {
            Data::Tensor(tensor) => tensor.dtype(),
            Data::Traced(traced) => traced.dtype,
        }
    }

    /// A view of `len` indices along `axis`.
    pub(crate) fn narrow(&self, axis: usize, start: usize, len: usize) -> Result<Self> {
        Ok(match &self.0 {
            Data::Tensor(tensor) => tensor.narrow(axis, start, len)?.into(),
            Data::Traced(traced) => traced.view(traced.layout.narrow(axis, start, len)?).into(),
        })
    }

    /// A view with the axes in another order.
    pub(crate) fn permute(&self, order: &[usize]) -> Result<Self> {
        Ok(match &self.0 {
            Data::Tensor(tensor) => tensor.permute(order.to_vec())?.into(),
            Data::Traced(traced) => traced.view(traced.layout.permute(order)?).into(),
        })
    }

    /// A view without `axis`, whose length is one.
    pub(crate) fn squeeze(&self, axis: usize) -> Result<Self> {
        if self.dim(axis)? != 1 {
            return argument(format!(
                "axis {axis} of {:?} is longer than one",
                self.dims()
            ));
        }
        Ok(match &self.0 {
            Data::Tensor(tensor) => tensor.squeeze(axis)?.into(),
            Data::Traced(traced) => traced.with_axis(axis, false).into(),
        })
    }

    /// A view with an axis of one in front of `axis`.
    pub(crate) fn unsqueeze(&self, axis: usize) -> Result<Self> {
        if axis > self.dims().len() {
            return argument(format!("no axis {axis} in {:?}", self.dims()));
        }
        Ok(match &self.0 {
            Data::Tensor(tensor) => tensor.unsqueeze(axis)?.into(),
            Data::Traced(traced) => traced.with_axis(axis, true).into(),
        })
    }

    /// Other axes over the same numbers: a view, or a copy of a view with gaps.
    pub(crate) fn reshape(&self, dims: &[usize]) -> Result<Self> {
        match &self.0 {
            Data::Tensor(tensor) => Ok(tensor.reshape(dims)?.into()),
            Data::Traced(traced) => {
                if dims.iter().product::<usize>() != traced.layout.shape().elem_count() {
                    return argument(format!("{:?} does not reshape to {dims:?}", self.dims()));
                }
                let from = match self.contiguous()?.0 {
                    Data::Traced(from) => from,
                    Data::Tensor(_) => return argument("a clip with numbers in a dry run"),
                };
                let start = from.layout.start_offset();
                Ok(from
                    .view(Layout::contiguous_with_offset(dims, start))
                    .into())
            }
        }
    }

    /// The clip without gaps: itself, or a copy.
    pub(crate) fn contiguous(&self) -> Result<Self> {
        Ok(match &self.0 {
            Data::Tensor(tensor) => tensor.contiguous()?.into(),
            Data::Traced(traced) if traced.layout.is_contiguous() => self.clone(),
            Data::Traced(traced) => traced.copied().into(),
        })
    }

    /// A copy in memory of its own, so that the rest of what this is a view of can go.
    pub(crate) fn force_contiguous(&self) -> Result<Self> {
        Ok(match &self.0 {
            Data::Tensor(tensor) => tensor.force_contiguous()?.into(),
            Data::Traced(traced) => traced.copied().into(),
        })
    }

    pub(crate) fn to_dtype(&self, dtype: DType) -> Result<Self> {
        Ok(match &self.0 {
            Data::Tensor(tensor) => tensor.to_dtype(dtype)?.into(),
            Data::Traced(traced) if traced.dtype == dtype => self.clone(),
            Data::Traced(traced) => traced.fresh(self.dims(), dtype).into(),
        })
    }

    /// The sum with a clip of the same shape.
    pub(crate) fn add(&self, other: &Self) -> Result<Self> {
        match (&self.0, &other.0) {
            (Data::Tensor(a), Data::Tensor(b)) => Ok((a + b)?.into()),
            (Data::Traced(a), Data::Traced(_)) if self.dims() == other.dims() => {
                Ok(a.copied().into())
            }
            _ => argument(format!(
                "{:?} and {:?} do not add up",
                self.dims(),
                other.dims()
            )),
        }
    }

    /// The product with what `factor` gives for a device and a precision, small enough not to count and spread over
    /// this shape.
    pub(crate) fn broadcast_mul(
        &self,
        factor: impl FnOnce(&Device, DType) -> Result<Tensor>,
    ) -> Result<Self> {
        Ok(match &self.0 {
            Data::Tensor(tensor) => {
                let factor = factor(tensor.device(), tensor.dtype())?;
                tensor.broadcast_mul(&factor)?.into()
            }
            Data::Traced(traced) => traced.copied().into(),
        })
    }

    /// Every number brought into `from..=to`.
    pub(crate) fn clamp(&self, from: f32, to: f32) -> Result<Self> {
        Ok(match &self.0 {
            Data::Tensor(tensor) => tensor.clamp(from, to)?.into(),
            // candle takes the maximum with `from` first, then the minimum with `to`
            Data::Traced(traced) => {
                let above = traced.copied();
                let clamped = above.copied();
                drop(above);
                clamped.into()
            }
        })
    }

    /// The channels that `index`, of `count` entries, names.
    pub(crate) fn index_select(&self, index: &Tensor, count: usize, axis: usize) -> Result<Self> {
        Ok(match &self.0 {
            Data::Tensor(tensor) => tensor.index_select(index, axis)?.into(),
            Data::Traced(traced) => {
                let mut dims = self.dims().to_vec();
                dims[axis] = count;
                traced.fresh(&dims, traced.dtype).into()
            }
        })
    }

    /// `count` zeros in front along `axis`; none: the clip itself.
    pub(crate) fn zeros_in_front(&self, axis: usize, count: usize) -> Result<Self> {
        match &self.0 {
            Data::Tensor(tensor) => Ok(tensor.pad_with_zeros(axis, count, 0)?.into()),
            Data::Traced(_) if count == 0 => Ok(self.clone()),
            Data::Traced(traced) => {
                let mut dims = self.dims().to_vec();
                dims[axis] = count;
                let zeros: Self = traced.fresh(&dims, traced.dtype).into();
                Self::cat(&[&zeros, self], axis)
            }
        }
    }

    /// The mean over `axis`, which goes.
    pub(crate) fn mean(&self, axis: usize) -> Result<Self> {
        Ok(match &self.0 {
            Data::Tensor(tensor) => tensor.mean(axis)?.into(),
            // candle has the sum beside the mean
            Data::Traced(traced) => {
                let mut dims = self.dims().to_vec();
                dims.remove(axis);
                let sum = traced.fresh(&dims, traced.dtype);
                let mean = sum.copied();
                drop(sum);
                mean.into()
            }
        })
    }

    /// Clips that follow each other along `axis` as one; a single one is itself.
    pub(crate) fn cat<C: std::borrow::Borrow<Self>>(parts: &[C], axis: usize) -> Result<Self> {
        let Some(first) = parts.first().map(C::borrow) else {
            return argument("no clips to put together");
        };
        let Data::Traced(traced) = &first.0 else {
            let tensors: Result<Vec<&Tensor>> =
                parts.iter().map(|part| part.borrow().tensor()).collect();
            return Ok(Tensor::cat(&tensors?, axis)?.into());
        };
        if parts.len() == 1 {
            return Ok(first.clone());
        }
        let mut dims = first.dims().to_vec();
        dims[axis] = joined(parts.iter().map(|part| part.borrow().dims()), axis)?;
        let whole = parts
            .iter()
            .all(|part| has_even_rows(part.borrow().layout(), axis));
        if axis == 0 || whole {
            return Ok(traced.fresh(&dims, traced.dtype).into());
        }
        // candle puts views with gaps together along the first axis, and gives a view of that
        dims.swap(0, axis);
        let swapped = traced.fresh(&dims, traced.dtype);
        Ok(swapped.view(swapped.layout.transpose(0, axis)?).into())
    }
}

/// The length along `axis` of clips that agree in all other axes.
pub(super) fn joined<'a>(
    parts: impl Iterator<Item = &'a [usize]> + Clone,
    axis: usize,
) -> Result<usize> {
    let mut total = 0;
    let mut first: Option<&[usize]> = None;
    for dims in parts {
        let first = first.get_or_insert(dims);
        let fits = dims.len() == first.len()
            && dims
                .iter()
                .zip(first.iter())
                .enumerate()
                .all(|(at, (a, b))| at == axis || a == b);
        if !fits || axis >= dims.len() {
            return argument(format!(
                "clips of {first:?} and {dims:?} do not follow each other along axis {axis}"
            ));
        }
        total += dims[axis];
    }
    Ok(total)
}

/// Whether candle copies a view of this layout row by row when it puts views together along `axis`: nothing lies
/// between the numbers behind `axis`, and the rows before it are evenly spaced.
fn has_even_rows(layout: &Layout, axis: usize) -> bool {
    if layout.is_contiguous() {
        return true;
    }
    let (dims, strides) = (layout.dims(), layout.stride());
    let mut expected = 1;
    for at in (axis..dims.len()).rev() {
        if strides[at] != expected {
            return false;
        }
        expected *= dims[at];
    }
    let outer = &dims[..axis];
    let mut expected = outer
        .len()
        .checked_sub(1)
        .map_or(1, |at| strides[at] * dims[at]);
    for at in (0..axis.saturating_sub(1)).rev() {
        if strides[at] != expected {
            return false;
        }
        expected *= dims[at];
    }
    true
}
