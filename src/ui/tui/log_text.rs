//! The log as text that leaves the screen: for the clipboard and for files. Pure.
//!
//! A line of a program may hold anything. Text that is pasted into a shell or shown by
//! `cat` must not steer a terminal, so control characters are taken out.

use std::fmt::Write;

use crate::run::Snapshot;
use crate::run::snapshot::{LogKind, LogLine};
use crate::ui::text::clean;

/// The text of a line alone.
pub(super) fn line(l: &LogLine) -> String {
    clean(&l.text, false)
}

/// Lines with their times, streams and phases.
pub(super) fn lines<'a>(lines: impl Iterator<Item = &'a LogLine>) -> String {
    let mut out = String::new();
    for l in lines {
        let stream = match l.kind {
            LogKind::Stdout => 'O',
            LogKind::Stderr => 'E',
            LogKind::Own => '*',
        };
        let times = u64::from(l.folded) + 1;
        let more = match (l.folded, l.is_bar()) {
            (0, _) => String::new(),
            (_, true) => format!("  ({times} updates of one bar)"),
            (_, false) => format!("  ({times} times the same)"),
        };
        // writing to a string does not fail
        let _ = writeln!(
            out,
            "{} {stream} {:<14} {}{more}",
            l.at.clock(),
            l.phase.as_str(),
            line(l)
        );
    }
    out
}

/// The whole log as it is kept, with a head that says what it is.
pub(super) fn whole(s: &Snapshot) -> String {
    let head = format!(
        "# framepack-tui run {}, begun {}\n\
         # command: {}\n\
         # the last {} lines; the record of the run has every one\n\
         # time since the begin, stream (O standard output, E standard error, * framepack-tui), phase, text\n",
        clean(&s.run, false),
        clean(&s.wall_clock, false),
        clean(&s.argv.join(" "), false),
        s.log.len(),
    );
    head + &lines(s.log.iter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::testing;

    #[test]
    fn the_log_leaves_with_times_and_streams_and_without_escapes() {
        let mut s = testing::healthy();
        let mut lines: Vec<_> = s.log.iter().cloned().collect();
        lines[1].text = "Free \u{1b}]52;c;eA==\u{7}VRAM\u{9b}31m \u{202e}x".to_owned();
        s.log = lines.into_iter().collect();
        let text = whole(&s);
        assert!(
            text.lines().all(|l| !l.chars().any(char::is_control)),
            "{text}"
        );
        for line in [
            "# framepack-tui run 20260714-140022-7f3a, begun 2026-07-14T14:00:22+02:00",
            "00:11:25 * startup        attempt 2 on rung fast_find: MIOPEN_FIND_MODE=FAST",
            "00:11:32 O startup        Free  ]52;c;eA== VRAM 31m x",
            "00:12:40 E model_load     UserWarning: expandable_segments not supported on this platform  (12 times the same)",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}:\n{text}");
        }
        assert!(
            text.ends_with("6.80s/it]  (17 updates of one bar)\n"),
            "{text}"
        );
    }
}
