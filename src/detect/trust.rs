//! Whether the busy counter is believed: one that claims full work at little power
//! while nothing of ours works is not, until the run ends.

use std::time::Duration;

use crate::model::{BusyTrust, Mono};

/// What the run does with the card at a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    /// No process of ours lives.
    Nothing,
    /// A server waits for its user.
    Waiting,
    /// A job is in flight.
    Job,
    /// A process lives, and what it does is not known.
    Unknown,
}

impl Doing {
    /// For how long a counter must claim full work before it is not believed; `None`:
    /// it may be right. The counter is an average, and a page may still end something.
    const fn lies_after(self) -> Option<Duration> {
        match self {
            // three readings
            Self::Nothing => Some(Duration::from_millis(900)),
            Self::Waiting => Some(Duration::from_secs(10)),
            Self::Job | Self::Unknown => None,
        }
    }
}

/// The judgement of the counter over the run.
#[derive(Debug, Clone, Default)]
pub(super) struct Trust {
    state: BusyTrust,
    /// Since when the counter has claimed full work that is none, and what was done.
    lying: Option<(Mono, Doing)>,
}

impl Trust {
    pub(super) const fn state(&self) -> &BusyTrust {
        &self.state
    }

    /// The counter moved with the work of a job, after it was low at rest.
    pub(super) fn confirm(&mut self) {
        if self.state == BusyTrust::Unknown {
            self.state = BusyTrust::Trusted;
        }
    }

    /// A window in which nothing was seen.
    pub(super) const fn cut(&mut self) {
        self.lying = None;
    }

    /// One reading. `claims`: full work (percent) at little power (watts).
    pub(super) fn observe(&mut self, now: Mono, doing: Doing, claims: Option<(f64, f64)>) {
        let (Some((busy, power)), Some(limit), false) =
            (claims, doing.lies_after(), self.state.is_untrusted())
        else {
            self.lying = None;
            return;
        };
        let since = match self.lying {
            Some((since, before)) if before == doing => since,
            _ => now,
        };
        self.lying = Some((since, doing));
        if now.since(since) >= limit {
            let nobody = match doing {
                Doing::Waiting => "while the program waits for its user",
                _ => "while no job runs",
            };
            self.state = BusyTrust::Untrusted {
                since: now,
                why: format!("busy reads {busy:.0} % at {power:.0} W {nobody}"),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(readings: &[(u64, Doing, bool)]) -> BusyTrust {
        let mut trust = Trust::default();
        for (at, doing, claims) in readings {
            trust.observe(Mono(*at), *doing, claims.then_some((99.0, 24.0)));
        }
        trust.state().clone()
    }

    #[test]
    fn a_lie_must_last() {
        use Doing::{Job, Nothing, Unknown, Waiting};
        assert_eq!(
            play(&[(0, Nothing, true), (500, Nothing, true)]),
            BusyTrust::Unknown
        );
        assert_eq!(
            play(&[
                (0, Nothing, true),
                (500, Nothing, false),
                (1000, Nothing, true)
            ]),
            BusyTrust::Unknown
        );
        assert_eq!(
            play(&[
                (0, Nothing, true),
                (500, Nothing, true),
                (1000, Nothing, true)
            ]),
            BusyTrust::Untrusted {
                since: Mono(1000),
                why: "busy reads 99 % at 24 W while no job runs".to_owned(),
            }
        );
        assert!(!play(&[(0, Waiting, true), (5000, Waiting, true)]).is_untrusted());
        assert!(play(&[(0, Waiting, true), (10_000, Waiting, true)]).is_untrusted());
        for doing in [Job, Unknown] {
            assert!(!play(&[(0, doing, true), (900_000, doing, true)]).is_untrusted());
        }
        // a job in between begins it anew
        assert!(
            !play(&[
                (0, Waiting, true),
                (6000, Job, true),
                (10_000, Waiting, true)
            ])
            .is_untrusted()
        );
    }
}
