//! Errors that the console reported and nothing has outlived: which of them explains a
//! failure.

use std::time::Duration;

use crate::model::{Cite, Mono, VerdictId};

use super::facts::Seen;
use super::signature::{Rank, Reported};

/// Kinds of errors kept at a time.
const MOST: usize = 16;
/// Text of optional parts explains a failure only where it comes with it.
pub(super) const WITH: Duration = Duration::from_secs(2);
/// An error this long before an exception that does not speak of it is another story.
const SAME_STORY: Duration = Duration::from_secs(10);
/// An end this long after an error is another story, once the program has gone on.
const LONG_BEFORE: Duration = Duration::from_secs(30);
/// Lines without an error after one that are still its aftermath.
const AFTERMATH: u32 = 8;

/// One kind of error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) seen: Seen,
    pub(super) rank: Rank,
    /// Heard from the agent alone: the program's own line about it is still to come.
    heard: bool,
}

impl Entry {
    pub(super) fn new(reported: Reported, cite: Cite) -> Self {
        Self {
            seen: Seen {
                verdict: reported.verdict,
                first: cite.clone(),
                last: cite,
                count: 1,
            },
            rank: reported.rank,
            heard: false,
        }
    }

    pub(super) fn again(&mut self, rank: Rank, cite: Cite) {
        if std::mem::take(&mut self.heard) && cite.text.contains(&self.seen.last.text) {
            // the same error, which came by another way before
            self.seen.first = cite.clone();
        } else {
            self.seen.count += 1;
        }
        self.seen.last = cite;
        self.rank = self.rank.max(rank);
    }

    /// Higher explains more; of equal ranks what is more than an error of the program, then what
    /// cannot be said of an optional part, then the earlier.
    fn weight(&self) -> (Rank, bool, bool, std::cmp::Reverse<u64>) {
        let names = self.seen.verdict != VerdictId::AppError;
        let seq = std::cmp::Reverse(self.seen.first.seq);
        // an extension that does not load is survived, lack of memory is not
        (self.rank, names, !self.is_weak(), seq)
    }

    /// What may be said of an optional part, or of a result that is saved all the same.
    fn is_weak(&self) -> bool {
        self.seen.verdict.definition().may_be_survived && self.rank < Rank::Kernel
    }
}

/// Of several the one that explains most.
pub(super) fn foremost<'a>(entries: impl Iterator<Item = &'a Entry>) -> Option<&'a Entry> {
    entries.max_by_key(|e| e.weight())
}

/// Words after which a job is mostly over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deadly {
    /// The runtime ends the process, or the card is gone.
    Abort,
    /// An exception with the signature of a known error.
    Known,
    /// Any other.
    Unknown,
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct Errors {
    entries: Vec<Entry>,
    /// Lines without an error since the last one.
    after: u32,
    /// When an exception was last printed, whatever it says.
    exception_at: Option<Mono>,
    /// The last exception is one of the errors, or comes in one burst with one.
    exception_is_known: bool,
}

impl Errors {
    /// A line reports an error.
    pub(super) fn note(&mut self, reported: Reported, cite: Cite) {
        self.after = 0;
        let known = self
            .entries
            .iter_mut()
            .find(|e| e.seen.verdict == reported.verdict);
        if let Some(entry) = known {
            entry.again(reported.rank, cite);
        } else if self.entries.len() < MOST {
            self.entries.push(Entry::new(reported, cite));
        }
    }

    /// The agent's words of a failed job report an error of which no line has told.
    pub(super) fn note_heard(&mut self, reported: Reported, cite: Cite) {
        let heard = cite.line.is_none();
        self.note(reported, cite);
        let entry = self
            .entries
            .iter_mut()
            .find(|e| e.seen.verdict == reported.verdict);
        if let Some(entry) = entry {
            entry.heard = heard;
        }
    }

    /// Whether an error of this kind was reported and nothing has outlived it.
    pub(super) fn knows(&self, verdict: VerdictId) -> bool {
        self.entries.iter().any(|e| e.seen.verdict == verdict)
    }

    /// A line that reports none.
    pub(super) const fn plain_line(&mut self) {
        self.after = self.after.saturating_add(1);
    }

    /// The last line of a traceback, or what looks like one.
    pub(super) fn exception(&mut self, now: Mono, known: bool) {
        self.exception_at = Some(now);
        self.exception_is_known = known
            || self
                .entries
                .iter()
                .any(|e| now.since(e.seen.last.at) <= WITH);
    }

    /// The job went on, or came to its result, after whatever was reported.
    pub(super) fn survived(&mut self) {
        // a black picture is saved as well as any
        self.entries
            .retain(|e| e.seen.verdict == VerdictId::NanOutput);
        self.exception_at = None;
    }

