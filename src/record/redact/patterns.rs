//! What private text looks like where nobody named it.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Regex, RegexSet};

use super::{Kind, cookies, given, issued, languages};

/// A pattern: the group `s`, or `q` within quotes, or all of it where it has none, is private.
pub(super) struct Pattern {
    pub(super) kind: Kind,
    pub(super) regex: &'static str,
    /// Whether a match is one.
    pub(super) holds: fn(&str) -> bool,
}

pub(super) const fn pattern(kind: Kind, regex: &'static str) -> Pattern {
    Pattern {
        kind,
        regex,
        holds: |_| true,
    }
}

pub(super) const fn checked(kind: Kind, regex: &'static str, holds: fn(&str) -> bool) -> Pattern {
    Pattern { kind, regex, holds }
}

/// Names of variables, options and fields whose value is secret.
const SECRET_NAME: &str = r"(?:api[_-]?key|access[_-]?key|private[_-]?key|[a-z0-9][_-](?:key|token)|secret|passw(?:or)?d|passphrase|credentials?)";

static PATTERNS: LazyLock<Vec<Pattern>> = LazyLock::new(|| {
    let mut all = vec![
        pattern(
            Kind::Token,
            r"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?",
        ),
        pattern(Kind::Token, r"(?i)\bbearer\s+(?P<s>[A-Za-z0-9._~+/=-]{6,})"),
        pattern(
            Kind::Token,
            r#"(?i)\b(?:proxy-)?authorization["']?\s*[:=]\s*["']?(?P<s>(?:[A-Za-z]+\s+)?[^\s"',;]+)"#,
        ),
        checked(
            Kind::Token,
            r#"(?i)\b[a-z0-9_.-]*?(?:api[_-]?key|access[_-]?key|private[_-]?key|[a-z0-9][_-](?:key|token)|secret|passw(?:or)?d|passphrase|credentials?)[a-z0-9_]*["']?\s*(?:=>?|:)\s*["']?(?P<s>[^\s"',;&}]{3,})"#,
            is_value,
        ),
        // a password may hold any sign but blanks and quotes
        checked(
            Kind::Token,
            r#"(?i)\b[a-z0-9_.-]*?(?:api[_-]?key|access[_-]?key|private[_-]?key|[a-z0-9][_-]token|secret|passw(?:or)?d|passphrase)[a-z0-9_]*["']?\s*(?:=>?|:)\s*(?:"(?P<q>[^"\r\n]{3,})|'(?P<d>[^'\r\n]{3,})|(?P<s>[^\s"'<>][^\s"']{2,}))"#,
            is_value,
        ),
        // `password 'x'`, `the token is "x"`
        checked(
            Kind::Token,
            r#"(?i)\b(?:passw(?:or)?d|passphrase|pwd|secret|token|api[ _-]?key|access[ _-]?key|credentials?|pin)\b[^"'`\r\n]{0,24}(?:"(?P<q>[^"\r\n]{4,})"|'(?P<d>[^'\r\n]{4,})'|`(?P<s>[^`\r\n]{4,})`)"#,
            is_value,
        ),
        // digits that nobody would think of; digests that are named as such stay
        checked(
            Kind::Data,
            r#"(?i)\b(?:commit|blake|sha|md5|digest|hash|rev|checksum|etag)[a-z0-9_]*["']?\s*[:=]?\s*["']?[0-9a-f]{32,}|\b(?P<s>[0-9a-f]{32,})\b"#,
            is_varied,
        ),
        checked(
            Kind::Data,
            r"(?:^|[^A-Za-z0-9+/_=.-])(?P<s>[A-Za-z0-9+/_-]{24,}={0,2})",
            given::is_random_base64,
        ),
        checked(
            Kind::Token,
            r#"(?i)\btoken["']?\s*=\s*["']?(?P<s>[^\s"',;&}]{6,})"#,
            is_value,
        ),
        pattern(
            Kind::Token,
            r#"(?i)\b[a-z][a-z0-9+.-]*://(?P<s>[^\s/@"'<>]+)@"#,
        ),
        pattern(
            Kind::Token,
            r#"(?i)[?&](?:[a-z0-9_.-]*(?:token|key|sig|signature|auth|secret|pass|password|credential|code|session)[a-z0-9_-]*)=(?P<s>[^&\s"'#<>]+)"#,
        ),
        pattern(
            Kind::Token,
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*-----|\z)",
        ),
        pattern(
            Kind::Email,
            r"(?i)\b[a-z0-9._%+-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}\b",
        ),
        pattern(Kind::Mac, r"\b[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}\b"),
        pattern(
            Kind::Mac,
            r"\b[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\b",
        ),
        pattern(
            Kind::Mac,
            r#"(?i)\b(?:mac|hwaddr|ether|bssid|mac[ _-]?addr(?:ess)?)\b["']?[\s:=]*["']?(?P<s>[0-9a-f]{12})\b"#,
        ),
        pattern(
            Kind::Id,
            r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b",
        ),
        pattern(Kind::Id, r"\b[0-9a-f]{32}\b"),
        checked(
            Kind::Id,
            r#"(?i)\b(?:unique[_ -]?id|(?:board[_ -]?)?serial(?:[_ -]?(?:number|no))?)\b["']?\s*[:=]?\s*["']?(?P<s>(?:0x)?[A-Za-z0-9-]{6,})"#,
            |s| s.bytes().any(|b| b.is_ascii_digit()),
        ),
        checked(Kind::Ip, r"\b(?:\d{1,3}\.){3}\d{1,3}\b", is_foreign_v4),
        checked(
            Kind::Ip,
            r"(?:^|[^0-9A-Za-z:.])(?P<s>[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7})",
            is_foreign_v6,
        ),
    ];
    all.extend(given::patterns());
    all.extend(cookies::patterns());
    all.extend(languages::patterns());
    all
});

