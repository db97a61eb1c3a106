//! Frames and ends of Python's tracebacks, as far as they change what an error means.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::{VerdictId, exception};

use super::signature::{Rank, Reported};

/// Frames of code that locks pages of host memory.
static PINS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\bpin_(?:memory|weight|buffer|tensor)\w*\b|\b(?:hip|cuda)Host(?:Malloc|Alloc|Register)\b|\bpinned=True\b").ok()
});
/// The runtime's words that say nothing of the kind by themselves.
static VAGUE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:HIP|CUDA) error: (?:invalid argument|OS call failed|operation not (?:supported|permitted)|unspecified launch failure|out of memory|invalid value|unknown error)").ok()
});
/// The last line of a traceback, behind what a logger or ComfyUI writes before it.
static EXCEPTION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(?:\S{0,40}[\]:!] ?)?(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Exhausted|Killed)(?:$|:$|: |\()|^!!! Exception during processing|^[A-Za-z_][\w.]*: \S").ok()
});

/// Follows the tracebacks of a console.
#[derive(Debug, Clone, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts of one traceback, independent of each other"
)]
pub(super) struct Frames {
    open: bool,
    /// What stands before each line of the traceback: some programs indent it.
    indent: usize,
    /// A logger wrote the level of an error before the traceback, and writes it before each line.
    leveled: bool,
    /// The innermost frame so far locks pages.
    pins: bool,
    /// A frame is that of a web server at a request.
    serves: bool,
}

impl Frames {
    /// A line without what its traceback is indented by.
    pub(super) fn dedent<'t>(&self, text: &'t str) -> &'t str {
        let text = without_rank(text);
        let text = if self.open && self.leveled {
            without_level(text).unwrap_or(text)
        } else {
            text
        };
        if !self.open || self.indent == 0 {
            return text;
        }
        text.get(indent(text).min(self.indent)..).unwrap_or(text)
    }

    /// Takes a line. Whether it is the end of a traceback, or what looks like one.
    pub(super) fn line(&mut self, text: &str) -> bool {
        let text = without_rank(text);
        if text.contains("Traceback (most recent call last)") {
            let behind = without_level(text);
            *self = Self {
                open: true,
                indent: indent(behind.unwrap_or(text)),
                leveled: behind.is_some(),
                ..Self::default()
            };
            return false;
        }
        let text = self.dedent(text);
        if self.open && text.starts_with([' ', '|', '+']) {
            let hit = PINS.as_ref().is_some_and(|r| r.is_match(text));
            let frame = text.trim_start().starts_with("File ");
            self.pins = hit || (self.pins && !frame);
            self.serves |= frame && exception::is_server_frame(text);
            return false;
        }
        let ends = EXCEPTION.as_ref().is_some_and(|r| r.is_match(text));
        let ended_by_a_person =
            exception::is_interrupt(text) || self.serves && exception::is_client_gone(text);
        let looks = ends && (self.open || is_named(text)) && !ended_by_a_person;
        self.open &= !ends;
        looks
    }

    /// What an error line means here: out of memory while pages are being locked is no
    /// want of memory on the card.
    pub(super) fn refine(&self, text: &str, reported: Option<Reported>) -> Option<Reported> {
        if !self.pins || reported.is_some_and(|r| r.rank > Rank::General) {
            return reported;
        }
        let memory = reported.is_some_and(|r| r.verdict == VerdictId::GpuOom);
        let vague = VAGUE.as_ref().is_some_and(|r| r.is_match(text));
        if memory || vague {
            Some(Reported {
                verdict: VerdictId::PinnedMemory,
                rank: Rank::Specific,
            })
        } else {
            reported
        }
    }
}

/// A line without the name of the process that wrote it, where several share a console:
/// torchrun's `[rank1]: `, `[default0]:`.
fn without_rank(text: &str) -> &str {
    static RANK: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^\[(?:rank|default)\d{1,3}\]: ?").ok());
    if !text.starts_with('[') {
        return text;
    }
    let found = RANK.as_ref().and_then(|r| r.find(text));
    found.map_or(text, |m| &text[m.end()..])
}

