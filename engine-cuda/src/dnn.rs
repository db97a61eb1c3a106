//! Convolutions by cuDNN, through its graph interface: the older one does not reach the kernels for Hopper.
//!
//! A convolution is described, cuDNN names engines that can do it, best first by its own estimate, and the first that
//! builds and keeps within the workspace is taken and remembered. Sums with a bias and a shortcut are asked for as one
//! graph with the convolution; where no engine takes the graph, the caller adds them.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;

use candle_core::DType;
use candle_core::cuda_backend::cudarc::cudnn::sys;
use candle_core::cuda_backend::cudarc::driver::CudaStream;
use sys::cudnnBackendAttributeName_t as Attribute;
use sys::cudnnBackendAttributeType_t as Kind;
use sys::cudnnBackendDescriptorType_t as Object;

use crate::error::{Result, failed};

/// What a convolution is, without its data: what plans are remembered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    /// Of the clip, the weight and the result.
    pub(crate) dtype: DType,
    /// Frames, height and width that are read.
    pub(crate) input: [usize; 3],
    /// Channels in.
    pub(crate) inputs: usize,
    /// Channels out.
    pub(crate) outputs: usize,
    /// Taps in time, height and width.
    pub(crate) taps: [usize; 3],
    /// Steps in time, height and width.
    pub(crate) stride: [usize; 3],
}

impl Shape {
    /// Frames, height and width of the result.
    pub(crate) fn output(&self) -> [usize; 3] {
        std::array::from_fn(|i| (self.input[i] - self.taps[i]) / self.stride[i] + 1)
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [t, h, w] = self.input;
        let [kt, kh, kw] = self.taps;
        write!(
            f,
            "{}->{} {t}x{h}x{w} taps {kt}x{kh}x{kw}",
            self.inputs, self.outputs
        )
    }
}

/// What is added in the same graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Sums {
    pub(crate) bias: bool,
    pub(crate) add: bool,
}

/// Where the data is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    pub(crate) input: u64,
    pub(crate) weight: u64,
    /// Single precision.
    pub(crate) bias: u64,
    pub(crate) add: u64,
    pub(crate) output: u64,
}

/// A convolution that can be run.
#[derive(Debug)]
pub(crate) struct Plan {
    descriptor: Descriptor,
    /// Bytes.
    pub(crate) workspace: usize,
    /// The engine's number in cuDNN, for the profile.
    pub(crate) engine: i64,
}

/// The library with the plans made so far.
#[derive(Debug)]
pub(crate) struct Dnn {
    handle: sys::cudnnHandle_t,
    plans: HashMap<(Shape, Sums), Option<Arc<Plan>>>,
}

// SAFETY: the handle and the plans are used by one thread at a time: `Dnn` is kept in a mutex.
unsafe impl Send for Dnn {}
// SAFETY: a finished plan is only read.
unsafe impl Send for Plan {}
// SAFETY: as above.
unsafe impl Sync for Plan {}

/// Identifiers of tensors within a graph.
const INPUT: i64 = 1;
const WEIGHT: i64 = 2;
const OUTPUT: i64 = 3;
const BIAS: i64 = 4;
const ADD: i64 = 5;
const BETWEEN: i64 = 6;