/// Fields and lines that hold a prompt.
static PROMPTS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r#"(?i)["'](?:[a-z0-9_ ]*prompt[a-z0-9_ ]*|text|positive|negative|caption)["']\s*:\s*"(?P<s>(?:[^"\\]|\\.)*)"#,
        r#"(?i)["'](?:[a-z0-9_ ]*prompt[a-z0-9_ ]*|text|positive|negative|caption)["']\s*:\s*'(?P<s>(?:[^'\\]|\\.)*)"#,
        r#"(?i)\b[a-z0-9]*_?(?:prompt|caption)s?(?:[_ ][a-z0-9]+)?["']?\s*(?:=|:)\s*(?P<s>\S.*)$"#,
        r#"(?i)--?(?:[a-z0-9]+[_-])*prompts?(?:[_-][a-z0-9]+)*(?:=|\s+)(?P<s>"[^"]*"?|'[^']*'?|[^\s-].*?)(?:\s+--?[a-z]|$)"#,
    ]
    .iter()
    .filter_map(|r| Regex::new(r).ok())
    .collect()
});

/// Homes of any account: the name of the account is the group `s`.
static HOMES: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?:/var)?/(?:home|Users)/(?P<s>[^/\s"'`:;,<>|\\()]+)"#).ok());

/// Folders that are named after an account.
static MEDIA: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?:/run)?/media/(?P<s>[^/\s"'`:;,<>|\\()]+)/"#).ok());

/// The same on Windows, whose names may hold a blank.
static USERS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?i)\b[a-z]:[\\/]+users[\\/]+(?:(?P<s>[^\\/\s"'<>|:*?]+ [^\\/\s"'<>|:*?]+)[\\/]|(?P<q>[^\\/\s"'<>|:*?]+))"#,
    )
    .ok()
});

struct Compiled {
    set: RegexSet,
    each: Vec<Option<Regex>>,
}

static COMPILED: LazyLock<Compiled> = LazyLock::new(|| Compiled {
    // a set that cannot be built has no match: the tests would show it
    set: RegexSet::new(PATTERNS.iter().map(|p| p.regex)).unwrap_or_else(|_| RegexSet::empty()),
    each: PATTERNS.iter().map(|p| Regex::new(p.regex).ok()).collect(),
});

static SECRET: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!("(?i){SECRET_NAME}")).ok());

