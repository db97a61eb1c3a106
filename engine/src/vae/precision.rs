//! What a model is computed in, and the step up when that does not do.

use candle_core::{DType, Device, Tensor};

use super::Observer;
use crate::error::{Error, Result};

/// What a model is to be computed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// What suits the device: half on a GPU, single on the processor.
    #[default]
    Auto,
    /// Single.
    Float32,
    /// Half with the range of single and 8 bits of each number.
    Bfloat16,
    /// Half with 11 bits of each number; large ones become infinite.
    Float16,
}

impl Precision {
    /// Reads `auto`, `float32`, `bfloat16`, `float16` or their short forms `fp32`, `bf16`, `fp16`.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "auto" => Self::Auto,
            "float32" | "fp32" => Self::Float32,
            "bfloat16" | "bf16" => Self::Bfloat16,
            "float16" | "fp16" => Self::Float16,
            _ => return None,
        })
    }

    /// The precision on this device. The processor always computes in single, whatever the weights are stored in.
    pub fn on(self, device: &Device) -> DType {
        match (device, self) {
            (Device::Cpu, _) | (_, Self::Float32) => DType::F32,
            (_, Self::Auto | Self::Bfloat16) => DType::BF16,
            (_, Self::Float16) => DType::F16,
        }
    }
}

/// The next that may do where one does not: half with a small range, half with a large one, single.
pub fn higher(dtype: DType) -> Option<DType> {
    match dtype {
        DType::F16 => Some(DType::BF16),
        DType::BF16 => Some(DType::F32),
        _ => None,
    }
}

/// The word for it.
pub fn word(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "float16",
        DType::BF16 => "bfloat16",
        DType::F32 => "float32",
        other => other.as_str(),
    }
}

/// Runs `each` in `dtype`, and again in the next higher precision whenever numbers come out that are none
/// ([`Error::NotFinite`]), which `observer` is told. `each` loads the model anew, and gives all frames anew.
pub fn stepping_up<T>(
    dtype: DType,
    observer: &mut dyn Observer,
    mut each: impl FnMut(DType, &mut dyn Observer) -> Result<T>,
) -> Result<T> {
    let mut dtype = dtype;
    loop {
        match (each(dtype, observer), higher(dtype)) {
            (Err(Error::NotFinite { .. }), Some(next)) => {
                observer.stepped_up(dtype, next)?;
                dtype = next;
            }
            (result, _) => return result,
        }
    }
}

/// Refuses a result with numbers that are none: their sum is none either.
pub(super) fn finite(half: &'static str, result: &Tensor) -> Result<()> {
    let sum = result.to_dtype(DType::F32)?.sum_all()?;
    if sum.to_scalar::<f32>()?.is_finite() {
        return Ok(());
    }
    Err(Error::NotFinite {
        half,
        dtype: word(result.dtype()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vae::Unobserved;

    #[test]
    fn what_is_no_number_is_found_and_the_precision_steps_up() {
        #[derive(Default)]
        struct Steps(Vec<(DType, DType)>);
        impl Observer for Steps {
            fn after(&mut self, _: &str, _: &Tensor) -> Result<()> {
                Ok(())
            }
            fn stepped_up(&mut self, from: DType, to: DType) -> Result<()> {
                self.0.push((from, to));
                Ok(())
            }
        }
        // 300 squared is too much for float16 alone
        let run = |dtype: DType, _: &mut dyn Observer| {
            let number = Tensor::new(&[300f32], &Device::Cpu)?.to_dtype(dtype)?;
            let square = (&number * &number)?;
            finite("the decoder", &square).map(|()| dtype)
        };
        let mut steps = Steps::default();
        assert_eq!(
            stepping_up(DType::F16, &mut steps, run).unwrap(),
            DType::BF16
        );
        assert_eq!(steps.0, [(DType::F16, DType::BF16)]);
        let never = |dtype: DType, _: &mut dyn Observer| {
            finite(
                "the decoder",
                &Tensor::new(&[f32::NAN], &Device::Cpu)?.to_dtype(dtype)?,
            )
        };
        let mut steps = Steps::default();
        let error = stepping_up(DType::F16, &mut steps, never).unwrap_err();
        assert_eq!(steps.0.len(), 2);
        assert_eq!(
            error.to_string(),
            "numbers that are none (NaN or infinite) came out of the decoder in float32: the weights or what went in are damaged"
        );
        let other = |_: DType, _: &mut dyn Observer| crate::error::argument::<()>("another error");
        assert!(stepping_up(DType::F16, &mut Unobserved, other).is_err());
    }

    #[test]
    fn the_processor_computes_in_single_precision() {
        for word in ["auto", "fp32", "bf16", "float16"] {
            assert_eq!(Precision::parse(word).unwrap().on(&Device::Cpu), DType::F32);
        }
        assert_eq!(Precision::parse("fp8"), None);
    }
}