/// A line without the level of an error that a logger wrote before it; none: it has no level.
fn without_level(text: &str) -> Option<&str> {
    let mut levels = ["ERROR", "CRITICAL"].iter();
    let rest = levels.find_map(|level| text.strip_prefix(level))?;
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    rest.strip_prefix(' ')
}

/// Blanks at the beginning.
fn indent(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

/// Outside a traceback a line is an exception only by its name.
fn is_named(text: &str) -> bool {
    let head = text.split(": ").next().unwrap_or(text);
    // an exception without a message
    let head = head.strip_suffix(':').unwrap_or(head);
    head.ends_with("Error") || head.ends_with("Exception") || text.starts_with("!!! Exception")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::signature;

    #[test]
    fn a_cancelled_job_and_a_client_that_left_are_no_error() {
        let ends = |frame: &str, exception: &str| {
            let mut f = Frames::default();
            f.line("Traceback (most recent call last):");
            f.line(&format!("  File \"{frame}\", line 3, in f"));
            f.line(exception)
        };
        let (server, script) = ("/usr/lib/python3.11/socketserver.py", "/srv/run.py");
        let gone = "BrokenPipeError: [Errno 32] Broken pipe";
        assert!(!ends(server, gone));
        // an encoder of the program's own that died
        assert!(ends(script, gone));
        for frame in [server, script] {
            assert!(!ends(frame, "asyncio.exceptions.CancelledError: x"));
            assert!(ends(frame, "RuntimeError: x"));
        }
    }

    fn means(lines: &[&str]) -> (Option<VerdictId>, bool) {
        let mut f = Frames::default();
        let mut last = (None, false);
        for l in lines {
            let reported = f.refine(l, signature::of_line(l));
            last = (reported.map(|r| r.verdict), f.line(l));
        }
        last
    }

    #[test]
    fn memory_that_cannot_be_locked_is_told_from_memory_of_the_card() {
        let pinned = [
            "Traceback (most recent call last):",
            "  File \"comfy/model_patcher.py\", line 9, in load",
            "    self.pin_weight_to_device(key)",
            "  File \"comfy/model_management.py\", line 20, in pin_memory",
            "    if torch.cuda.cudart().cudaHostRegister(ptr, size, 1) == 0:",
            "torch.AcceleratorError: CUDA error: out of memory",
        ];
        assert_eq!(means(&pinned), (Some(VerdictId::PinnedMemory), true));
        let mut elsewhere = pinned.to_vec();
        elsewhere.insert(5, "  File \"torch/nn/functional.py\", line 2, in conv3d");
        elsewhere.insert(6, "    return torch.conv3d(input)");
        assert_eq!(means(&elsewhere), (Some(VerdictId::GpuOom), true));
        let mut vague = pinned.to_vec();
        vague[5] = "RuntimeError: HIP error: invalid argument";
        assert_eq!(means(&vague), (Some(VerdictId::PinnedMemory), true));
        assert_eq!(means(&vague[5..]), (None, true));
    }

    #[test]
    fn a_logger_may_write_its_level_before_each_line() {
        let lines = [
            "ERROR Traceback (most recent call last):",
            "ERROR   File \"main.py\", line 3, in <module>",
            "ERROR     import torchaudio",
        ];
        for (last, ends) in [
            ("ERROR OSError: [WinError 127] not found", true),
            ("ERROR   File \"b.py\", line 4, in f", false),
        ] {
            let mut all = lines.to_vec();
            all.push(last);
            assert_eq!(means(&all).1, ends, "{last}");
        }
        assert!(!means(&["ERROR: a sampler was skipped"]).1);
    }

    #[test]
    fn ends_of_tracebacks() {
        let tb = "Traceback (most recent call last):";
        for text in [
            "RuntimeError: x",
            "torch.OutOfMemoryError: HIP out of memory",
            "MemoryError",
            "h11._util.LocalProtocolError: Too little data",
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
        ] {
            assert!(means(&[tb, text]).1, "{text}");
        }
        assert!(means(&["ValueError: x"]).1);
        for text in ["Decoding", "Loading: 3", "", "Requested to load WAN21"] {
            assert!(!means(&[text]).1, "{text}");
        }
    }
}
