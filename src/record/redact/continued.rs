//! Prompts that go on in the next lines, where no line shows by itself that it is a prompt.

use std::sync::LazyLock;

use regex::Regex;

use super::{patterns, prose, vocabulary};

/// Lines of one prompt, at most.
const LINES: usize = 40;
/// Columns from which on a line may have been wrapped.
const WIDE: usize = 60;
/// Words of a line that is too short to be prose.
const FEW: usize = 4;

/// A line that names a prompt and ends: the prompt is on the next ones.
static HEADER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?i)\b[a-z0-9_]*(?:prompt|caption)s?(?:[_ ][a-z0-9]+)?["']?\s*(?P<s>[:=>|\[({"'`\u{ab}-][\s:=>|\[({"'`\u{ab}+-]*)$"#,
    )
    .ok()
});

/// What programs print beside prompts: times, bars, levels, other fields, paths.
static OTHER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let forms = [
        r"^\W{0,2}\d{1,4}[-:/.]\d",
        r"\d%|it/s|s/it|\d+/\d+|\b(?i:step|seed|epoch|frame)s?\s*[:=]?\s*\d",
        r"^\W{0,2}(?i:info|warn(?:ing)?|error|debug|traceback|file \x22)\b",
        r"^\W{0,2}(?:[\w.-]+|[A-Z][\w.-]* [\w.-]+)\s*[:=](?:\s|$)",
        r"^\S*[/\\]\S*$",
        r"^[\W\d]*$",
        r"^--?[a-z]",
    ];
    Regex::new(&forms.join("|")).ok()
});

/// How a prompt ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// At this quote.
    Quote(char),
    /// Behind the last line that has quotes of its own, as Python prints a long text.
    Quoted,
    /// At this bracket.
    Bracket(char),
    /// At an empty line, or one that is indented less than this.
    Block(usize),
    /// At a line that does not read as if it went on; `sure`: the next one goes on.
    Prose { sure: bool },
}

/// A prompt that may go on in the next line.
#[derive(Debug, Default)]
pub(super) struct Continued {
    open: Option<(Ends, usize)>,
}

impl Continued {
    /// The part of the next line that belongs to a prompt of the lines before.
    pub(super) fn next<'a>(&mut self, line: &'a str) -> Option<&'a str> {
        let begun = patterns::prompts(line);
        if let Some(part) = begun.into_iter().max_by_key(|part| part.end) {
            self.open = begun_at(line, part.start, part.end).map(|ends| (ends, LINES));
            return None;
        }
        if let Some(tail) = header(line) {
            self.open = Some((of_header(line, tail), LINES));
            return None;
        }
        let (ends, left) = self.open.take()?;
        let left = left.checked_sub(1)?;
        let (part, next) = goes_on(ends, line)?;
        self.open = next.map(|ends| (ends, left));
        Some(part).filter(|part| part.chars().any(char::is_alphabetic))
    }
}

fn header(line: &str) -> Option<&str> {
    let found = HEADER.as_ref()?.captures(line)?;
    Some(found.name("s")?.as_str())
}

fn of_header(line: &str, tail: &str) -> Ends {
    match tail.chars().find(|c| "[({\"'`".contains(*c)) {
        Some('[') => Ends::Bracket(']'),
        Some('(') => Ends::Bracket(')'),
        Some('{') => Ends::Bracket('}'),
        Some(quote) => Ends::Quote(quote),
        // of YAML
        None if tail.contains(['|', '>']) && tail.contains(':') => Ends::Block(indent(line) + 1),
        None => Ends::Block(0),
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// How a prompt goes on that stands at `from..to` of a line.
fn begun_at(line: &str, from: usize, to: usize) -> Option<Ends> {
    let rest = line[to..].trim();
    if !rest.trim_matches(['"', '\'']).is_empty() {
        return None;
    }
    let body = line[from..to].trim();
    let first = body.chars().next();
    if let Some(open @ ('[' | '(')) = first {
        let close = if open == '[' { ']' } else { ')' };
        return (!body.contains(close)).then_some(Ends::Bracket(close));
    }
    let before = line[..from].chars().next_back();
    let quote = [before, first]
        .into_iter()
        .flatten()
        .find(|c| matches!(c, '"' | '\''));
    if let Some(quote) = quote {
        let closed = body.trim_start_matches(quote).contains(quote) || rest.contains(quote);
        return Some(if closed {
            Ends::Quoted
        } else {
            Ends::Quote(quote)
        });
    }
    Some(Ends::Prose {
        sure: is_sure(line),
    })
}

/// Whether a line of a prompt says that it goes on.
fn is_sure(line: &str) -> bool {
    line.trim_end()
        .ends_with([',', '\\', ';', '\u{ff0c}', '\u{3001}'])
        || line.chars().count() >= WIDE
}

/// The part of `line` that belongs to the prompt, and how that goes on.
fn goes_on(ends: Ends, line: &str) -> Option<(&str, Option<Ends>)> {
    let text = line.trim();
    match ends {
        Ends::Quote(quote) => Some(match text.find(quote) {
            Some(end) => (&text[..end], None),
            None => (text, Some(ends)),
        }),
        Ends::Quoted => {
            text.starts_with(['"', '\'']).then_some(())?;
            let last = text.ends_with([',', '}', ')', ']']);
            Some((text, (!last).then_some(ends)))
        }
        Ends::Bracket(close) => {
            let quoted = text.rfind(['"', '\'']);
            let end = text
                .rfind(close)
                .filter(|at| quoted.is_none_or(|q| q < *at));
            Some((
                &text[..end.unwrap_or(text.len())],
                end.is_none().then_some(ends),
            ))
        }
        Ends::Block(least) => {
            let within = !text.is_empty() && indent(line) >= least;
            (within && (least > 0 || !is_other(text))).then_some((text, Some(ends)))
        }
        Ends::Prose { sure } => reads_on(text, sure).then(|| {
            let sure = is_sure(line);
            (text, Some(Ends::Prose { sure }))
        }),
    }
}

fn is_other(text: &str) -> bool {
    OTHER.as_ref().is_some_and(|r| r.is_match(text))
}

/// Whether a line reads as if it went on from a prompt. The words of programs do not.
fn reads_on(text: &str, sure: bool) -> bool {
    if text.is_empty() || is_other(text) {
        return false;
    }
    let few = || {
        let bare = |w: &str| {
            w.chars()
                .all(|c| c.is_alphabetic() || ",.;!?'\u{2019}-\\".contains(c))
        };
        text.split_whitespace().count() <= FEW && text.split_whitespace().all(bare)
    };
    (sure || !vocabulary::is_known(text)) && (few() || prose::is_prose(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'a>(lines: &[&'a str]) -> Vec<&'a str> {
        let mut continued = Continued::default();
        lines
            .iter()
            .filter_map(|line| continued.next(line))
            .collect()
    }

    #[test]
    fn a_prompt_goes_on_in_the_next_lines() {
        let cases: &[(&[&str], &[&str])] = &[
            (
                &[
                    "prompt: \"a heron that",
                    "bathes in milk\", seed 3",
                    "step 1",
                ],
                &["bathes in milk"],
            ),
            (
                &[
                    "{'prompt': 'a heron that '",
                    "   'bathes in '",
                    "   'milk',",
                    " 'seed': 3}",
                ],
                &["'bathes in '", "'milk',"],
            ),
            (
                &["Prompt: a heron,", "Marlene beside it", "Seed: 3"],
                &["Marlene beside it"],
            ),
            (
                &["Prompt: a portrait of", "marlene", " 12%|# | 3/25"],
                &["marlene"],
            ),
            (
                &["prompt:", "a heron", "bathes", "", "a cat"],
                &["a heron", "bathes"],
            ),
            (
                &["  prompt: |", "    a heron", "    bathes: now", "  seed: 3"],
                &["a heron", "bathes: now"],
            ),
            (
                &[
                    "\"prompt\": [",
                    "  \"a heron\",",
                    "  \"bathes\"",
                    "],",
                    "\"a cat\"",
                ],
                &["\"a heron\",", "\"bathes\""],
            ),
            (
                &["prompt = \"\"\"", "a heron", "bathes\"\"\"", "a cat"],
                &["a heron", "bathes"],
            ),
            (&["prompt=['a heron,',", "'bathes']", "'x'"], &["'bathes'"]),
            (
                &["gen --prompt a heron \\", "bathes in milk \\", "--seed 3"],
                &["bathes in milk \\"],
            ),
            (
                &[
                    "Prompt: \u{4e00}\u{4e2a}\u{5973}\u{4eba}\u{ff0c}",
                    "\u{5728}\u{725b}\u{5976}\u{4e2d}\u{6d17}\u{6fa1}",
                ],
                &["\u{5728}\u{725b}\u{5976}\u{4e2d}\u{6d17}\u{6fa1}"],
            ),
        ];
        for (lines, want) in cases {
            assert_eq!(of(lines), *want, "{lines:?}");
        }
        let wide = "Prompt: a heron with golden feathers stands in the light of the evening and";
        assert_eq!(
            of(&[wide, "looks at the river", "step 1 of 25, 3.2 s"]),
            ["looks at the river"]
        );
        assert!(HEADER.is_some() && OTHER.is_some());
    }

    #[test]
    fn the_words_of_programs_are_no_prompt() {
        for lines in [
            ["got prompt", "loading model"],
            ["Prompt: a heron", "Loading model"],
            ["Prompt: a heron", "[12:03:04] marlene"],
            ["Prompt: a heron", "Seed: 31337"],
            ["Prompt: a heron", "/data/out.mp4"],
            ["Prompt: a heron", " 12%|#    | 3/25 [00:18<02:12]"],
        ] {
            assert_eq!(of(&lines), Vec::<&str>::new(), "{lines:?}");
        }
    }
}
