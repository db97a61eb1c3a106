//! Text that fits: cleaned of what could steer a terminal, cut by display width.

use std::time::Duration;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::model::time::clock;

/// Foreign text made safe for a cell grid: control characters become spaces,
/// invisible and direction-changing ones vanish. With `ascii`, bars drawn with
/// block elements become `#`, everything else outside ASCII `?`.
pub(super) fn clean(text: &str, ascii: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{ad}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' => {}
            c if c.is_control() || c == '\u{2028}' || c == '\u{2029}' => out.push(' '),
            c if !ascii || c.is_ascii() => out.push(c),
            '\u{2588}'..='\u{258f}' => out.push('#'),
            _ => out.push('?'),
        }
    }
    out
}

/// `text` as a sentence that another follows: with a full stop, unless it has an end.
pub(super) fn sentence(text: &str) -> String {
    let text = text.trim_end();
    let ends = text.is_empty() || text.ends_with(['.', '!', '?', '…', ':', ';']);
    format!("{text}{}", if ends { "" } else { "." })
}

/// Columns that `text` takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// The beginning of `text` in at most `columns`, with `ellipsis` where it was cut.
pub(super) fn fit(text: &str, columns: usize, ellipsis: &str) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mark = if width(ellipsis) <= columns {
        ellipsis
    } else {
        ""
    };
    let mut cut = head(text, columns - width(mark)).to_owned();
    cut.push_str(mark);
    cut
}

/// The longest beginning of `text` that fits into `columns`.
fn head(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > columns {
            return &text[..at];
        }
    }
    text
}

/// `text` filled up with spaces to `columns`, or cut.
pub(super) fn pad(text: &str, columns: usize, ellipsis: &str) -> String {
    let mut out = fit(text, columns, ellipsis);
    let used = width(&out);
    out.extend(std::iter::repeat_n(' ', columns.saturating_sub(used)));
    out
}

/// Words of `text` in lines of at most `columns`; at most `lines` of them, the
/// last one cut with `ellipsis`. A word longer than a line is broken.
pub(super) fn wrap(text: &str, columns: usize, lines: usize, ellipsis: &str) -> Vec<String> {
    if columns == 0 || lines == 0 {
        return Vec::new();
    }
    let glued = glue(text.trim());
    let mut rest = glued.as_str();
    let mut out = Vec::new();
    while !rest.is_empty() {
        if out.len() + 1 == lines {
            out.push(unglue(&fit(rest, columns, ellipsis)));
            break;
        }
        let mut line = head(rest, columns);
        let breaks = line.len() < rest.len() && !rest[line.len()..].starts_with(' ');
        if let Some(space) = line.rfind(' ').filter(|at| breaks && *at > 0) {
            line = &line[..space];
        }
        if line.is_empty() {
            // A wide character in a single column: nothing can be shown.
            break;
        }
        out.push(unglue(line.trim_end()));
        rest = rest[line.len()..].trim_start();
    }
    out
}

/// `text` cut into pieces of at most `columns`, spaces kept; at most `lines` of
/// them. Always at least one.
pub(super) fn pieces(text: &str, columns: usize, lines: usize) -> Vec<&str> {
    let mut rest = text;
    let mut out = Vec::new();
    while out.len() < lines.max(1) {
        let piece = head(rest, columns);
        out.push(piece);
        rest = &rest[piece.len()..];
        // Nothing fits: a wide character in a single column.
        if rest.is_empty() || piece.is_empty() {
            break;
        }
    }
    out
}

/// A space between a number and its unit that no line is broken at.
const GLUE: char = '\u{a0}';

