//! A diagnosis as text: the verdict in a sentence, what to do, and what it rests on.

use crate::diagnose::report::Report;

/// How the text is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Columns that there are.
    pub columns: usize,
    /// ASCII characters only.
    pub ascii: bool,
    /// The terminal's own colours for the words of severity.
    pub color: bool,
}

/// The whole report.
pub fn text(report: &Report, _layout: Layout) -> String {
    format!("{}: {}", report.verdict, report.sentence)
}
