//! A page of text on standard output: lines, and values wrapped beside their labels.

use super::text::{clean, pad, wrap};

/// Narrowest and widest text: longer lines are hard to read.
pub(super) const NARROWEST: usize = 40;
pub(super) const WIDEST: usize = 100;
/// Lines of one value.
const MOST_LINES: usize = 12;

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

/// A page that is being written.
pub(super) struct Page {
    /// Its columns are those of a page that can be read.
    pub(super) layout: Layout,
    pub(super) out: String,
}

impl Page {
    pub(super) fn new(layout: Layout) -> Self {
        Self {
            layout: Layout {
                columns: layout.columns.clamp(NARROWEST, WIDEST),
                ..layout
            },
            out: String::new(),
        }
    }

    pub(super) fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    pub(super) const fn ellipsis(&self) -> &'static str {
        if self.layout.ascii { "~" } else { "…" }
    }

    /// A head with an empty line before it.
    pub(super) fn head(&mut self, text: &str) {
        self.line("");
        self.line(text);
    }

    /// `value` wrapped beside a label, or below the line before.
    pub(super) fn value(&mut self, label: &str, indent: usize, value: &str) {
        let ellipsis = self.ellipsis();
        let value = clean(value, self.layout.ascii);
        let columns = self.layout.columns.saturating_sub(indent);
        let lines = wrap(&value, columns, MOST_LINES, ellipsis);
        for (i, line) in lines.iter().enumerate() {
            let label = if i == 0 { label } else { "" };
            let head = pad(label, indent, ellipsis);
            self.line(&format!("{head}{line}"));
        }
    }

    /// A word with its symbol, in the colour of this code of the terminal.
    pub(super) fn word(&self, (symbol, plain): (&str, &str), code: &str, word: &str) -> String {
        let symbol = if self.layout.ascii { plain } else { symbol };
        let word = format!("{symbol} {word}");
        if self.layout.color {
            format!("\u{1b}[1;{code}m{word}\u{1b}[0m")
        } else {
            word
        }
    }
}
