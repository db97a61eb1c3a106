//! The one restart budget (R13): *n* in a period, *m* in a run, a refund for
//! completed progress, and a growing delay.

use std::time::Duration;

use crate::model::{Budget, Mono};

/// Pauses before the first, second and every later restart.
const DELAYS: [Duration; 3] = [
    Duration::from_secs(2),
    Duration::from_secs(8),
    Duration::from_secs(30),
];

/// What has been spent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BudgetState {
    /// When each restart in the period was made.
    spent: Vec<Mono>,
    total: u32,
}

impl BudgetState {
    /// Restarts left at `now`.
    pub fn left(&self, budget: &Budget, now: Mono) -> u32 {
        let recent = self
            .spent
            .iter()
            .filter(|at| now.since(**at) < budget.period)
            .count();
        let in_period = budget
            .restarts
            .saturating_sub(u32::try_from(recent).unwrap_or(u32::MAX));
        in_period.min(budget.total.saturating_sub(self.total))
    }

    /// Restarts made in all.
    pub const fn total(&self) -> u32 {
        self.total
    }

    /// Spends one.
    pub fn spend(&mut self, now: Mono) {
        self.spent.push(now);
        self.total += 1;
    }

    /// A section was saved since the last restart: one restart of the period comes
    /// back. The total of the run stays, so that progress cannot buy endless runs.
    pub fn refund(&mut self) {
        self.spent.pop();
    }

    /// The pause before the next attempt. `salt` spreads restarts of several runs on
    /// one machine by up to a quarter, and is the same in every replay.
    pub fn delay(&self, salt: u64) -> Duration {
        let i = (self.total.saturating_sub(1) as usize).min(DELAYS.len() - 1);
        let base = DELAYS[i];
        let mixed = salt
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .wrapping_add(u64::from(self.total))
            .wrapping_mul(0xBF58_476D_1CE4_E5B9)
            >> 32;
        let quarter = crate::model::time::millis(base) / 4;
        base + Duration::from_millis(mixed % (quarter + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_period_and_the_total_both_bind() {
        let budget = Budget {
            restarts: 2,
            period: Duration::from_mins(1),
            total: 3,
        };
        let mut b = BudgetState::default();
        assert_eq!(b.left(&budget, Mono::ZERO), 2);
        b.spend(Mono::ZERO);
        b.spend(Mono::from_secs(10));
        assert_eq!(b.left(&budget, Mono::from_secs(20)), 0);
        assert_eq!(b.left(&budget, Mono::from_secs(65)), 1);
        b.spend(Mono::from_secs(65));
        assert_eq!(b.left(&budget, Mono::from_secs(1000)), 0);
    }

    #[test]
    fn delays_grow_and_repeat_exactly() {
        let mut b = BudgetState::default();
        let mut last = Duration::ZERO;
        for (at, base) in [(0, 2), (1, 8), (2, 30)] {
            b.spend(Mono::from_secs(at));
            let d = b.delay(7);
            assert!(d >= Duration::from_secs(base) && d <= Duration::from_secs(base).mul_f64(1.25));
            assert!(d > last);
            assert_eq!(d, b.delay(7));
            last = d;
        }
    }

    #[test]
    fn progress_refunds_the_period_only() {
        let budget = Budget::default();
        let mut b = BudgetState::default();
        for i in 0..6 {
            b.spend(Mono::from_secs(i));
            b.refund();
        }
        assert_eq!(b.left(&budget, Mono::from_secs(6)), 0, "total is spent");
    }
}
