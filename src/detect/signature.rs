//! Signatures of known errors in the workload's own text.
//!
//! R15: bounded matchers; advice, warnings about what might happen, and teardown
//! lines can never be a cause. A match is an observation, not yet a verdict.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};

use crate::model::VerdictId;

/// Patterns and what they speak for, most specific first. The texts are those that
/// ROCr, PyTorch (HIP and CUDA wording), MIOpen and the C++ runtime print.
const PATTERNS: &[(&str, VerdictId)] = &[
    (
        r"MemoryRegion::BlockAllocator::alloc failed",
        VerdictId::BlockAllocator,
    ),
    (
        r"(?i)no suitable algorithm was found",
        VerdictId::NoAlgorithm,
    ),
    (
        // not miopenStatusInternalError: that is a database that cannot be read
        r"miopenStatus(UnknownError|NotImplemented)",
        VerdictId::NoAlgorithm,
    ),
    (
        r"(?i)immediate mode fallback unsuccessful",
        VerdictId::NoAlgorithm,
    ),
    (
        r"(?i)\b(HIP|CUDA|GPU|device) out of memory\b",
        VerdictId::GpuOom,
    ),
    (
        r"\b(torch\.(cuda\.)?)?OutOfMemoryError\b",
        VerdictId::GpuOom,
    ),
    (r"(?i)\bAllocation on device\b", VerdictId::GpuOom),
    (r"\bMemory access fault by GPU\b", VerdictId::MemoryFault),
    (
        r"\bhipErrorOutOfMemory\b|\bHIP_ERROR_OUT_OF_MEMORY\b|\bcudaErrorMemoryAllocation\b|\bCUDA_ERROR_OUT_OF_MEMORY\b",
        VerdictId::GpuOom,
    ),
    (
        r"(?i)\b(std::bad_alloc|cannot allocate memory|DefaultCPUAllocator: (not enough|can't allocate) memory)",
        VerdictId::HostOom,
    ),
    (r"^(\S+\.)?_?(Array)?MemoryError\b", VerdictId::HostOom),
];

/// Text that speaks of an error without one having happened here: advice, a
/// setting, a caught error that is being retried, a conditional.
const NOT_A_CAUSE: &[&str] = &[
    r"(?i)\bif (you|reserved|this|it)\b.*\b(out of memory|memory is large)",
    r"(?i)\b(to avoid|may|might|could|would|in case of|risk of)\b.{0,40}\b(OOM|out of memory)",
    r"(?i)\bexcept\b.*OutOfMemoryError",
    r"(?i)^\s*(import|from|catch|#|//)\b",
];

static SIGNATURES: LazyLock<Vec<(Regex, VerdictId)>> = LazyLock::new(|| {
    PATTERNS
        .iter()
        .filter_map(|(p, v)| Some((Regex::new(p).ok()?, *v)))
        .collect()
});
static EXCLUDED: LazyLock<Option<RegexSet>> = LazyLock::new(|| RegexSet::new(NOT_A_CAUSE).ok());

/// What a line speaks for, if it carries the signature of a known error.
pub(crate) fn of_line(text: &str) -> Option<VerdictId> {
    let (end, verdict) = SIGNATURES
        .iter()
        .find_map(|(r, v)| r.find(text).map(|m| (m.end(), *v)))?;
    // PyTorch appends advice to the very line that reports the error, so the text
    // up to the signature decides, not what follows it.
    let excluded = EXCLUDED.as_ref().is_some_and(|x| x.is_match(&text[..end]));
    (!excluded && !is_retry(text)).then_some(verdict)
}

/// A caught error that the program itself answers at once.
fn is_retry(text: &str) -> bool {
    static RETRY: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"(?i)\bretrying\b|\bfall(s|ing)? ?back\b|\btrying again\b").ok()
    });
    RETRY.as_ref().is_some_and(|r| r.is_match(text))
}

/// Whether the program says that it compiles or tunes now: a busy CPU beside an idle
/// card is then expected. A setting or a step that is over says nothing.
pub(crate) fn is_compilation(text: &str) -> bool {
    static NOW: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)\b(compiling|compilation (started|in progress)|auto-?tuning|(building|generating) (the )?(\w+ )?(kernels?|extensions?|engine)|warming up|(first|initial) (run|launch|compil\w+)\b.{0,60}\b(minutes?|while|slow\w*|long\w*))\b",
        )
        .ok()
    });
    static NOT_NOW: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)\b(disabled?|skip(ped|ping)?|not|without|failed|error|finished|done|complete[d]?|if|when|to enable|took)\b",
        )
        .ok()
    });
    let hit = |r: &LazyLock<Option<Regex>>| r.as_ref().is_some_and(|r| r.is_match(text));
    hit(&NOW) && !hit(&NOT_NOW)
}

/// Whether a line is no sign of life of a job: a web server's note of a request that a
/// page or a monitor makes by itself, or one more copy of a known error.
pub(crate) fn is_no_activity(text: &str) -> bool {
    static REQUEST: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r#""(GET|HEAD|OPTIONS|POST) /\S* HTTP/\d(\.\d)?" \d{3}\b"#).ok()
    });
    REQUEST.as_ref().is_some_and(|r| r.is_match(text)) || of_line(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_compile() {
        assert_eq!(SIGNATURES.len(), PATTERNS.len());
        assert!(EXCLUDED.is_some());
    }

    #[test]
    fn real_errors_are_seen() {
        for (text, want) in [
            (
                "HSA exception: MemoryRegion::BlockAllocator::alloc failed.",
                VerdictId::BlockAllocator,
            ),
            (
                "MIOpen Error: /src/ocl/convolutionocl.cpp:275: No suitable algorithm was found to execute the required convolution",
                VerdictId::NoAlgorithm,
            ),
            (
                "RuntimeError: miopenStatusUnknownError",
                VerdictId::NoAlgorithm,
            ),
            (
                "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.53 GiB. If reserved but unallocated memory is large try setting PYTORCH_HIP_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
                VerdictId::GpuOom,
            ),
            (
                "torch.cuda.OutOfMemoryError: CUDA out of memory.",
                VerdictId::GpuOom,
            ),
        ] {
            assert_eq!(of_line(text), Some(want), "{text}");
        }
    }

    #[test]
    fn advice_and_caught_errors_are_not_causes() {
        for text in [
            "Warning: Ran out of memory when regular VAE decoding, retrying with tiled VAE decoding.",
            "Lower this to avoid out of memory",
            "large batches may cause CUDA out of memory",
            "    except torch.cuda.OutOfMemoryError:",
            "Free VRAM 23.1 GB",
            "GPU decode failed: HIP out of memory, falling back to CPU decode",
            "RuntimeError: miopenStatusInternalError",
        ] {
            assert_eq!(of_line(text), None, "{text}");
        }
    }

    #[test]
    fn compilation_and_requests() {
        for text in [
            "Compiling triton kernels, this may take several minutes",
            "[inductor] autotuning mm(4096x3072)",
            "Building extension custom_rasterizer",
            "First run: kernels are built, this can take a few minutes",
        ] {
            assert!(is_compilation(text), "{text}");
        }
        for text in [
            "torch.compile disabled",
            "compilation took 12 s",
            "autotuning finished",
            "compiled with rocm",
        ] {
            assert!(!is_compilation(text), "{text}");
        }
        assert!(is_no_activity(
            "INFO:     127.0.0.1:5124 - \"GET /queue/status HTTP/1.1\" 200 OK"
        ));
        assert!(!is_no_activity("Decoding"));
    }
}
