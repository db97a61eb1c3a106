//! The line that was typed, read as a shell reads it, as arguments of `run`.

use clap::Parser;

use crate::cli::args::{Args, RunArgs, Subcommand};
use crate::model::os_text;

/// The arguments of `run` that a line means: a command, or options of `run`, `--` and
/// a command. An error in words keeps to one line.
pub(super) fn run_args(line: &str, profile: Option<&str>, ascii: bool) -> Result<RunArgs, String> {
    let words = shell_words::split(line)
        .map_err(|_unbalanced| "a quote is open: close it, or write \\' or \\\"".to_owned())?;
    let Some(first) = words.first() else {
        return Err("type a command first".to_owned());
    };
    let has_options = first.starts_with('-');
    let options = words.iter().take_while(|w| *w != "--");
    if has_options && options.clone().count() == words.len() {
        return Err(
            "options of run end with --, and the command follows: --cap 20GiB -- python demo.py"
                .to_owned(),
        );
    }
    let names_profile = has_options
        && options
            .clone()
            .any(|w| w == "--profile" || w.starts_with("--profile="));
    let draws_ascii = has_options && options.clone().any(|w| w == "--ascii");
    let mut all = vec!["framepack-tui".to_owned(), "run".to_owned()];
    if let Some(profile) = profile.filter(|_| !names_profile) {
        all.push(format!("--profile={profile}"));
    }
    if ascii && !draws_ascii {
        all.push("--ascii".to_owned());
    }
    if !has_options {
        all.push("--".to_owned());
    }
    all.extend(words);
    // a line of the history holds words as a record does
    match Args::try_parse_from(all.iter().map(|word| os_text::to_os(word))) {
        Ok(Args {
            command: Some(Subcommand::Run(run)),
            ..
        }) if !run.command.is_empty() => Ok(*run),
        Ok(_) => Err("the command is missing after --".to_owned()),
        Err(e) if e.use_stderr() => Err(one_line(&e)),
        Err(_help) => Err("--help belongs to `framepack-tui run --help`".to_owned()),
    }
}

/// The sentence of clap's message, without usage and hints.
fn one_line(e: &clap::Error) -> String {
    let text = e.to_string();
    let head = text.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = head.split_whitespace().collect();
    let sentence = words.join(" ");
    let sentence = sentence.strip_prefix("error: ").unwrap_or(&sentence);
    sentence.to_owned()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use proptest::prelude::*;

    use super::*;
    use crate::model::Bytes;

    fn command(line: &str) -> Vec<String> {
        run_args(line, None, false).unwrap().command
    }

    #[test]
    fn a_line_is_split_as_a_shell_does() {
        assert_eq!(
            command("python demo.py --port 7860"),
            ["python", "demo.py", "--port", "7860"]
        );
        assert_eq!(
            command(r#"python 'my demo.py' "a b" c\ d"#),
            ["python", "my demo.py", "a b", "c d"]
        );
        // the command's own -- is its own
        assert_eq!(command("sh -c x -- y"), ["sh", "-c", "x", "--", "y"]);
    }

    #[test]
    fn options_of_run_may_come_first() {
        let run = run_args(
            "--profile mine --cap 20GiB -- python x.py",
            Some("other"),
            true,
        )
        .unwrap();
        assert_eq!(run.profile.as_deref(), Some("mine"));
        assert_eq!(run.cap, Some(Bytes::gib(20)));
        assert_eq!(run.command, ["python", "x.py"]);
        assert!(run.show.ascii);
        let run = run_args("python x.py --profile none", Some("other"), false).unwrap();
        assert_eq!(run.profile.as_deref(), Some("other"));
        assert_eq!(run.command.len(), 4);
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        for (line, said) in [
            ("python 'x.py", "a quote is open"),
            ("python \"x.py", "a quote is open"),
            ("   ", "type a command"),
            ("--cap 20GiB python x.py", "end with --"),
            ("--cap much -- python x.py", "--cap"),
            ("--hedless -- python x.py", "--hedless"),
            ("--cap 20GiB --", "CMD"),
            ("--help -- x", "--help"),
            ("--headless --plain -- x", "--plain"),
        ] {
            let why = run_args(line, None, false).unwrap_err();
            assert!(why.contains(said) && !why.contains('\n'), "{line}: {why}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_survived(line in ".{0,60}") {
            let _ = run_args(&line, Some("p"), true);
        }

        /// Whatever bytes the words were.
        #[test]
        fn what_history_offers_is_read_back_as_it_was_run(
            words in prop::collection::vec(prop_oneof![
                "[^\0]{1,9}".prop_map(OsString::from),
                prop::collection::vec(1_u8.., 1..9).prop_map(OsString::from_vec),
            ], 1..5)
        ) {
            let words: Vec<String> = words.iter().map(|word| os_text::from_os(word)).collect();
            let joined = shell_words::join(&words);
            if !words[0].starts_with('-') {
                prop_assert_eq!(command(&joined), words);
            }
        }
    }
}
