//! The shape of a console line: its words without the parts that change by themselves.
//!
//! A helper that prints a clock, an age, a rate or a memory figure every few seconds prints
//! lines of one shape. Such lines are no sign that the job moves; a line of a new shape may be.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use regex::Regex;

/// Shapes that are remembered; the one that was seen longest ago goes first.
const MOST: usize = 512;
/// Stands for a part that changes by itself.
const MASK: char = '#';
/// Passes over a line after the first; nearly every line needs one, which changes nothing.
const MOST_PASSES: usize = 8;

/// In this order: UUIDs, dates with names, times in ISO form, addresses and hashes, numbers
/// with their units, spinners, drawn bars.
const CHANGING: &str = r"(?x)
      \b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b
    | (?:\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},?\s+)?
      (?: \d{1,2}[\s-]+(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\b\.?
        | \b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.?\s+\d{1,2}\b )
    | \d{4}-\d\d-\d\d[T\x20]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?
    | \b0[xX][0-9a-fA-F]+
    | \b(?:[a-fA-F]*[0-9]+[a-fA-F]+[0-9a-fA-F]*|[a-fA-F]+[0-9]+[0-9a-fA-F]*){1}\b
    | (?:[+-]?\d[\d.,:_]*(?:[eE][+-]?\d+)?|\?)
      \s?
      (?: (?: [kKMGTP]?i?(?:B|b|bit|bits|[bB]ytes?)(?:/s|ps)? | [kKMGTP]i?
            | (?:it|its|iter|tok|tokens?|steps?|frames?|tiles?|img)/s
            | s/(?:it|iter|step|frame|tile|img)
            | fps | [mun\u{b5}]?s | secs? | seconds? | mins? | minutes? | [mhd] | hrs? | hours? | days?
            | [kMG]?Hz | m?W | \u{b0}?C | [AaPp][Mm]
          )\b
        | % )
    | [+-]?\d[\d.,:_]*(?:[eE][+-]?\d+)?
    | [\u{2800}-\u{28FF}\u{2580}-\u{259F}\u{25A0}-\u{25FF}\u{2190}-\u{21FF}]+
    | [|\[(][\#=>\-.\x20]{2,}[|\])]
    | [=>]{2,}
";

static PARTS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(CHANGING).ok());

/// Whether a word is one glyph of a spinner made of ASCII, or a mask.
fn is_mask(word: &str) -> bool {
    matches!(word, "|" | "/" | "-" | "\\") || word.chars().all(|c| c == MASK)
}

/// The shape of a line: lines that differ only in numbers, times, sizes, rates, addresses,
/// spinners and bars have one.
pub(crate) fn shape(text: &str) -> String {
    let mut shape = mask(text);
    // a mask may complete a bar: `[0 0]`
    for _ in 0..MOST_PASSES {
        let next = mask(&shape);
        if next == shape {
            break;
        }
        shape = next;
    }
    shape
}

fn mask(text: &str) -> String {
    let masked = PARTS
        .as_ref()
        .map_or(std::borrow::Cow::Borrowed(text), |parts| {
            parts.replace_all(text, "#")
        });
    let mut shape = String::with_capacity(masked.len());
    let mut after_mask = false;
    for word in masked.split_whitespace() {
        // dots at the end of a word grow and go
        let word = word.trim_end_matches(['.', '\u{2026}']);
        if word.is_empty() {
            continue;
        }
        let mask = is_mask(word);
        // `1m 02s` and `59s` are one age
        if mask && after_mask {
            continue;
        }
        if !shape.is_empty() {
            shape.push(' ');
        }
        if mask {
            shape.push(MASK);
        } else {
            push_word(&mut shape, word);
        }
        after_mask = mask;
    }
    shape
}

/// A word with each run of masks as one.
fn push_word(shape: &mut String, word: &str) {
    let mut before = None;
    for c in word.chars() {
        if c != MASK || before != Some(MASK) {
            shape.push(c);
        }
        before = Some(c);
    }
}

/// The shapes of the lines that a program printed lately.
#[derive(Debug, Clone, Default)]
pub(crate) struct LineShapes {
    /// Hashes; the one that was seen last stands last.
    seen: VecDeque<u64>,
}

impl LineShapes {
    /// Takes a line; whether none of its shape is remembered.
    pub(crate) fn is_new(&mut self, text: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        shape(text).hash(&mut hasher);
        let hash = hasher.finish();
        let known = self.seen.iter().rposition(|h| *h == hash);
        if let Some(at) = known {
            self.seen.remove(at);
        } else if self.seen.len() == MOST {
            self.seen.pop_front();
        }
        self.seen.push_back(hash);
        known.is_none()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_that_differ_in_what_changes_by_itself_have_one_shape() {
        for same in [
            &[
                "[stats] 12:03:11 gpu 45% vram 12.3 GiB",
                "[stats] 9:59:59 gpu 7% vram 998 MiB",
            ][..],
            &[
                "alive since 59s",
                "alive since 1m 02s",
                "alive since 2 hours 3 minutes",
            ],
            &[
                "2026-11-29 23:21:24,678 queue: 0",
                "2026-01-01T00:00:00Z queue: 12",
            ],
            &[
                "Mon Nov 30 00:00:01 2026 ping",
                "Sun Nov 29 23:59:59 2026 ping",
            ],
            &[
                "\u{280b} working",
                "\u{2819} working",
                "| working",
                "/ working",
            ],
            &["waiting", "waiting.", "waiting..", "waiting..."],
            &[
                "job 6f1c2b3a-0d4e-4f5a-8b6c-7d8e9f0a1b2c lives",
                "job 00000000-ffff-4aaa-8bbb-cccccccccccc lives",
            ],
            &["at 0x7f3a, sent 1.2kB/s", "at 0xdeadbeef, sent 998 B/s"],
            &["rss 1.2G of 64G", "rss 998M of 64G"],
            &[
                " 62%|######    | 5/8 [00:02<00:01,  1.90it/s]",
                " 75%|#######   | 6/8 [00:02<00:01,  1.90s/it]",
            ],
            &["loss=1.2e-05", "loss=0.3"],
        ] {
            let shapes: Vec<String> = same.iter().map(|t| shape(t)).collect();
            assert!(shapes.windows(2).all(|w| w[0] == w[1]), "{shapes:?}");
        }
    }

    #[test]
    fn lines_of_other_words_have_other_shapes() {
        for (a, b) in [
            ("Loading transformer 1/2", "Loading encoder 1/2"),
            ("tile 3 of 8 decoded", "tile 3 of 8"),
            ("queue: idle", "queue: busy"),
            ("facade", "decade"),
            ("", "5"),
        ] {
            assert_ne!(shape(a), shape(b));
        }
    }

    #[test]
    fn a_shape_is_new_once_and_again_when_it_was_forgotten() {
        let mut shapes = LineShapes::default();
        assert!(shapes.is_new("alive for 10 s"));
        assert!(!shapes.is_new("alive for 20 s"));
        assert!(shapes.is_new("section done"));
        let name =
            |n: usize| n.to_string().replace(|c: char| c.is_ascii_digit(), "x") + &"y".repeat(n);
        for n in 0..MOST - 1 {
            assert!(shapes.is_new(&name(n)), "{n}");
            // what is seen again stays
            assert!(!shapes.is_new("alive for 30 s"));
        }
        assert!(shapes.is_new("section done"), "512 others came since");
        assert_eq!(shapes.seen.len(), MOST);
    }

    proptest! {
        #[test]
        fn a_shape_has_itself_as_its_shape(text in ".{0,120}") {
            let once = shape(&text);
            prop_assert_eq!(shape(&once), once);
        }

        #[test]
        fn numbers_alone_make_no_other_shape(
            words in proptest::collection::vec("[a-z]{2,9}", 1..6),
            at in 0usize..6,
            (a, b) in (any::<u64>(), any::<u64>()),
            (x, y) in (0.0f64..1e9, 0.0f64..1e9),
            unit in prop_oneof![Just(""), Just("%"), Just(" MiB"), Just("s"), Just(" kB/s"), Just("it/s")],
        ) {
            let line = |n: &str| {
                let mut words = words.clone();
                words.insert(at.min(words.len()), format!("{n}{unit}"));
                words.join(" ")
            };
            prop_assert_eq!(shape(&line(&a.to_string())), shape(&line(&b.to_string())));
            prop_assert_eq!(shape(&line(&format!("{x:.2}"))), shape(&line(&format!("{y:.3}"))));
            prop_assert_eq!(shape(&line(&a.to_string())), shape(&line(&format!("{y:.1}"))));
        }

        #[test]
        fn other_words_make_other_shapes(a in "[g-z]{2,9}( [g-z]{2,9}){0,4}", b in "[g-z]{2,9}( [g-z]{2,9}){0,4}") {
            prop_assert_eq!(a == b, shape(&a) == shape(&b));
        }
    }
}
