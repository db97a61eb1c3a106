//! The judgement over an end.

use crate::model::{ExitStatus, Finding, Mono, Verdict};

use super::Detector;
use super::rule::{self, EndFacts};

impl Detector {
    /// The judgement over the end of the process (`status`), or of its job while
    /// the process lives (`None`).
    pub fn end(&self, status: Option<ExitStatus>, now: Mono) -> Verdict {
        let end = rule::judge_end(&EndFacts {
            status,
            seen: self.context.seen.as_ref(),
            exception: self.context.exception.as_ref(),
            oom_killer: self.context.oom_killer.as_ref(),
        });
        let mut v = self.verdict_of(end.verdict, end.health, &end.sentence, now);
        // a server is idle again by the time its failed job is judged
        if let Some((phase, section)) = self.context.failed_in.filter(|_| !end.is_good()) {
            v.phase = phase;
            v.section = section;
        }
        v.onset = self
            .context
            .seen
            .as_ref()
            .map_or(now, |s| s.first.at.min(now));
        v.confidence = end.confidence;
        v.findings = vec![Finding {
            verdict: end.verdict,
            text: end.sentence,
            seqs: end.cites.iter().map(|c| c.seq).collect(),
            cites: end.cites,
            count: end.count,
        }];
        v
    }
}
