//! Lines of a paste that are one: the name of an exception or a compiler's `fatal error:` with its message on the next
//! line, and what a terminal broke at its width.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::Line;

/// Widths at which terminals and pages break lines.
const WIDTHS: std::ops::RangeInclusive<usize> = 78..=240;
/// Lines of exactly that width, none longer, that show it.
const LEAST: usize = 3;
/// Lines by which the width is known.
const MOST: usize = 2000;
/// Pieces that are put together.
const MOST_PIECES: u32 = 40;

/// A line whose message is still to come.
static OPEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception):\s*$|^\S{1,200}[:(]\d+.{0,12}: (?:fatal )?error(?: \w\d+)?:\s*$").ok()
});
/// A line that is no message of the one before.
static APART: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"^\s*$|^\s*(?:File "|Traceback \(|[=\-*#~^_]{4,})|^[\[(]?\d{2,4}[-/:]\d\d[-/:]\d\d"#,
    )
    .ok()
});

/// A line of SD.Next's log, whose message is wrapped at the width of its console.
static LOGGED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(?:\d\d:\d\d:\d\d-\d{6}|\[?\d\d:\d\d:\d\d\]?) (?:INFO|DEBUG|TRACE|WARNING|ERROR|CRITICAL) ").ok()
});
/// What follows such a line: the column of the message, and the rest of it.
static WRAPPED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^ {20,30}\S").ok());

/// A line as it is read, and as it was printed.
type Printed = (Line, String);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Joiner {
    width: Option<usize>,
    held: Option<Printed>,
    /// Lines that were put together in it.
    pieces: u32,
    /// A terminal broke the last of them.
    broken: bool,
    /// What is held is a line of a log that wraps its messages.
    logged: bool,
    /// Row of the line before.
    row: u64,
}

impl Joiner {
    /// By the lines at the beginning of a text, without what stands before each.
    pub(super) fn of<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
        let mut widest = (0, 0);
        for line in lines.take(MOST) {
            let width = line.chars().count();
            if width > widest.0 {
                widest = (width, 1);
            } else if width == widest.0 {
                widest.1 += 1;
            }
        }
        let (width, count) = widest;
        Self {
            width: (count >= LEAST && WIDTHS.contains(&width)).then_some(width),
            ..Self::default()
        }
    }

    /// Takes a line; gives the lines that are whole.
    pub(super) fn take(&mut self, line: Line, printed: String) -> Vec<Printed> {
        let mut whole = Vec::new();
        let apart = line.bar || line.chatter || is(&APART, &line.text);
        let broken = self.is_broken(&line.text);
        let row = std::mem::replace(&mut self.row, line.row);
        if let Some((mut held, mut before)) = self.held.take() {
            let next = line.row == row + 1;
            let follows = !self.logged || is(&WRAPPED, &line.text);
            if !apart && next && follows && self.pieces < MOST_PIECES {
                let (gap, rest) = if self.broken {
                    ("", line.text.as_str())
                } else {
                    (" ", line.text.trim_start())
                };
                held.text = format!("{}{gap}{rest}", held.text.trim_end_matches(['\r', '\n']));
                before.push_str(gap);
                before.push_str(rest);
                held.truncated |= line.truncated;
                (self.pieces, self.broken) = (self.pieces + 1, broken);
                if broken || self.logged {
                    self.held = Some((held, before));
                } else {
                    whole.push((held, before));
                }
                return whole;
            }
            whole.push((held, before));
        }
        self.logged = !line.bar && !line.chatter && is(&LOGGED, &line.text);
        (self.pieces, self.broken) = (0, broken && !self.logged);
        if self.logged || !apart && (broken || is(&OPEN, &line.text)) {
            self.held = Some((line, printed));
        } else {
            whole.push((line, printed));
        }
        whole
    }

    /// What is still held at the end of the text.
    pub(super) fn rest(&mut self) -> Option<Printed> {
        self.held.take()
    }

    /// Whether a terminal broke the line.
    fn is_broken(&self, text: &str) -> bool {
        self.width
            .is_some_and(|width| text.chars().count() == width)
    }
}

fn is(pattern: &LazyLock<Option<Regex>>, text: &str) -> bool {
    pattern.as_ref().is_some_and(|r| r.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    use crate::model::Stream;
    use crate::workload::lines::LineSplitter;

    fn joined(text: &str) -> Vec<String> {
        let mut joiner = Joiner::of(text.lines());
        let mut whole = Vec::new();
        let mut lines = Vec::new();
        let mut splitter = LineSplitter::new(1, Stream::Stderr);
        splitter.feed(text.as_bytes(), Instant::now(), &mut lines);
        splitter.flush(&mut lines);
        for line in lines {
            let printed = line.text.clone();
            whole.extend(joiner.take(line, printed));
        }
        whole.extend(joiner.rest());
        whole.into_iter().map(|(line, _)| line.text).collect()
    }

    #[test]
    fn a_message_on_the_next_line_belongs_to_its_name() {
        for (text, want) in [
            (
                "torch.AcceleratorError:\nHIP error: invalid device function",
                "torch.AcceleratorError: HIP error: invalid device function",
            ),
            (
                "/tmp/main.c:5:10: fatal error:\n   Python.h: No such file or directory",
                "/tmp/main.c:5:10: fatal error: Python.h: No such file or directory",
            ),
            (
                "a.cu(12): fatal error C1083:\nCannot open include file: 'x.h'",
                "a.cu(12): fatal error C1083: Cannot open include file: 'x.h'",
            ),
        ] {
            assert_eq!(joined(text), [want]);
        }
        for text in [
            "x.errors.ChildFailedError:\n=====================",
            "RuntimeError:\nTraceback (most recent call last):",
            "ValueError:\n\nx",
            "Loading: x\ny",
        ] {
            assert_eq!(joined(text).len(), 2, "{text}");
        }
    }

    #[test]
    fn a_message_that_a_log_wraps_is_whole_again() {
        let text = "14:43:51-300000 WARNING  Failed to install ZLUDA: certificate verify\n                         failed: unable to get it\n14:43:52-100000 INFO     Using CPU-only torch\nTraceback (most recent call last):";
        assert_eq!(
            joined(text),
            [
                "14:43:51-300000 WARNING  Failed to install ZLUDA: certificate verify failed: unable to get it",
                "14:43:52-100000 INFO     Using CPU-only torch",
                "Traceback (most recent call last):",
            ]
        );
        let bare = "a\n                         b";
        assert_eq!(joined(bare).len(), 2);
    }

    #[test]
    fn what_a_terminal_broke_is_whole_again() {
        let long = "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1.12 GiB. GPU 0 has a total capacity of 15.92 GiB of which 1.12 GiB is free. Of the allocated memory 4.88 GiB is allocated by PyTorch.";
        let mut text = String::new();
        for (n, letter) in long.chars().enumerate() {
            if n > 0 && n % 80 == 0 {
                text.push('\n');
            }
            text.push(letter);
        }
        let text = format!("{}\nshort\n{text}\n", "x".repeat(80));
        assert_eq!(joined(&text).last().map(String::as_str), Some(long));
    }
}
