//! A server of unknown make after the last step of its bar. It does not say whether it
//! decodes or waits for its user: it counts as waiting, until the card or a search of
//! MIOpen shows that the job goes on. Rest alone never makes a job of it.

use std::time::Duration;

use crate::model::Mono;

/// Power and counter of the card are averages: they lag the end of the work.
const LAGS: Duration = Duration::from_secs(5);
/// A break of the card's work within one decode: tiles, a model that is moved.
const BREAK: Duration = Duration::from_secs(5);
/// Words that say of themselves only that something failed belong to what worked this
/// shortly before.
const SAME_STORY: Duration = Duration::from_secs(15);

/// What becomes of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It goes on: the decode.
    GoesOn,
    /// It has come to rest again.
    Rests,
}

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(super) struct AfterBar {
    /// When the bar ended.
    pub(super) ended: Mono,
    /// Last moment of work.
    worked: Mono,
    /// The card has worked on without a longer break ever since.
    unbroken: bool,
    /// The job goes on by the readings, without a word.
    pub(super) goes_on: bool,
}

impl AfterBar {
    pub(super) const fn new(now: Mono) -> Self {
        Self {
            ended: now,
            worked: now,
            unbroken: true,
            goes_on: false,
        }
    }

    /// Takes a reading: whether a model runs on the card, whether a search is open that
    /// began after the bar. What works after a rest may be another program.
    pub(super) fn observe(&mut self, now: Mono, hard: bool, search: bool) -> Option<Turn> {
        self.unbroken &= now.since(self.worked) <= BREAK;
        if search || (hard && self.unbroken) {
            self.worked = now;
            self.unbroken = true;
        }
        let works = search || (self.unbroken && now.since(self.ended) > LAGS);
        if works && !self.goes_on && self.worked == now {
            self.goes_on = true;
            return Some(Turn::GoesOn);
        }
        if self.goes_on && !search && now.since(self.worked) > BREAK {
            self.goes_on = false;
            return Some(Turn::Rests);
        }
        None
    }

    /// Whether words of that moment belong to what the bar was for.
    pub(super) fn is_of_the_job(&self, at: Mono) -> bool {
        at >= self.ended && at.since(self.worked) <= SAME_STORY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(readings: impl Iterator<Item = (u64, bool, bool)>) -> Vec<(u64, Turn)> {
        let mut a = AfterBar::new(Mono::from_secs(100));
        readings
            .filter_map(|(s, hard, search)| {
                let turn = a.observe(Mono::from_secs(s), hard, search)?;
                Some((s, turn))
            })
            .collect()
    }

    #[test]
    fn work_that_goes_on_is_the_job_and_ends_with_the_work() {
        let decode = turns((101..300).map(|s| (s, s < 200, false)));
        assert_eq!(decode, [(106, Turn::GoesOn), (205, Turn::Rests)]);
    }

    #[test]
    fn a_tail_of_the_averages_and_work_after_a_rest_are_not() {
        assert_eq!(turns((101..300).map(|s| (s, s < 105, false))), []);
        assert_eq!(turns((101..300).map(|s| (s, s > 150, false))), []);
    }

    #[test]
    fn an_open_search_is_the_job_until_it_is_closed() {
        let searched = turns((101..300).map(|s| (s, false, (120..200).contains(&s))));
        assert_eq!(searched, [(120, Turn::GoesOn), (205, Turn::Rests)]);
    }
}
