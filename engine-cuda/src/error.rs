//! Shorthands for the engine's errors.

pub(crate) use framepack_engine::{Error, Result};

/// What a library of CUDA's refused.
pub(crate) fn failed<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::Tensor(candle_core::Error::Msg(reason.into())))
}

/// What the caller got wrong.
pub(crate) fn argument<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::Argument(reason.into()))
}

/// An error of the driver's or of cuBLAS's.
pub(crate) fn wrap(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Tensor(candle_core::Error::wrap(error))
}
