//! Matrix products by cuBLAS.

use std::ffi::c_void;
use std::sync::Arc;

use candle_core::DType;
use candle_core::cuda_backend::cudarc::cublas::{CudaBlas, result, sys};

use crate::error::{Result, failed, wrap};

/// cuBLAS, for one stream.
#[derive(Debug)]
pub(crate) struct Blas(pub(crate) Arc<CudaBlas>);

/// A matrix in memory by rows: address, kind of number, numbers from one row to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix {
    pub(crate) at: u64,
    pub(crate) dtype: DType,
    pub(crate) stride: usize,
}

/// `rows` x `inner` times `inner` x `columns`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) inner: usize,
    /// Whether the second is in memory as `columns` x `inner`.
    pub(crate) transposed: bool,
    /// The result is this times the product…
    pub(crate) factor: f32,
    /// …plus this times what is there.
    pub(crate) kept: f32,
}

impl Product {
    pub(crate) fn new(rows: usize, columns: usize, inner: usize) -> Self {
        Self {
            rows,
            columns,
            inner,
            transposed: false,
            factor: 1.0,
            kept: 0.0,
        }
    }
}

fn int(n: usize) -> Result<i32> {
    i32::try_from(n).or_else(|_| failed(format!("a matrix of {n} rows or columns")))
}

fn kind(dtype: DType) -> Result<sys::cudaDataType> {
    Ok(match dtype {
        DType::F32 => sys::cudaDataType::CUDA_R_32F,
        DType::F16 => sys::cudaDataType::CUDA_R_16F,
        DType::BF16 => sys::cudaDataType::CUDA_R_16BF,
        other => return failed(format!("{other:?} is not computed in")),
    })
}

impl Blas {
    /// `to` = a * b, summed up in single precision. cuBLAS counts by columns, so that the product is b' * a' there.
    pub(crate) fn product(&self, what: Product, a: Matrix, b: Matrix, to: Matrix) -> Result<()> {
        let (factor, kept) = (what.factor, what.kept);
        let turn = if what.transposed {
            sys::cublasOperation_t::CUBLAS_OP_T
        } else {
            sys::cublasOperation_t::CUBLAS_OP_N
        };
        // SAFETY: the handle lives in `self`; the addresses are of memory that callers have sized for the product.
        unsafe {
            result::gemm_ex(
                *self.0.handle(),
                turn,
                sys::cublasOperation_t::CUBLAS_OP_N,
                int(what.columns)?,
                int(what.rows)?,
                int(what.inner)?,
                (&raw const factor).cast::<c_void>(),
                b.at as *const c_void,
                kind(b.dtype)?,
                int(b.stride)?,
                a.at as *const c_void,
                kind(a.dtype)?,
                int(a.stride)?,
                (&raw const kept).cast::<c_void>(),
                to.at as *mut c_void,
                kind(to.dtype)?,
                int(to.stride)?,
                sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
                sys::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
            )
        }
        .map_err(wrap)
    }
}
