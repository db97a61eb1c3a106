//! Secrets and prompts that stand on several lines, each of which says nothing by itself: the
//! body of a key, an entry of `.netrc`, a dict of cookies, a password below the word for it,
//! a prompt that was wrapped.

use std::sync::LazyLock;

use regex::Regex;

use super::continued::Continued;
use super::issued::classes;
use super::{Kind, languages};

/// Lines of one key or dict of cookies, at most.
const KEY: usize = 400;
const COOKIES: usize = 60;

/// The last line of a dict or list of cookies that goes on.
static COOKIES_OPEN: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?i)cookie[a-z0-9_]*["']?[^"']{0,24}[\[{(:=]\s*$"#).ok());

/// The value of a line of such a dict.
static QUOTED_LAST: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?:"(?P<q>[^"]{4,})"|'(?P<d>[^']{4,})')[\])},;]*\s*$"#).ok());

/// What the lines before say of the next one. One for each stream of lines.
#[derive(Debug, Default)]
pub(super) struct Across {
    /// Lines of a key that may still come.
    key: usize,
    /// An entry of `.netrc` is open.
    netrc: bool,
    /// Lines of a dict of cookies that may still come.
    cookies: usize,
    /// The line before ended with the word for a password.
    asked: bool,
    prompt: Continued,
}

impl Across {
    /// Private parts of the next line that are known by the lines before.
    pub(super) fn next<'a>(&mut self, line: &'a str) -> Vec<(Kind, &'a str)> {
        let mut found: Vec<_> = self.key_line(line).into_iter().collect();
        found.extend(self.netrc_line(line));
        found.extend(self.cookie_line(line));
        found.extend(self.answer(line));
        found.extend(self.prompt.next(line).map(|part| (Kind::Prompt, part)));
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

    fn cookie_line<'a>(&mut self, line: &'a str) -> Option<(Kind, &'a str)> {
        if COOKIES_OPEN.as_ref().is_some_and(|r| r.is_match(line)) {
            self.cookies = COOKIES;
            return None;
        }
        self.cookies = self.cookies.checked_sub(1)?;
        let found = QUOTED_LAST.as_ref()?.captures(line);
        // what has no value ends it
        let Some(found) = found else {
            self.cookies = 0;
            return None;
        };
        let part = found.name("q").or_else(|| found.name("d"))?;
        Some((Kind::Token, part.as_str()))
    }

    /// A single word below `Password:` that no program would say there.
    fn answer<'a>(&mut self, line: &'a str) -> Option<(Kind, &'a str)> {
        let asked = std::mem::replace(&mut self.asked, languages::asks(line));
        let word = line.trim().trim_matches(['"', '\'', ',']);
        let is_one = asked && !word.contains(char::is_whitespace) && classes(word) >= 2;
        is_one.then_some((Kind::Token, word))
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
    fn a_dict_of_cookies_is_its_values() {
        assert_eq!(
            of(&[
                "cookies = {",
                "  'a': 'pl4nted',",
                "  'b': \"second\"",
                "}",
                "'c': 'third'"
            ]),
            ["pl4nted", "second"]
        );
        assert_eq!(
            of(&["\"cookies\": [", "('a', 'pl4nted'),", "]"]),
            ["pl4nted"]
        );
        assert!(COOKIES_OPEN.is_some() && QUOTED_LAST.is_some());
    }

    #[test]
    fn a_word_below_the_word_for_a_password_is_one() {
        assert_eq!(of(&["Passwort:", "pl4nted"]), ["pl4nted"]);
        assert_eq!(
            of(&["\u{5bc6}\u{7801}\u{ff1a}", "  Pl4nted!"]),
            ["Pl4nted!"]
        );
        assert_eq!(of(&["Password:", "Loading shards"]), Vec::<&str>::new());
        assert_eq!(of(&["Password:", "", "pl4nted"]), Vec::<&str>::new());
    }
}