/// Whether a variable, option or field of this name holds a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.trim_start_matches('-');
    let bare = ["token", "key", "auth", "pass", "password"];
    bare.iter().any(|b| name.eq_ignore_ascii_case(b))
        || [
            "-auth",
            "basicauth",
            "authtoken",
            "authkey",
            "ngrok",
            "webhook",
        ]
        .iter()
        .any(|end| name.to_ascii_lowercase().ends_with(end))
        || SECRET.as_ref().is_some_and(|r| r.is_match(name))
}

/// Whether an option of this name takes a prompt.
pub(super) fn is_prompt_option(option: &str) -> bool {
    let name = option.trim_start_matches('-').to_ascii_lowercase();
    name != option.to_ascii_lowercase()
        && (name.contains("prompt")
            || ["p", "text", "caption", "positive", "negative"].contains(&name.as_str()))
}

/// Whether a field of this name holds a prompt.
pub(super) fn is_prompt_field(name: &str) -> bool {
    name.to_ascii_lowercase().contains("prompt")
}

/// `None`, `true` and small numbers keep no secret.
pub(super) fn is_value(text: &str) -> bool {
    const DULL: [&str; 20] = [
        "none",
        "null",
        "true",
        "false",
        "not",
        "set",
        "unset",
        "yes",
        "no",
        "ok",
        "required",
        "missing",
        "invalid",
        "incorrect",
        "wrong",
        "empty",
        "failed",
        "error",
        "expired",
        "given",
    ];
    let number = text.len() < 8 && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let word = text.split([' ', '.', '!', ')']).next().unwrap_or_default();
    !number && !DULL.iter().any(|d| word.eq_ignore_ascii_case(d))
}

/// Whether hexadecimal digits are more than a pattern of a few.
fn is_varied(text: &str) -> bool {
    let mut digits = text.to_ascii_lowercase().into_bytes();
    digits.sort_unstable();
    digits.dedup();
    digits.len() >= 8
}

fn is_foreign_v4(text: &str) -> bool {
    text.parse::<Ipv4Addr>()
        .is_ok_and(|ip| !ip.is_loopback() && !ip.is_unspecified() && !ip.is_broadcast())
}

