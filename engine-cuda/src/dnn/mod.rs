//! Convolutions by cuDNN, through its graph interface: the older one does not reach the kernels for Hopper.
//!
//! A convolution is described, cuDNN names engines that can do it, best first by its own estimate, and the first that
//! builds and keeps within the workspace is taken and remembered. Sums with a bias and a shortcut are asked for as one
//! graph with the convolution; where no engine takes the graph, the caller adds them.

mod descriptor;
mod graph;

use std::collections::HashMap;
use std::sync::Arc;

use candle_core::DType;
use candle_core::cuda_backend::cudarc::cudnn::sys;
use candle_core::cuda_backend::cudarc::driver::CudaStream;
use sys::cudnnBackendAttributeName_t as Attribute;
use sys::cudnnBackendAttributeType_t as Kind;
use sys::cudnnBackendDescriptorType_t as Object;

use self::descriptor::{Descriptor, check};
use self::graph::{ADD, BIAS, INPUT, OUTPUT, WEIGHT};
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
        let graph = graph::graph(self.handle, shape, sums)?;
        let mut plans = Vec::new();
        for mode in [
            sys::cudnnBackendHeurMode_t::CUDNN_HEUR_MODE_A,
            sys::cudnnBackendHeurMode_t::CUDNN_HEUR_MODE_FALLBACK,
        ] {
            let Ok(engines) = graph::engines(&graph, mode) else {
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
}

impl Drop for Dnn {
    fn drop(&mut self) {
        self.plans.clear();
        // SAFETY: nothing uses the handle after this; what it answers at the end changes nothing.
        let _ = unsafe { sys::cudnnDestroy(self.handle) };
    }
}
