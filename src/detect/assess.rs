//! The judgement of a moment: every rule is asked, and what they say becomes one verdict.

use crate::model::{Health, Mono, RuleState, Verdict, VerdictId};

use super::alarm::Alarm;
use super::facts::Facts;
use super::job::Job;
use super::rule::{self, Asked, Grade};
use super::thresholds::secs;
use super::warning::Warning;
use super::{Detector, Life};

impl Detector {
    /// The judgement at this moment.
    pub fn assess(&mut self, now: Mono) -> Verdict {
        if self.life != Life::Running {
            let mut v =
                self.verdict_of(VerdictId::Healthy, Health::Starting, "no process runs", now);
            v.considered = rule::not_asked(None, "no process runs");
            return v;
        }
        if let Some(sentence) = self.pause.sentence(now) {
            self.calm_down();
            let mut v = self.verdict_of(VerdictId::Paused, Health::Paused, &sentence, now);
            let told = Some((v.id, sentence.as_str()));
            v.considered = rule::not_asked(told, "the program is stopped or traced");
            return v;
        }
        let facts = self.view(now);
        if facts.judged()
            && let Some(why) = facts.channels.blind(now, facts.t)
        {
            let warm = now.since(self.attempt_since) < secs(self.thresholds.warm_up_s);
            let (id, _) = rule::no_fault(&facts);
            self.calm_down();
            let mut v = if warm {
                self.beginning(now)
            } else {
                let sentence = format!("{why}; without it nothing is judged and nothing is killed");
                self.verdict_of(id, Health::Blind, &sentence, now)
            };
            v.considered = rule::not_asked(None, why);
            return v;
        }
        let asked = rule::ask(&self.facts(now));
        let mut warning = std::mem::take(&mut self.warning);
        warning.step(now, rule::warnings(&asked), &self.thresholds);
        self.warning = warning;
        if let Some(ended) = self.alarm.step(now, rule::hang(&asked), &self.thresholds) {
            self.raise_limit(ended.verdict);
        }
        self.told(&self.facts(now), &asked)
    }

    /// What is shown of a program that has just begun, before enough is read to judge it: that it starts, until it tells
    /// of more itself.
    pub fn beginning(&self, now: Mono) -> Verdict {
        let facts = self.facts(now);
        let (id, sentence) = rule::no_fault(&facts);
        let works = facts.job.job != Job::Unknown && facts.phase.says_something();
        let (health, sentence) = if works {
            (Health::Healthy, sentence)
        } else {
            (Health::Starting, "the program starts".to_owned())
        };
        let mut v = self.verdict_of(id, health, &sentence, now);
        v.considered = rule::not_asked(None, "the program has just begun");
        v
    }

    /// What is told: a dead job before everything, one that must be answered before a
    /// mere suspicion, a suspicion before advice.
    fn told(&self, facts: &Facts<'_>, asked: &[Asked]) -> Verdict {
        let now = facts.now;
        let mut v = match (&self.alarm, self.warning.signs()) {
            (Alarm::Hung { signs, .. }, _) => self.alarming(signs, Health::Hung, now),
            (_, Some(signs)) if signs.grade == Grade::Fault => {
                self.alarming(signs, Health::Failing, now)
            }
            (Alarm::Suspect { signs, .. }, _) => self.alarming(signs, Health::Suspect, now),
            (Alarm::Quiet, Some(signs)) => self.alarming(signs, Health::Slow, now),
            (Alarm::Quiet, None) => self.calm_verdict(facts),
        };
        v.considered = rule::considered(asked, v.id, now);
        if v.id.is_no_fault() {
            v.considered.insert(
                0,
                crate::model::Considered {
                    verdict: v.id,
                    state: RuleState::Match,
                    why: v.sentence.clone(),
                },
            );
        }
        v
    }

    pub(super) fn calm_down(&mut self) {
        self.alarm = Alarm::Quiet;
        self.warning = Warning::default();
    }
}
