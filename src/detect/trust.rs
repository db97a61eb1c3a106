//! Whether the busy counter is believed: one that claims full work at little power
//! while nothing of ours works is not, until the run ends.
//!
//! A counter that is stuck never falls. So one honest reading, whenever it comes,
//! clears what stood against it, and only time without a job of ours counts: power and
//! counter are averages that lag each other, and a burst of a desktop or a program that
//! just starts looks like a lie for a second or two. What is seen before a launch, which
//! does not wait for it, is a suspicion that the time after it confirms or clears.

use std::time::Duration;

use crate::model::{BusyTrust, Mono};

use super::thresholds::{Thresholds, secs};

/// What the run does with the card at a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    /// No process of ours lives.
    Nothing,
    /// A process lives, and no job has begun yet, as far as known.
    Starting,
    /// A server waits for its user.
    Waiting,
    /// A job is in flight.
    Job,
    /// A process lives, and what it does is not known.
    Unknown,
}

/// What a reading says of the counter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Reading {
    /// It claims full work (percent) at little power (watts).
    Claims(f64, f64),
    /// It may well be right: it is below full, or somebody works.
    Honest,
    /// Nothing, neither way.
    Silent,
}

/// For how long a claim stood.
#[derive(Debug, Clone, Copy, Default)]
struct Claim {
    stood: Duration,
    /// The last reading of a spell that goes on.
    last: Option<Mono>,
}

impl Claim {
    fn stands(&mut self, now: Mono) {
        self.stood += self.last.map_or(Duration::ZERO, |last| now.since(last));
        self.last = Some(now);
    }
}

/// The judgement of the counter over the run.
#[derive(Debug, Clone, Default)]
pub(super) struct Trust {
    state: BusyTrust,
    /// While no job of ours was there, over several spells.
    without_job: Claim,
    /// While a server waits, in this spell.
    waiting: Claim,
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

    /// A window in which nothing was seen: nothing tells what the counter did in it.
    pub(super) fn cut(&mut self) {
        self.without_job = Claim::default();
        self.waiting = Claim::default();
    }

    /// A launch: a suspicion stays.
    pub(super) fn begin(&mut self) {
        self.without_job.last = None;
        self.waiting = Claim::default();
    }

    /// One reading.
    pub(super) fn observe(&mut self, now: Mono, doing: Doing, reading: Reading, t: &Thresholds) {
        if self.state.is_untrusted() {
            return;
        }
        let suspected = self.without_job.stood >= secs(t.lie_before_s);
        let (busy, power) = match reading {
            Reading::Honest => return self.cut(),
            Reading::Claims(busy, power) => (busy, power),
            Reading::Silent => return self.begin(),
        };
        let (lies, nobody) = match doing {
            Doing::Nothing | Doing::Starting if doing == Doing::Nothing || suspected => {
                self.waiting = Claim::default();
                self.without_job.stands(now);
                (self.without_job.stood >= secs(t.lie_s), "while no job runs")
            }
            Doing::Waiting => {
                self.without_job.last = None;
                self.waiting.stands(now);
                let lies = self.waiting.stood >= secs(t.lie_waiting_s);
                (lies, "while the program waits for its user")
            }
            _ => return self.begin(),
        };
        if lies {
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
    use Doing::{Job, Nothing, Starting, Unknown, Waiting};

    const LIAR: Reading = Reading::Claims(99.0, 24.0);

    /// Readings twice a second, spell after spell.
    fn play(spells: &[(u64, Doing, Reading)]) -> BusyTrust {
        let mut trust = Trust::default();
        let mut now = 0;
        let mut lives = false;
        for (ms, doing, reading) in spells {
            if *doing != Nothing && !lives {
                trust.begin();
            }
            lives = *doing != Nothing;
            for _ in 0..ms / 500 {
                trust.observe(Mono(now), *doing, *reading, &Thresholds::DEFAULT);
                now += 500;
            }
        }
        trust.state().clone()
    }

    fn lies(spells: &[(u64, Doing, Reading)]) -> bool {
        play(spells).is_untrusted()
    }

    #[test]
    fn a_burst_costs_nothing() {
        assert!(!lies(&[(5000, Nothing, LIAR)]));
        let honest = |doing| (500, doing, Reading::Honest);
        for then in [Nothing, Starting, Job, Waiting] {
            assert!(
                !lies(&[
                    (4500, Nothing, LIAR),
                    honest(then),
                    (4500, Nothing, LIAR),
                    honest(then),
                    (4500, Nothing, LIAR)
                ]),
                "{then:?}"
            );
        }
        // what starts after it works at little power itself
        assert!(!lies(&[(500, Nothing, LIAR), (60_000, Starting, LIAR)]));
    }

    #[test]
    fn a_stuck_counter_is_found_out() {
        assert_eq!(
            play(&[(5500, Nothing, LIAR)]),
            BusyTrust::Untrusted {
                since: Mono(5000),
                why: "busy reads 99 % at 24 W while no job runs".to_owned(),
            }
        );
        let before = (1500, Nothing, LIAR);
        assert!(lies(&[before, (6000, Starting, LIAR)]));
        // what a job reads neither adds nor clears
        let job = (600_000, Job, LIAR);
        assert!(!lies(&[before, job]));
        assert!(lies(&[before, job, (5000, Nothing, LIAR)]));
        assert!(lies(&[
            before,
            (600_000, Job, Reading::Silent),
            (5000, Nothing, LIAR)
        ]));
        assert!(lies(&[job, (6000, Nothing, LIAR)]));
    }

    #[test]
    fn a_server_that_waits_is_given_longer() {
        assert!(!lies(&[(10_000, Waiting, LIAR)]));
        assert!(lies(&[(10_500, Waiting, LIAR)]));
        // a job in between begins it anew
        assert!(!lies(&[
            (9000, Waiting, LIAR),
            (1000, Job, LIAR),
            (9000, Waiting, LIAR)
        ]));
    }

    #[test]
    fn a_job_is_no_liar() {
        for doing in [Job, Unknown, Starting] {
            assert!(!lies(&[(900_000, doing, LIAR)]));
        }
        let mut trust = Trust::default();
        trust.observe(Mono(0), Nothing, LIAR, &Thresholds::DEFAULT);
        trust.cut();
        trust.observe(Mono(900_000), Nothing, LIAR, &Thresholds::DEFAULT);
        assert!(!trust.state().is_untrusted(), "what was not seen");
    }
}
