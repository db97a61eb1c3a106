//! Precisions: which one to try when another overflows or does not fit.

use candle_core::DType;

use crate::error::Error;

/// The next precision to try after NaN or infinite numbers ([`Error::NotFinite`]): float16, then bfloat16, then float32.
pub fn higher(dtype: DType) -> Option<DType> {
    match dtype {
        DType::F16 => Some(DType::BF16),
        DType::BF16 => Some(DType::F32),
        _ => None,
    }
}

/// The precision that takes less memory where float32 does not fit: bfloat16, whose range a decoder's numbers never
/// leave.
pub fn lower(dtype: DType) -> Option<DType> {
    (dtype == DType::F32).then_some(DType::BF16)
}

/// The name in messages and settings.
pub fn word(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "float16",
        DType::BF16 => "bfloat16",
        DType::F32 => "float32",
        other => other.as_str(),
    }
}

/// The error of a result with NaN or infinite numbers.
pub(super) fn not_finite(half: &'static str, dtype: DType) -> Error {
    Error::NotFinite {
        half,
        dtype: word(dtype),
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Tensor};

    use super::*;
    use crate::Result;
    use crate::ops::Executor;
    use crate::ops::cpu::Cpu;

    fn check(half: &'static str, result: Tensor) -> Result<()> {
        let dtype = result.dtype();
        Executor::Backend(&Cpu).check_finite(&result.into(), || not_finite(half, dtype))
    }

    #[test]
    fn what_is_no_number_is_found_and_a_higher_precision_tried() {
        // 300 squared is too much for float16 alone
        let square = |dtype: DType| {
            let number = Tensor::new(&[1.0, 300f32], &Device::Cpu)
                .unwrap()
                .to_dtype(dtype)
                .unwrap();
            check("the decoder", (&number * &number).unwrap())
        };
        let error = square(DType::F16).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the decoder returned NaN or infinite numbers in float16"
        );
        square(higher(DType::F16).unwrap()).unwrap();
        assert_eq!(higher(higher(DType::F16).unwrap()), Some(DType::F32));
        assert_eq!(higher(DType::F32), None);
        let none = Tensor::new(&[f32::NEG_INFINITY, f32::INFINITY], &Device::Cpu).unwrap();
        assert_eq!(
            check("the encoder", none).unwrap_err().to_string(),
            "the encoder returned NaN or infinite numbers in float32: the weights or what went in are damaged"
        );
    }
}
