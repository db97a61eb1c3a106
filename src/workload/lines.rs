//! Bytes of one stream into lines.
//!
//! A piece ends at `\n` or at `\r`; `\r\n` is a newline. A bar that rewrites itself
//! arrives as many pieces with [`Line::bar`] set. Pieces without text are left out; a row of
//! control characters alone is written by their pictures (`\0\0\a`: `␀×2 ␇`).

use std::collections::VecDeque;
use std::sync::LazyLock;
use std::time::Instant;

use regex::Regex;

use super::adapter::tqdm;
use super::{miopen, pattern, pictures};
use crate::model::{Line, Stream};

/// Longest text of a line, in bytes; of a longer one the middle is cut.
pub const MAX_TEXT: usize = 8 * 1024;
/// Stands for what was cut. An error's own words come at the end of a long line.
const MARK: &str = " [...] ";
/// Text kept of the end of a line that is cut.
const END_TEXT: usize = 3 * 1024;
/// Text kept of its beginning.
const HEAD_TEXT: usize = MAX_TEXT - END_TEXT - MARK.len();

/// Raw bytes kept of the beginning of an unfinished piece. More than the text, for escape
/// sequences take bytes that do not show.
const MAX_RAW: usize = 4 * HEAD_TEXT;
/// The same of its end.
const MAX_END: usize = 4 * END_TEXT;

/// Splits the bytes of one stream of one attempt; holds at most 32 KiB.
#[derive(Debug)]
pub struct LineSplitter {
    attempt: u32,
    stream: Stream,
    raw: Vec<u8>,
    /// What came after `raw` was full; of much the last bytes.
    end: VecDeque<u8>,
    overflow: bool,
    /// A `\r` came and the byte behind it is not known yet.
    after_cr: bool,
    /// The piece in hand began behind a `\r`: it is a state of a bar.
    rewrites: bool,
    since: Option<Instant>,
    /// Newlines so far.
    newlines: u64,
}

impl LineSplitter {
    /// A splitter for one stream of an attempt.
    pub const fn new(attempt: u32, stream: Stream) -> Self {
        Self {
            attempt,
            stream,
            raw: Vec::new(),
            end: VecDeque::new(),
            overflow: false,
            after_cr: false,
            rewrites: false,
            since: None,
            newlines: 0,
        }
    }

    /// Takes bytes as they came and appends the finished lines to `out`.
    pub fn feed(&mut self, bytes: &[u8], now: Instant, out: &mut Vec<Line>) {
        for &byte in bytes {
            match byte {
                b'\n' => {
                    self.finish(false, out);
                    self.newlines += 1;
                    self.rewrites = false;
                }
                b'\r' => self.after_cr = true,
                _ => {
                    if self.after_cr {
                        self.finish(true, out);
                        self.rewrites = true;
                    }
                    self.push(byte);
                }
            }
        }
        if !bytes.is_empty() {
            self.since = self.has_pending().then_some(now);
        }
    }

    fn push(&mut self, byte: u8) {
        if self.raw.len() < MAX_RAW {
            self.raw.push(byte);
            return;
        }
        if self.end.len() == MAX_END {
            self.end.pop_front();
            self.overflow = true;
        }
        self.end.push_back(byte);
    }

    /// Since when unfinished text has been waiting without a further byte.
    pub const fn pending_since(&self) -> Option<Instant> {
        self.since
    }

    /// Passes unfinished text on (a prompt, the last state of a bar), but keeps back an
    /// incomplete escape sequence or character at its end.
    pub fn flush_pending(&mut self, out: &mut Vec<Line>) {
        // a bell or a cursor's move says nothing yet: its row may still get a text
        if !self.after_cr && self.end.is_empty() && is_blank(&shown(&self.raw)) {
            self.since = None;
            return;
        }
        let keep_from = if self.end.is_empty() {
            complete_prefix(&self.raw)
        } else {
            self.raw.len()
        };
        let rest = self.raw.split_off(keep_from);
        let bar = self.after_cr || self.rewrites;
        let rewrites = bar;
        self.finish(bar, out);
        self.rewrites = rewrites;
        self.raw = rest;
        self.since = None;
    }

