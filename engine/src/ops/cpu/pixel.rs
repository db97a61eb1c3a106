//! What is done to a pixel's channels on their way into a convolution.

#![expect(
    clippy::inline_always,
    reason = "the loops become vector code only inside of the dispatch that calls them"
)]

/// The normalisation and activation of one clip, as slices.
#[derive(Clone, Copy)]
pub(super) enum Pixel<'a> {
    /// Taken as it is.
    Copy,
    /// x * sigmoid(x).
    Silu,
    /// Scale and shift by channel.
    Affine(&'a [f32], &'a [f32]),
    /// The same, then x * sigmoid(x).
    AffineSilu(&'a [f32], &'a [f32]),
    /// Over the root mean square of the channels, times gamma.
    Rms(&'a [f32]),
    /// The same, then x * sigmoid(x).
    RmsSilu(&'a [f32]),
}

impl Pixel<'_> {
    /// Writes what becomes of `from` to `to`, both of C numbers.
    #[inline(always)]
    pub(super) fn apply(self, from: &[f32], to: &mut [f32]) {
        match self {
            Pixel::Copy => to.copy_from_slice(from),
            Pixel::Silu => {
                for (to, &x) in to.iter_mut().zip(from) {
                    *to = silu(x);
                }
            }
            Pixel::Affine(scale, shift) => affine(from, to, scale, shift, |x| x),
            Pixel::AffineSilu(scale, shift) => affine(from, to, scale, shift, silu),
            Pixel::Rms(gamma) => rms(from, to, gamma, |x| x),
            Pixel::RmsSilu(gamma) => rms(from, to, gamma, silu),
        }
    }
}

#[inline(always)]
fn affine(from: &[f32], to: &mut [f32], scale: &[f32], shift: &[f32], then: impl Fn(f32) -> f32) {
    for (((to, &x), &scale), &shift) in to.iter_mut().zip(from).zip(scale).zip(shift) {
        *to = then(x * scale + shift);
    }
}

#[inline(always)]
fn rms(from: &[f32], to: &mut [f32], gamma: &[f32], then: impl Fn(f32) -> f32) {
    let factor = rms_factor(from);
    for ((to, &x), &gamma) in to.iter_mut().zip(from).zip(gamma) {
        *to = then(x * factor * gamma);
    }
}

/// sqrt(C) / max(|x|, 1e-12).
#[inline(always)]
fn rms_factor(pixel: &[f32]) -> f32 {
    let mut lanes = [0f32; 16];
    let chunks = pixel.chunks_exact(16);
    let rest: f32 = chunks.remainder().iter().map(|x| x * x).sum();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane += x * x;
        }
    }
    let norm = (lanes.iter().sum::<f32>() + rest).sqrt().max(1e-12);
    #[expect(
        clippy::cast_precision_loss,
        reason = "a pixel has some hundred channels"
    )]
    let channels = pixel.len() as f32;
    channels.sqrt() / norm
}

/// x * sigmoid(x), NaN kept.
#[inline(always)]
pub(super) fn silu(x: f32) -> f32 {
    x / (1.0 + exp(-x))
}

/// e^x within 2 units in the last place, without branches, so that a loop over it becomes vector code:
/// x = n ln 2 + r, and a polynomial for e^r on |r| <= ln 2 / 2. Beyond ±87 it stays at the bound's value:
/// no infinities and no subnormal numbers. NaN stays NaN.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
    const ROUND: f32 = 12_582_912.0;
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let x = x.clamp(-87.0, 87.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * LN2_HIGH - n * LN2_LOW;
    // Taylor to r^6, whose rest is below 2e-7 of the value at the interval's ends
    let tail = r.mul_add_plain(1.0 / 720.0, 1.0 / 120.0);
    let tail = r.mul_add_plain(tail, 1.0 / 24.0);
    let tail = r.mul_add_plain(tail, 1.0 / 6.0);
    let tail = r.mul_add_plain(tail, 0.5);
    let value = r * r * tail + r + 1.0;
    let power = f32::from_bits(
        (shifted
            .to_bits()
            .wrapping_sub(ROUND.to_bits())
            .wrapping_add(127))
            << 23,
    );
    value * power
}

/// a * b + c in two roundings: the fused form is a call of the C library where the target lacks it.
trait MulAddPlain {
    fn mul_add_plain(self, by: f32, plus: f32) -> f32;
}

impl MulAddPlain for f32 {
    #[inline(always)]
    fn mul_add_plain(self, by: f32, plus: f32) -> f32 {
        self * by + plus
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "what is compared is exact")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn exp_and_silu_are_those_of_double_precision(x in -86.9f32..86.9) {
            let want = f64::from(x).exp();
            let error = (f64::from(exp(x)) - want).abs() / want;
            prop_assert!(error < 3e-7, "exp({x}): {error:e}");
            let want = f64::from(x) / (1.0 + (-f64::from(x)).exp());
            let error = (f64::from(silu(x)) - want).abs();
            prop_assert!(error <= 4e-7 * want.abs() + 1e-37, "silu({x}): {error:e}");
        }
    }

    #[test]
    fn the_ends_of_the_range_do_no_harm() {
        assert!(silu(f32::NAN).is_nan());
        assert_eq!(silu(f32::INFINITY), f32::INFINITY);
        assert!(silu(-1e30).abs() < 1e-6);
        assert_eq!(silu(0.0), 0.0);
        assert_eq!(silu(1e30), 1e30);
    }

    #[test]
    fn a_black_pixel_has_no_root_mean_square_to_divide_by() {
        let mut out = [1.0; 3];
        Pixel::Rms(&[1.0; 3]).apply(&[0.0; 3], &mut out);
        assert_eq!(out, [0.0; 3]);
    }
}
