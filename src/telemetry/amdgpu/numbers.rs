//! Numbers in the driver's files.

use std::ops::RangeInclusive;
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

/// Watts that a card can draw or be allowed.
pub(super) const WATTS: RangeInclusive<f64> = 0.0..=5000.0;
/// Degrees Celsius that a sensor in use can show.
pub(super) const DEGREES: RangeInclusive<f64> = -60.0..=200.0;
/// Clocks in MHz; a unit that is switched off shows 0.
pub(super) const CLOCK: RangeInclusive<f64> = 0.0..=20_000.0;
/// Revolutions a minute; a fan may stand.
pub(super) const RPM: RangeInclusive<f64> = 0.0..=60_000.0;

/// A value that hardware can have; else the error says so, and no number is shown.
pub(super) fn plausible(value: f64, range: RangeInclusive<f64>, what: &str) -> ReadResult<f64> {
    if range.contains(&value) {
        Ok(value)
    } else {
        Err(ReadError::text(
            Path::new(what),
            format!("{value} cannot be"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_hardware_has_is_an_error_and_no_reading() {
        for (value, range) in [
            (-1.0, WATTS),
            (1e18, WATTS),
            (-273.0, DEGREES),
            (900.0, DEGREES),
            (-1.0, RPM),
        ] {
            assert!(plausible(value, range, "f").is_err(), "{value}");
        }
        for (value, range) in [(3.0, WATTS), (41.0, DEGREES), (0.0, RPM), (0.0, CLOCK)] {
            assert_eq!(plausible(value, range, "f"), Ok(value));
        }
    }

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
