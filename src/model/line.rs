//! Lines of the workload's console.

use serde::{Deserialize, Serialize};

/// Where a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// One line, or one state of a bar that rewrites itself with `\r`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Which attempt printed it.
    pub attempt: u32,
    /// Stream.
    pub stream: Stream,
    /// Text without escape sequences, at most 8 KiB.
    pub text: String,
    /// Ended by `\r`: the next piece of this stream rewrites it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bar: bool,
    /// Longer than 8 KiB; the rest was cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Library chatter that we asked for ourselves (MIOpen's log): kept in the
    /// record, folded away on screen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chatter: bool,
}
