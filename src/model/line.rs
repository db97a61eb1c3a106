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
    /// Number of the line in its stream, from 1, as an editor counts it: all states of a
    /// bar that rewrites itself have the same. 0: not known (records before 1.3).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub row: u64,
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

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
const fn is_zero(row: &u64) -> bool {
    *row == 0
}

/// Whether a text looks like a progress bar of tqdm.
pub fn looks_like_bar(text: &str) -> bool {
    text.contains("%|") || text.contains("it/s]") || text.contains("s/it]")
}
