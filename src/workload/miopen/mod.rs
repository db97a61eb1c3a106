//! MIOpen's log lines about its convolution search (Find).
//!
//! Forms as in MIOpen's `src/logger.cpp`, `src/ocl/convolutionocl.cpp`,
//! `src/conv/solver_finders.cpp` and `generic_search.hpp`, ROCm 5.7 to 7.x; what a
//! release prints depends on `MIOPEN_LOG_LEVEL` and `MIOPEN_ENABLE_LOGGING_CMD`.

use std::sync::LazyLock;

use regex::Regex;

use super::pattern;

pub mod driver;
pub mod key;
mod reader;
mod release;

pub use reader::FindReader;

/// A MIOpen line taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry<'t> {
    level: &'t str,
    function: &'t str,
    message: &'t str,
}

static ENTRY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"MIOpen(?:\([A-Za-z]+\))?[ \d.]*(?:\([^)]*\))?: (?P<level>Error|Warning|Info2?|Trace|Command|Fatal) \[(?P<function>[^\]]*)\] ?(?P<message>.*)$",
    )
});

static API_CALL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^\s*(?:\d+ )?MIOpen(?:\([A-Za-z]+\))?[ \d.]*(?:\([^)]*\))?: (?:miopenStatus_t |const char\s*\*|\}|\w+ = )",
    )
});

fn entry(text: &str) -> Option<Entry<'_>> {
    if !text.contains("MIOpen") {
        return None;
    }
    let c = ENTRY.captures(text)?;
    let get = |name| c.name(name).map_or("", |m| m.as_str());
    Some(Entry {
        level: get("level"),
        function: get("function"),
        message: get("message").trim(),
    })
}

/// Whether a line is there only because a supervisor asked MIOpen to talk: its
/// information and command lines. Warnings and errors are not chatter.
pub fn is_chatter(text: &str) -> bool {
    match entry(text) {
        Some(e) => matches!(e.level, "Info" | "Info2" | "Trace" | "Command"),
        None => text.contains("MIOpen") && API_CALL.is_match(text),
    }
}

/// Whether MIOpen wrote the line, at any level.
pub fn is_miopen(text: &str) -> bool {
    text.contains("MIOpen")
        && (text.contains("MIOpen Error:") || entry(text).is_some() || API_CALL.is_match(text))
}

#[cfg(test)]
mod tests;