/// Glues units to their numbers.
fn glue(text: &str) -> String {
    const UNITS: [&str; 8] = ["s", "min", "%", "GiB", "MiB", "KiB", "W", "C"];
    let mut out = String::with_capacity(text.len());
    for word in text.split(' ') {
        let bare = word.trim_end_matches(|c: char| ",.;:)".contains(c));
        if UNITS.contains(&bare) && out.ends_with(|c: char| c.is_ascii_digit()) {
            out.push(GLUE);
        } else if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

fn unglue(text: &str) -> String {
    text.replace(GLUE, " ")
}

/// Time that has passed: `4 s`, `12 min 05 s`, `03:25:12`.
pub(super) fn ago(d: Duration) -> String {
    match d.as_secs() {
        s @ 0..60 => format!("{s} s"),
        s @ 60..3600 => format!("{} min {:02} s", s / 60, s % 60),
        _ => clock(d),
    }
}

/// Time that is left, begun seconds counted as whole ones: never `0 s` too early.
pub(super) fn left(d: Duration) -> String {
    let whole = d.as_secs() + u64::from(d.subsec_nanos() > 0);
    ago(Duration::from_secs(whole))
}

/// A number with `decimals`; `--` for what is no number.
pub(super) fn number(v: f64, decimals: usize) -> String {
    if !v.is_finite() {
        return "--".to_owned();
    }
    if v.abs() >= 1e9 {
        return format!("{v:.1e}");
    }
    let text = format!("{v:.decimals$}");
    match text.strip_prefix('-') {
        Some(zero) if zero.bytes().all(|b| b == b'0' || b == b'.') => zero.to_owned(),
        _ => text,
    }
}

/// A count of steps: without decimals when it is whole.
pub(super) fn count(v: f64) -> String {
    number(v, usize::from(v.fract().abs() > 1e-9))
}

/// Share of `part` in `whole`, in percent; `None` where it makes no sense.
pub(super) fn percent(part: f64, whole: f64) -> Option<f64> {
    let share = part / whole * 100.0;
    (share.is_finite() && whole > 0.0).then_some(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_one_end() {
        for (text, want) in [
            ("fast_find answers it", "fast_find answers it."),
            ("it is over. ", "it is over."),
            ("after \"x\"", "after \"x\"."),
            ("what now?", "what now?"),
            ("", ""),
        ] {
            assert_eq!(sentence(text), want);
        }
    }

    #[test]
    fn foreign_text_cannot_steer() {
        assert_eq!(clean("a\u{1b}[2Jb\tc\u{202e}d", false), "a [2Jb cd");
        assert_eq!(clean("48%|██▌ | ü", true), "48%|### | ?");
    }

    #[test]
    fn cutting_counts_columns_not_bytes() {
        assert_eq!(fit("日本語です", 5, "~"), "日本~");
        assert_eq!(fit("abc", 3, "…"), "abc");
        assert_eq!(fit("abcd", 0, "…"), "");
        assert_eq!(pad("日", 4, "~"), "日  ");
    }

    #[test]
    fn pieces_keep_every_column() {
        assert_eq!(pieces("  a  bc d", 4, 9), ["  a ", " bc ", "d"]);
        assert_eq!(pieces("abcdef", 2, 2), ["ab", "cd"]);
        assert_eq!(pieces("", 4, 9), [""]);
        assert_eq!(pieces("日本", 1, 9), [""]);
    }

    #[test]
    fn wrapping_keeps_words_and_breaks_paths() {
        assert_eq!(wrap("one two three", 7, 9, "~"), ["one two", "three"]);
        assert_eq!(wrap("one two three", 7, 1, "~"), ["one tw~"]);
        assert_eq!(wrap("/a/very/long", 5, 9, "~"), ["/a/ve", "ry/lo", "ng"]);
        assert_eq!(
            wrap("at most 48 s, then", 11, 9, "~"),
            ["at most", "48 s, then"]
        );
        assert!(wrap("日本", 1, 3, "~").is_empty());
    }

    #[test]
    fn time_and_numbers_in_words() {
        assert_eq!(ago(Duration::from_millis(59_900)), "59 s");
        assert_eq!(left(Duration::from_millis(2_100)), "3 s");
        assert_eq!(left(Duration::ZERO), "0 s");
        assert_eq!(left(Duration::from_millis(u64::MAX)), "5124095576030:25:52");
        assert_eq!(number(f64::NAN, 0), "--");
        assert_eq!(number(-0.04, 1), "0.0");
        assert_eq!(number(1e300, 0), "1.0e300");
        assert_eq!(count(17.0), "17");
        assert_eq!(percent(1.0, 0.0), None);
    }
}
