//! Time as data.

use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Milliseconds since the run began, on the monotonic clock (it stands still
/// while the machine sleeps).
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Mono(pub u64);

impl Mono {
    /// The beginning of the run.
    pub const ZERO: Self = Self(0);

    /// A point `secs` seconds after the beginning of the run.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1000)
    }

    /// Time from `earlier` to `self`; zero when `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// Milliseconds since the beginning of the run.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// `hh:mm:ss` since the beginning of the run.
    pub fn clock(self) -> String {
        clock(Duration::from_millis(self.0))
    }
}

/// `hh:mm:ss` of a duration, fractions cut off.
pub fn clock(d: Duration) -> String {
    let s = d.as_secs();
    format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

/// Whole milliseconds of a duration, saturating.
pub fn millis(d: Duration) -> u64 {
    u64::try_from(d.as_millis()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Mono {
    type Output = Self;
    fn add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(millis(d)))
    }
}

impl AddAssign<Duration> for Mono {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Sub<Duration> for Mono {
    type Output = Self;
    fn sub(self, d: Duration) -> Self {
        Self(self.0.saturating_sub(millis(d)))
    }
}

/// Serde form of a [`Duration`] as whole milliseconds; for use with
/// `#[serde(with = "duration_ms")]` on fields whose name ends in `_ms`.
pub mod duration_ms {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes whole milliseconds.
    pub fn serialize<S: Serializer>(d: &Duration, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_u64(super::millis(*d))
    }

    /// Reads whole milliseconds.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Duration, D::Error> {
        u64::deserialize(d).map(Duration::from_millis)
    }

    /// The same for an optional duration: `null` when there is none.
    pub mod option {
        use std::time::Duration;

        use serde::{Deserialize, Deserializer, Serialize, Serializer};

        /// Writes whole milliseconds, or `null`.
        pub fn serialize<S: Serializer>(d: &Option<Duration>, s: S) -> Result<S::Ok, S::Error> {
            d.map(crate::model::time::millis).serialize(s)
        }

        /// Reads whole milliseconds, or `null`.
        pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Duration>, D::Error> {
            Ok(Option::<u64>::deserialize(d)?.map(Duration::from_millis))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Mono(5) - Duration::from_secs(1), Mono::ZERO);
        assert_eq!(Mono(5).since(Mono(10)), Duration::ZERO);
        assert_eq!(Mono(u64::MAX) + Duration::from_secs(1), Mono(u64::MAX));
        assert_eq!(Mono::from_secs(3725).clock(), "01:02:05");
    }
}
