//! A card that has just woken: its readings say nothing yet.

use std::time::Duration;

use crate::model::{GpuSample, Mono, is_suspended};

/// After a wake the first table shows activity and clocks latched high for 9 to 15 s
/// (firmware; ROCm/rocm-systems#8024).
const LATCHED: Duration = Duration::from_secs(15);

/// When the card was seen to wake.
#[derive(Debug, Clone, Default)]
pub(super) struct Wake {
    asleep: bool,
    woke: Option<Mono>,
}

impl Wake {
    /// Whether this reading comes too soon after a wake to be believed.
    pub(super) fn observe(&mut self, now: Mono, card: &GpuSample) -> bool {
        match card.state.fresh().map(String::as_str) {
            Some(s) if is_suspended(s) || s == "resuming" => self.asleep = true,
            Some("active") if std::mem::take(&mut self.asleep) => self.woke = Some(now),
            _ => {}
        }
        self.woke.is_some_and(|woke| now.since(woke) < LATCHED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{GpuId, Metric, Vendor};

    #[test]
    fn only_a_wake_that_was_seen_counts_and_for_fifteen_seconds() {
        let id = GpuId("a".to_owned());
        let mut card = GpuSample::unread(id, 0, Vendor::Amd, "card".to_owned(), "script");
        let mut wake = Wake::default();
        let mut early = |secs: u64, state: &str| {
            card.state = Metric::Fresh(state.to_owned());
            wake.observe(Mono(secs * 1000), &card)
        };
        assert!(!early(0, "active"), "it may have been awake for long");
        assert!(!early(1, "suspended"));
        assert!(early(2, "active"));
        assert!(early(16, "active"));
        assert!(!early(17, "active"));
        assert!(!early(18, "resuming"));
        assert!(early(19, "active"));
    }
}
