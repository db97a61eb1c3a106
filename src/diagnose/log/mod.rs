//! The text of a console without readings: what it says is all there is. A hang says nothing;
//! only the times that a log has before its lines may show one.

mod judge;
mod reader;
mod report;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::model::{Cite, CiteKind, ExitStatus, Mono};
use crate::workload::adapter::AdapterKind;

use reader::Reader;

use super::input::{InputError, not_text};
use super::meta::Meta;
use super::notes::Notes;
use super::paste::Paste;
use super::prefix::Prefixes;
use super::report::Report;

/// Bytes by which the program and the prefixes are known.
const HEAD: u64 = 256 * 1024;
/// Bytes read at a time.
const PORTION: usize = 64 * 1024;
/// Judges a file of text.
pub(super) fn file(path: &Path) -> Result<Report, InputError> {
    let failed = |source| InputError::Io {
        path: path.to_owned(),
        source,
    };
    let name = path.display().to_string();
    let file = File::open(path).map_err(failed)?;
    of(file, &name, Notes::default(), &Meta::default(), None)
}

/// Judges standard input.
pub(super) fn stdin() -> Result<Report, InputError> {
    of(
        io::stdin().lock(),
        "-",
        Notes::default(),
        &Meta::default(),
        None,
    )
}

/// Judges the console of a case that has no times.
pub(super) fn of_case(
    path: &Path,
    meta: &Meta,
    exit: Option<ExitStatus>,
    notes: Notes,
) -> Result<Report, InputError> {
    let failed = |source| InputError::Io {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(failed)?;
    of(file, &path.display().to_string(), notes, meta, exit)
}

/// The family of programs that a console's beginning shows.
pub(super) fn kind_of(beginning: &[u8]) -> AdapterKind {
    let lines = Paste::first_log(&String::from_utf8_lossy(beginning));
    let prefixes = Prefixes::of(lines.iter().map(String::as_str));
    // a prefix may be the only sign of the program that writes it
    AdapterKind::detect_lines(lines.iter().flat_map(|l| [l.as_str(), prefixes.strip(l)]))
}

fn of(
    mut input: impl Read,
    name: &str,
    mut notes: Notes,
    meta: &Meta,
    exit: Option<ExitStatus>,
) -> Result<Report, InputError> {
    let failed = |source| InputError::Io {
        path: name.into(),
        source,
    };
    let mut beginning = Vec::new();
    input
        .by_ref()
        .take(HEAD)
        .read_to_end(&mut beginning)
        .map_err(failed)?;
    let empty = beginning.trim_ascii().is_empty();
    let empty = empty.then_some("it is empty; paste what the program printed on its console");
    if let Some(what) = not_text(&beginning).or(empty) {
        let name = if name == "-" { "standard input" } else { name };
        return Err(InputError::NoText {
            name: name.to_owned(),
            what,
        });
    }
    let mut reader = Reader::new(&beginning, meta);
    if reader.prefixes.are_there() {
        notes.say("the times and names before the lines are taken off and not judged");
    }
    reader.bytes(&beginning);
    drop(beginning);
    let mut portion = vec![0; PORTION];
    loop {
        match input.read(&mut portion) {
            Ok(0) => break,
            Ok(n) => reader.bytes(portion.get(..n).unwrap_or_default()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(failed(e)),
        }
    }
    Ok(reader.report(name, notes, meta, exit))
}

/// A line as evidence.
pub(super) fn cite(seq: u64, row: u64, text: &str) -> Cite {
    Cite {
        seq,
        at: Mono::ZERO,
        kind: CiteKind::Console,
        line: Some(row),
        text: text.trim().chars().take(Cite::MOST).collect(),
    }
}
