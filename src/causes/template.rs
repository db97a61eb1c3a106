//! Sentences with places for what was read: `{name}`.

/// The names of the places in a text.
pub(super) fn places(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|rest| {
        let (name, _) = rest.split_once('}')?;
        Some(name)
    })
}

/// The text with its places filled; absent: one of them has no value.
pub(super) fn fill(text: &str, value: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut parts = text.split('{');
    let mut filled = parts.next()?.to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}')?;
        filled.push_str(&value(name)?);
        filled.push_str(rest);
    }
    Some(filled)
}

/// The text without those of its parts in `[[` `]]` that are not wanted; absent: `frame` does
/// not want the rest of it.
pub(super) fn keep_parts(
    text: &str,
    wanted: impl Fn(&str) -> bool,
    frame_wanted: impl Fn(&str) -> bool,
) -> Option<String> {
    let mut pieces = text.split("[[");
    let first = pieces.next()?;
    let mut whole = first.to_owned();
    let mut frame = first.to_owned();
    for piece in pieces {
        let (part, rest) = piece.split_once("]]").unwrap_or((piece, ""));
        if wanted(part) {
            whole.push_str(part);
        }
        whole.push_str(rest);
        frame.push_str(rest);
    }
    frame_wanted(&frame).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_or_the_text_is_not_used() {
        let text = "install {name} for {card}";
        assert_eq!(places(text).collect::<Vec<_>>(), ["name", "card"]);
        let both = |p: &str| Some(p.to_uppercase());
        assert_eq!(fill(text, both).as_deref(), Some("install NAME for CARD"));
        let one = |p: &str| (p == "name").then(|| "x".to_owned());
        assert_eq!(fill(text, one), None);
        let part = |named: &'static str| move |part: &str| !part.contains(named);
        let text = "do [[a, then ]]b";
        let kept = |named| keep_parts(text, part(named), part(named));
        assert_eq!(kept("z").as_deref(), Some("do a, then b"));
        assert_eq!(kept("a,").as_deref(), Some("do b"));
        assert_eq!(kept("b"), None);
        assert_eq!(fill("no place", |_| None).as_deref(), Some("no place"));
    }
}
