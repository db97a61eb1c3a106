//! Rules: small pure judgements over [`Facts`]. Each stands in the definition of the verdict that it speaks
//! for (`detect::verdicts`); those that speak for several are here.
//!
//! Every rule is asked at each assessment and says why, whatever it says.

pub(super) mod error_storm;
mod exit;
mod no_fault;
pub(super) mod op_stuck;

use std::borrow::Cow;
use std::time::Duration;

use crate::model::{Cite, Considered, Mono, RuleState, VerdictId};

use super::channels::Figures;
use super::facts::Facts;
use super::verdicts::RULES;

pub(crate) use exit::{EndFacts, OnCpu, judge_end};
pub(crate) use no_fault::no_fault;

/// Why a rule does not speak.
pub(crate) type Why = Cow<'static, str>;

/// What a rule says at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Check {
    /// Nothing of the kind.
    Clear(Why),
    /// Signs, but the limit is not reached.
    NotYet(Signs),
    /// The limit is reached.
    Match(Signs),
}

impl Check {
    pub(super) const fn clear(why: &'static str) -> Self {
        Self::Clear(Cow::Borrowed(why))
    }
}

/// What follows where a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Grade {
    /// It is told, and what helps is advised.
    Slow,
    /// The job lives and must be answered.
    Fault,
    /// The job is dead.
    Hang,
}

/// What a rule saw.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Signs {
    /// What it would be.
    pub(crate) verdict: VerdictId,
    /// What would follow.
    pub(crate) grade: Grade,
    /// When it began.
    pub(crate) since: Mono,
    /// Its limit.
    pub(crate) limit: Duration,
    /// A sentence for people.
    pub(crate) sentence: String,
    /// The numbers, the one that decides first.
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
    pub(in crate::detect) fn against_limit(self, now: Mono) -> Check {
        if now.since(self.since) >= self.limit {
            Check::Match(self)
        } else {
            Check::NotYet(self)
        }
    }

    /// The same for a rule about a job that lives: what the user waved through counts
    /// from then on.
    pub(super) fn unless_granted(mut self, f: &Facts<'_>) -> Check {
        // that of a job that does not move is moved for all rules, see `Grant`
        if self.grade != Grade::Hang && f.granted > self.since {
            self.since = f.granted;
            if self.limit.is_zero() {
                return Check::NotYet(self);
            }
        }
        self.against_limit(f.now)
    }

    fn why(&self, now: Mono) -> String {
        let number = self.numbers.first().map_or("", String::as_str);
        if self.limit.is_zero() {
            return number.to_owned();
        }
        format!(
            "{number}; for {} (needs {})",
            span(now.since(self.since)),
            span(self.limit)
        )
    }
}

/// A rule that was asked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asked {
    /// What it speaks for; where it has signs, they say.
    pub(crate) verdict: VerdictId,
    pub(crate) check: Check,
}

/// Asks every rule.
pub(crate) fn ask(facts: &Facts<'_>) -> Vec<Asked> {
    let mut asked: Vec<Asked> = Vec::with_capacity(RULES.len());
    for r in RULES.iter() {
        let mut check = if facts.judged() {
            (r.check)(facts)
        } else {
            Check::clear("no job is in flight")
        };
        check = facts.grant.extend(check, facts.now);
        if r.verdict == VerdictId::Crawl && explains_slowness(&asked) {
            check = Check::clear("another rule explains the pace");
        }
        let verdict = match &check {
            Check::Clear(_) => r.verdict,
            Check::NotYet(s) | Check::Match(s) => s.verdict,
        };
        asked.push(Asked { verdict, check });
    }
    asked
}

/// Every rule where none is asked, with the reason; `shown` is what is told all the same.
pub(crate) fn not_asked(shown: Option<(VerdictId, &str)>, why: &str) -> Vec<Considered> {
    let told = shown.map(|(verdict, sentence)| Considered {
        verdict,
        state: RuleState::Match,
        why: sentence.to_owned(),
    });
    let rest = RULES
        .iter()
        .map(|r| r.verdict)
        .filter(|v| shown.is_none_or(|(shown, _)| shown != *v))
        .map(|verdict| Considered {
            verdict,
            state: RuleState::Clear,
            why: format!("{}{why}", Considered::NOT_ASKED),
        });
    told.into_iter().chain(rest).collect()
}

fn explains_slowness(asked: &[Asked]) -> bool {
    asked
        .iter()
        .any(|a| a.verdict.definition().explains_slowness && !matches!(a.check, Check::Clear(_)))
}

/// What the rules about a dead job say together: the first that matches, else the
/// first that has signs.
pub(crate) fn hang(asked: &[Asked]) -> Check {
    let of_hang = |s: &Signs| s.grade == Grade::Hang;
    let matching = asked.iter().map(|a| &a.check).find(|c| match c {
        Check::Match(s) => of_hang(s),
        _ => false,
    });
    let found = matching.or_else(|| {
        asked.iter().map(|a| &a.check).find(|c| match c {
            Check::NotYet(s) => of_hang(s),
            _ => false,
        })
    });
    found.cloned().unwrap_or(Check::clear(""))
}

/// What matches while the job lives, most specific first.
pub(crate) fn warnings(asked: &[Asked]) -> impl Iterator<Item = &Signs> {
    asked.iter().filter_map(|a| match &a.check {
        Check::Match(s) if s.grade != Grade::Hang => Some(s),
        _ => None,
    })
}

/// The answers in words, that of `shown` first.
pub(crate) fn considered(asked: &[Asked], shown: VerdictId, now: Mono) -> Vec<Considered> {
    let mut list: Vec<Considered> = asked
        .iter()
        .map(|a| {
            let (state, why) = match &a.check {
                Check::Clear(why) => (RuleState::Clear, why.clone().into_owned()),
                Check::NotYet(s) => (RuleState::NotYet, s.why(now)),
                Check::Match(s) => (RuleState::Match, s.why(now)),
            };
            Considered {
                verdict: a.verdict,
                state,
                why,
            }
        })
        .collect();
    list.sort_by_key(|c| match c.state {
        RuleState::Match if c.verdict == shown => 0,
        RuleState::Match => 1,
        RuleState::NotYet => 2,
        RuleState::Clear => 3,
    });
    list
}

/// A busy counter that is not believed is named, not weighed.
pub(super) fn untrusted(f: &Facts<'_>) -> Option<String> {
    let busy = f.channels.figures.busy_untrusted?;
    Some(format!(
        "the busy counter reads {busy:.0} % and is not trusted"
    ))
}

/// The beginning of a line, for a sentence.
pub(super) fn short(text: &str) -> String {
    let mut s: String = text.chars().take(80).collect();
    if s.len() < text.len() {
        s.push('…');
    }
    s
}

/// What CPU and card do at present, as far as it is known.
pub(super) fn loads(figures: Figures) -> impl Iterator<Item = String> {
    let cpu = figures.cpu_percent.map(|p| format!("CPU {p:.0} %"));
    let busy = figures.busy.map(|p| format!("GPU {p:.0} %"));
    cpu.into_iter().chain(busy)
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
