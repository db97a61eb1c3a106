//! The words of a verdict.

use crate::model::{ActionId, Cite, Finding, Health, Mono, NextStep, Verdict, VerdictId};

use super::Detector;
use super::facts::Facts;
use super::job::Job;
use super::rule::{self, Signs};

impl Detector {
    pub(super) fn calm_verdict(&self, facts: &Facts<'_>) -> Verdict {
        let (id, sentence) = rule::no_fault(facts);
        let ceiling = self
            .limits
            .phases
            .get(&self.context.phase)
            .and_then(|l| l.ceiling);
        let stay = facts.now.since(self.context.phase_since);
        let (health, sentence) = match ceiling {
            Some(c) if facts.judged() && stay > c => (
                Health::Slow,
                format!(
                    "{} takes longer ({}) than its ceiling of {}; it still moves",
                    self.context.phase,
                    rule::span(stay),
                    rule::span(c)
                ),
            ),
            _ if self.job_answer.job == Job::Unknown && id == VerdictId::Healthy => {
                (Health::Starting, sentence)
            }
            _ if id == VerdictId::Quiet => (Health::Quiet, sentence),
            _ => (Health::Healthy, sentence),
        };
        let mut v = self.verdict_of(id, health, &sentence, facts.now);
        if facts.judged() {
            let since = self.movement.last().0;
            v.next = Some(NextStep {
                what: format!("silence limit in {}", self.context.phase),
                at: self.grant.deadline(since, since + facts.silence_limit()),
            });
        }
        v
    }

    pub(super) fn alarming(&self, signs: &Signs, health: Health, now: Mono) -> Verdict {
        let mut v = self.verdict_of(signs.verdict, health, &signs.sentence, now);
        v.onset = signs.since;
        v.confidence = if health == Health::Suspect {
            signs.confidence * 0.5
        } else {
            signs.confidence
        };
        let mut cites = signs.cites.clone();
        if cites.is_empty() {
            cites = vec![
                Cite::reading(
                    self.active_seq,
                    signs.since,
                    "the last activity of any kind".to_owned(),
                ),
                Cite::reading(self.last_seq, now, signs.numbers.join(", ")),
            ];
        }
        let seqs: Vec<u64> = cites.iter().map(|c| c.seq).collect();
        v.findings = signs
            .numbers
            .iter()
            .map(|n| Finding {
                verdict: signs.verdict,
                text: n.clone(),
                seqs: seqs.clone(),
                cites: cites.clone(),
                count: 1,
            })
            .collect();
        v.ruled_out.clone_from(&signs.ruled_out);
        v.next = (health == Health::Suspect).then(|| NextStep {
            what: format!("verdict {}", signs.verdict),
            at: signs.since + signs.limit,
        });
        v
    }

    pub(super) fn verdict_of(
        &self,
        id: VerdictId,
        health: Health,
        sentence: &str,
        now: Mono,
    ) -> Verdict {
        Verdict {
            id,
            health,
            phase: self.context.phase,
            section: self.context.section,
            confidence: 1.0,
            onset: now,
            sentence: sentence.to_owned(),
            findings: self.context.trouble.remarks(),
            ruled_out: Vec::new(),
            considered: Vec::new(),
            remedy: None,
            action: ActionId::None,
            cause: None,
            next: None,
            questions: None,
        }
    }
}
