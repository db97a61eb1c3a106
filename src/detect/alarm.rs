//! Hysteresis (R6): no hang without a suspicion before it, three assessments two
//! seconds apart, and a suspicion that ends only after three calm ones.

use crate::model::Mono;

use super::rule::{Check, Signs};
use super::thresholds::{Thresholds, secs};

/// Where a suspicion stands.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Alarm {
    /// None.
    #[default]
    Quiet,
    /// Signs, not sure yet.
    Suspect {
        signs: Signs,
        /// Since when the limit is reached, how often confirmed, when last.
        confirmed: u8,
        last: Option<Mono>,
        calm: u8,
        calm_at: Mono,
    },
    /// Sure.
    Hung {
        signs: Signs,
        calm: u8,
        calm_at: Mono,
    },
}

impl Alarm {
    /// Folds one assessment in. Returns the signs of a hang that ended by itself.
    pub(crate) fn step(&mut self, now: Mono, check: Check, t: &Thresholds) -> Option<Signs> {
        let mut recovered = None;
        *self = match (std::mem::take(self), check) {
            (Self::Quiet, Check::Clear(_)) => Self::Quiet,
            (
                Self::Suspect {
                    signs,
                    calm,
                    calm_at,
                    ..
                },
                Check::Clear(_),
            ) => next_calm(calm, calm_at, now, t).map_or(Self::Quiet, |(calm, calm_at)| {
                Self::Suspect {
                    signs,
                    confirmed: 0,
                    last: None,
                    calm,
                    calm_at,
                }
            }),
            (Self::Quiet, Check::NotYet(signs) | Check::Match(signs))
            | (Self::Suspect { .. }, Check::NotYet(signs)) => Self::suspect(signs, 0, None, now),
            (
                Self::Suspect {
                    confirmed, last, ..
                },
                Check::Match(signs),
            ) => match last {
                Some(at) if now.since(at) < secs(t.confirm_s) => {
                    Self::suspect(signs, confirmed, last, now)
                }
                _ if f64::from(confirmed + 1) < t.confirm_count => {
                    Self::suspect(signs, confirmed + 1, Some(now), now)
                }
                _ => Self::hung(signs, now),
            },
            (Self::Hung { .. }, Check::Match(signs)) => Self::hung(signs, now),
            (
                Self::Hung {
                    signs,
                    calm,
                    calm_at,
                },
                Check::Clear(_) | Check::NotYet(_),
            ) => {
                if let Some((calm, calm_at)) = next_calm(calm, calm_at, now, t) {
                    Self::Hung {
                        signs,
                        calm,
                        calm_at,
                    }
                } else {
                    recovered = Some(signs);
                    Self::Quiet
                }
            }
        };
        recovered
    }

    /// The signs of what is suspected or sure.
    pub(super) const fn signs(&self) -> Option<&Signs> {
        match self {
            Self::Quiet => None,
            Self::Suspect { signs, .. } | Self::Hung { signs, .. } => Some(signs),
        }
    }

    pub(super) const fn suspect(
        signs: Signs,
        confirmed: u8,
        last: Option<Mono>,
        now: Mono,
    ) -> Self {
        Self::Suspect {
            signs,
            confirmed,
            last,
            calm: 0,
            calm_at: now,
        }
    }

    const fn hung(signs: Signs, now: Mono) -> Self {
        Self::Hung {
            signs,
            calm: 0,
            calm_at: now,
        }
    }
}

/// Counts a calm assessment; `None`: it was the last that was needed.
pub(super) fn next_calm(calm: u8, at: Mono, now: Mono, t: &Thresholds) -> Option<(u8, Mono)> {
    if calm > 0 && now.since(at) < secs(t.calm_s) {
        return Some((calm, at));
    }
    let calm = calm + 1;
    (f64::from(calm) < t.calm_count).then_some((calm, now))
}
