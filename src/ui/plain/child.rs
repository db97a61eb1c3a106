//! Which of the child's lines are passed on.

use std::time::Duration;

use crate::model::{Line, Mono, Stream};
use crate::ui::text::clean;

/// A bar is passed on when it moved by so many percent …
const STEP: u32 = 10;
/// … or after so long.
const PAUSE: Duration = Duration::from_secs(10);

/// The last bar that was passed on, by stream.
#[derive(Debug, Default)]
pub(super) struct ChildLines {
    out: Option<Bar>,
    err: Option<Bar>,
}

#[derive(Debug, Clone, Copy)]
struct Bar {
    at: Mono,
    percent: Option<u32>,
}

impl ChildLines {
    /// The line to be written for a line of the child, if any.
    pub(super) fn line(&mut self, at: Mono, line: &Line) -> Option<String> {
        if line.chatter {
            return None;
        }
        let (prefix, last) = match line.stream {
            Stream::Stdout => ("out", &mut self.out),
            Stream::Stderr => ("err", &mut self.err),
        };
        if line.bar {
            let bar = Bar {
                at,
                percent: percent(&line.text),
            };
            if !last.is_none_or(|last| bar.is_news(last)) {
                return None;
            }
            *last = Some(bar);
        } else {
            *last = None;
        }
        let cut = if line.truncated { " (cut)" } else { "" };
        Some(format!(
            "{prefix}| {}{cut}",
            clean(line.text.trim_end(), false)
        ))
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
