//! Text that hides in base64, in hexadecimal digits or in a list of codes.

use std::ops::Range;
use std::sync::LazyLock;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use regex::Regex;

/// Shortest decoded text that is looked into: an address has as many letters.
const LETTERS: usize = 7;
/// Shortest run of base64 that holds so many.
const SHORTEST: usize = 10;
/// A run that is longer than this is data, and is left out whatever it holds.
const DATA: usize = 4096;
/// Codes of one list that are looked at.
const CODES: usize = 4096;

const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Bytes as a dump writes them, in hexadecimal digits: `31 30 2e`, `0x31, 0x30`.
static DUMPS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:(?:0x)?[0-9a-f]{2}(?:[ :-]|,\s*)){6,}(?:0x)?[0-9a-f]{2}\b").ok()
});

/// Bytes as a list of Python writes them: `[49, 48, 46]`.
static LISTS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\b(?:\d{2,3},\s*){6,}\d{2,3}\b").ok());

/// What a decoded text is asked.
pub(super) struct Private<'a> {
    /// Whether a text holds a known one, wherever it stands: the rest may be anything.
    pub(super) known: &'a dyn Fn(&str) -> bool,
    /// Whether a text that can be read would have anything replaced.
    pub(super) replaced: &'a dyn Fn(&str) -> bool,
}

/// Runs of `text` that are data, or that are private once they are decoded.
pub(super) fn find(text: &str, private: &Private<'_>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut begin = None;
    for (at, b) in text.bytes().chain([b' ']).enumerate() {
        let belongs = b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'-' | b'_');
        match (begin, belongs) {
            (None, true) => begin = Some(at),
            (Some(from), false) => {
                begin = None;
                if is_hidden(&text[from..at], private) {
                    found.push(from..at);
                }
            }
            _ => {}
        }
    }
    for (lists, radix) in [(&*DUMPS, 16), (&*LISTS, 10)] {
        let lists = lists.iter().flat_map(|r| r.find_iter(text));
        let hidden = lists.filter(|list| {
            let decoded = codes(list.as_str(), radix);
            decoded.is_some_and(|bytes| private.holds(&bytes))
        });
        found.extend(hidden.map(|list| list.range()));
    }
    found
}

impl Private<'_> {
    fn holds(&self, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes);
        (self.known)(&text) || readable(&text).any(|part| (self.replaced)(part))
    }
}

/// Parts of a decoded text that can be read: what stands around the real run decodes to
/// anything. UTF-16 has a zero beside each letter.
fn readable(text: &str) -> impl Iterator<Item = &str> {
    let broken = |c: char| c != '\0' && c.is_control() || c == char::REPLACEMENT_CHARACTER;
    text.split(broken).filter(|part| part.len() >= LETTERS)
}

fn is_hidden(run: &str, private: &Private<'_>) -> bool {
    if run.len() < SHORTEST {
        return false;
    }
    if run.len() > DATA {
        return true;
    }
    if run.len() >= 2 * LETTERS
        && let Some(bytes) = unhex(run)
        && private.holds(&bytes)
    {
        return true;
    }
    // a path is such a run as well, and so is what stands around the real one
    let standard = run.replace('-', "+").replace('_', "/");
    let skip = (0..4).filter(|at| standard.len() - at >= SHORTEST);
    skip.into_iter().any(|at| {
        let part = &standard[at..];
        let part = &part[..part.len() - usize::from(part.len() % 4 == 1)];
        let decoded = ENGINE.decode(part);
        decoded.is_ok_and(|bytes| private.holds(&bytes))
    })
}

fn unhex(run: &str) -> Option<Vec<u8>> {
    let digits = run.strip_prefix("0x").unwrap_or(run).as_bytes();
    let digit = |b: u8| {
        char::from(b)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    digits
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect()
}

fn codes(list: &str, radix: u32) -> Option<Vec<u8>> {
    let each = list.split([' ', ':', '-', ',']).filter(|w| !w.is_empty());
    let each = each.take(CODES).map(|word| {
        let digits = word.trim_start_matches("0x").trim_start_matches("0X");
        u8::from_str_radix(digits, radix).ok()
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};

    use super::*;

    #[test]
    fn a_secret_is_found_at_any_offset_of_any_alphabet() {
        let private = Private {
            known: &|text: &str| text.contains("correct-horse"),
            replaced: &|_| false,
        };
        for before in ["", "a", "ab", "abc", "user:"] {
            let plain = format!("{before}correct-horse~~??>>{before}");
            let hex: Vec<String> = plain.bytes().map(|b| format!("{b:02x}")).collect();
            let hex = hex.concat();
            for text in [
                BASE64_STANDARD.encode(&plain),
                BASE64_URL_SAFE_NO_PAD.encode(&plain),
                hex,
            ] {
                let line = format!("x {text}= y");
                let run = 2..2 + text.trim_end_matches('=').len();
                assert_eq!(find(&line, &private), vec![run], "{line}");
            }
        }
        assert!(find("/usr/lib/python3/dist-packages/torch", &private).is_empty());
        assert_eq!(find(&"A".repeat(5000), &private).len(), 1);
    }

    #[test]
    fn bytes_in_a_list_or_a_dump_are_read() {
        let private = Private {
            known: &|_| false,
            replaced: &|text: &str| text.contains("10.1.2.3"),
        };
        for text in [
            "31 30 2e 31 2e 32 2e 33",
            "31:30:2e:31:2e:32:2e:33",
            "0x31, 0x30, 0x2e, 0x31, 0x2e, 0x32, 0x2e, 0x33",
            "[49, 48, 46, 49, 46, 50, 46, 51]",
            "dump: 61 62 31 30 2e 31 2e 32 2e 33 00",
        ] {
            assert_eq!(find(text, &private).len(), 1, "{text}");
        }
        assert!(find("[1, 16, 21, 64, 64, 64, 64, 64]", &private).is_empty());
        assert!(DUMPS.is_some() && LISTS.is_some());
    }
}
