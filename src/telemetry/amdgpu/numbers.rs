//! Numbers in the driver's files.

use std::path::{Path, PathBuf};

use super::super::file::{self, ReadError, ReadResult};

/// A number of amdgpu's.
pub(super) fn read<T: std::str::FromStr>(path: &Path) -> ReadResult<T> {
    file::read_number(path).map_err(in_words_of_amdgpu)
}

/// Old kernels answer EPERM, new ones EBUSY, while the card sleeps or resets: that
/// must not read as a lack of rights.
pub(super) fn in_words_of_amdgpu(error: ReadError) -> ReadError {
    const EPERM: i32 = 1;
    const EBUSY: i32 = 16;
    match error {
        ReadError::Os {
            file,
            errno: errno @ (EPERM | EBUSY),
            ..
        } => ReadError::Os {
            file,
            errno,
            words: "the card is asleep or in reset".to_owned(),
        },
        other => other,
    }
}

/// A number that is one: the text `nan` parses, too.
pub(super) fn real(path: &Path) -> ReadResult<f64> {
    let value: f64 = read(path)?;
    if value.is_finite() {
        Ok(value)
    } else {
        Err(ReadError::text(path, format!("{value} is no number")))
    }
}

/// A number of a file that may not be there, in our unit.
pub(super) fn scaled(path: Option<&PathBuf>, unit: f64) -> ReadResult<f64> {
    real(path.ok_or(ReadError::Missing)?).map(|n| n / unit)
}

/// A percentage; some firmware answers 65535 for "not there".
pub(super) fn percent(path: &Path) -> ReadResult<f64> {
    let value = real(path)?;
    if (0.0..=100.0).contains(&value) {
        Ok(value)
    } else {
        Err(ReadError::text(path, format!("{value} is no percentage")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_errors_are_told_apart() {
        let words = |errno| {
            let error = std::io::Error::from_raw_os_error(errno);
            in_words_of_amdgpu(ReadError::os(Path::new("busy"), &error)).to_string()
        };
        assert_eq!(words(5), "busy: Input/output error (os error 5)");
        assert_eq!(words(22), "busy: Invalid argument (os error 22)");
        assert_eq!(words(1), "busy: the card is asleep or in reset");
        assert_eq!(words(16), "busy: the card is asleep or in reset");
        assert_eq!(words(13), "busy: Permission denied (os error 13)");
        for errno in [2, 95] {
            let error = std::io::Error::from_raw_os_error(errno);
            assert_eq!(ReadError::os(Path::new("busy"), &error), ReadError::Missing);
        }
    }
}
