//! The buffer into which MIOpen's GEMM unfolds the input of a convolution.

use crate::model::{Bytes, ConvDirection, ConvType, Convolution, MiopenRelease};

use super::Card;
use super::release::{Era, since_6_2};
use super::vae::{self, Scale};

/// Most bytes that GEMM's buffer may have before ROCm 7.11, in 16-bit types
/// (`src/solver/conv/gemm_common.cpp`).
pub const GEMM_LIMIT: u64 = 7_287_183_769;

/// Bytes of the buffer: `(c / g) · filter · output · bytes · g`
/// (`GemmFwdRest::GetWorkspaceSize`); 0 where the convolution is a matrix product as it
/// stands. Absent: the formula does not cover the direction.
pub fn workspace(conv: &Convolution) -> Option<u128> {
    if conv.direction != ConvDirection::Forward || conv.transposed {
        return None;
    }
    if conv.is_pointwise() {
        return Some(0);
    }
    let output = conv.output()?.map(u128::from);
    let all = output
        .into_iter()
        .fold(per_point(conv), u128::saturating_mul);
    Some(all)
}

/// Bytes of the buffer for one point of the output.
fn per_point(conv: &Convolution) -> u128 {
    let channels = u128::from(conv.c);
    channels
        .saturating_mul(conv.taps())
        .saturating_mul(conv.dtype.bytes().into())
}

/// Most bytes that GEMM may use. Before ROCm 7.11 the fixed limit (twice that in fp32
/// from 6.2 on) or 85 % of the card's memory, whichever is less; later what the card has.
pub(super) fn limit(
    dtype: ConvType,
    era: Era,
    release: MiopenRelease,
    card: &Card,
) -> Option<Bytes> {
    match era {
        Era::From => card.vram,
        Era::Before => {
            let doubled = dtype == ConvType::Fp32 && since_6_2(release) != Some(false);
            let fixed = if doubled { 2 * GEMM_LIMIT } else { GEMM_LIMIT };
            let share = card.vram.map_or(u64::MAX, |v| v.0 / 100 * 85);
            Some(Bytes(fixed.min(share)))
        }
    }
}

/// The largest sizes with which the buffer of the same layer stays within a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Smaller {
    /// Side of a square output of this layer.
    pub side: u64,
    /// The present sides are to be multiplied with this, percent.
    pub percent: u64,
    /// The same side as a tile of the picture, px, in steps of 32; absent:
    /// where the layer stands is not known, or no tile is small enough.
    pub tile_px: Option<u64>,
    /// Frames of the video in one piece, one more than a multiple of 4; absent: not
    /// known, or not to be chosen.
    pub frames: Option<u64>,
}

/// Tiles are chosen in steps of this many px: what every program that tiles offers.
const TILE_STEP: u64 = 32;
/// Smaller tiles are not offered.
const TILE_LEAST: u64 = 64;

/// What makes GEMM's buffer fit into `limit`. Absent: it fits, or nothing does.
pub fn smaller(conv: &Convolution, limit: Bytes) -> Option<Smaller> {
    let limit = u128::from(limit.0);
    if workspace(conv)? <= limit {
        return None;
    }
    let [d, h, w] = conv.output()?.map(u128::from);
    let point = per_point(conv);
    let area = limit.checked_div(point.saturating_mul(d))?;
    let side = u64::try_from(area.isqrt()).ok().filter(|s| *s > 0)?;
    let share = area.saturating_mul(10_000) / (h.saturating_mul(w)).max(1);
    let frames = limit.checked_div(point.saturating_mul(h).saturating_mul(w))?;
    let scale = vae::scale(conv);
    Some(Smaller {
        side,
        percent: u64::try_from(share.isqrt()).unwrap_or(100),
        tile_px: scale.and_then(|s| tile(side, s)),
        frames: scale.and_then(|s| chunk(frames, s)),
    })
}

/// The tile of the picture whose part in the layer has this side.
fn tile(side: u64, scale: Scale) -> Option<u64> {
    let px = side.saturating_mul(scale.px.into()) / TILE_STEP * TILE_STEP;
    (px >= TILE_LEAST).then_some(px)
}

/// The frames of the video whose part in the layer has this many: 4 for each latent but
/// the first, which stands for one.
fn chunk(layer: u128, scale: Scale) -> Option<u64> {
    let each = u128::from(4 / scale.frames?.clamp(1, 4));
    let more = layer.checked_sub(1)? / each;
    u64::try_from(more).ok()?.checked_mul(4)?.checked_add(1)
}
