//! What the end of the process, or of its job, means.
//!
//! Error text and kernel lines outrank the way it ended; a bare SIGKILL proves
//! termination, not its cause.

use crate::detect::facts::Seen;
use crate::detect::signature;
use crate::model::{Cite, ExitStatus, Health, VerdictId, windows};

/// What is known at the end.
pub(crate) struct EndFacts<'a> {
    /// How the process ended; `None`: it lives, only its job failed.
    pub(crate) status: Option<ExitStatus>,
    /// The last known error in the text that no progress followed.
    pub(crate) seen: Option<&'a Seen>,
    /// The program's own words about its failure.
    pub(crate) exception: Option<&'a Cite>,
    /// Exceptions that followed from it.
    pub(crate) followed: &'a [Cite],
    /// What runs on the CPU by the program's own words.
    pub(crate) on_cpu: Option<OnCpu<'a>>,
    /// The kernel ended a process of ours for want of memory.
    pub(crate) oom_killer: Option<&'a Cite>,
    /// A result that is written but black.
    pub(crate) spoilt: Option<&'a Seen>,
}

/// A line that says what runs on the CPU.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OnCpu<'a> {
    /// The program as a whole, while a job is in flight.
    Whole(&'a Cite),
    /// What uses one library.
    Part(&'a Cite),
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

/// A failure: what it is, in words, by which lines.
fn failed(
    f: &EndFacts<'_>,
    (verdict, confidence): (VerdictId, f64),
    sentence: String,
    cites: Vec<Cite>,
) -> End {
    End {
        verdict,
        health: if f.status.is_some() {
            Health::Failed
        } else {
            Health::Failing
        },
        sentence,
        cites,
        count: 1,
        confidence,
    }
}

pub(crate) fn judge_end(f: &EndFacts<'_>) -> End {
    // a job that failed says so before it is judged; one that did not may be spoilt
    let well = f.status == Some(ExitStatus::Code(0));
    let failed_otherwise = f.seen.is_some() || f.exception.is_some();
    if let Some(seen) = f.spoilt
        && (well || (f.status.is_none() && !failed_otherwise))
    {
        let sentence = format!(
            "the job came to its end, but its result is not valid: \"{}\"",
            seen.first.text
        );
        return End {
            count: seen.count,
            ..failed(f, (VerdictId::NanOutput, 0.85), sentence, seen.cites())
        };
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
    by_words(f, &how).unwrap_or_else(|| {
        let (verdict, sentence, confidence) = by_status(f.status, &how);
        failed(f, (verdict, confidence), sentence, Vec::new())
    })
}

/// The judgement by what the kernel and the program said; none: they said nothing.
fn by_words(f: &EndFacts<'_>, how: &str) -> Option<End> {
    if let Some(line) = f.oom_killer {
        let sentence = format!(
            "the kernel ended the process for want of host memory: \"{}\"",
            line.text
        );
        let cites = vec![line.clone()];
        return Some(failed(f, (VerdictId::HostOom, 0.98), sentence, cites));
    }
    // the program's own error does not send it a signal from outside
    let from_outside = matches!(f.status, Some(ExitStatus::Signal(2 | 9 | 15)));
    let explains = |s: &&Seen| !(from_outside && s.verdict == VerdictId::AppError);
    if let Some(seen) = f.seen.filter(explains) {
        let sentence = format!(
            "{how}: {}; the program's own words: \"{}\"",
            seen.verdict.definition().failure,
            said(&seen.first.text)
        );
        return Some(End {
            count: seen.count,
            ..failed(f, (seen.verdict, 0.95), sentence, seen.cites())
        });
    }
    // an exception ends a program by its exit code; it explains no signal
    let by_signal = matches!(f.status, Some(ExitStatus::Signal(_)));
    if let Some(line) = f.exception.filter(|_| !by_signal) {
        let sentence = format!("{how}; {}", own_words(line, f.followed));
        let cites = std::iter::once(line).chain(f.followed).cloned().collect();
        return Some(failed(f, (VerdictId::AppError, 0.9), sentence, cites));
    }
    let (line, what) = match f.on_cpu.filter(|_| f.status.is_none())? {
        OnCpu::Whole(line) => (line, "the job runs on the processor as a whole"),
        OnCpu::Part(line) => (line, "a part of the program runs on the processor"),
    };
    let sentence = format!("{what}, by the program's own words");
    let cites = vec![line.clone()];
    Some(failed(f, (VerdictId::CpuFallback, 0.9), sentence, cites))
}

/// The program's words about its failure: the first cause, and what followed from it.
fn own_words(first: &Cite, followed: &[Cite]) -> String {
    let mut words = format!("the program's own words: \"{}\"", said(&first.text));
    let later = followed.iter().map(|c| format!("\"{}\"", said(&c.text)));
    let later: Vec<String> = later.collect();
    if !later.is_empty() {
        words.push_str(", from which followed ");
        words.push_str(&later.join(", then "));
    }
    words
}

/// Longest quotation in a sentence, in characters: the citation has the whole line.
const LONGEST: usize = 200;

/// A line as it is quoted in a sentence: without what its program writes before each line.
fn said(text: &str) -> String {
    let text = signature::behind_level(text).trim();
    let text = text
        .strip_prefix("!!! Exception during processing !!!")
        .map_or(text, str::trim);
    let mut said: String = text.chars().take(LONGEST).collect();
    if said.len() < text.len() {
        said.push('…');
    }
    said
}

/// The way it ended is all there is.
fn by_status(status: Option<ExitStatus>, how: &str) -> (VerdictId, String, f64) {
    if let Some(ExitStatus::Code(code)) = status
        && let Some(failure) = windows::failure(code)
    {
        return by_exception(failure, how);
    }
    match status {
        Some(ExitStatus::Signal(4) | ExitStatus::Code(132)) => (
            VerdictId::CrashSegv,
            format!(
                "the program ended by {how}: it met an instruction that this processor does not know"
            ),
            0.9,
        ),
        // SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV: the process's own doing
        Some(ExitStatus::Signal(5 | 6 | 7 | 8 | 11)) => (
            VerdictId::CrashSegv,
            format!("the program crashed with {how}, without a word about why"),
            0.9,
        ),
        // a shell reports its child's signal as 128 + number
        Some(ExitStatus::Code(133..=136 | 139)) => (
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

/// An exception of Windows that became the exit code.
fn by_exception(failure: windows::Failure, how: &str) -> (VerdictId, String, f64) {
    let (verdict, what, why) = match failure {
        windows::Failure::Crash(why) => (VerdictId::CrashSegv, "crashed", why),
        windows::Failure::Library(why) => (VerdictId::MissingDependency, "did not start", why),
        windows::Failure::Memory(why) => (VerdictId::HostOom, "ended", why),
    };
    (
        verdict,
        format!("the program {what} with {how}: {why}"),
        0.9,
    )
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
            followed: &[],
            on_cpu: None,
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
        let windows = |bits: u32| ExitStatus::Code(i32::from_ne_bytes(bits.to_ne_bytes()));
        assert_eq!(end(windows(0xC000_0005), None), VerdictId::CrashSegv);
        assert_eq!(
            end(windows(0xC000_0135), None),
            VerdictId::MissingDependency
        );
        assert_eq!(end(windows(0xC000_012D), None), VerdictId::HostOom);
        assert_eq!(
            end(ExitStatus::Signal(6), Some(VerdictId::BlockAllocator)),
            VerdictId::BlockAllocator
        );
        assert_eq!(
            end(ExitStatus::Signal(9), Some(VerdictId::AppError)),
            VerdictId::Killed
        );
        assert_eq!(
            end(ExitStatus::Signal(6), Some(VerdictId::AppError)),
            VerdictId::AppError
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
            followed: &[],
            on_cpu: None,
            oom_killer: Some(&cite(5)),
            spoilt: None,
        });
        assert_eq!(got.verdict, VerdictId::HostOom);
        assert_eq!(got.cites, vec![cite(5)]);
    }
}