impl Dnn {
    /// The library for `stream`.
    pub(crate) fn new(stream: &CudaStream) -> Result<Self> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the library is open, and the handle is written to a place of its type.
        check("cudnnCreate", unsafe { sys::cudnnCreate(&raw mut handle) })?;
        let own = Self {
            handle,
            plans: HashMap::new(),
        };
        // SAFETY: the handle was just made; the stream lives as long as the device that keeps both.
        check("cudnnSetStream", unsafe {
            sys::cudnnSetStream(handle, stream.cu_stream().cast())
        })?;
        Ok(own)
    }

    /// The plan for a convolution with these sums in at most `workspace` bytes, if an engine has one.
    pub(crate) fn plan(&mut self, shape: Shape, sums: Sums, workspace: usize) -> Option<Arc<Plan>> {
        if let Some(known) = self.plans.get(&(shape, sums)) {
            return known.clone();
        }
        let found = self
            .candidates(shape, sums, workspace, 1)
            .ok()
            .and_then(|mut all| all.pop())
            .map(Arc::new);
        self.plans.insert((shape, sums), found.clone());
        found
    }

    /// Up to `most` plans, in cuDNN's order.
    pub(crate) fn candidates(
        &self,
        shape: Shape,
        sums: Sums,
        workspace: usize,
        most: usize,
    ) -> Result<Vec<Plan>> {
        let graph = self.graph(shape, sums)?;
        let mut plans = Vec::new();
        for mode in [
            sys::cudnnBackendHeurMode_t::CUDNN_HEUR_MODE_A,
            sys::cudnnBackendHeurMode_t::CUDNN_HEUR_MODE_FALLBACK,
        ] {
            let Ok(engines) = engines(&graph, mode) else {
                continue;
            };
            for config in engines {
                if plans.len() == most {
                    return Ok(plans);
                }
                let exact = shape.dtype == DType::F32;
                if let Ok(plan) = self.build(&config, exact)
                    && plan.workspace <= workspace
                {
                    plans.push(plan);
                }
            }
        }
        Ok(plans)
    }

    fn build(&self, config: &Descriptor, exact: bool) -> Result<Plan> {
        let engine = config.object(
            Attribute::CUDNN_ATTR_ENGINECFG_ENGINE,
            Object::CUDNN_BACKEND_ENGINE_DESCRIPTOR,
        )?;
        if exact {
            let notes = engine.numbers::<u32>(
                Attribute::CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                Kind::CUDNN_TYPE_NUMERICAL_NOTE,
            )?;
            // tensor cores (which round to 10 bits first), rounded inputs, short sums, Winograd's transforms
            if notes.iter().any(|note| matches!(note, 0 | 1 | 2 | 5..=8)) {
                return failed("not exact");
            }
        }
        let index = engine.numbers::<i64>(
            Attribute::CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
            Kind::CUDNN_TYPE_INT64,
        )?;
        let plan = Descriptor::new(Object::CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)?;
        plan.set(
            Attribute::CUDNN_ATTR_EXECUTION_PLAN_HANDLE,
            Kind::CUDNN_TYPE_HANDLE,
            &[self.handle],
        )?;
        plan.set_objects(
            Attribute::CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
            &[config],
        )?;
        plan.finish()?;
        let workspace = plan.numbers::<i64>(
            Attribute::CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
            Kind::CUDNN_TYPE_INT64,
        )?;
        let workspace = workspace.first().copied().unwrap_or_default();
        Ok(Plan {
            descriptor: plan,
            workspace: usize::try_from(workspace).unwrap_or(usize::MAX),
            engine: index.first().copied().unwrap_or(-1),
        })
    }

    /// Enqueues a plan.
    pub(crate) fn run(&self, plan: &Plan, sums: Sums, data: Data, workspace: u64) -> Result<()> {
        let mut ids = vec![INPUT, WEIGHT, OUTPUT];
        let mut pointers = vec![data.input, data.weight, data.output];
        if sums.bias {
            ids.push(BIAS);
            pointers.push(data.bias);
        }
        if sums.add {
            ids.push(ADD);
            pointers.push(data.add);
        }
        let pack = Descriptor::new(Object::CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)?;
        pack.set(
            Attribute::CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
            Kind::CUDNN_TYPE_INT64,
            &ids,
        )?;
        pack.set(
            Attribute::CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
            Kind::CUDNN_TYPE_VOID_PTR,
            &pointers,
        )?;
        pack.set(
            Attribute::CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
            Kind::CUDNN_TYPE_VOID_PTR,
            &[workspace],
        )?;
        pack.finish()?;
        // SAFETY: both descriptors are finished; the memory behind the pointers was sized by the shape that
        // the plan was made of.
        check("cudnnBackendExecute", unsafe {
            sys::cudnnBackendExecute(self.handle, plan.descriptor.0, pack.0)
        })
    }

    fn graph(&self, shape: Shape, sums: Sums) -> Result<Descriptor> {
        let dtype = data_type(shape.dtype)?;
        let single = sys::cudnnDataType_t::CUDNN_DATA_FLOAT;
        let out = shape.output();
        let input = tensor(INPUT, dtype, shape.inputs, 1, shape.input, false)?;
        let weight = tensor(
            WEIGHT,
            dtype,
            shape.inputs,
            shape.outputs,
            shape.taps,
            false,
        )?;
        let output = tensor(OUTPUT, dtype, shape.outputs, 1, out, false)?;
        let conv = convolution(shape)?;
        let between = |at| tensor(BETWEEN + at, single, shape.outputs, 1, out, true);
        let plain = !sums.bias && !sums.add;
        let first = if plain { None } else { Some(between(0)?) };
        let mut nodes = vec![forward(
            &conv,
            &input,
            &weight,
            first.as_ref().unwrap_or(&output),
        )?];
        let add = Descriptor::new(Object::CUDNN_BACKEND_POINTWISE_DESCRIPTOR)?;
        add.set(
            Attribute::CUDNN_ATTR_POINTWISE_MODE,
            Kind::CUDNN_TYPE_POINTWISE_MODE,
            &[sys::cudnnPointwiseMode_t::CUDNN_POINTWISE_ADD],
        )?;
        add.set(
            Attribute::CUDNN_ATTR_POINTWISE_MATH_PREC,
            Kind::CUDNN_TYPE_DATA_TYPE,
            &[single],
        )?;
        add.finish()?;
        if let Some(first) = first {
            let other = if sums.add {
                tensor(ADD, dtype, shape.outputs, 1, out, false)?
            } else {
                tensor(BIAS, single, shape.outputs, 1, [1; 3], false)?
            };
            if sums.add && sums.bias {
                let bias = tensor(BIAS, single, shape.outputs, 1, [1; 3], false)?;
                let second = between(1)?;
                nodes.push(sum(&add, &first, &bias, &second)?);
                nodes.push(sum(&add, &second, &other, &output)?);
            } else {
                nodes.push(sum(&add, &first, &other, &output)?);
            }
        }
        let graph = Descriptor::new(Object::CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)?;
        graph.set(
            Attribute::CUDNN_ATTR_OPERATIONGRAPH_HANDLE,
            Kind::CUDNN_TYPE_HANDLE,
            &[self.handle],
        )?;
        graph.set_objects(
            Attribute::CUDNN_ATTR_OPERATIONGRAPH_OPS,
            &nodes.iter().collect::<Vec<_>>(),
        )?;
        graph.finish()?;
        Ok(graph)
    }
}

