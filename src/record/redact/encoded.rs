//! Text that hides in base64 or hexadecimal digits.

use std::ops::Range;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Shortest run that is looked into: 8 letters.
const SHORTEST: usize = 11;
/// A run that is longer than this is data, and is left out whatever it holds.
const DATA: usize = 4096;

const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Runs of `text` that are data, or for which `is_private` holds once they are decoded.
pub(super) fn find(text: &str, is_private: &dyn Fn(&str) -> bool) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut begin = None;
    for (at, b) in text.bytes().chain([b' ']).enumerate() {
        let belongs = b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'-' | b'_');
        match (begin, belongs) {
            (None, true) => begin = Some(at),
            (Some(from), false) => {
                begin = None;
                if is_hidden(&text[from..at], is_private) {
                    found.push(from..at);
                }
            }
            _ => {}
        }
    }
    found
}

fn is_hidden(run: &str, is_private: &dyn Fn(&str) -> bool) -> bool {
    if run.len() < SHORTEST {
        return false;
    }
    if run.len() > DATA {
        return true;
    }
    let holds = |bytes: Vec<u8>| is_private(&String::from_utf8_lossy(&bytes));
    if run.len() >= 2 * SHORTEST
        && let Some(bytes) = unhex(run)
        && holds(bytes)
    {
        return true;
    }
    // a path is such a run as well, and so is what stands around the real one
    let standard = run.replace('-', "+").replace('_', "/");
    let skip = (0..4).filter(|at| standard.len() - at >= SHORTEST);
    skip.into_iter().any(|at| {
        let part = &standard[at..];
        let part = &part[..part.len() - usize::from(part.len() % 4 == 1)];
        ENGINE.decode(part).is_ok_and(holds)
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

#[cfg(test)]
mod tests {
    use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};

    use super::*;

    #[test]
    fn a_secret_is_found_at_any_offset_of_any_alphabet() {
        let private = |text: &str| text.contains("correct-horse");
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
}