    /// A new job: what was before is no matter of its.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.exception_at = None;
    }

    /// The same, but what was told by the line that tells of the job.
    pub(super) fn clear_but(&mut self, line: Option<u64>) {
        self.entries.retain(|e| Some(e.seen.last.seq) == line);
        self.exception_at = None;
    }

    /// When an error of one cause, or a result that is none, was told last since that
    /// moment; one of several causes only where it belongs to the job.
    pub(super) fn told_since(&self, begin: Mono, of_job: impl Fn(Mono) -> bool) -> Option<Mono> {
        let strong = |e: &&Entry| {
            let at = e.seen.last.at;
            let spoilt = e.seen.verdict == VerdictId::NanOutput;
            let known = e.rank >= Rank::Specific && !e.is_weak();
            let weak = e.is_weak() || e.rank <= Rank::Aftermath;
            at >= begin && (known || ((spoilt || !weak) && of_job(at)))
        };
        let told = self.entries.iter().filter(strong);
        told.map(|e| e.seen.last.at).max()
    }

    /// The program entered another step of its job: what it reported some time before is
    /// survived, what came with the step may have led to it.
    pub(super) fn outlived(&mut self, now: Mono) {
        self.entries
            .retain(|e| now.since(e.seen.last.at) < WITH || e.seen.verdict == VerdictId::NanOutput);
    }

    /// Those that can explain a failure at this moment.
    pub(super) fn causes(&self, now: Mono) -> impl Iterator<Item = &Entry> {
        let failed = self.exception_at.unwrap_or(now);
        self.entries.iter().filter(move |e| {
            let before = failed.since(e.seen.last.at);
            if e.rank == Rank::Warning && self.exception_at.is_none() {
                return false;
            }
            if e.is_weak() {
                return before <= WITH
                    && (e.seen.verdict != VerdictId::NanOutput || e.rank >= Rank::Specific);
            }
            self.exception_is_known
                || self.exception_at.is_none()
                || before <= SAME_STORY
                || e.rank >= Rank::Root
        })
    }

    /// The same at the end of the process: an error after which the program went on
    /// talking does not explain it.
    pub(super) fn causes_of_end(&self, now: Mono) -> impl Iterator<Item = &Entry> {
        let after = self.after;
        let warned = self.entries.iter().filter(|e| e.rank == Rank::Warning);
        self.causes(now)
            .chain(warned.filter(|_| self.exception_at.is_none()))
            .filter(move |e| after <= AFTERMATH || now.since(e.seen.last.at) <= LONG_BEFORE)
    }

    /// Whether the last error came a few lines ago, known exception and all.
    pub(super) const fn is_fresh(&self) -> bool {
        self.exception_is_known && self.after <= AFTERMATH
    }

    /// The result is there, but black.
    pub(super) fn spoilt(&self) -> Option<&Seen> {
        let mut entries = self.entries.iter().map(|e| &e.seen);
        entries.find(|s| s.verdict == VerdictId::NanOutput)
    }

    /// Since when the words say that the job is over: an abort that the runtime announced,
    /// or the last exception, which mostly is one of the errors.
    pub(super) fn deadly(&self) -> Option<(Mono, Deadly)> {
        if let Some(at) = self.abort() {
            return Some((at, Deadly::Abort));
        }
        let at = self.exception_at?;
        let strong = |e: &Entry| {
            !e.is_weak()
                && e.seen.verdict != VerdictId::BlockAllocator
                && e.rank > Rank::Aftermath
                && at.since(e.seen.last.at) <= WITH
        };
        let known = self.exception_is_known && self.entries.iter().any(strong);
        Some((
            at,
            if known {
                Deadly::Known
            } else {
                Deadly::Unknown
            },
        ))
    }

    /// When an exception of a known kind was last printed. That of an optional part says
    /// nothing by itself.
    pub(super) fn failed(&self, now: Mono) -> Option<Mono> {
        let at = self.exception_at?;
        let strong = |e: &Entry| {
            e.rank >= Rank::Specific
                && !matches!(
                    e.seen.verdict,
                    VerdictId::MissingDependency | VerdictId::CpuFallback
                )
                && at.since(e.seen.last.at) <= WITH
        };
        (self.exception_is_known && self.causes(now).any(strong)).then_some(at)
    }

    /// The runtime announced that it ends the process.
    fn abort(&self) -> Option<Mono> {
        let aborts = |e: &&Entry| {
            e.rank == Rank::Root
                && matches!(e.seen.verdict, VerdictId::MemoryFault | VerdictId::GpuReset)
        };
        self.entries.iter().find(aborts).map(|e| e.seen.last.at)
    }
}
