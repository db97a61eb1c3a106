//! Which of MIOpen's solvers are left for a convolution on a card.

use crate::model::{Bytes, ConvDirection, ConvLayout, ConvType, Convolution, MiopenRelease};

use super::im2col::workspace;
use super::release::{Era, since_7_2};
use super::{Answer, Card, size};

/// Name of the family.
pub(super) const GEMM: &str = "GEMM";
/// Name of the family.
pub(super) const NAIVE: &str = "naive";
/// Name of the family.
const CK: &str = "CK implicit GEMM";
/// Name of the family.
const WINOGRAD: &str = "Winograd";
/// Name of the family.
const V4R4: &str = "implicit GEMM V4R4";

/// A family of solvers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Family {
    /// Its name: `GEMM`, `CK implicit GEMM`, `Winograd`, `naive`.
    pub name: &'static str,
    /// Whether it is left.
    pub left: Answer,
    /// Why.
    pub why: String,
}

fn family(name: &'static str, left: Answer, why: impl Into<String>) -> Family {
    Family {
        name,
        left,
        why: why.into(),
    }
}

/// Every family, the naive kernel last.
pub(super) fn of(
    conv: &Convolution,
    era: Era,
    release: MiopenRelease,
    limit: Option<Bytes>,
    card: &Card,
) -> Vec<Family> {
    let naive = family(NAIVE, Answer::Yes, "takes every shape");
    if conv.direction != ConvDirection::Forward || conv.transposed {
        let why = "not worked out for this direction";
        return vec![family(GEMM, Answer::Unknown, why), naive];
    }
    let arch = card.arch.as_deref().and_then(|a| a.split(':').next());
    let mut all = vec![gemm(conv, limit), ck(conv, era, arch)];
    if conv.dims == 2 {
        all.push(winograd(conv, era, release, arch));
    }
    all.extend(v4r4(conv, arch));
    all.push(naive);
    all
}

/// Whether nothing but the naive kernel is left.
pub(super) fn only_naive(families: &[Family]) -> Answer {
    let others = families.iter().filter(|f| f.name != NAIVE);
    let mut all = Answer::Yes;
    for f in others {
        match f.left {
            Answer::Yes => return Answer::No,
            Answer::Unknown => all = Answer::Unknown,
            Answer::No => {}
        }
    }
    all
}

fn gemm(conv: &Convolution, limit: Option<Bytes>) -> Family {
    if conv.layout != ConvLayout::ChannelsFirst {
        return family(GEMM, Answer::No, "takes only channels first (NCHW, NCDHW)");
    }
    match (workspace(conv), limit) {
        (Some(0), _) => family(GEMM, Answer::Yes, "needs no workspace"),
        (Some(needed), Some(limit)) if needed > limit.0.into() => {
            let why = format!("needs {}, at most {limit}", size(needed));
            family(GEMM, Answer::No, why)
        }
        (Some(needed), _) => family(GEMM, Answer::Yes, format!("needs {}", size(needed))),
        (None, _) => family(GEMM, Answer::Unknown, "not worked out for this direction"),
    }
}

/// The CK solvers: MI cards always (`solver/ck_utility_common.hpp`), RDNA 3 (but for
/// gfx1103) and RDNA 4 from ROCm 7.11 on; their matrix cores take no fp32.
fn ck(conv: &Convolution, era: Era, arch: Option<&str>) -> Family {
    let Some(arch) = arch else {
        return family(CK, Answer::Unknown, "the card's architecture is not known");
    };
    let instinct = ["gfx908", "gfx90a", "gfx94", "gfx95"];
    if instinct.iter().any(|a| arch.starts_with(a)) {
        return family(CK, Answer::Yes, format!("{arch} has it"));
    }
    let rdna = is_family(arch, "gfx11") || is_family(arch, "gfx12");
    if !rdna || arch == "gfx1103" {
        return family(CK, Answer::No, format!("not on {arch}"));
    }
    match (era, conv.dtype) {
        (Era::Before, _) => family(CK, Answer::No, format!("not on {arch} before ROCm 7.11")),
        (Era::From, ConvType::Fp16 | ConvType::Bf16) => {
            family(CK, Answer::Yes, format!("{arch} has it from ROCm 7.11 on"))
        }
        (Era::From, _) => family(CK, Answer::Unknown, "not certain in this type"),
    }
}

/// Architectures of four digits that begin so: `gfx1100`, `gfx1151`.
fn is_family(arch: &str, begin: &str) -> bool {
    arch.len() == 7 && arch.starts_with(begin)
}

/// 2-D only. Which shapes they take is not told by type and card alone: certain is only
/// the usual one.
fn winograd(conv: &Convolution, era: Era, release: MiopenRelease, arch: Option<&str>) -> Family {
    let Some(arch) = arch else {
        return family(
            WINOGRAD,
            Answer::Unknown,
            "the card's architecture is not known",
        );
    };
    if !matches!(conv.dtype, ConvType::Fp32 | ConvType::Fp16) {
        return family(WINOGRAD, Answer::No, "takes only fp32 and fp16");
    }
    if conv.layout != ConvLayout::ChannelsFirst {
        return family(WINOGRAD, Answer::Unknown, "not certain in this layout");
    }
    let usual = conv.kernel == [1, 3, 3] && conv.stride == [1; 3] && conv.dilation == [1; 3];
    let half = conv.dtype == ConvType::Fp16;
    let rx = is_family(arch, "gfx11") || is_family(arch, "gfx103");
    let fp32_too = rx || is_family(arch, "gfx10") || arch.starts_with("gfx9");
    let newest = is_family(arch, "gfx12");
    if newest && !half {
        return family(WINOGRAD, Answer::No, format!("not on {arch} in fp32"));
    }
    let there = if newest {
        match (since_7_2(release), era) {
            (Some(true), _) | (_, Era::From) => Answer::Yes,
            (Some(false), _) => Answer::No,
            (None, Era::Before) => Answer::Unknown,
        }
    } else if rx || (fp32_too && !half) {
        Answer::Yes
    } else if fp32_too {
        Answer::Unknown
    } else {
        Answer::No
    };
    match there {
        Answer::Yes if usual => family(WINOGRAD, Answer::Yes, format!("{arch} has it")),
        Answer::Yes => family(WINOGRAD, Answer::Unknown, "not certain for this shape"),
        Answer::Unknown => family(WINOGRAD, Answer::Unknown, format!("not certain on {arch}")),
        Answer::No => family(WINOGRAD, Answer::No, format!("not on {arch}")),
    }
}

/// Not dynamic: left out by MIOpen's default find mode, so never certain.
fn v4r4(conv: &Convolution, arch: Option<&str>) -> Option<Family> {
    let arch = arch?;
    let has = arch.starts_with("gfx9") || is_family(arch, "gfx103");
    (has && conv.dtype == ConvType::Fp32).then(|| {
        let why = "only in the find modes NORMAL and HYBRID";
        family(V4R4, Answer::Unknown, why)
    })
}
