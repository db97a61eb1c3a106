//! Differences between two samples.

use std::time::Duration;

use crate::model::{GpuSample, ProcSample};

/// Per-thread rows are used at once; keeping them for the difference is waste.
pub(super) fn without_threads(mut p: ProcSample) -> ProcSample {
    p.per_thread = Vec::new();
    p
}

/// Memory in use of the pools that models lie in.
pub(super) fn fresh_pool_used(card: &GpuSample) -> Option<u64> {
    let vram = card.vram_used.fresh();
    let gtt = card.gtt_used.fresh();
    if card.apu {
        Some(vram?.0 + gtt.map_or(0, |g| g.0))
    } else {
        vram.map(|v| v.0)
    }
}

/// Change a second; `None` when the counter fell (another process took the pid).
#[expect(clippy::cast_precision_loss, reason = "rates for thresholds")]
pub(super) fn rate(before: u64, after: u64, dt: Duration) -> Option<f64> {
    let secs = dt.as_secs_f64();
    (secs > 0.05 && after >= before).then(|| (after - before) as f64 / secs)
}

/// The greater of two readings of the same thing.
pub(super) fn max_known(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}
