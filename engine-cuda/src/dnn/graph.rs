//! What cuDNN is told of a convolution.

use candle_core::DType;
use candle_core::cuda_backend::cudarc::cudnn::sys;
use sys::cudnnBackendAttributeName_t as Attribute;
use sys::cudnnBackendAttributeType_t as Kind;
use sys::cudnnBackendDescriptorType_t as Object;

use super::descriptor::Descriptor;
use super::{Shape, Sums};
use crate::error::{Result, failed};
use crate::memory::long;

/// Identifiers of tensors within a graph.
pub(super) const INPUT: i64 = 1;
pub(super) const WEIGHT: i64 = 2;
pub(super) const OUTPUT: i64 = 3;
pub(super) const BIAS: i64 = 4;
pub(super) const ADD: i64 = 5;
const BETWEEN: i64 = 6;

/// A convolution with these sums.
pub(super) fn graph(handle: sys::cudnnHandle_t, shape: Shape, sums: Sums) -> Result<Descriptor> {
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
        &[handle],
    )?;
    graph.set_objects(
        Attribute::CUDNN_ATTR_OPERATIONGRAPH_OPS,
        &nodes.iter().collect::<Vec<_>>(),
    )?;
    graph.finish()?;
    Ok(graph)
}

/// The engines that cuDNN proposes.
pub(super) fn engines(
    graph: &Descriptor,
    mode: sys::cudnnBackendHeurMode_t,
) -> Result<Vec<Descriptor>> {
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
