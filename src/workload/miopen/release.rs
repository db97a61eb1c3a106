//! Which ROCm and MIOpen a program runs on, as its console happens to tell.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::MiopenRelease;
use crate::workload::pattern;

/// `2.9.1+rocm6.4` (torch's version), `ROCm version: (7, 1)` (ComfyUI),
/// `HIP version: 6.4.43482`, `torch.version.hip 7.1.25424`.
static ROCM: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?:\+rocm|\brocm[ _-]?version\b\W{0,4}|\bhip[ _-]?version\b\W{0,4}|\bversion\.hip\b\W{0,4})(\d{1,2})(?:\.|,\s?)(\d{1,3})",
    )
});

/// `MIOpen version: 3.5.1`, and the suffix of its user database
/// (`gfx1100_48.HIP.3_5_1_0.ufdb.txt`).
static MIOPEN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?:(?i:\bmiopen[ _-]?version\b)\W{0,4}|\.HIP\.)(\d{1,2})[._](\d{1,3})[._](\d{1,4})")
});

/// What a line tells of the versions.
pub(super) fn of_line(text: &str) -> Option<MiopenRelease> {
    // cheap first: nearly no line does
    let hints = ["ocm", "OCm", "HIP", "hip", "MIOpen"];
    if !hints.iter().any(|h| text.contains(h)) {
        return None;
    }
    let number = |c: &regex::Captures<'_>, at: usize| c.get(at)?.as_str().parse::<u32>().ok();
    let rocm = ROCM
        .captures(text)
        .and_then(|c| Some([number(&c, 1)?, number(&c, 2)?]));
    let miopen = MIOPEN
        .captures(text)
        .and_then(|c| Some([number(&c, 1)?, number(&c, 2)?, number(&c, 3)?]));
    let told = MiopenRelease { rocm, miopen };
    (told != MiopenRelease::default()).then_some(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_where_they_are_told() {
        let rocm = |text| of_line(text).and_then(|r| r.rocm);
        assert_eq!(rocm("pytorch version: 2.9.1+rocm6.4"), Some([6, 4]));
        assert_eq!(rocm("ROCm version: (7, 11)"), Some([7, 11]));
        assert_eq!(rocm("HIP version: 7.1.25424-4179531dcd"), Some([7, 1]));
        assert_eq!(rocm("torch.version.hip = '6.4.43482'"), Some([6, 4]));
        assert_eq!(rocm("AMD arch: gfx1100, rocm found"), None);
        let miopen = |text| of_line(text).and_then(|r| r.miopen);
        let failed = "MIOpen(HIP): Warning [StoreRecord] Failed to store record to find-db at </home/u/.config/miopen/gfx1100_48.HIP.3_5_1_0.ufdb.txt>";
        assert_eq!(miopen(failed), Some([3, 5, 1]));
        assert_eq!(miopen("MIOpen version: 3.3.0"), Some([3, 3, 0]));
        assert_eq!(of_line("Loading pipeline components...: 4/7"), None);
    }
}