impl Drop for Dnn {
    fn drop(&mut self) {
        self.plans.clear();
        // SAFETY: nothing uses the handle after this; what it answers at the end changes nothing.
        let _ = unsafe { sys::cudnnDestroy(self.handle) };
    }
}

/// The engines that cuDNN proposes.
fn engines(graph: &Descriptor, mode: sys::cudnnBackendHeurMode_t) -> Result<Vec<Descriptor>> {
    let heuristics = Descriptor::new(Object::CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)?;
    heuristics.set_objects(Attribute::CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, &[graph])?;
    heuristics.set(
        Attribute::CUDNN_ATTR_ENGINEHEUR_MODE,
        Kind::CUDNN_TYPE_HEUR_MODE,
        &[mode],
    )?;
    heuristics.finish()?;
    heuristics.objects(
        Attribute::CUDNN_ATTR_ENGINEHEUR_RESULTS,
        Object::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
    )
}

fn data_type(dtype: DType) -> Result<sys::cudnnDataType_t> {
    Ok(match dtype {
        DType::F32 => sys::cudnnDataType_t::CUDNN_DATA_FLOAT,
        DType::F16 => sys::cudnnDataType_t::CUDNN_DATA_HALF,
        DType::BF16 => sys::cudnnDataType_t::CUDNN_DATA_BFLOAT16,
        other => return failed(format!("{other:?} is not computed in")),
    })
}

