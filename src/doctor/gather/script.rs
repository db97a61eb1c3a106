//! Which file a command hands to Python. Nothing is run.
//!
//! Only what the words tell without doubt: a script that is told as missing and is there
//! would be worse than one that is not looked for.

use std::path::Path;

use super::interpreter::after_assignments;
use crate::model::interpreter::{base, is_python};

/// The script, as the command names it.
pub(super) fn of_command(argv: &[String]) -> Option<&str> {
    let (first, rest) = argv.split_first()?;
    if is_python(first) {
        return of_python(rest);
    }
    let inner = match base(first) {
        "env" => after_assignments(rest),
        "nice" | "nohup" | "stdbuf" | "setsid" | "time" | "conda" | "mamba" | "micromamba"
        | "poetry" | "pipenv" => &rest[rest.iter().position(|w| is_python(w))?..],
        // its own options would have to be known
        "uv" => match rest.split_first()? {
            (run, script) if run == "run" => {
                let named = script.first()?;
                let is_script = Path::new(named).extension().is_some_and(|end| end == "py");
                if is_script && !named.starts_with('-') {
                    return Some(named);
                }
                script
            }
            _ => return None,
        },
        _ => return None,
    };
    let before = &rest[..rest.len() - inner.len()];
    let elsewhere = before.iter().any(|w| moves(w));
    (!elsewhere && is_python(inner.first()?))
        .then(|| of_command(inner))
        .flatten()
}

/// Whether an option of a runner names another working directory.
fn moves(word: &str) -> bool {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    ["--chdir", "--cwd", "--directory", "--project"].contains(&name) || name.starts_with("-C")
}

/// The first word that is no option of the interpreter.
fn of_python(words: &[String]) -> Option<&str> {
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let Some(options) = word.strip_prefix('-') else {
            return (!word.is_empty()).then_some(word);
        };
        match options {
            // standard input
            "" => return None,
            "-" => return rest.next().map(String::as_str).filter(|w| !w.is_empty()),
            "-check-hash-based-pycs" => {
                rest.next()?;
            }
            _ => {
                if takes_the_next(options)? {
                    rest.next()?;
                }
            }
        }
    }
    None
}

/// Whether the value of the last of these one-letter options is the next word; `None`: no
/// script follows (a module, a command, help), or an option that is not known.
fn takes_the_next(options: &str) -> Option<bool> {
    for (at, letter) in options.char_indices() {
        match letter {
            'W' | 'X' => return Some(at + 1 == options.len()),
            'b' | 'B' | 'd' | 'E' | 'i' | 'I' | 'O' | 'P' | 'q' | 'R' | 's' | 'S' | 't' | 'u'
            | 'v' | 'x' => {}
            _ => return None,
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(line: &str) -> Option<String> {
        let argv = shell_words::split(line).unwrap();
        of_command(&argv).map(str::to_owned)
    }

    #[test]
    fn the_script_stands_behind_the_options_of_the_interpreter() {
        for line in [
            "python a.py",
            "/v/bin/python3.12 -u a.py --port 1",
            "python3.14t -X dev -W ignore -uB a.py b.py",
            "python -Xutf8 -Wignore a.py",
            "python -uX dev -- a.py",
            "pypy3 --check-hash-based-pycs never a.py",
            "env A=b -u C python a.py",
            "nice -n 5 python a.py",
            "uv run a.py",
            "uv run python -u a.py",
            "conda run -n x python a.py",
        ] {
            assert_eq!(script(line).as_deref(), Some("a.py"), "{line}");
        }
    }

    #[test]
    fn what_is_no_script_or_may_lie_elsewhere_is_not_told() {
        for line in [
            "",
            "python",
            "python -m comfy a.py",
            "python -c 'print(1)' a.py",
            "python -um comfy a.py",
            "python - a.py",
            "python --version a.py",
            "python -Z a.py",
            "python -X",
            "python ''",
            "python-config a.py",
            "./python_demo.py a.py",
            "accelerate launch a.py",
            "env -C /x python a.py",
            "env --chdir=/x python a.py",
            "conda run --cwd /x -n y python a.py",
            "uv --directory /x run a.py",
            "uv run --with b.py a.py",
            "uv run tool a.py",
            "nice a.py",
        ] {
            assert_eq!(script(line), None, "{line}");
        }
    }
}
