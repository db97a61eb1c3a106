//! What of all that was reported explains a failure.

use std::time::Duration;

use crate::model::{Finding, Mono, VerdictId};

use super::Context;
use crate::detect::errors::{Deadly, Entry, foremost};
use crate::detect::facts::Seen;
use crate::detect::job::Job;
use crate::detect::signature::Rank;

/// A server that waits this long has nothing to do with what failed before.
const LONG_IDLE: Duration = Duration::from_secs(10);

impl Context {
    /// What explains a failure at this moment: the foremost of what console and kernel
    /// reported and nothing outlived.
    pub(in crate::detect) fn seen(&self, now: Mono) -> Option<&Seen> {
        foremost(self.errors.causes(now).chain(self.trouble.causes())).map(|e| &e.seen)
    }

    /// The same at the end of the process. What failed a job long ago does not explain
    /// the end of the idle server.
    pub(in crate::detect) fn seen_at_end(&self, now: Mono) -> Option<&Seen> {
        let idle = match self.job {
            Job::Waiting(since) => now.since(since) > LONG_IDLE,
            _ => false,
        };
        // words that come with the end explain it: a job may begin without one
        let fresh = |e: &&Entry| !idle || now.since(e.seen.last.at) <= LONG_IDLE;
        let errors = self.errors.causes_of_end(now);
        let causes = errors.chain(self.trouble.causes()).filter(fresh);
        foremost(causes).map(|e| &e.seen)
    }

    /// What else was reported in the same story.
    pub(in crate::detect) fn others(&self, now: Mono, main: VerdictId) -> Vec<Finding> {
        let besides = |e: &&Entry| e.seen.verdict != main && e.rank > Rank::Aftermath;
        let entries = self.errors.causes(now).chain(self.trouble.causes());
        let mut findings: Vec<Finding> =
            entries.filter(besides).map(|e| e.seen.finding()).collect();
        let memory = matches!(main, VerdictId::BlockAllocator | VerdictId::GpuOom);
        if let Some(cite) = self.kept_on_card.as_ref().filter(|_| memory) {
            findings.push(Finding::of_line(
                VerdictId::OffloadRisk,
                "the model stays on the card while the next one is loaded",
                cite,
            ));
        }
        if let Some(cite) = &self.cpu_only
            && main != VerdictId::CpuFallback
        {
            findings.push(Finding::of_line(
                VerdictId::CpuFallback,
                "the program says that it runs on the CPU",
                cite,
            ));
        }
        findings
    }

    /// The job came to its end, but its result is black.
    pub(in crate::detect) fn spoilt(&self) -> Option<&Seen> {
        self.errors.spoilt()
    }

    /// When an exception with the signature of a known error was last printed.
    pub(in crate::detect) fn failed_while_waiting(&self, now: Mono) -> Option<Mono> {
        self.errors.failed(now)
    }

    /// Whether an exception of a known kind is among the last lines.
    pub(in crate::detect) fn has_just_failed(&self, now: Mono) -> bool {
        self.errors.is_fresh() && self.errors.deadly().is_some() && self.seen(now).is_some()
    }

    /// Since when the words, or the kernel, say that the job is over though the process
    /// lives.
    pub(in crate::detect) fn deadly(&self) -> Option<(Mono, Deadly)> {
        let lost = self.trouble.fatal.map(|at| (at, Deadly::Abort));
        let reset = self.trouble.reset().map(|at| (at, Deadly::Known));
        lost.or_else(|| self.errors.deadly()).or(reset)
    }
}