fn long(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A channels-last tensor; cuDNN lists channels before places all the same.
fn tensor(
    id: i64,
    dtype: sys::cudnnDataType_t,
    channels: usize,
    batch: usize,
    [t, h, w]: [usize; 3],
    inner: bool,
) -> Result<Descriptor> {
    let dims = [batch, channels, t, h, w].map(long);
    let strides = [
        t * h * w * channels,
        1,
        h * w * channels,
        w * channels,
        channels,
    ]
    .map(long);
    let own = Descriptor::new(Object::CUDNN_BACKEND_TENSOR_DESCRIPTOR)?;
    own.set(
        Attribute::CUDNN_ATTR_TENSOR_DATA_TYPE,
        Kind::CUDNN_TYPE_DATA_TYPE,
        &[dtype],
    )?;
    own.set(
        Attribute::CUDNN_ATTR_TENSOR_DIMENSIONS,
        Kind::CUDNN_TYPE_INT64,
        &dims,
    )?;
    own.set(
        Attribute::CUDNN_ATTR_TENSOR_STRIDES,
        Kind::CUDNN_TYPE_INT64,
        &strides,
    )?;
    own.set(
        Attribute::CUDNN_ATTR_TENSOR_UNIQUE_ID,
        Kind::CUDNN_TYPE_INT64,
        &[id],
    )?;
    own.set(
        Attribute::CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT,
        Kind::CUDNN_TYPE_INT64,
        &[16i64],
    )?;
    own.set(
        Attribute::CUDNN_ATTR_TENSOR_IS_VIRTUAL,
        Kind::CUDNN_TYPE_BOOLEAN,
        &[inner],
    )?;
    own.finish()?;
    Ok(own)
}

fn convolution(shape: Shape) -> Result<Descriptor> {
    let own = Descriptor::new(Object::CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)?;
    let three = |attribute, values: [i64; 3]| own.set(attribute, Kind::CUDNN_TYPE_INT64, &values);
    own.set(
        Attribute::CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
        Kind::CUDNN_TYPE_DATA_TYPE,
        &[sys::cudnnDataType_t::CUDNN_DATA_FLOAT],
    )?;
    own.set(
        Attribute::CUDNN_ATTR_CONVOLUTION_CONV_MODE,
        Kind::CUDNN_TYPE_CONVOLUTION_MODE,
        &[sys::cudnnConvolutionMode_t::CUDNN_CROSS_CORRELATION],
    )?;
    own.set(
        Attribute::CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,
        Kind::CUDNN_TYPE_INT64,
        &[3i64],
    )?;
    three(Attribute::CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, [0; 3])?;
    three(Attribute::CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, [0; 3])?;
    three(Attribute::CUDNN_ATTR_CONVOLUTION_DILATIONS, [1; 3])?;
    three(
        Attribute::CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
        shape.stride.map(long),
    )?;
    own.finish()?;
    Ok(own)
}

/// The node of the convolution itself.
fn forward(
    conv: &Descriptor,
    input: &Descriptor,
    weight: &Descriptor,
    output: &Descriptor,
) -> Result<Descriptor> {
    let node = Descriptor::new(Object::CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)?;
    node.set_objects(
        Attribute::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
        &[conv],
    )?;
    node.set_objects(
        Attribute::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
        &[input],
    )?;
    node.set_objects(
        Attribute::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
        &[weight],
    )?;
    node.set_objects(
        Attribute::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
        &[output],
    )?;
    node.set(
        Attribute::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
        Kind::CUDNN_TYPE_FLOAT,
        &[1f32],
    )?;
    node.set(
        Attribute::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
        Kind::CUDNN_TYPE_FLOAT,
        &[0f32],
    )?;
    node.finish()?;
    Ok(node)
}

/// The node of a sum.
fn sum(add: &Descriptor, a: &Descriptor, b: &Descriptor, to: &Descriptor) -> Result<Descriptor> {
    let node = Descriptor::new(Object::CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)?;
    node.set_objects(
        Attribute::CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
        &[add],
    )?;
    node.set_objects(Attribute::CUDNN_ATTR_OPERATION_POINTWISE_XDESC, &[a])?;
    node.set_objects(Attribute::CUDNN_ATTR_OPERATION_POINTWISE_BDESC, &[b])?;
    node.set_objects(Attribute::CUDNN_ATTR_OPERATION_POINTWISE_YDESC, &[to])?;
    node.finish()?;
    Ok(node)
}

/// An object of cuDNN's, destroyed when dropped.
#[derive(Debug)]
struct Descriptor(sys::cudnnBackendDescriptor_t);

impl Descriptor {
    fn new(kind: Object) -> Result<Self> {
        let mut own = std::ptr::null_mut();
        // SAFETY: the descriptor is written to a place of its type.
        check("cudnnBackendCreateDescriptor", unsafe {
            sys::cudnnBackendCreateDescriptor(kind, &raw mut own)
        })?;
        Ok(Self(own))
    }

    fn finish(&self) -> Result<()> {
        // SAFETY: the descriptor is alive.
        check("cudnnBackendFinalize", unsafe {
            sys::cudnnBackendFinalize(self.0)
        })
    }

    /// Sets an attribute to values whose type is the one that `kind` names.
    fn set<T: Copy>(&self, attribute: Attribute, kind: Kind, values: &[T]) -> Result<()> {
        // SAFETY: as many values as said are read; every call here gives values of the type that `kind` names.
        check("cudnnBackendSetAttribute", unsafe {
            sys::cudnnBackendSetAttribute(
                self.0,
                attribute,
                kind,
                long(values.len()),
                values.as_ptr().cast(),
            )
        })
    }

    fn set_objects(&self, attribute: Attribute, objects: &[&Self]) -> Result<()> {
        let all: Vec<_> = objects.iter().map(|object| object.0).collect();
        self.set(attribute, Kind::CUDNN_TYPE_BACKEND_DESCRIPTOR, &all)
    }

    /// How many values an attribute has.
    fn count(&self, attribute: Attribute, kind: Kind) -> Result<i64> {
        let mut count = 0;
        // SAFETY: nothing but the count is written.
        check("cudnnBackendGetAttribute", unsafe {
            sys::cudnnBackendGetAttribute(
                self.0,
                attribute,
                kind,
                0,
                &raw mut count,
                std::ptr::null_mut(),
            )
        })?;
        Ok(count)
    }

    /// Values of plain numbers: `T` has the size of what `kind` names.
    fn numbers<T: Copy + Default>(&self, attribute: Attribute, kind: Kind) -> Result<Vec<T>> {
        // the number of notes cannot be asked for in every version, but there are few kinds
        let count = self.count(attribute, kind).unwrap_or(1).clamp(1, 64);
        let mut values = vec![T::default(); 64];
        let mut found = 0;
        // SAFETY: at most `count` values are written, and there is room for 64.
        check("cudnnBackendGetAttribute", unsafe {
            sys::cudnnBackendGetAttribute(
                self.0,
                attribute,
                kind,
                count,
                &raw mut found,
                values.as_mut_ptr().cast(),
            )
        })?;
        values.truncate(usize::try_from(found).unwrap_or(0));
        Ok(values)
    }

    fn objects(&self, attribute: Attribute, kind: Object) -> Result<Vec<Self>> {
        let count = self
            .count(attribute, Kind::CUDNN_TYPE_BACKEND_DESCRIPTOR)?
            .clamp(0, 256);
        let mut own: Vec<Self> = (0..count).map(|_| Self::new(kind)).collect::<Result<_>>()?;
        let mut pointers: Vec<*mut c_void> = own.iter().map(|object| object.0).collect();
        let mut found = 0;
        // SAFETY: `count` made descriptors are handed over to be filled, as the interface wants it.
        check("cudnnBackendGetAttribute", unsafe {
            sys::cudnnBackendGetAttribute(
                self.0,
                attribute,
                Kind::CUDNN_TYPE_BACKEND_DESCRIPTOR,
                count,
                &raw mut found,
                pointers.as_mut_ptr().cast(),
            )
        })?;
        own.truncate(usize::try_from(found).unwrap_or(0));
        Ok(own)
    }

    fn object(&self, attribute: Attribute, kind: Object) -> Result<Self> {
        let own = Self::new(kind)?;
        let mut pointer = own.0;
        let mut found = 0;
        // SAFETY: one made descriptor is handed over to be filled.
        check("cudnnBackendGetAttribute", unsafe {
            sys::cudnnBackendGetAttribute(
                self.0,
                attribute,
                Kind::CUDNN_TYPE_BACKEND_DESCRIPTOR,
                1,
                &raw mut found,
                (&raw mut pointer).cast(),
            )
        })?;
        Ok(own)
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the descriptor after this.
        let _ = unsafe { sys::cudnnBackendDestroyDescriptor(self.0) };
    }
}

fn check(what: &str, status: sys::cudnnStatus_t) -> Result<()> {
    if status == sys::cudnnStatus_t::CUDNN_STATUS_SUCCESS {
        return Ok(());
    }
    failed(format!("{what}: {status:?}"))
}
