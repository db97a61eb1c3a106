//! Time that the user granted to a job that does not move: the deadline of the silence that
//! lasted then is another, and how long the silence lasts stays true.

use std::time::Duration;

use crate::model::{Mono, VerdictId};

use super::Detector;
use super::alarm::Alarm;
use super::rule::{self, Check, Grade, Signs, span};

/// What the user granted last.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Grant {
    /// When.
    at: Mono,
    /// No hang that began before is declared before this time.
    until: Mono,
    /// The limit before and after, where the alarm was called false.
    raised: Option<(Duration, Duration)>,
}

impl Grant {
    /// When the user granted it.
    pub(super) const fn at(&self) -> Mono {
        self.at
    }

    /// Whether a silence that began at `since` has the time that was granted.
    fn covers(&self, since: Mono) -> bool {
        self.until > Mono::ZERO && since <= self.at
    }

    /// The deadline of a silence that began at `since` and is due at `due` by itself.
    pub(super) fn deadline(&self, since: Mono, due: Mono) -> Mono {
        if self.covers(since) {
            due.max(self.until)
        } else {
            due
        }
    }

    /// What a rule says, with the time that was granted.
    pub(super) fn extend(&self, check: Check, now: Mono) -> Check {
        match check {
            Check::NotYet(signs) | Check::Match(signs)
                if signs.grade == Grade::Hang && self.covers(signs.since) =>
            {
                self.extended(signs).against_limit(now)
            }
            other => other,
        }
    }

    fn extended(&self, mut signs: Signs) -> Signs {
        let due = self.deadline(signs.since, signs.since + signs.limit);
        signs.limit = due.since(signs.since);
        if let Some((from, to)) = self.raised {
            signs.sentence = format!(
                "you called it a false alarm (limit {} -> {}); {}",
                span(from),
                span(to),
                signs.sentence
            );
        }
        signs
    }
}

impl Detector {
    /// The user says that the present alarm is false: the limit of its rule rises, and counts
    /// from now on. The limit before and after; absent: no hang was suspected.
    pub fn false_alarm(&mut self, now: Mono) -> Option<(Duration, Duration)> {
        let hang = match &self.alarm {
            Alarm::Hung { signs, .. } => Some(signs.verdict),
            Alarm::Suspect { signs, .. } if !self.warning.is_fault() => Some(signs.verdict),
            _ => None,
        };
        let Some(verdict) = hang else {
            if let Some(verdict) = self.warning.signs().map(|s| s.verdict) {
                self.raise_limit(verdict);
            }
            self.grant(now, Duration::ZERO);
            return None;
        };
        self.grant = Grant::default();
        let before = self.limit_of_hang(now);
        self.raise_limit(verdict);
        let after = self.limit_of_hang(now);
        let raised = before.zip(after);
        self.grant = Grant {
            at: now,
            until: now + after.unwrap_or_default(),
            raised,
        };
        self.doubt_again(now);
        raised
    }

    /// The user grants so much time beyond the deadline of the silence that lasts.
    pub fn grant(&mut self, now: Mono, more: Duration) {
        let (since, due) = match self.alarm.signs() {
            Some(signs) => (signs.since, signs.since + signs.limit),
            None => (self.movement.last().0, self.silence_is_due(now)),
        };
        let raised = self.grant.raised.filter(|_| self.grant.covers(since));
        self.grant = Grant {
            at: now,
            until: due.max(now) + more,
            raised,
        };
        self.doubt_again(now);
    }

    pub(super) fn raise_limit(&mut self, verdict: VerdictId) {
        *self.ratchets.entry(verdict).or_insert(1.0) *= self.thresholds.ratchet_factor;
    }

    /// A declared hang is a suspicion again, and what is said of a job that lives begins anew.
    fn doubt_again(&mut self, now: Mono) {
        self.warning = super::warning::Warning::default();
        if let Alarm::Hung { signs, .. } | Alarm::Suspect { signs, .. } = &self.alarm {
            self.alarm = Alarm::suspect(signs.clone(), 0, None, now);
        }
    }

    /// Limit of the hang that has signs now.
    fn limit_of_hang(&self, now: Mono) -> Option<Duration> {
        match rule::hang(&rule::ask(&self.facts(now))) {
            Check::NotYet(signs) | Check::Match(signs) => Some(signs.limit),
            Check::Clear(_) => None,
        }
    }

    /// When the silence that lasts reaches its limit.
    fn silence_is_due(&self, now: Mono) -> Mono {
        let facts = self.facts(now);
        let since = self.movement.last().0;
        self.grant.deadline(since, since + facts.silence_limit())
    }
}
