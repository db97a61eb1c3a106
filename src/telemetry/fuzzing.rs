//! The parsers of foreign bytes, for the fuzz targets only: no interface to build upon.

use super::amdgpu::{dpm, metrics};
pub use super::clients::{DrmClient, drm_client};
use super::{kmsg, probe};

/// Reads a `gpu_metrics` table; whether it was one.
pub fn gpu_metrics(bytes: &[u8]) -> bool {
    metrics::parse(bytes).is_ok()
}

/// Reads a `pp_dpm_*` table: its levels in MHz, and the one in force.
pub fn pp_dpm(text: &str) -> (Vec<u32>, Option<u32>) {
    let levels = dpm::parse(text).iter().map(|level| level.mhz).collect();
    (levels, dpm::in_force(text))
}

/// The message of a record of the kernel log: a line without control characters.
pub fn kernel_message(record: &[u8]) -> Option<String> {
    kmsg::message(record)
}

/// Reads the bytes as the texts and messages that a probe is made of.
pub fn probe(bytes: &[u8]) {
    probe::fuzzing::survive(bytes);
}
