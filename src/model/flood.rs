//! Lines that come faster than they can be judged and shown one by one.

use serde::{Deserialize, Serialize};

use super::line::Stream;

/// A stretch of a flood: it stands where its lines were printed. What is not in `kept` is lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flood {
    /// Which attempt printed it.
    pub attempt: u32,
    /// Stream.
    pub stream: Stream,
    /// Number of its first line in the stream, see [`super::Line::row`].
    pub row: u64,
    /// How many lines it is.
    pub lines: u64,
    /// The lines as far as the budget of the attempt allows, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Repeated>,
}

/// A line, and how often it came in a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeated {
    /// Text without escape sequences, at most 8 KiB.
    pub text: String,
    /// How often; left out where it is once.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub times: u64,
}

const fn once() -> u64 {
    1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
const fn is_once(times: &u64) -> bool {
    *times == 1
}

impl Flood {
    /// Lines that are nowhere.
    pub fn lost(&self) -> u64 {
        let kept: u64 = self.kept.iter().map(|line| line.times).sum();
        self.lines.saturating_sub(kept)
    }

    /// `960 lines not shown; the record has them`.
    pub fn words(&self) -> String {
        gap_words(self.lines, self.lost())
    }
}

/// The same for a number of lines, some of them lost.
pub fn gap_words(lines: u64, lost: u64) -> String {
    let count = match lines {
        1 => "1 line".to_owned(),
        n => format!("{n} lines"),
    };
    match lost {
        0 => format!("{count} not shown; the record has them"),
        lost if lost >= lines => format!("{count} lost: they came too fast"),
        lost => format!("{count} not shown; the record has all but {lost}"),
    }
}
