//! The evidence of a run, as it goes into a bundle.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::model::Bytes;
use crate::record::list::open_file;
use crate::record::reader::skip_line;

use super::Contents;
use super::spool::{Filter, Spool};

/// Text of evidence in a bundle, and of one file of it.
const EVIDENCE_TEXT: u64 = 48 << 20;
const FILE_TEXT: u64 = 8 << 20;
/// Longest line of evidence that is looked into.
const LINE: u64 = 1 << 20;
/// Files of evidence.
pub(super) const FILES: usize = 400;

/// Files below `evidence/`, by their names within the run; what is no plain file is not
/// followed.
pub(super) fn evidence_files(run: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![run.join("evidence")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && folders.len() < FILES => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// Copies the files of evidence; where free text is masked only those of JSON.
pub(super) fn evidence(
    run: &Path,
    files: &[PathBuf],
    filter: &mut Filter,
    spool: &mut Spool,
    contents: &mut Contents,
) -> io::Result<()> {
    let mut room = EVIDENCE_TEXT;
    for (n, path) in files.iter().enumerate() {
        let name = path.strip_prefix(run).unwrap_or(path).display().to_string();
        let name = filter.file_name(&name);
        if n >= FILES || room == 0 {
            contents
                .left_out
                .push(format!("{name}: there is too much evidence"));
            continue;
        }
        let json = path
            .extension()
            .is_some_and(|e| e == "jsonl" || e == "json");
        if filter.mask.is_some() && !json {
            let bytes = path.metadata().map_or(0, |m| m.len());
            contents.left_out.push(format!(
                "{name}: free text, {}; --with-text adds it",
                Bytes(bytes)
            ));
            continue;
        }
        spool.begin(name.clone());
        let left = match copy_evidence(path, room.min(FILE_TEXT), filter, spool)? {
            Copied::All(bytes) => {
                room -= bytes;
                continue;
            }
            Copied::Cut(bytes) => {
                room -= bytes;
                let mib = FILE_TEXT >> 20;
                format!("the rest of {name}: more than {mib} MiB, or too much evidence")
            }
            Copied::Failed(bytes, why) => {
                room -= bytes;
                format!(
                    "{name}, all or a part of it: {}",
                    filter.sentence(&why.to_string())
                )
            }
        };
        contents.left_out.push(left);
    }
    Ok(())
}

/// How much of a file was copied, in bytes.
enum Copied {
    All(u64),
    Cut(u64),
    Failed(u64, io::Error),
}

/// Copies a file of evidence through the filter, `limit` bytes of it. Where free text is
/// masked, a line that is no JSON is left out.
fn copy_evidence(
    path: &Path,
    limit: u64,
    filter: &mut Filter,
    spool: &mut Spool,
) -> io::Result<Copied> {
    let (mut written, mut cut, mut wrote) = (0, false, Ok(()));
    let mut add = |filter: &mut Filter, value: Option<Value>, line: &str| {
        let mut text = match value {
            Some(value) => serde_json::to_string(&filter.json(&value))?,
            None if filter.mask.is_some() => return Ok(true),
            None => filter.redactor.text(line),
        };
        text.push('\n');
        if written + text.len() as u64 > limit {
            cut = true;
            return Ok(false);
        }
        written += text.len() as u64;
        wrote = spool.add(text.as_bytes());
        Ok(wrote.is_ok())
    };
    let read = if path.extension().is_some_and(|e| e == "json") && filter.mask.is_some() {
        read_json(path).and_then(|value| add(filter, value, "").map(drop))
    } else {
        each_line(path, &mut |line| add(filter, as_json(path, line), line))
    };
    wrote?;
    Ok(match read {
        Err(why) => Copied::Failed(written, why),
        Ok(()) if cut => Copied::Cut(written),
        Ok(()) => Copied::All(written),
    })
}

/// A file that is one JSON value; `None`: it is another kind of file.
fn read_json(path: &Path) -> io::Result<Option<Value>> {
    let mut text = Vec::new();
    open_file(path)?.take(FILE_TEXT).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text).ok())
}

pub(super) fn as_json(path: &Path, line: &str) -> Option<Value> {
    let lines = path.extension().is_some_and(|e| e == "jsonl");
    lines.then(|| serde_json::from_str(line).ok()).flatten()
}

/// Calls `with` for each line until it says `false`. A line that is too long is not looked
/// into, and a note stands in its place.
pub(super) fn each_line(
    path: &Path,
    with: &mut dyn FnMut(&str) -> io::Result<bool>,
) -> io::Result<()> {
    let mut lines = BufReader::new(open_file(path)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        let n = (&mut lines).take(LINE).read_until(b'\n', &mut line)?;
        if n == 0 {
            return Ok(());
        }
        let whole = line.last() == Some(&b'\n');
        let goes_on = if !whole && n as u64 == LINE {
            let more = skip_line(&mut lines)?;
            with("[a line of more than 1 MiB was left out]")? && more
        } else {
            let text = String::from_utf8_lossy(&line);
            with(text.trim_end_matches(['\n', '\r']))?
        };
        if !goes_on {
            return Ok(());
        }
    }
}
