//! The level that a program's own logger gives a line, and what a line at the level of an
//! error says without a traceback: SD.Next, InvokeAI, stable-diffusion.cpp, Python's logging.

use std::sync::LazyLock;

use regex::Regex;

/// How bad a line is to the program that wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// It goes on.
    Warning,
    /// Something failed.
    Error,
}

/// A level where loggers write it: `[WARN ] x`, `WARNING: x`, `12:01:07-441 ERROR  x`,
/// `2026-02-11 10:22:31,123 - app - ERROR - x`, `[t]::[App]::ERROR --> x`.
static LEVEL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"^[\s-]{0,3}(?:\W{0,4}\d[\d:.,\-T/ ]{5,30}\W{0,4}|(?:::)?\[[^\]]{1,40}\](?:::\[[^\]]{1,40}\])?\W{0,4}|\S{1,40} - )*[\[<(]?(?:(?P<w>WARN(?:ING)?|Warning)|(?P<e>ERROR|CRITICAL|FATAL|Error))[ ]*(?:[\])>:|]|-->|-|  | [A-Z\x60'/])",
    )
    .ok()
});

/// What a failure is told with.
static FAILS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\berrors? while\b|\bfail(?:ed|ure)?\b|\bexception\b|\w error:|\bcannot\b|\bcan't\b|\bcould not\b|\bunable\b|\binvalid\b|\bmismatch\b|\bout of memory\b|\bnot (?:found|supported|enough|exist)\b|\bmissing\b|\bunsupported\b|\bunexpected\b|\bunknown\b|\bexpected\b|\bno (?:\w+ ){1,2}(?:was |were )?found\b|\babort|\blost\b|\btraceback\b").ok()
});

/// Words by which a program says that it goes on without.
static GOES_ON: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:skipp(?:ed|ing)|ignoring|falling back|fallback to|continuing)\b").ok()
});

/// What a program says of the result of a job.
static RESULT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:images?=\d+|(?:image|video)s? (?:was |were )?(?:saved|written)|saved? (?:result|image|video)|prompt executed in)\b").ok()
});

/// What a program says of a result, or of a start that is over.
static SUCCESS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:images?=\d+|(?:image|video|file|result|output)s? (?:was |were )?(?:saved|written)|saved? (?:result|image|video|to)|saving|success(?:ful(?:ly)?)?|complet(?:ed|e)|finished|generated \d+|prompt executed in|startup time|available at|running on)\b").ok()
});

/// The level of a line; absent: it has none, or one that says nothing is wrong.
pub(super) fn of(text: &str) -> Option<Level> {
    // most lines have no such word at all
    if !["WARN", "Warn", "ERR", "Err", "CRIT", "FATAL"]
        .iter()
        .any(|w| text.contains(w))
    {
        return None;
    }
    let found = LEVEL.as_ref()?.captures(text)?;
    if found.name("w").is_some() {
        return Some(Level::Warning);
    }
    found.name("e").map(|_| Level::Error)
}

/// What stands behind the level.
pub(crate) fn behind_level(text: &str) -> &str {
    let found = LEVEL.as_ref().and_then(|r| r.captures(text));
    let end = found.and_then(|c| c.name("e").map(|m| m.end()));
    let Some(mut rest) = end.map(|end| &text[end..]) else {
        return text;
    };
    while let Some(shorter) = MARKS.iter().find_map(|mark| rest.strip_prefix(mark)) {
        rest = shorter;
    }
    rest
}

/// What loggers write between the level and the words.
const MARKS: &[&str] = &["]", ")", ">", ":", "|", "-->", "- ", " "];

/// Whether a line at the level of an error tells of a failure.
pub(crate) fn is_error(text: &str) -> bool {
    of(text) == Some(Level::Error)
        // what it announces is told by its last line
        && !text.contains("Traceback (most recent call last)")
        && FAILS
            .as_ref()
            .is_some_and(|r| r.is_match(behind_level(text)))
        && !GOES_ON.as_ref().is_some_and(|r| r.is_match(text))
        && super::reports(text, text.len())
}

/// Whether a line tells of the result of a job: no error of that job follows.
pub(crate) fn is_result(text: &str) -> bool {
    of(text).is_none() && RESULT.as_ref().is_some_and(|r| r.is_match(text))
}

/// Whether a line tells of a result, or of a start that is over.
pub(crate) fn is_success(text: &str) -> bool {
    of(text).is_none() && SUCCESS.as_ref().is_some_and(|r| r.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_several_loggers() {
        for text in [
            "[WARN ] ggml_extend.hpp:69   - ggml_vulkan: Failed to allocate pinned memory",
            "WARNING: shape mismatch",
            "12:01:07-441881 WARNING  VAE decode: out of memory",
            "2026-02-11 10:22:31,123 - comfy - WARNING - CUDA out of memory",
            "[2026-11-02 18:20:01,114]::[InvokeAI]::WARNING --> x failed",
        ] {
            assert_eq!(of(text), Some(Level::Warning), "{text}");
        }
        for text in [
            "[ERROR] ggml_extend.hpp:70   - ROCm error: out of memory",
            "[2026-11-02 18:20:07,871]::[InvokeAI]::ERROR --> Error while invoking session 5d10",
            "::[InvokeAI]::ERROR --> Error while invoking session 5d10",
            "18:57:53-195282 ERROR    Load model: failed",
            "ERROR: could not load the model",
            "[ERROR   ] stable-diffusion.cpp:330  - init model loader from file failed: 'x'",
            "CRITICAL - cannot go on",
        ] {
            assert!(is_error(text), "{text}");
        }
        for text in [
            "got prompt",
            "[INFO ] no ERROR here",
            "Error: ",
            "RuntimeError: could not run",
            "prompt: ERROR: a robot",
        ] {
            assert!(!is_error(text), "{text}");
        }
        assert!(is_success(
            "12:01:09-1 INFO     Processed: images=1 its=4.2"
        ));
        assert!(is_success("save result image to 'output.png' (success)"));
        assert!(!is_success("[ERROR] saving failed"));
        for text in [
            "[ERROR] model.cpp:1893 - failed to load embedding 'x.pt', ignoring it",
            "11:00:01-1 ERROR    xformers cannot be loaded, falling back to sdpa",
        ] {
            assert!(!is_error(text), "{text}");
        }
        for (text, words) in [
            ("[Error] Self-Start failed", "Self-Start failed"),
            (
                "ERROR: [Errno 98] address in use",
                "[Errno 98] address in use",
            ),
            ("[t]::[InvokeAI]::ERROR --> no session", "no session"),
            (
                "[ERROR   ] main.cpp:3 - --steps is wrong",
                "main.cpp:3 - --steps is wrong",
            ),
        ] {
            assert_eq!(behind_level(text), words, "{text}");
        }
        assert!(!is_error("ERROR Traceback (most recent call last):"));
        assert!(is_error(
            " - generate - ERROR - failed to load the text encoder"
        ));
        assert!(is_error("ERROR    no data found. Please verify arguments"));
        assert!(is_result("[INFO] Prompt executed in 14.02 seconds"));
        assert!(
            !is_result("loading model completed, taking 3.20s"),
            "a start"
        );
    }
}
