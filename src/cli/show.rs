//! Where a run is shown, the same for `run` and `follow`.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use crate::run::Snapshot;
use crate::ui::{Clipboard, Theme, TuiOptions};

use super::args::ShowArgs;

/// Where a run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    Screen { ascii: bool },
    Headless,
    Plain,
}

impl Output {
    /// A screen needs a terminal on both sides; without one, plain lines.
    pub(super) fn choose(args: ShowArgs) -> Self {
        let terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
        Self::decide(args, terminal, |name| std::env::var(name).ok())
    }

    /// The same, with the environment looked up by `env`.
    fn decide(args: ShowArgs, terminal: bool, env: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| env(name).filter(|v| !v.is_empty());
        let dumb = set("TERM").is_none_or(|t| t == "dumb");
        let accessible = set("ACCESSIBLE").is_some_and(|v| v != "0");
        if args.headless {
            Self::Headless
        } else if args.plain || !terminal || dumb || accessible {
            Self::Plain
        } else {
            Self::Screen { ascii: args.ascii }
        }
    }
}

/// Options of the screen; `follows`: the run belongs to another process.
pub(super) fn screen_options(ascii: bool, follows: bool) -> TuiOptions {
    let env = |name: &str| std::env::var(name).ok();
    TuiOptions {
        theme: Theme::detect(ascii, env),
        clipboard: Clipboard::detect(env),
        leave_at_end: false,
        follows,
        watches: false,
    }
}

/// What is said after the screen is left: what became of the run, where its record lies and
/// whether that is whole, and the path of the result as the last line.
pub(super) fn last_words(last: Option<&Snapshot>, record: &Path) -> Vec<String> {
    let outcome = last.and_then(|s| s.outcome.as_ref());
    let end =
        outcome.map(|(_, code, summary)| format!("framepack-tui: {summary} (exit code {code})"));
    let result = last.and_then(|s| s.result.as_ref());
    let lines = [
        end,
        Some(record_line(
            last.and_then(Snapshot::record_lost_words),
            record,
        )),
        result.map(|r| r.path.clone()),
    ];
    lines.into_iter().flatten().collect()
}

/// Where the record lies, and from when on it lacks the run.
pub(super) fn record_line(lost: Option<String>, record: &Path) -> String {
    let lost = lost.map_or_else(String::new, |lost| format!(" ({lost})"));
    format!("record: {}{lost}", record.display())
}

/// Prints these lines.
pub(super) fn say(lines: &[String]) {
    let mut out = io::stdout().lock();
    for line in lines {
        // the terminal may be gone
        let _ = writeln!(out, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: Output = Output::Screen { ascii: false };

    fn decide(args: ShowArgs, terminal: bool, vars: &[(&str, &str)]) -> Output {
        Output::decide(args, terminal, |name| {
            let found = vars.iter().find(|(n, _)| *n == name);
            found.map(|(_, v)| (*v).to_owned())
        })
    }

    #[test]
    fn the_last_words_say_from_when_on_the_record_lacks_the_run() {
        let folder = Path::new("/runs/7f3a");
        let lost = "not whole since 00:12:34: write events.jsonl.gz: No space left on device";
        assert_eq!(
            record_line(Some(lost.to_owned()), folder),
            format!("record: /runs/7f3a ({lost})")
        );
        assert_eq!(last_words(None, folder), ["record: /runs/7f3a"]);
    }

    #[test]
    fn whoever_cannot_have_a_screen_gets_plain_lines() {
        let args = ShowArgs {
            headless: false,
            plain: false,
            ascii: false,
        };
        let xterm = ("TERM", "xterm-256color");
        assert_eq!(decide(args, true, &[xterm]), SCREEN);
        assert_eq!(decide(args, true, &[xterm, ("NO_COLOR", "1")]), SCREEN);
        assert_eq!(decide(args, true, &[xterm, ("ACCESSIBLE", "0")]), SCREEN);
        for vars in [
            &[xterm, ("ACCESSIBLE", "1")] as &[_],
            &[("TERM", "dumb")],
            &[("TERM", "")],
            &[],
        ] {
            assert_eq!(decide(args, true, vars), Output::Plain, "{vars:?}");
        }
        assert_eq!(decide(args, false, &[xterm]), Output::Plain, "a pipe");
        let headless = ShowArgs {
            headless: true,
            ..args
        };
        assert_eq!(
            decide(headless, true, &[("ACCESSIBLE", "1")]),
            Output::Headless
        );
    }
}
