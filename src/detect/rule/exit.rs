//! What the end of the process, or of its job, means.
//!
//! Error text and kernel lines outrank the way it ended; a bare SIGKILL proves
//! termination, not its cause.

use crate::detect::facts::Seen;
use crate::model::{Cite, ExitStatus, Health, VerdictId};

/// What is known at the end.
pub(crate) struct EndFacts<'a> {
    /// How the process ended; `None`: it lives, only its job failed.
    pub(crate) status: Option<ExitStatus>,
    /// The last known error in the text that no progress followed.
    pub(crate) seen: Option<&'a Seen>,
    /// The program's own words about its failure.
    pub(crate) exception: Option<&'a Cite>,
    /// The kernel ended a process of ours for want of memory.
    pub(crate) oom_killer: Option<&'a Cite>,
    /// A result that is written but black.
    pub(crate) spoilt: Option<&'a Seen>,
}

/// The judgement over an end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct End {
    pub(crate) verdict: VerdictId,
    pub(crate) health: Health,
    pub(crate) sentence: String,
    pub(crate) cites: Vec<Cite>,
    pub(crate) count: u64,
    pub(crate) confidence: f64,
}

impl End {
    /// Whether the program came to its end by itself and well.
    pub(crate) fn is_good(&self) -> bool {
        self.verdict == VerdictId::Finished
    }
}

pub(crate) fn judge_end(f: &EndFacts<'_>) -> End {
    let failed = |verdict, sentence: String, cites, count, confidence| End {
        verdict,
        health: if f.status.is_some() {
            Health::Failed
        } else {
            Health::Failing
        },
        sentence,
        cites,
        count,
        confidence,
    };
    // a job that failed says so before it is judged; one that did not may be spoilt
    let well = f.status == Some(ExitStatus::Code(0));
    let failed_otherwise = f.seen.is_some() || f.exception.is_some();
    if let Some(seen) = f.spoilt
        && (well || (f.status.is_none() && !failed_otherwise))
    {
        return failed(
            VerdictId::NanOutput,
            format!(
                "the job came to its end, but its result is not valid: \"{}\"",
                seen.first.text
            ),
            seen.cites(),
            seen.count,
            0.85,
        );
    }
    if well {
        return End {
            verdict: VerdictId::Finished,
            health: Health::Finished,
            sentence: "the program ended by itself with exit code 0".to_owned(),
            cites: Vec::new(),
            count: 1,
            confidence: 1.0,
        };
    }
    let how = f.status.map_or_else(
        || "the job ended with an error".to_owned(),
        |s| s.to_string(),
    );
    if let Some(line) = f.oom_killer {
        return failed(
            VerdictId::HostOom,
            format!(
                "the kernel ended the process for want of host memory: \"{}\"",
                line.text
            ),
            vec![line.clone()],
            1,
            0.98,
        );
    }
    if let Some(seen) = f.seen {
        return failed(
            seen.verdict,
            format!("{how} after \"{}\" ({} x)", seen.last.text, seen.count),
            seen.cites(),
            seen.count,
            0.95,
        );
    }
    // an exception ends a program by its exit code; it explains no signal
    let by_signal = matches!(f.status, Some(ExitStatus::Signal(_)));
    if let Some(line) = f.exception.filter(|_| !by_signal) {
        return failed(
            VerdictId::AppError,
            format!("{how}; the program's own words: \"{}\"", line.text),
            vec![line.clone()],
            1,
            0.9,
        );
    }
    let (verdict, sentence, confidence) = by_status(f.status, &how);
    failed(verdict, sentence, Vec::new(), 1, confidence)
}

/// The way it ended is all there is.
fn by_status(status: Option<ExitStatus>, how: &str) -> (VerdictId, String, f64) {
    match status {
        // SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV: the process's own doing
        Some(ExitStatus::Signal(4 | 5 | 6 | 7 | 8 | 11)) => (
            VerdictId::CrashSegv,
            format!("the program crashed with {how}, without a word about why"),
            0.9,
        ),
        // a shell reports its child's signal as 128 + number
        Some(ExitStatus::Code(132..=136 | 139)) => (
            VerdictId::CrashSegv,
            format!("the program crashed ({how} stands for a signal)"),
            0.85,
        ),
        Some(ExitStatus::Signal(_) | ExitStatus::Code(137 | 143)) => (
            VerdictId::Killed,
            format!("the program was ended from outside ({how}); by whom is not known"),
            0.8,
        ),
        // whoever ended the guardian as well
        Some(ExitStatus::Unknown) => (
            VerdictId::Killed,
            "the program is gone and how it ended is not known: its guardian process is gone too"
                .to_owned(),
            0.6,
        ),
        _ => (
            VerdictId::AppError,
            format!("the program failed with {how} and gave no reason"),
            0.8,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Mono;

    fn cite(seq: u64) -> Cite {
        Cite::reading(seq, Mono(seq), "t".into())
    }

    fn end(status: ExitStatus, seen: Option<VerdictId>) -> VerdictId {
        let seen = seen.map(|verdict| Seen {
            verdict,
            first: cite(1),
            last: cite(2),
            count: 3,
        });
        judge_end(&EndFacts {
            status: Some(status),
            seen: seen.as_ref(),
            exception: None,
            oom_killer: None,
            spoilt: None,
        })
        .verdict
    }

    #[test]
    fn ends_are_told_apart() {
        assert_eq!(end(ExitStatus::Code(0), None), VerdictId::Finished);
        assert_eq!(end(ExitStatus::Code(3), None), VerdictId::AppError);
        assert_eq!(end(ExitStatus::Signal(11), None), VerdictId::CrashSegv);
        assert_eq!(end(ExitStatus::Signal(9), None), VerdictId::Killed);
        assert_eq!(end(ExitStatus::Code(139), None), VerdictId::CrashSegv);
        assert_eq!(end(ExitStatus::Unknown, None), VerdictId::Killed);
        assert_eq!(
            end(ExitStatus::Signal(6), Some(VerdictId::BlockAllocator)),
            VerdictId::BlockAllocator
        );
        // an error that was survived is no fault
        assert_eq!(
            end(ExitStatus::Code(0), Some(VerdictId::GpuOom)),
            VerdictId::Finished
        );
    }

    #[test]
    fn the_kernel_outranks_the_signal() {
        let got = judge_end(&EndFacts {
            status: Some(ExitStatus::Signal(9)),
            seen: None,
            exception: None,
            oom_killer: Some(&cite(5)),
            spoilt: None,
        });
        assert_eq!(got.verdict, VerdictId::HostOom);
        assert_eq!(got.cites, vec![cite(5)]);
    }
}
