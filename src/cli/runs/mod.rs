//! `framepack-tui runs`: what was recorded, to be looked at, handed on and removed.

mod export;
mod list;
mod prune;
mod show;

use std::io::{self, Write};

use super::CliError;
use super::args::{RunsArgs, RunsCommand};

/// Does what was asked; without a word it lists.
pub(super) fn main(args: &RunsArgs) -> Result<u8, CliError> {
    match &args.command {
        None => list::main(false),
        Some(RunsCommand::List { json }) => list::main(*json),
        Some(RunsCommand::Show { run, json }) => show::main(run.as_deref(), *json),
        Some(RunsCommand::Export(args)) => export::main(args),
        Some(RunsCommand::Prune(args)) => prune::main(args),
    }
}

/// Writes lines to standard output, as long as somebody reads them.
pub(in crate::cli) fn print(lines: impl IntoIterator<Item = String>) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    let wrote = lines
        .into_iter()
        .try_for_each(|line| writeln!(out, "{line}"));
    match wrote.and_then(|()| out.flush()) {
        // `runs | head`
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        wrote => wrote.map_err(|why| CliError::System {
            what: "write to standard output",
            why,
        }),
    }
}

/// Text that cannot steer a terminal.
pub(in crate::cli) fn printable(text: &str) -> String {
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(printable).collect()
}
