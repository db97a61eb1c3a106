//! What the readings of the supervised card are worth: its level at rest, and whether
//! its busy counter is believed.

use serde::{Deserialize, Serialize};

use super::time::Mono;

/// Whether the busy counter of the supervised card is believed. On RDNA3 and RDNA4 the
/// counter can stay at 100 % with nothing running while a ROCm process lives
/// (ROCm/amdgpu#153, ROCm/ROCm#2625).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "trust", rename_all = "snake_case")]
pub enum BusyTrust {
    /// It was not seen both at rest and at work yet.
    #[default]
    Unknown,
    /// It was low while the card rested and high while the card worked.
    Trusted,
    /// It read high while nothing of the run's worked on the card: neither a high nor a
    /// low reading is a sign of anything. It stays so until the run ends.
    Untrusted {
        /// Since when.
        since: Mono,
        /// The numbers, a sentence: `busy reads 99 % at 24 W while no job runs`.
        why: String,
    },
}

impl BusyTrust {
    /// Whether the counter says nothing.
    pub const fn is_untrusted(&self) -> bool {
        matches!(self, Self::Untrusted { .. })
    }
}

/// What the supervised card reads while nothing of the run's works on it: the median of
/// the readings before a launch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IdleBaseline {
    /// Busy percent; absent where it was not read, or only as full work at little power.
    pub busy: Option<f64>,
    /// Watts (on an APU the whole package); absent where it was not read.
    pub power_w: Option<f64>,
    /// Readings behind it.
    pub samples: u32,
    /// Why this is not the level of a card at rest, in words: another program works on
    /// it. Absent: it rested.
    pub in_use: Option<String>,
}
