//! Arguments that read like prose: a prompt needs no option before it.

use std::path::Path;

use serde_json::Value;

/// Words of prose, at least; and letters where a script has no blanks between words.
const WORDS: usize = 3;
const SIGNS: usize = 6;

/// Whether a list of this name holds the words of a command.
pub(super) fn is_arguments(name: &str) -> bool {
    name.ends_with("argv") || name.ends_with("args") || name == "command"
}

/// Prompts among the arguments of a command: those that are prose, and those within what a
/// shell is told to run.
pub(super) fn among(list: &[Value]) -> Vec<String> {
    let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
    let mut found = Vec::new();
    for (n, word) in words.iter().enumerate() {
        let before = n.checked_sub(1).map_or("", |n| words[n]);
        let program = n.checked_sub(2).map_or("", |n| words[n]);
        if is_code_option(before) {
            if program.ends_with("sh") {
                found.extend(in_shell(word));
            }
        } else if is_prose(word) {
            found.push((*word).to_owned());
        }
    }
    found
}

/// `python -c`, `sh -lc`, `perl -e`.
fn is_code_option(option: &str) -> bool {
    let short = option.strip_prefix('-').filter(|o| !o.starts_with('-'));
    short.is_some_and(|o| o.len() <= 3 && (o.ends_with('c') || o.ends_with('e')))
}

/// Prose that a shell gives to a program; what it prints itself is no prompt.
fn in_shell(code: &str) -> Vec<String> {
    let words = shell_words::split(code).unwrap_or_default();
    let told = words
        .windows(2)
        .filter(|w| !matches!(w[0].as_str(), "echo" | "printf" | "-c" | "-e") && is_prose(&w[1]));
    told.map(|w| w[1].clone()).collect()
}

/// Several words with blanks, no path that is there, and no code.
pub(super) fn is_prose(text: &str) -> bool {
    let text = text.trim();
    if text.starts_with('-') || is_path(text) || is_code(text) {
        return false;
    }
    let foreign =
        |c: &char| c.is_alphabetic() && !c.is_ascii() && !c.is_lowercase() && !c.is_uppercase();
    if text.chars().filter(foreign).count() >= SIGNS {
        return true;
    }
    let words: Vec<&str> = text
        .split_whitespace()
        .map(bare)
        .filter(|w| !w.is_empty())
        .collect();
    let spoken = |w: &&&str| {
        w.chars()
            .all(|c| c.is_alphabetic() || matches!(c, '\'' | '\u{2019}' | '-'))
    };
    // names of cards are capitals and numbers
    let small = |w: &&&str| spoken(w) && w.chars().all(|c| !c.is_uppercase());
    words.len() >= WORDS
        && words.iter().filter(spoken).count() * 2 >= words.len()
        && words.iter().any(|w| small(&w))
}

fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

fn is_path(text: &str) -> bool {
    let begins = ["/", "./", "../", "~/"].iter().any(|b| text.starts_with(b));
    // a name that is too long for one is none, and `exists` says so
    begins && !text.contains('\n') || text.contains("://") || Path::new(text).exists()
}

fn is_code(text: &str) -> bool {
    const CODE: [&str; 20] = [
        "import ", "def ", "()", ";\n", "==", "!=", "&&", "||", "$(", "${", " = ", "=>", "+=",
        "](", "):", "{\"", "\": ", "#!", "return ", " | ",
    ];
    CODE.iter().filter(|sign| text.contains(**sign)).count() >= 2
        || text.starts_with(['{', '['])
        || ["import ", "from ", "def ", "exec ", "cd ", "set -"]
            .iter()
            .any(|b| {
                text.starts_with(b)
                    && text.contains([';', '\n', '&', '.'])
                    && text.contains(['(', '=', ';', '&'])
            })
        || text.split_whitespace().all(|w| w.contains('='))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn prose_is_told_from_paths_code_and_names() {
        for text in [
            "a lonely woman named Gertrud bathing in milk",
            "Gertrud bathing in milk",
            "(masterpiece:1.2), a red fox; dancing = joy",
            "from dusk till dawn, a fox runs",
            "ein B\u{e4}r tanzt auf dem Mond",
            "\u{4e00}\u{4e2a}\u{5973}\u{4eba}\u{5728}\u{725b}\u{5976}\u{4e2d}",
            "a cat\non a mat, asleep",
        ] {
            assert!(is_prose(text), "{text}");
        }
        for text in [
            "out.mp4",
            "--prompt",
            "AMD Radeon RX 7900 XTX",
            "NVIDIA GeForce RTX 4090",
            "/data/my own films/one.mp4",
            "import time; print('this is it'); time.sleep(1)",
            "from a import b\nb(\"this is it\")",
            "{\"a\": \"this is it\"}",
            "1024 x 768 x 3",
            "gfx1100:sramecc+:xnack-",
            "A=1 B=2 C=three",
            "https://example.org/a b c d",
            "",
        ] {
            assert!(!is_prose(text), "{text}");
        }
    }

    #[test]
    fn a_positional_prompt_is_one_and_code_is_none() {
        let list = json!([
            "python3",
            "-c",
            "print('a b c d e f')",
            "a lonely woman bathing",
            "out.mp4"
        ]);
        assert_eq!(among(list.as_array().unwrap()), ["a lonely woman bathing"]);
        let list = json!([
            "sh",
            "-c",
            "echo \"this is only said\"; gen.py 'a lonely woman bathing' 3"
        ]);
        assert_eq!(among(list.as_array().unwrap()), ["a lonely woman bathing"]);
    }
}
