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

/// The family of an architecture: the members of one run each other's code, with the exception of the
/// gfx9 cards (<https://llvm.org/docs/AMDGPUUsage.html#processors>). None: it is no card of AMD.
fn family(arch: &str) -> Option<&str> {
    let number = arch.strip_prefix("gfx")?;
    if number.starts_with('9') {
        return Some(number);
    }
    number.get(..number.len().checked_sub(1)?)
}

/// Whether two architectures are of different families.
pub(super) fn differ(arch: &str, other: &str) -> bool {
    matches!((family(arch), family(other)), (Some(a), Some(b)) if a != b)
}

/// The architecture that a value of `HSA_OVERRIDE_GFX_VERSION` stands for: `11.0.0` is `gfx1100`.
pub(super) fn of_override(value: &str) -> Option<String> {
    let mut numbers = value.split('.').map(|n| n.parse::<u32>().ok());
    let (major, minor, step) = (numbers.next()??, numbers.next()??, numbers.next()??);
    (minor < 10 && step < 16).then(|| format!("gfx{major}{minor}{step:x}"))
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
    fn an_override_of_another_family() {
        for (value, arch, want) in [
            ("11.0.0", "gfx1151", true),
            ("10.3.0", "gfx1100", true),
            ("11.0.0", "gfx1201", true),
            ("10.3.0", "gfx1010", true),
            ("9.0.6", "gfx90a", true),
            ("9.0.10", "gfx90a", false),
            ("10.3.0", "gfx1031", false),
            ("11.0.0", "gfx1103", false),
            ("11.5.1", "gfx1150", false),
            ("11.0.0", "sm_86", false),
        ] {
            let taken_for = of_override(value).unwrap();
            assert_eq!(differ(arch, &taken_for), want, "{value} {arch}");
        }
        assert_eq!(of_override("11.0"), None);
    }

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
