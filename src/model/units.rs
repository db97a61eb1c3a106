//! Quantities with their unit in the type.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A size in bytes. JSON: a number of bytes. Text: `20 GiB`, `512 MiB`.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// 2^20 bytes.
    pub const MIB: u64 = 1 << 20;
    /// 2^30 bytes.
    pub const GIB: u64 = 1 << 30;

    /// `n` MiB.
    pub const fn mib(n: u64) -> Self {
        Self(n * Self::MIB)
    }

    /// `n` GiB.
    pub const fn gib(n: u64) -> Self {
        Self(n * Self::GIB)
    }

    /// The size in GiB, for display and ratios.
    #[expect(clippy::cast_precision_loss, reason = "display only")]
    pub fn as_gib_f64(self) -> f64 {
        self.0 as f64 / Self::GIB as f64
    }

    /// Difference, zero when `other` is larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Bytes {
    #[expect(clippy::cast_precision_loss, reason = "display only")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (div, unit) = match self.0 {
            n if n >= Self::GIB => (Self::GIB, "GiB"),
            n if n >= Self::MIB => (Self::MIB, "MiB"),
            n if n >= 1024 => (1024, "KiB"),
            n => return write!(f, "{n} B"),
        };
        write!(f, "{:.1} {unit}", self.0 as f64 / div as f64)
    }
}

/// Why a size could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a size; write a number with a unit, such as `20GiB` or `512 MiB`")]
pub struct ParseBytesError(pub String);

impl FromStr for Bytes {
    type Err = ParseBytesError;

    /// Reads `20GiB`, `20 GiB`, `1.5G`, `512 MiB`, `64KB`. `K`/`M`/`G`/`T` with or
    /// without `iB` are powers of 1024; `kB`/`KB`, `MB`, `GB`, `TB` are powers of 1000.
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let err = || ParseBytesError(s.to_owned());
        let t = s.trim();
        let split = t
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .ok_or_else(err)?;
        let number: f64 = t[..split].parse().map_err(|_not_a_number| err())?;
        let factor: f64 = match t[split..].trim() {
            "B" => 1.0,
            "K" | "KiB" => 1024.0,
            "M" | "MiB" => 1024.0 * 1024.0,
            "G" | "GiB" => 1024.0 * 1024.0 * 1024.0,
            "T" | "TiB" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
            "kB" | "KB" => 1e3,
            "MB" => 1e6,
            "GB" => 1e9,
            "TB" => 1e12,
            _ => return Err(err()),
        };
        let bytes = number * factor;
        if !bytes.is_finite() || !(0.0..=1e18).contains(&bytes) {
            return Err(err());
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to lie in 0..=1e18"
        )]
        Ok(Self(bytes.round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_units_only() {
        assert_eq!("20GiB".parse(), Ok(Bytes::gib(20)));
        assert_eq!("20 G".parse(), Ok(Bytes::gib(20)));
        assert_eq!("1.5 GiB".parse(), Ok(Bytes::mib(1536)));
        assert_eq!("2 GB".parse(), Ok(Bytes(2_000_000_000)));
        for bad in [
            "",
            "20",
            "GiB",
            "-1GiB",
            "1e3GiB",
            "20 gigs",
            "99999999999TiB",
        ] {
            assert!(bad.parse::<Bytes>().is_err(), "{bad}");
        }
    }

    #[test]
    fn display_picks_the_unit() {
        assert_eq!(Bytes::gib(20).to_string(), "20.0 GiB");
        assert_eq!(Bytes(0).to_string(), "0 B");
    }
}
