//! Exceptions that follow from each other: the first is the cause, the others are what became
//! of it on the way out. A compiler's own error above the `CalledProcessError` of the program
//! that called it is the first as well.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::Cite;

/// Exceptions that are kept.
const MOST: usize = 6;
/// Lines outside of a traceback after which the next exception is another story.
const GAP: u32 = 40;

/// What compilers and linkers write.
static COMPILER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^\S{1,200}(?::\d+(?::\d+)?|\(\d+(?:,\d+)?\))\s?: (?:fatal )?error\b ?\w*: |^(?:\S*/)?(?:ld(?:\.lld)?|lld|collect2|nvcc|hipcc|clang\S*|gcc|g\+\+|cc|c\+\+)(?::| \S+:) (?:fatal )?(?:error|cannot find)\b|^ld: cannot find ").ok()
});

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct Chain {
    links: Vec<Cite>,
    gap: u32,
}

impl Chain {
    /// An exception ended its traceback.
    pub(super) fn exception(&mut self, cite: &Cite) {
        if self.gap > GAP {
            self.links.clear();
        }
        self.gap = 0;
        let same = |known: &Cite| {
            let (a, b) = (message(&known.text), message(&cite.text));
            a.contains(b) || b.contains(a)
        };
        if self.links.len() < MOST && !self.links.iter().any(same) {
            self.links.push(cite.clone());
        }
    }

    /// A line that ends no traceback.
    pub(super) fn line(&mut self, cite: impl FnOnce() -> Cite, text: &str) {
        if text.contains("rror") && COMPILER.as_ref().is_some_and(|r| r.is_match(text)) {
            self.exception(&cite());
        } else if !text.starts_with(' ') && !text.is_empty() {
            self.gap = self.gap.saturating_add(1);
        }
    }

    /// The job went on.
    pub(super) fn clear(&mut self) {
        self.links.clear();
        self.gap = 0;
    }

    /// Where these words are one of several that follow from each other: the first and the
    /// others.
    pub(super) fn of(&self, words: &Cite) -> Option<(&Cite, &[Cite])> {
        let (first, later) = self.links.split_first()?;
        let said = message(&words.text);
        let known = |link: &Cite| link.text.contains(said) || said.contains(message(&link.text));
        self.links.iter().any(known).then_some((first, later))
    }
}

/// What stands behind the name of the exception, or behind ComfyUI's marks.
fn message(text: &str) -> &str {
    let text = text.trim();
    let text = text
        .split_once("!!! Exception during processing !!!")
        .map_or(text, |(_, rest)| rest.trim());
    match text.split_once(": ") {
        Some((name, rest)) if !name.contains(' ') && !rest.is_empty() => rest,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Mono;

    fn cite(text: &str) -> Cite {
        Cite::reading(1, Mono(1), text.to_owned())
    }

    #[test]
    fn the_first_of_several_is_the_cause() {
        let mut chain = Chain::default();
        chain.exception(&cite(
            "PermissionError: [Errno 13] Permission denied: '/data'",
        ));
        chain.exception(&cite("OSError: Can't load the model"));
        let (first, later) = chain.of(&cite("OSError: Can't load the model")).unwrap();
        assert!(first.text.starts_with("PermissionError"));
        assert_eq!(later.len(), 1);
        assert!(chain.of(&cite("KeyError: 'x'")).is_none());
        for _ in 0..=GAP {
            chain.line(|| cite("x"), "x");
        }
        chain.exception(&cite("ValueError: another story"));
        assert_eq!(chain.links.len(), 1);
    }

    #[test]
    fn the_same_error_twice_is_one() {
        let mut chain = Chain::default();
        chain.exception(&cite("!!! Exception during processing !!! no room"));
        chain.exception(&cite("ValueError: no room"));
        assert_eq!(chain.links.len(), 1);
    }

    #[test]
    fn a_compilers_error_comes_before_the_call_that_failed() {
        for text in [
            "/tmp/tmpa/main.c:5:10: fatal error: Python.h: No such file or directory",
            "C:/Temp/cuda_utils.c:13: error: include file 'Python.h' not found",
            "cuda_utils.c(12): fatal error C1083: Cannot open include file",
            "/usr/bin/ld: cannot find -lamdhip64: error",
            "nvcc fatal error",
        ] {
            let is = COMPILER.as_ref().unwrap().is_match(text);
            assert_eq!(is, !text.starts_with("nvcc fatal"), "{text}");
        }
        for text in ["error: x", "a: b", "  File \"a.py\", line 3: error: x"] {
            assert!(!COMPILER.as_ref().unwrap().is_match(text), "{text}");
        }
    }
}
