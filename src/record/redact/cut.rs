//! Scraps: the beginning of a private text that somebody cut off with an ellipsis.

use std::ops::Range;

/// Letters of a scrap, at least: fewer may be the beginning of anything.
pub(super) const SHORTEST: usize = 6;
/// Bytes before an ellipsis that are looked at, and ellipses of one text.
const BEFORE: usize = 256;
const ELLIPSES: usize = 1024;

/// Places in `text` before an ellipsis, at most so many.
pub(super) fn ellipses(text: &str) -> impl Iterator<Item = usize> {
    let dots = text
        .match_indices("...")
        .filter(|(at, _)| !text[..*at].ends_with('.'));
    let signs = text.match_indices('\u{2026}');
    dots.chain(signs).map(|(at, _)| at).take(ELLIPSES)
}

/// The last run without blanks and quotes before `end`, from each place where it may begin.
pub(super) fn beginnings(text: &str, end: usize) -> impl Iterator<Item = Range<usize>> {
    let mut from = end.saturating_sub(BEFORE);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let word = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>');
    let start = text[from..end].rfind(word).map_or(from, |at| {
        from + at + text[from + at..].chars().next().map_or(1, char::len_utf8)
    });
    text[start..end].char_indices().filter_map(move |(at, c)| {
        let at = start + at;
        let free = !text[..at].ends_with(|c: char| c.is_alphanumeric());
        (free && c.is_alphanumeric() && end - at >= SHORTEST).then_some(at..end)
    })
}

/// Texts, to look for those that begin with something.
#[derive(Debug, Default)]
pub(super) struct Sorted(Vec<(String, usize)>);

impl Sorted {
    /// Of texts with a number each.
    pub(super) fn new(texts: impl Iterator<Item = (String, usize)>) -> Self {
        let mut sorted: Vec<_> = texts.map(|(text, n)| (text.to_lowercase(), n)).collect();
        sorted.sort();
        Self(sorted)
    }

    /// The number of a text that begins with `scrap`, in any case.
    pub(super) fn beginning(&self, scrap: &str) -> Option<usize> {
        let scrap = scrap.to_lowercase();
        let at = self.0.partition_point(|(text, _)| *text < scrap);
        let (text, n) = self.0.get(at)?;
        text.starts_with(&scrap).then_some(*n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scrap_stands_before_an_ellipsis() {
        let of = |text: &'static str| -> Vec<&str> {
            let places = ellipses(text);
            places
                .flat_map(|end| beginnings(text, end))
                .map(|r| &text[r])
                .collect()
        };
        assert_eq!(of("token=hf_Plan... more"), ["token=hf_Plan", "hf_Plan"]);
        assert_eq!(of("d\u{e9}j\u{e0}vu\u{2026}"), ["d\u{e9}j\u{e0}vu"]);
        assert_eq!(of("\"abc...\" Loading"), Vec::<&str>::new());
        let sorted = Sorted::new([("Planted".to_owned(), 3), ("a".to_owned(), 1)].into_iter());
        assert_eq!(sorted.beginning("PLAN"), Some(3));
        assert_eq!(sorted.beginning("plain"), None);
    }
}
