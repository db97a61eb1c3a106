//! A row of control characters alone, as something that can be seen and counted.

use std::fmt::Write;

/// Runs of one character that are written out; of more of them only the number is.
const RUNS: usize = 20;

/// Pictures of the control characters in `raw`, empty if there are none: `␀×3 ␇`. Escape
/// sequences, tabs and blanks are none: colours are reset on lines of their own.
pub(super) fn of_controls(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw);
    let mut runs: Vec<(char, usize)> = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => skip_sequence(&mut rest),
            '\t' | '\r' => {}
            c if c.is_control() || is_unseen(c) => match runs.last_mut() {
                Some((last, times)) if *last == c => *times += 1,
                _ => runs.push((c, 1)),
            },
            _ => {}
        }
    }
    let mut out = String::new();
    for (c, times) in runs.iter().take(RUNS) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&picture(*c));
        if *times > 1 {
            // a formatter into a string cannot fail
            let _ = write!(out, "\u{d7}{times}");
        }
    }
    if runs.len() > RUNS {
        let all: usize = runs.iter().map(|(_, times)| times).sum();
        let _ = write!(out, " \u{2026} {all} control characters");
    }
    out
}

/// Characters without a width: direction marks, joiners, a byte order mark.
const fn is_unseen(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn picture(c: char) -> String {
    let code = u32::from(c);
    match code {
        0..0x20 => char::from_u32(0x2400 + code),
        0x7f => Some('\u{2421}'),
        _ => None,
    }
    .map_or_else(|| format!("U+{code:04X}"), String::from)
}

fn skip_sequence(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match rest.next() {
        Some('[') => {
            rest.find(|c| matches!(c, '\u{40}'..='\u{7e}'));
        }
        // a text for the terminal, to a bell or a string terminator
        Some(']' | 'P' | '_' | '^' | 'X') => {
            while let Some(c) = rest.next() {
                if c == '\u{7}' || c == '\u{1b}' && rest.next_if_eq(&'\\').is_some() {
                    return;
                }
            }
        }
        // a character set: one more
        Some('(' | ')' | '#') => {
            rest.next();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_have_pictures_and_numbers() {
        for (raw, want) in [
            (&b"\x00\x00\x00\x07"[..], "\u{2400}\u{d7}3 \u{2407}"),
            (b"\x01 \x02\t\x7f", "\u{2401} \u{2402} \u{2421}"),
            ("\u{202e}\u{85}".as_bytes(), "U+202E U+0085"),
            (b"\x1b[0m\x1b[2J\x1b]0;title\x07\x1b(B", ""),
            (b"\x1b]0;title\x1b\\\x07", "\u{2407}"),
            (b" \t ", ""),
        ] {
            assert_eq!(of_controls(raw), want, "{raw:?}");
        }
        let many: Vec<u8> = [1, 2].into_iter().cycle().take(100).collect();
        assert!(of_controls(&many).ends_with("\u{2026} 100 control characters"));
    }
}
