//! From the driver's bits and counters to reasons.

use std::time::{Duration, Instant};

use super::u32_at;
use crate::model::ThrottleReason::{self, Current, External, Other, Power, Thermal};

/// Reason of each of the seven counters of v3.0.
const COUNTERS: [ThrottleReason; 7] = [External, Power, Power, Power, Thermal, Thermal, Thermal];
/// Counters that were last read longer ago than this say nothing of the present.
const WINDOW: Duration = Duration::from_secs(15);

/// What a table says of throttling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Throttle {
    /// What holds the clocks down now.
    Now(Vec<ThrottleReason>),
    /// How far each counter is; `None`: not there.
    Counters([Option<u32>; 7]),
}

/// From the bits that mean the same on every chip (the kernel's `amdgpu_smu.h`): power
/// limits from 0, currents from 16, temperatures from 32, of which 46 and 47 are
/// PROCHOT, other limits from 48.
pub(super) fn of_common(bits: u64) -> Throttle {
    let groups = [
        (0..=15, Power),
        (16..=31, Current),
        (32..=45, Thermal),
        (46..=47, External),
        (48..=63, Other),
    ];
    let set = |range: &std::ops::RangeInclusive<u32>| range.clone().any(|bit| bits >> bit & 1 == 1);
    let now = groups.iter().filter(|(range, _)| set(range));
    Throttle::Now(now.map(|(_, reason)| *reason).collect())
}

/// From a chip's own bits: only that there is a reason.
pub(super) fn of_own(bits: u32) -> Throttle {
    Throttle::Now(if bits == 0 { Vec::new() } else { vec![Other] })
}

/// The seven counters from `offset`; none where not a single one is there.
pub(super) fn counters(table: &[u8], offset: usize) -> Option<Throttle> {
    let all: [Option<u32>; 7] = std::array::from_fn(|n| u32_at(table, offset + 4 * n));
    all.iter()
        .any(Option::is_some)
        .then_some(Throttle::Counters(all))
}

/// Remembers the counters of the last reading.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    last: Option<(Instant, [Option<u32>; 7])>,
}

impl Watch {
    /// The reasons at `now`; for counters those that rose since the last reading.
    /// `None`: there was none lately, so it cannot be told yet.
    pub(crate) fn reasons(
        &mut self,
        throttle: Throttle,
        now: Instant,
    ) -> Option<Vec<ThrottleReason>> {
        let counters = match throttle {
            Throttle::Now(reasons) => return Some(reasons),
            Throttle::Counters(counters) => counters,
        };
        let (at, before) = self.last.replace((now, counters))?;
        if now.saturating_duration_since(at) > WINDOW {
            return None;
        }
        let rose =
            |n: usize| matches!((before[n], counters[n]), (Some(old), Some(new)) if new > old);
        let mut reasons: Vec<_> = (0..COUNTERS.len())
            .filter(|n| rose(*n))
            .map(|n| COUNTERS[n])
            .collect();
        reasons.sort_unstable();
        reasons.dedup();
        Some(reasons)
    }
}
