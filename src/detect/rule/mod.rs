//! Rules: small pure judgements over [`Facts`].

mod busy_idle;
mod error_storm;
mod exit;
mod find_stall;
mod quiet;
mod silent_hang;
mod spin_hang;

use std::time::Duration;

use crate::model::{Cite, Mono, VerdictId};

use super::facts::Facts;

pub(crate) use exit::{EndFacts, judge_end};
pub(crate) use quiet::no_fault;

/// What a rule says at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Check {
    /// Nothing of the kind.
    Clear,
    /// Signs, but the limit is not reached.
    NotYet(Signs),
    /// The limit is reached.
    Match(Signs),
}

/// What a rule saw.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Signs {
    /// What it would be.
    pub(crate) verdict: VerdictId,
    /// When it began.
    pub(crate) since: Mono,
    /// Its limit.
    pub(crate) limit: Duration,
    /// A sentence for people.
    pub(crate) sentence: String,
    /// The numbers.
    pub(crate) numbers: Vec<String>,
    /// Look-alikes that it is not.
    pub(crate) ruled_out: Vec<String>,
    /// 0 to 1.
    pub(crate) confidence: f64,
    /// What is behind it, where lines speak; empty: the readings.
    pub(crate) cites: Vec<Cite>,
}

impl Signs {
    /// `Match` once the limit is reached, else `NotYet`.
    fn against_limit(self, now: Mono) -> Check {
        if now.since(self.since) >= self.limit {
            Check::Match(self)
        } else {
            Check::NotYet(self)
        }
    }
}

/// Every rule about a running attempt, most specific first. At a time at most one
/// of them speaks: an open Find explains a spin, silence excludes both.
pub(crate) fn running(facts: &Facts<'_>) -> Check {
    if !facts.judged() {
        return Check::Clear;
    }
    let mut best = Check::Clear;
    for rule in [
        silent_hang::check,
        error_storm::check,
        find_stall::check,
        busy_idle::check,
        spin_hang::check,
    ] {
        match rule(facts) {
            Check::Clear => {}
            m @ Check::Match(_) => return m,
            n @ Check::NotYet(_) => {
                if best == Check::Clear {
                    best = n;
                }
            }
        }
    }
    best
}

/// A busy counter that is not believed is named, not weighed.
fn untrusted(f: &Facts<'_>) -> Option<String> {
    let busy = f.channels.figures.busy_untrusted?;
    Some(format!(
        "the busy counter reads {busy:.0} % and is not trusted"
    ))
}

/// The beginning of a line, for a sentence.
fn short(text: &str) -> String {
    let mut s: String = text.chars().take(80).collect();
    if s.len() < text.len() {
        s.push('…');
    }
    s
}

/// `51 s`, `2 min 05 s`.
pub(crate) fn span(d: Duration) -> String {
    let s = d.as_secs();
    if s < 120 {
        format!("{s} s")
    } else {
        format!("{} min {:02} s", s / 60, s % 60)
    }
}