    /// The stream ended: passes on what is left. A bar that was rewritten has not ended its line.
    pub fn flush(&mut self, out: &mut Vec<Line>) {
        let bar = self.after_cr || self.rewrites;
        self.finish(bar, out);
        self.since = None;
    }

    fn has_pending(&self) -> bool {
        !self.raw.is_empty()
    }

    fn finish(&mut self, bar: bool, out: &mut Vec<Line>) {
        self.after_cr = false;
        let overflow = std::mem::take(&mut self.overflow);
        if self.raw.is_empty() {
            return;
        }
        let end = std::mem::take(&mut self.end);
        let (text, cut) = if overflow {
            // a character that began in what is lost
            let end: Vec<u8> = end.into_iter().skip_while(|b| b & 0xc0 == 0x80).collect();
            let (head, end) = (shown(&self.raw), shown(&end));
            if is_blank(&head) && is_blank(&end) {
                (format!("{}{MARK}", pictures::of_controls(&self.raw)), true)
            } else {
                (joined(&head, &end), true)
            }
        } else {
            self.raw.extend(end);
            let text = shown(&self.raw);
            let cut = text.len() > MAX_TEXT;
            // what only moves the cursor of a bar is no row
            let text = match text {
                text if cut => joined(&text, &text),
                text if is_blank(&text) && !bar => pictures::of_controls(&self.raw),
                text => text,
            };
            (text, cut)
        };
        self.raw.clear();
        self.raw.shrink_to(MAX_RAW);
        let parts = split_glued(&text);
        let last = parts.len().saturating_sub(1);
        for (i, part) in parts.iter().enumerate() {
            if part.trim().is_empty() {
                continue;
            }
            out.push(Line {
                attempt: self.attempt,
                stream: self.stream,
                text: (*part).to_owned(),
                row: self.newlines + 1,
                bar: if i == last {
                    bar
                } else {
                    tqdm::parse(part).is_some()
                },
                truncated: i == last && cut,
                chatter: miopen::is_chatter(part),
            });
        }
    }
}

/// Text without escape sequences and control characters.
fn shown(raw: &[u8]) -> String {
    let lossy = String::from_utf8_lossy(raw);
    let stripped = anstream::adapter::strip_str(&lossy).to_string();
    let chars = stripped.chars().map(|c| if c == '\t' { ' ' } else { c });
    let mut text: String = chars
        .filter(|c| !c.is_control() && !is_direction_mark(*c))
        .collect();
    text.truncate(text.trim_end().len());
    text
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// The beginning of one text and the end of another, at most [`MAX_TEXT`] bytes.
fn joined(head: &str, end: &str) -> String {
    let head = &head[..head.floor_char_boundary(HEAD_TEXT)];
    let end = &end[end.ceil_char_boundary(end.len().saturating_sub(END_TEXT))..];
    format!("{head}{MARK}{end}")
}

/// Characters that reorder what a terminal shows.
const fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// How many bytes from the start hold no incomplete escape sequence or character at the end.
fn complete_prefix(raw: &[u8]) -> usize {
    let mut end = raw.len();
    if let Some(esc) = raw.iter().rposition(|&b| b == 0x1b) {
        let tail = &raw[esc + 1..];
        let open = match tail.first() {
            None => true,
            Some(b'[') => !tail[1..].iter().any(|b| (0x40..=0x7e).contains(b)),
            Some(b']' | b'P' | b'_' | b'^') => !tail.contains(&0x07),
            Some(_) => false,
        };
        // A sequence that never ends must not hold text back for ever.
        if open && tail.len() < 256 {
            end = esc;
        }
    }
    match std::str::from_utf8(&raw[..end]) {
        Err(e) if e.error_len().is_none() => e.valid_up_to(),
        _ => end,
    }
}

static MIOPEN_HEAD: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?:\d+ )?MIOpen(?:\([A-Za-z]+\))?[ \d.]*(?:\([^)]*\))?: (?:Error|Warning|Info2?|Trace|Command|Fatal) \[",
    )
});

