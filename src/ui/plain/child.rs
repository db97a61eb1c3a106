//! How the child's lines are passed on: states of a bar now and then, a line that comes again
//! and again once with its count.

use std::time::Duration;

use crate::model::{Line, Mono, Stream, looks_like_bar};
use crate::ui::text::clean;

/// A bar is passed on when it moved by so many percent …
const STEP: u32 = 10;
/// … or after so long.
const PAUSE: Duration = Duration::from_secs(10);

/// A line that goes on repeating is counted after so long.
const COUNTED: Duration = Duration::from_secs(10);

/// What was passed on last, by stream.
#[derive(Debug, Default)]
pub(super) struct ChildLines {
    out: Last,
    err: Last,
}

/// The last lines of a stream.
#[derive(Debug, Default)]
struct Last {
    /// The last state of a bar that was passed on.
    bar: Option<Bar>,
    /// The last state of the bar, where it was not passed on.
    held: Option<String>,
    /// The last line, as it was written.
    text: Option<String>,
    /// How often it came again since it was written or counted.
    again: u64,
    /// When it came again for the first time since.
    since: Mono,
}

#[derive(Debug, Clone, Copy)]
struct Bar {
    at: Mono,
    percent: Option<u32>,
}

impl ChildLines {
    /// The lines to be written for a line of the child.
    pub(super) fn line(&mut self, at: Mono, line: &Line) -> Vec<String> {
        if line.chatter {
            return Vec::new();
        }
        let cut = if line.truncated { " (cut)" } else { "" };
        let text = format!("{}{cut}", clean(line.text.trim_end(), false));
        let [this, other] = match line.stream {
            Stream::Stdout => [("out", &mut self.out), ("err", &mut self.err)],
            Stream::Stderr => [("err", &mut self.err), ("out", &mut self.out)],
        };
        let (prefix, last) = this;
        if line.bar {
            let bar = Bar {
                at,
                percent: percent(&line.text),
            };
            if !last.bar.is_none_or(|before| bar.is_news(before)) {
                last.held = Some(text);
                return Vec::new();
            }
            last.bar = Some(bar);
            last.held = None;
        } else if last.bar.take().is_some() {
            // the last state of a bar ends with a newline and says what the one before said
            last.held.take_if(|_| looks_like_bar(&line.text));
        } else if last.text.as_ref() == Some(&text) {
            if last.again == 0 {
                last.since = at;
            }
            last.again += 1;
            return Vec::new();
        }
        let mut lines = last.rest(prefix);
        // the repeated line of the other stream came before this one
        lines.extend(other.1.count(other.0));
        lines.push(format!("{prefix}| {text}"));
        last.text = (!line.bar).then_some(text);
        lines
    }

    /// What is held back and due: a line that repeats is counted while it goes on.
    pub(super) fn due(&mut self, at: Mono) -> Vec<String> {
        let streams = [("out", &mut self.out), ("err", &mut self.err)];
        let due = streams
            .into_iter()
            .filter(|(_, last)| last.again > 0 && at.since(last.since) >= COUNTED);
        due.filter_map(|(prefix, last)| last.count(prefix))
            .collect()
    }

    /// How often lines came again, before something else is written.
    pub(super) fn counts(&mut self) -> Vec<String> {
        let streams = [("out", &mut self.out), ("err", &mut self.err)];
        let counts = streams.into_iter().map(|(prefix, last)| last.count(prefix));
        counts.flatten().collect()
    }

    /// All that is held back, where nothing more comes.
    pub(super) fn rest(&mut self) -> Vec<String> {
        let mut lines = self.out.rest("out");
        lines.extend(self.err.rest("err"));
        lines
    }
}

impl Last {
    fn rest(&mut self, prefix: &str) -> Vec<String> {
        let held = self.held.take().map(|text| format!("{prefix}| {text}"));
        held.into_iter().chain(self.count(prefix)).collect()
    }

    fn count(&mut self, prefix: &str) -> Option<String> {
        match std::mem::take(&mut self.again) {
            0 => None,
            1 => Some(format!("{prefix}| (the same line again)")),
            n => Some(format!("{prefix}| (the same line {n} more times)")),
        }
    }
}

impl Bar {
    fn is_news(self, last: Self) -> bool {
        let moved = match (self.percent, last.percent) {
            // A bar that begins again is another bar.
            (Some(now), Some(before)) => now < before || now - before >= STEP,
            (now, before) => now.is_some() != before.is_some(),
        };
        moved || self.at.since(last.at) >= PAUSE
    }
}

/// The first whole number before a percent sign.
fn percent(text: &str) -> Option<u32> {
    let head = &text[..text.find('%')?];
    let head = head.trim_end();
    // 12.5 % counts as 12: what stands behind the point is no number of its own.
    let begin = head
        .rfind(|c: char| !(c.is_ascii_digit() || c == '.'))
        .map_or(0, |at| {
            at + head[at..].chars().next().map_or(1, char::len_utf8)
        });
    head[begin..].split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_is_found_where_bars_put_it() {
        assert_eq!(percent(" 68%|####  | 17/25"), Some(68));
        assert_eq!(percent("Loading:  12.5 % done"), Some(12));
        assert_eq!(percent("ü7%"), Some(7));
        assert_eq!(percent("100% of 100%"), Some(100));
        assert_eq!(percent("17/25"), None);
        assert_eq!(percent("%"), None);
    }
}