fn is_foreign_v6(text: &str) -> bool {
    let groups = || text.split(':').filter(|g| !g.is_empty());
    // `fe80::1` is an address; `a::b` and `12::3` are names and times
    let wide = |g: &str| g.len() == 4 && g.bytes().any(|b| b.is_ascii_digit());
    (groups().count() >= 3 || text.contains("::") && groups().next().is_some_and(wide))
        && text
            .parse::<Ipv6Addr>()
            .is_ok_and(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

fn private(regex: &Regex, text: &str, mut add: impl FnMut(Range<usize>)) {
    for found in regex.captures_iter(text) {
        if let Some(part) = ["s", "q", "d"]
            .iter()
            .find_map(|group| found.name(group))
            // of a pattern with groups that did not match, nothing is private
            .or_else(|| found.get(0).filter(|_| regex.captures_len() == 1))
        {
            add(part.range());
        }
    }
}

/// Whether `secret` is within a part that is found.
#[cfg(test)]
pub(super) fn covers(text: &str, secret: &str) -> bool {
    find(text)
        .into_iter()
        .any(|(part, _)| text[part].contains(secret))
}

/// Every private part that a pattern knows.
pub(super) fn find(text: &str) -> Vec<(Range<usize>, Kind)> {
    let issued = issued::find(text).into_iter();
    let mut found: Vec<_> = issued.map(|part| (part, Kind::Token)).collect();
    for n in COMPILED.set.matches(text) {
        let Some(regex) = &COMPILED.each[n] else {
            continue;
        };
        private(regex, text, |part| {
            if (PATTERNS[n].holds)(&text[part.clone()]) {
                found.push((part, PATTERNS[n].kind));
            }
        });
    }
    found
}

/// Names of accounts in the paths of `text`.
pub(super) fn accounts(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for regex in [&*HOMES, &*MEDIA, &*USERS].into_iter().flatten() {
        private(regex, text, |part| found.push(part));
    }
    found
}

/// Prompts in `text`.
pub(super) fn prompts(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if text.contains(['=', ':', '-']) {
        for regex in PROMPTS.iter() {
            private(regex, text, |part| {
                if text[part.clone()].chars().any(char::is_alphabetic) {
                    found.push(part);
                }
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_one() {
        assert_eq!(COMPILED.set.len(), PATTERNS.len());
        assert!(COMPILED.each.iter().all(Option::is_some));
        assert_eq!(PROMPTS.len(), 4);
        assert!(HOMES.is_some() && MEDIA.is_some() && USERS.is_some() && SECRET.is_some());
    }

    fn parts(text: &str) -> Vec<&str> {
        find(text).into_iter().map(|(r, _)| &text[r]).collect()
    }

    #[test]
    fn tokens_addresses_and_numbers() {
        for (text, secret) in [
            ("login with hf_abcDEF123456 now", "hf_abcDEF123456"),
            ("OPENAI_API_KEY=abc123xyz", "abc123xyz"),
            ("'password': 'hunter2'", "hunter2"),
            ("Authorization: Basic dXNlcjpwYXNz", "Basic dXNlcjpwYXNz"),
            ("bearer abc.def.ghi", "abc.def.ghi"),
            ("--hf-token abcdef", "abcdef"),
            ("git clone https://jo:pw12@example.org/x", "jo:pw12"),
            ("GET /f?X-Amz-Signature=00ff&x=1", "00ff"),
            ("DB_PASSWORD=a,b;c&d", "a,b;c&d"),
            ("password: 'p&q, r;s'", "p&q, r;s"),
            ("the token is 'pl4nted'", "pl4nted"),
            ("<Cookie sid=pl4nted for hub/>", "pl4nted"),
            ("cookies={'a': 'pl4nted'}", "{'a': 'pl4nted'}"),
            ("{'sessionid': 'pl4nted'}", "pl4nted"),
            (
                "got 9f86D081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822c",
                "9f86D081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822c",
            ),
            (
                "x wJalrXUtnFEMI/K7MDENG/bPxRfi8Yq3Zl0Vt5 y",
                "wJalrXUtnFEMI/K7MDENG/bPxRfi8Yq3Zl0Vt5",
            ),
            ("mail jo.doe@mail.example.org!", "jo.doe@mail.example.org"),
            ("from 192.168.1.20:7860", "192.168.1.20"),
            ("from fe80::1:2:3", "fe80::1:2:3"),
            ("link 00:1a:2b:3c:4d:5e up", "00:1a:2b:3c:4d:5e"),
            ("unique_id 5f2c9a7781d0", "5f2c9a7781d0"),
            (
                "GPU-8d2f4c1a-0000-1111-2222-123456789abc",
                "8d2f4c1a-0000-1111-2222-123456789abc",
            ),
        ] {
            assert!(parts(text).contains(&secret), "{text}: {:?}", parts(text));
        }
    }

    #[test]
    fn what_a_reader_needs_stays() {
        for text in [
            "amdgpu 0000:0c:00.0: ring gfx_0.0.0 timeout, signaled seq=1, emitted seq=3",
            "Running on local URL:  http://127.0.0.1:7860",
            "listening on 0.0.0.0:8188, [::1]:8188",
            " 12%|#2        | 3/25 [00:18<02:12,  6.01s/it]",
            "at::native::conv2d std::vector<a::b::c>",
            "max_token=2048 pad_token: None",
            "torch 2.4.1+rocm6.1 on Linux 6.8.0-45",
            "Token indices sequence length is longer than 77",
            "serial execution of kernels",
            "MIOpen(HIP): Warning [IsEnoughWorkspace] Solver <GemmFwdRest>, workspace required: 1024",
        ] {
            assert_eq!(parts(text), Vec::<&str>::new(), "{text}");
        }
    }

    #[test]
    fn prompts_are_known_by_their_field_or_option() {
        let of = |text: &'static str| -> Vec<&str> {
            prompts(text).into_iter().map(|r| &text[r]).collect()
        };
        assert_eq!(of(r#"{"prompt": "a cat", "seed": 3}"#)[0], "a cat");
        assert_eq!(of("Negative prompt: blurry, dark"), ["blurry, dark"]);
        assert!(of("gen.py --prompt a cat --seed 3").contains(&"a cat"));
        assert_eq!(of("Prompt executed in 3.2 seconds"), Vec::<&str>::new());
        assert_eq!(of("got prompt"), Vec::<&str>::new());
    }
}
