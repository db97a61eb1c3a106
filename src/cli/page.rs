//! A report on standard output: as JSON, or as text that fits the terminal.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use super::CliError;
use crate::ui::page::Layout;

/// Columns where no terminal tells its own.
const COLUMNS: usize = 80;

/// Prints it; a reader that leaves early is no error.
pub(super) fn print(
    report: &impl Serialize,
    json: bool,
    ascii: bool,
    text: impl FnOnce(Layout) -> String,
) -> Result<(), CliError> {
    let failed = |why: io::Error| CliError::System {
        what: "write to standard output",
        why,
    };
    let printed = if json {
        serde_json::to_string_pretty(report).map_err(|e| failed(e.into()))?
    } else {
        let terminal = io::stdout().is_terminal();
        let columns = crossterm::terminal::size().map(|(columns, _)| usize::from(columns));
        let theme = crate::ui::Theme::detect(ascii, |n| std::env::var(n).ok());
        text(Layout {
            columns: columns.ok().filter(|_| terminal).unwrap_or(COLUMNS),
            ascii: theme.ascii,
            color: theme.color && terminal,
        })
    };
    let mut out = io::stdout().lock();
    match writeln!(out, "{}", printed.trim_end()).and_then(|()| out.flush()) {
        // `doctor | head`
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(failed),
    }
}
