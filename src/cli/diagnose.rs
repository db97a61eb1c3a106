//! `framepack-tui diagnose`: what happened in a recording, why, and what to do about it.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use crate::diagnose::{InputError, Report, Source, diagnose};
use crate::ui::diagnose::{Layout, text};

use super::args::DiagnoseArgs;
use super::{CliError, find};

/// Columns where no terminal tells its own.
const COLUMNS: usize = 80;

/// Judges, prints.
pub(super) fn main(args: &DiagnoseArgs) -> Result<u8, CliError> {
    let source = source(&args.path)?;
    let mut report = diagnose(&source)?;
    report.path.clone_from(&args.path);
    print(args, &report)?;
    Ok(0)
}

/// What is meant: `-`, a path that exists, else a run.
fn source(asked: &str) -> Result<Source, CliError> {
    if asked == "-" {
        return Ok(Source::Stdin);
    }
    let path = Path::new(asked);
    if path.exists() {
        return Ok(Source::at(path)?);
    }
    if asked.contains('/') {
        return Err(CliError::Diagnose(InputError::Io {
            path: path.to_owned(),
            source: io::Error::new(io::ErrorKind::NotFound, "no such file or folder"),
        }));
    }
    Ok(Source::Record(find::run(Some(asked))?.path))
}

fn print(args: &DiagnoseArgs, report: &Report) -> Result<(), CliError> {
    let failed = |why: io::Error| CliError::System {
        what: "write to standard output",
        why,
    };
    let printed = if args.json {
        serde_json::to_string_pretty(report).map_err(|e| failed(e.into()))?
    } else {
        let terminal = io::stdout().is_terminal();
        let columns = crossterm::terminal::size().map(|(columns, _)| usize::from(columns));
        let theme = crate::ui::Theme::detect(args.ascii, |n| std::env::var(n).ok());
        text(
            report,
            Layout {
                columns: columns.ok().filter(|_| terminal).unwrap_or(COLUMNS),
                ascii: theme.ascii,
                color: theme.color && terminal,
            },
        )
    };
    let mut out = io::stdout().lock();
    match writeln!(out, "{}", printed.trim_end()).and_then(|()| out.flush()) {
        // `diagnose | head`
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(failed),
    }
}
