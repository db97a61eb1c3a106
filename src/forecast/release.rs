//! Which of MIOpen's versions a fact holds for.

use crate::model::MiopenRelease;

/// ROCm 7.11 dropped the limit of GEMM's workspace and brought the CK solvers to RDNA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// Before ROCm 7.11.
    Before,
    /// From ROCm 7.11 on.
    From,
}

impl Era {
    /// The words for it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Before => "before ROCm 7.11",
            Self::From => "from ROCm 7.11 on",
        }
    }
}

/// Whether the version in use is at least this one of ROCm. `earlier`: MIOpen below this
/// is certainly of before; `later`: MIOpen above this is certainly not.
fn at_least(
    release: MiopenRelease,
    rocm: [u32; 2],
    earlier: [u32; 3],
    later: [u32; 3],
) -> Option<bool> {
    match (release.rocm, release.miopen) {
        (Some(is), _) => Some(is >= rocm),
        (None, Some(is)) if is < earlier => Some(false),
        (None, Some(is)) if is > later => Some(true),
        (None, _) => None,
    }
}

/// The ranges that the version in use may be of. MIOpen 3.5.1 is of both.
pub(super) fn eras(release: MiopenRelease) -> &'static [Era] {
    match at_least(release, [7, 11], [3, 5, 1], [3, 5, 1]) {
        Some(true) => &[Era::From],
        Some(false) => &[Era::Before],
        None => &[Era::Before, Era::From],
    }
}

/// Whether the version is at least 6.2, where known.
pub(super) fn since_6_2(release: MiopenRelease) -> Option<bool> {
    at_least(release, [6, 2], [3, 2, 0], [3, 1, u32::MAX])
}

/// Whether the version is at least 7.2, where known.
pub(super) fn since_7_2(release: MiopenRelease) -> Option<bool> {
    at_least(release, [7, 2], [3, 5, 1], [3, 5, 1])
}

/// Whether a Find leaves the naive kernel out where another solver succeeded, as from ROCm
/// 7.14 on (MIOpen 3.5.2, rocm-libraries#7949; later ones give it a short time in its place,
/// #9513). Builds between the releases are called 3.5.2 as well, with and without it.
pub(super) fn since_7_14(release: MiopenRelease) -> Option<bool> {
    at_least(release, [7, 14], [3, 5, 2], [3, 5, 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_by_either_number() {
        let rocm = |a, b| MiopenRelease {
            rocm: Some([a, b]),
            miopen: None,
        };
        let miopen = |v| MiopenRelease {
            rocm: None,
            miopen: Some(v),
        };
        assert_eq!(eras(rocm(6, 4)), [Era::Before]);
        assert_eq!(eras(rocm(7, 2)), [Era::Before]);
        assert_eq!(eras(rocm(7, 11)), [Era::From]);
        assert_eq!(eras(rocm(8, 0)), [Era::From]);
        assert_eq!(eras(miopen([3, 5, 0])), [Era::Before]);
        assert_eq!(eras(miopen([3, 5, 1])), [Era::Before, Era::From]);
        assert_eq!(eras(miopen([3, 6, 0])), [Era::From]);
        assert_eq!(eras(MiopenRelease::default()).len(), 2);
        assert_eq!(since_6_2(miopen([3, 2, 0])), Some(true));
        assert_eq!(since_6_2(miopen([3, 1, 0])), Some(false));
        assert_eq!(since_6_2(MiopenRelease::default()), None);
        assert_eq!(since_7_2(rocm(7, 1)), Some(false));
        for (release, known) in [
            (rocm(7, 13), Some(false)),
            (rocm(7, 14), Some(true)),
            (rocm(10, 0), Some(true)),
            (miopen([3, 5, 1]), Some(false)),
            (miopen([3, 5, 2]), None),
            (miopen([3, 6, 0]), Some(true)),
            (MiopenRelease::default(), None),
        ] {
            assert_eq!(since_7_14(release), known, "{release:?}");
        }
    }
}
