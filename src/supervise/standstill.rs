//! Finds the times in which nothing could be judged: the machine slept, or we
//! ourselves did not run.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::model::event::Standstill;

/// Growth of boot time over monotonic time that counts as a sleep. Both clocks
/// tick alike while the machine is awake, so a second is far beyond any error.
const SLEPT: Duration = Duration::from_secs(1);
/// What a busy machine may add to a period before it is called a stall.
const SLACK: Duration = Duration::from_secs(1);

/// Time since boot without and with the time that the machine slept:
/// `CLOCK_MONOTONIC` and `CLOCK_BOOTTIME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    /// Stands still while the machine sleeps.
    pub monotonic: Duration,
    /// Goes on while the machine sleeps.
    pub boottime: Duration,
}

impl Clocks {
    /// Reads both clocks.
    pub fn now() -> Self {
        Self {
            monotonic: read(ClockId::Monotonic),
            boottime: read(ClockId::Boottime),
        }
    }
}

/// Neither clock is ever negative, and nanoseconds fit.
fn read(clock: ClockId) -> Duration {
    let t = clock_gettime(clock);
    Duration::new(
        u64::try_from(t.tv_sec).unwrap_or(0),
        u32::try_from(t.tv_nsec).unwrap_or(0),
    )
}

/// Compares each reading of the clocks with the one before.
#[derive(Debug, Clone, Copy, Default)]
pub struct StandstillDetector {
    last: Option<(Duration, Duration)>,
}

impl StandstillDetector {
    /// A detector that has seen nothing yet.
    pub const fn new() -> Self {
        Self { last: None }
    }

    /// To be called once a `period`. Returns what happened since the last call
    /// and for how long nothing could be judged, the period itself not counted.
    pub fn observe(
        &mut self,
        monotonic: Duration,
        boottime: Duration,
        period: Duration,
    ) -> Option<(Standstill, Duration)> {
        let (mono_before, boot_before) = self.last.replace((monotonic, boottime))?;
        let gap = monotonic.saturating_sub(mono_before);
        let slept = boottime.saturating_sub(boot_before).saturating_sub(gap);
        let stalled = gap.saturating_sub(period);
        if slept > SLEPT {
            Some((Standstill::MachineSuspended, slept + stalled))
        } else if gap > period * 2 + SLACK {
            Some((Standstill::SupervisorStalled, stalled))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(500);
    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn ordinary_jitter_is_nothing() {
        let mut d = StandstillDetector::new();
        assert_eq!(d.observe(ms(1_000), ms(9_000), PERIOD), None);
        assert_eq!(d.observe(ms(1_500), ms(9_500), PERIOD), None);
        // Late by three periods, still within twice the period and the slack.
        assert_eq!(d.observe(ms(3_500), ms(11_500), PERIOD), None);
        // The kernel's two clocks are read one after the other.
        assert_eq!(d.observe(ms(4_000), ms(12_900), PERIOD), None);
    }

    #[test]
    fn a_sleep_is_told_from_a_stall() {
        let mut d = StandstillDetector::new();
        d.observe(ms(0), ms(0), PERIOD);
        assert_eq!(
            d.observe(ms(500), ms(3_600_500), PERIOD),
            Some((Standstill::MachineSuspended, ms(3_600_000)))
        );
        assert_eq!(d.observe(ms(1_000), ms(3_601_000), PERIOD), None);
        assert_eq!(
            d.observe(ms(11_000), ms(3_611_000), PERIOD),
            Some((Standstill::SupervisorStalled, ms(9_500)))
        );
        // Both at once: stopped, and the machine slept meanwhile.
        assert_eq!(
            d.observe(ms(16_000), ms(3_676_000), PERIOD),
            Some((Standstill::MachineSuspended, ms(64_500)))
        );
    }

    #[test]
    fn clocks_that_go_back_are_nothing() {
        let mut d = StandstillDetector::new();
        d.observe(ms(5_000), ms(5_000), PERIOD);
        assert_eq!(d.observe(ms(4_000), ms(4_000), PERIOD), None);
    }

    #[test]
    fn the_real_clocks_advance() {
        let before = Clocks::now();
        std::thread::sleep(ms(5));
        let after = Clocks::now();
        assert!(after.monotonic >= before.monotonic + ms(5));
        assert!(after.boottime >= after.monotonic);
    }
}
