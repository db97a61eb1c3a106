//! Secrets and prompts that stand on several lines, each of which says nothing by itself: the
//! body of a key, an entry of `.netrc`, a prompt that was wrapped.

use super::{Kind, patterns, prose};

/// Lines of one key or prompt, at most.
const KEY: usize = 400;
const PROMPT: usize = 40;
/// Columns from which on a line may have been wrapped.
const WIDE: usize = 60;

/// What the lines before say of the next one. One for each stream of lines.
#[derive(Debug, Default)]
pub(super) struct Across {
    /// Lines of a key that may still come.
    key: usize,
    /// An entry of `.netrc` is open.
    netrc: bool,
    prompt: Option<Prompt>,
}

/// A prompt that may go on in the next line.
#[derive(Debug, Clone, Copy)]
struct Prompt {
    /// What ends it: a quote, or a line that is not full.
    until: Option<char>,
    /// It goes on only within quotes of its own, as Python prints a long text.
    quoted: bool,
    left: usize,
}

impl Across {
    /// Private parts of the next line that are known by the lines before.
    pub(super) fn next<'a>(&mut self, line: &'a str) -> Vec<(Kind, &'a str)> {
        let mut found: Vec<_> = self.key_line(line).into_iter().collect();
        found.extend(self.netrc_line(line));
        found.extend(self.prompt_line(line));
        found
    }

    fn key_line<'a>(&mut self, line: &'a str) -> Option<(Kind, &'a str)> {
        let body = line
            .trim()
            .trim_matches(['"', '\'', ',', '\\', '+', ' ', '|', '>']);
        if line.contains("-----BEGIN") && line.contains("PRIVATE KEY") {
            let whole = line.contains("-----END");
            self.key = if whole { 0 } else { KEY };
            return None;
        }
        if self.key == 0 || line.contains("-----END") {
            self.key = 0;
            return None;
        }
        self.key -= 1;
        // a prefix of a logger stands before it
        let body = body.rsplit(char::is_whitespace).next().unwrap_or(body);
        (body.len() >= 6).then_some((Kind::Token, body))
    }

    fn netrc_line<'a>(&mut self, line: &'a str) -> Vec<(Kind, &'a str)> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first() == Some(&"machine") || words == ["default"] {
            self.netrc = true;
        } else if words.len() > 6 || words.is_empty() {
            self.netrc = false;
        }
        if !self.netrc {
            return Vec::new();
        }
        let pairs = words.windows(2);
        pairs
            .filter_map(|pair| match pair[0] {
                "password" | "account" => Some((Kind::Token, pair[1])),
                "login" => Some((Kind::User, pair[1])),
                _ => None,
            })
            .collect()
    }

    fn prompt_line<'a>(&mut self, line: &'a str) -> Option<(Kind, &'a str)> {
        let open = patterns::prompts(line)
            .into_iter()
            .max_by_key(|part| part.end);
        if let Some(part) = open {
            self.prompt = begun(line, part.start, part.end);
            return None;
        }
        let prompt = self.prompt.take()?;
        let text = line.trim();
        let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
        if text.is_empty() || prompt.left == 0 || prompt.quoted && quote.is_none() {
            return None;
        }
        let left = prompt.left - 1;
        if let Some(until) = prompt.until {
            let end = text.find(until);
            if end.is_none() || prompt.quoted {
                let more = !prompt.quoted || !text.ends_with([',', '}', ')', ']']);
                self.prompt = more.then_some(Prompt { left, ..prompt });
            }
            let part = if prompt.quoted {
                text
            } else {
                &text[..end.unwrap_or(text.len())]
            };
            return Some((Kind::Prompt, part));
        }
        if !prose::is_prose(text) && text.split_whitespace().count() > 3 {
            return None;
        }
        if line.chars().count() >= WIDE {
            self.prompt = Some(Prompt { left, ..prompt });
        }
        Some((Kind::Prompt, text))
    }
}

/// How a prompt goes on that stands at `from..to` of a line.
fn begun(line: &str, from: usize, to: usize) -> Option<Prompt> {
    let left = PROMPT;
    let rest = line[to..].trim();
    if !rest.trim_matches(['"', '\'']).is_empty() {
        return None;
    }
    let before = line[..from].chars().next_back();
    let first = line[from..].chars().next();
    let quote = [before, first]
        .into_iter()
        .flatten()
        .find(|c| matches!(c, '"' | '\''));
    match quote {
        Some(quote) => {
            let body = line[from..to].trim_start_matches(quote);
            let closed = body.contains(quote) || rest.contains(quote);
            Some(Prompt {
                until: Some(quote),
                quoted: closed,
                left,
            })
        }
        None if line.chars().count() >= WIDE => Some(Prompt {
            until: None,
            quoted: false,
            left,
        }),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'a>(lines: &[&'a str]) -> Vec<&'a str> {
        let mut across = Across::default();
        let found = lines.iter().flat_map(|line| across.next(line));
        found.map(|(_, part)| part).collect()
    }

    #[test]
    fn a_key_is_its_lines() {
        let lines = [
            "-----BEGIN OPENSSH PRIVATE KEY-----",
            "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ",
            "INFO: QyNTUxOQAAACBmF0",
            "-----END OPENSSH PRIVATE KEY-----",
            "Loading shards",
        ];
        assert_eq!(
            of(&lines),
            [
                "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ",
                "QyNTUxOQAAACBmF0"
            ]
        );
    }

    #[test]
    fn an_entry_of_netrc_is_known_on_one_line_and_on_several() {
        assert_eq!(
            of(&["machine hub.example.org login jane password pl,nted&x"]),
            ["jane", "pl,nted&x"]
        );
        assert_eq!(
            of(&["machine hub", "  login jane", "  password abc"]),
            ["jane", "abc"]
        );
        assert_eq!(
            of(&["login failed", "password required"]),
            Vec::<&str>::new()
        );
    }

    #[test]
    fn a_wrapped_prompt_goes_on() {
        assert_eq!(
            of(&[
                "prompt: \"a heron that",
                "bathes in milk\", seed 3",
                "step 1"
            ]),
            ["bathes in milk"]
        );
        assert_eq!(
            of(&[
                "{'prompt': 'a heron that '",
                "           'bathes in '",
                "           'milk',",
                " 'seed': 3}"
            ]),
            ["'bathes in '", "'milk',"]
        );
        let wide = "Prompt: a heron with golden feathers stands in the light of the evening and";
        assert_eq!(
            of(&[wide, "looks at the river", "step 1 of 25, 3.2 s"]),
            ["looks at the river"]
        );
    }
}
