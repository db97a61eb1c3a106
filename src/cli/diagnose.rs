//! `framepack-tui diagnose`: what happened in a recording, why, and what to do about it.

use std::io;
use std::path::Path;

use crate::diagnose::{InputError, Report, Source, diagnose};
use crate::ui::diagnose::text;

use super::args::DiagnoseArgs;
use super::{CliError, find, page};

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
    page::print(report, args.json, args.ascii, |layout| text(report, layout))
}
