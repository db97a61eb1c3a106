//! The architecture of an AMD card by the name that programs print.

use std::sync::LazyLock;

use regex::Regex;

/// Numbers of a series, and its architecture. Read in LLVM's table of processors
/// (<https://llvm.org/docs/AMDGPUUsage.html#processors>).
const SERIES: &[(&str, &str)] = &[
    (r"RX (?:460|470|480|550|560|570|580|590)", "gfx803"),
    (r"RX Vega|Vega (?:56|64)|Vega Frontier", "gfx900"),
    (r"Radeon VII|Radeon Pro VII|Instinct MI[56]0", "gfx906"),
    (r"RX 5(?:6|7)00", "gfx1010"),
    (r"RX 5[35]00", "gfx1012"),
    (r"RX 6[78]00S", "gfx1032"),
    (r"RX 68[05]0M", "gfx1031"),
    (r"RX 7[67]00S", "gfx1102"),
    (r"RX 6[89][05]0|PRO W6800", "gfx1030"),
    (r"RX 67[05]0", "gfx1031"),
    (r"RX 66[05]0|PRO W6600", "gfx1032"),
    (r"RX 6[345]00", "gfx1034"),
    (r"Radeon 6[68]0M", "gfx1035"),
    (r"RX 7900|PRO W7[89]00", "gfx1100"),
    (r"RX 7[78]00|PRO W7[57]00", "gfx1101"),
    (r"RX 7[46][05]0", "gfx1102"),
    (r"Radeon 7[468]0M", "gfx1103"),
    (r"Radeon 8[89]0M", "gfx1150"),
    (r"Radeon 80[456]0S", "gfx1151"),
    (r"RX 9060", "gfx1200"),
    (r"RX 9070|AI PRO R9700", "gfx1201"),
];

/// The first release of ROCm whose torch has code for a card, where it is a late one: no torch of an
/// older release has it. RX 9000: pytorch.org's wheels of 6.3 (pytorch/pytorch, pull request 148562 of
/// March 2025). Radeon 800M and 8000S: AMD's own wheels of 6.4 for Ryzen; pytorch.org's follow with 7.0
/// (pull request 167299). gfx1152 and gfx1153: AMD's wheels of 7 (bitsandbytes builds for them from 7.14 on).
const FIRST_RELEASE: &[(&str, (u32, u32))] = &[
    ("gfx1150", (6, 4)),
    ("gfx1151", (6, 4)),
    ("gfx1152", (7, 0)),
    ("gfx1153", (7, 0)),
    ("gfx1200", (6, 3)),
    ("gfx1201", (6, 3)),
];

/// The first release of ROCm with code for an architecture; none: it is not listed.
pub(super) fn first_release(arch: &str) -> Option<(u32, u32)> {
    let mut all = FIRST_RELEASE.iter();
    all.find(|(name, _)| *name == arch).map(|(_, first)| *first)
}

static NAMES: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    let compiled = SERIES.iter().filter_map(|(name, arch)| {
        let name = Regex::new(&format!(r"\b(?:{name})(?:\b|[A-Z])")).ok()?;
        Some((name, *arch))
    });
    compiled.collect()
});

/// The architecture of the card that a text names; none: it names no card of the table.
pub(super) fn arch(text: &str) -> Option<&'static str> {
    if !text.contains("RX ") && !text.contains("Radeon") && !text.contains("PRO ") {
        return None;
    }
    let mut all = NAMES.iter();
    all.find(|(name, _)| name.is_match(text))
        .map(|(_, arch)| *arch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_by_their_names() {
        assert_eq!(NAMES.len(), SERIES.len());
        for (text, want) in [
            ("GPU device = cuda AMD Radeon RX 6700 XT", Some("gfx1031")),
            ("AMD Radeon RX 6800S", Some("gfx1032")),
            ("Using torch device: AMD Radeon RX 7800 XT", Some("gfx1101")),
            ("AMD Radeon RX 580 2048SP [ZLUDA]", Some("gfx803")),
            ("AMD Radeon(TM) 890M Graphics", None),
            ("Radeon 8060S", Some("gfx1151")),
            ("AMD Radeon RX 6900 XT", Some("gfx1030")),
            ("NVIDIA GeForce RTX 3060", None),
            ("AMD Radeon Graphics", None),
        ] {
            assert_eq!(arch(text), want, "{text}");
        }
    }
}
