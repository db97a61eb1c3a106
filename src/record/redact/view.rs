//! A text as its escapes mean it: a secret is the same secret in JSON, in a URL and in
//! the `repr` of Python.

use std::ops::Range;

/// A text without one level of escapes, and where each byte of it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct View {
    pub(super) text: String,
    /// For each byte of `text`, and its end: offset in the source.
    from: Vec<usize>,
}

impl View {
    /// The bytes of the source behind a part of the view.
    pub(super) fn source(&self, part: &Range<usize>) -> Range<usize> {
        self.from[part.start]..self.from[part.end]
    }

    /// The view of a view, in terms of the first source.
    pub(super) fn further(&self) -> Option<Self> {
        let mut inner = unescaped(&self.text)?;
        for at in &mut inner.from {
            *at = self.from[*at];
        }
        Some(inner)
    }
}

/// `text` without one level of escapes; `None`: there are none.
pub(super) fn unescaped(text: &str) -> Option<View> {
    if !text.contains(['\\', '%', '&', '\0']) {
        return None;
    }
    let mut view = View {
        text: String::with_capacity(text.len()),
        from: Vec::with_capacity(text.len() + 1),
    };
    let mut any = false;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let (decoded, used) = match rest.as_bytes()[0] {
            b'\\' => backslash(rest),
            b'%' => percent(rest),
            b'&' => entity(rest),
            // UTF-16 that was read as bytes
            b'\0' => Some((String::new(), 1)),
            _ => None,
        }
        .inspect(|_| any = true)
        .or_else(|| rest.chars().next().map(|c| (c.to_string(), c.len_utf8())))
        .unwrap_or_default();
        if used == 0 {
            break;
        }
        view.text.push_str(&decoded);
        view.from.resize(view.text.len(), at);
        at += used;
    }
    view.from.push(text.len());
    any.then_some(view)
}

fn backslash(rest: &str) -> Option<(String, usize)> {
    let code = rest.as_bytes().get(1)?;
    let simple = |c: char| Some((c.to_string(), 2));
    match code {
        b'n' => simple('\n'),
        b'r' => simple('\r'),
        b't' => simple('\t'),
        b'"' | b'\'' | b'\\' | b'/' => simple(char::from(*code)),
        b'u' => utf16(rest),
        b'U' => {
            let c = char::from_u32(hex(rest, 2, 8)?)?;
            Some((c.to_string(), 10))
        }
        b'x' => bytes(rest, "\\x"),
        _ => None,
    }
}

fn hex(text: &str, at: usize, digits: usize) -> Option<u32> {
    let word = text.get(at..at + digits)?;
    let only = word.bytes().all(|b| b.is_ascii_hexdigit());
    only.then(|| u32::from_str_radix(word, 16).ok()).flatten()
}

fn utf16(rest: &str) -> Option<(String, usize)> {
    let first = u16::try_from(hex(rest, 2, 4)?).ok()?;
    if let Ok(c) = char::try_from(u32::from(first)) {
        return Some((c.to_string(), 6));
    }
    let pair = rest
        .get(6..8)
        .filter(|s| *s == "\\u")
        .and_then(|_| hex(rest, 8, 4));
    let second = u16::try_from(pair?).ok()?;
    let c = char::decode_utf16([first, second]).next()?.ok()?;
    Some((c.to_string(), 12))
}

fn percent(rest: &str) -> Option<(String, usize)> {
    bytes(rest, "%")
}

/// One character that is written as bytes of UTF-8, each behind `mark`.
fn bytes(rest: &str, mark: &str) -> Option<(String, usize)> {
    let step = mark.len() + 2;
    let mut found = Vec::new();
    for n in 0..4 {
        let at = n * step;
        if rest.get(at..at + mark.len()) != Some(mark) {
            break;
        }
        let Some(byte) = hex(rest, at + mark.len(), 2).and_then(|b| u8::try_from(b).ok()) else {
            break;
        };
        found.push(byte);
        if let Ok(text) = std::str::from_utf8(&found) {
            return Some((text.to_owned(), found.len() * step));
        }
    }
    // Latin-1, as Python's `repr` of a str writes it
    found.first().map(|b| (char::from(*b).to_string(), step))
}

fn entity(rest: &str) -> Option<(String, usize)> {
    /// Longest reference that means one character: `&#x10ffff;`, and zeros before it.
    const LONGEST: usize = 14;
    const NAMED: [(&str, char); 6] = [
        ("amp", '&'),
        ("lt", '<'),
        ("gt", '>'),
        ("quot", '"'),
        ("apos", '\''),
        ("nbsp", ' '),
    ];
    let end = rest.bytes().take(LONGEST).position(|b| b == b';')?;
    let name = rest.get(1..end)?;
    let number = |digits: &str, base| {
        let only = digits.bytes().all(|b| b.is_ascii_hexdigit());
        let code = only
            .then(|| u32::from_str_radix(digits, base).ok())
            .flatten();
        code.and_then(char::from_u32)
    };
    let c = match name.strip_prefix('#') {
        Some(code) => match code.strip_prefix(['x', 'X']) {
            Some(digits) => number(digits, 16),
            None => number(code, 10),
        },
        None => NAMED.iter().find(|(n, _)| *n == name).map(|(_, c)| *c),
    };
    Some((c?.to_string(), end + 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escapes_of_json_urls_python_and_html_mean_what_they_say() {
        let of = |text| unescaped(text).map(|v| v.text);
        assert_eq!(of("plain"), None);
        assert_eq!(of("100%|##| 5\\"), None);
        assert_eq!(of(r#"a\"b\nc\\d"#).unwrap(), "a\"b\nc\\d");
        assert_eq!(of(r"\u00e9\ud83d\ude00 \xe9 \xc3\xa9").unwrap(), "é😀 é é");
        assert_eq!(of("%C3%A9%20%41&amp;").unwrap(), "é A&");
        assert_eq!(
            of("&#x27;&#039;&#34;&apos;&quot;&#xE9;").unwrap(),
            "''\"'\"é"
        );
        assert_eq!(of("a & b; &x; &#; &#x110000;"), None);
        let view = unescaped(r"x\u00e9y").unwrap();
        assert_eq!(view.source(&(1..3)), 1..7);
        let twice = unescaped(r"p\\u00e9q").unwrap().further().unwrap();
        assert_eq!(twice.text, "péq");
        assert_eq!(twice.source(&(1..3)), 1..8);
    }

    proptest! {
        #[test]
        fn every_part_has_a_place_in_the_source(text in r#"[a-z\\u0-9%&;"é]{0,40}"#) {
            if let Some(view) = unescaped(&text) {
                prop_assert_eq!(view.from.len(), view.text.len() + 1);
                prop_assert!(view.from.windows(2).all(|w| w[0] <= w[1]));
                prop_assert_eq!(view.source(&(0..view.text.len())).end, text.len());
            }
        }
    }
}