/// Takes apart what several threads wrote on one line: text behind a complete bar, and
/// a MIOpen line behind anything.
fn split_glued(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let behind_bar = tqdm::end_of_bar(rest).filter(|&e| !rest[e..].trim().is_empty());
        let at_miopen = MIOPEN_HEAD
            .find_iter(rest)
            .map(|m| m.start())
            .find(|&s| s > 0);
        let Some(cut) = behind_bar.into_iter().chain(at_miopen).min() else {
            parts.push(rest);
            return parts;
        };
        parts.push(rest[..cut].trim_end());
        rest = rest[cut..].trim_start();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(chunks: &[&[u8]]) -> Vec<Line> {
        let mut s = LineSplitter::new(1, Stream::Stderr);
        let mut out = Vec::new();
        for c in chunks {
            s.feed(c, Instant::now(), &mut out);
        }
        s.flush(&mut out);
        out
    }

    fn texts(bytes: &[u8]) -> Vec<(String, bool)> {
        split(&[bytes])
            .into_iter()
            .map(|l| (l.text, l.bar))
            .collect()
    }

    #[test]
    fn newline_return_and_both() {
        assert_eq!(
            texts(b"a\nb\rc\r\nd\r\r\n\n e"),
            [
                ("a", false),
                ("b", true),
                ("c", false),
                ("d", false),
                (" e", false)
            ]
            .map(|(t, b)| (t.to_owned(), b))
        );
    }

    #[test]
    fn escapes_and_control_characters_go() {
        assert_eq!(
            texts(b"\x1b[31mred\x1b[0m\0 \x1b]8;;http://x\x07link\x1b]8;;\x07\x08!\tz\xff\n"),
            [("red link! z\u{fffd}".to_owned(), false)]
        );
    }

    #[test]
    fn a_row_of_control_characters_alone_is_a_row() {
        assert_eq!(
            texts(b"a\n\0\0\0\n\x07\r\n\x01\x1b[0m\x02\n\x1b[0m\n\n\x08\x08\rb\n\x07"),
            [
                ("a", false),
                ("\u{2400}\u{d7}3", false),
                ("\u{2407}", false),
                ("\u{2401} \u{2402}", false),
                ("b", false),
                ("\u{2407}", false),
            ]
            .map(|(t, b)| (t.to_owned(), b))
        );
        let long = [vec![0; 1 << 20], b"\nb\n".to_vec()].concat();
        let lines = split(&[&long]);
        assert_eq!((lines.len(), lines[1].row), (2, 2));
        assert!(lines[0].truncated && lines[0].text.starts_with("\u{2400}\u{d7}"));
        // a bell that waits is no row until its row has ended
        let mut s = LineSplitter::new(1, Stream::Stdout);
        let mut out = Vec::new();
        s.feed(b"\x07", Instant::now(), &mut out);
        s.flush_pending(&mut out);
        assert_eq!(out, []);
        s.feed(b"\n", Instant::now(), &mut out);
        assert_eq!(out[0].text, "\u{2407}");
    }

    #[test]
    fn long_lines_are_cut_and_say_so() {
        let mut bytes = vec![b'x'; 100_000];
        bytes.extend_from_slice(b"\nshort\n");
        let lines = split(&[&bytes]);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0].text.len(), MAX_TEXT);
        assert!(lines[0].truncated && !lines[1].truncated);
    }

    #[test]
    fn a_long_line_keeps_its_end() {
        for filler in ["x", "\u{2588}", "\x1b[1mx\x1b[0m"] {
            for times in [3000, 9000, 50_000] {
                let text = format!("begin {}RuntimeError: end\nshort\n", filler.repeat(times));
                let lines = split(&[text.as_bytes()]);
                assert_eq!(lines.len(), 2);
                let got = &lines[0].text;
                assert!(got.starts_with("begin ") && got.ends_with("RuntimeError: end"));
                assert!(got.len() <= MAX_TEXT);
                assert_eq!(got.contains(MARK), lines[0].truncated);
            }
        }
    }

    #[test]
    fn a_miopen_line_behind_a_bar_stands_alone() {
        let bytes = "\r  0%|          | 0/1 [00:00<?, ?it/s]MIOpen(HIP): Command [LogCmdFindConvolution] ./bin/MIOpenDriver conv -n 1\n";
        let lines = split(&[bytes.as_bytes()]);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].bar && !lines[0].chatter);
        assert!(lines[1].text.starts_with("MIOpen(HIP): Command"));
        assert!(lines[1].chatter && !lines[1].bar);
    }

    #[test]
    fn other_text_behind_a_bar_stands_alone() {
        let t = texts(
            b" 41%|####      | 12/29 [00:19<00:26, 1.57s/it]Memory access fault by GPU node-1\n",
        );
        assert_eq!(t.len(), 2);
        assert_eq!(t[1].0, "Memory access fault by GPU node-1");
        let t = texts(b"loading 4242 MIOpen(HIP): Info [Find] x\n");
        assert_eq!(t[1].0, "4242 MIOpen(HIP): Info [Find] x");
    }

    #[test]
    fn a_prompt_can_be_flushed_without_tearing_a_character() {
        let mut s = LineSplitter::new(1, Stream::Stdout);
        let mut out = Vec::new();
        let now = Instant::now();
        s.feed(b"password: \xe2\x96", now, &mut out);
        assert_eq!(s.pending_since(), Some(now));
        s.flush_pending(&mut out);
        assert_eq!(out[0].text, "password:");
        assert_eq!(s.pending_since(), None);
        s.feed(b"\x88\x1b[3", now, &mut out);
        s.flush_pending(&mut out);
        assert_eq!(out[1].text, "\u{2588}");
        s.feed(b"1mred\n", now, &mut out);
        assert_eq!(out[2].text, "red");
    }

    #[test]
    fn a_flushed_state_of_a_bar_is_still_a_bar() {
        let mut s = LineSplitter::new(1, Stream::Stderr);
        let mut out = Vec::new();
        s.feed(b"\r 5%", Instant::now(), &mut out);
        s.flush_pending(&mut out);
        s.feed(b"\r 6%\n", Instant::now(), &mut out);
        let got: Vec<_> = out.iter().map(|l| (l.text.as_str(), l.bar)).collect();
        assert_eq!(got, [(" 5%", true), (" 6%", false)]);
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_lines(
            bytes in proptest::collection::vec(
                prop_oneof![any::<u8>(), Just(b'\n'), Just(b'\r'), Just(0x1b), Just(b'['), Just(b']'), Just(0xe2)],
                0..400),
            cuts in proptest::collection::vec(0usize..400, 0..8),
        ) {
            let whole = split(&[&bytes]);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for c in cuts {
                chunks.push(&bytes[from..c]);
                from = c;
            }
            chunks.push(&bytes[from..]);
            prop_assert_eq!(&whole, &split(&chunks));
            for l in &whole {
                prop_assert!(l.text.len() <= MAX_TEXT);
                prop_assert!(!l.text.chars().any(char::is_control));
            }
        }

        #[test]
        fn flushing_at_any_time_stays_bounded(bytes in proptest::collection::vec(any::<u8>(), 0..200), n in 1usize..8) {
            let mut s = LineSplitter::new(1, Stream::Stdout);
            let mut out = Vec::new();
            for c in bytes.chunks(n) {
                s.feed(c, Instant::now(), &mut out);
                s.flush_pending(&mut out);
                prop_assert!(s.raw.len() <= 300);
            }
            s.flush(&mut out);
            prop_assert!(out.iter().all(|l| !l.text.chars().any(char::is_control)));
        }
    }
}
