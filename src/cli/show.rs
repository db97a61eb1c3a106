//! Where a run is shown, the same for `run` and `follow`.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use crate::model::Outcome;
use crate::model::attempt::Artefact;
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

/// After the screen is left: what became of it, and the path of the result as the
/// last line.
pub(super) fn last_words(
    outcome: Option<&(Outcome, u8, String)>,
    result: Option<&Artefact>,
    record: &Path,
) {
    let mut out = io::stdout().lock();
    let mut say = |text: &str| {
        // the terminal may be gone
        let _ = writeln!(out, "{text}");
    };
    if let Some((_, code, summary)) = outcome {
        say(&format!("framepack-tui: {summary} (exit code {code})"));
    }
    say(&format!("record: {}", record.display()));
    if let Some(result) = result {
        say(&result.path);
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
