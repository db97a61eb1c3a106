//! Makes a bundle.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::model::Envelope;
use crate::record::list::open_file;
use crate::record::queue::Class;
use crate::record::reader::{Events, ReadError};
use crate::record::redact::{Own, Redactor};
use crate::record::store::MANIFEST;
use crate::record::story::Story;

use super::draft::Draft;
use super::summary;
use super::{BUNDLE_FORMAT, CONTENTS, Contents, EVENTS_MEMBER, Member};

/// Member for people.
const README: &str = "README.md";
/// Text of events in a bundle. Packed it is a fraction of that: trackers take 25 MB.
const EVENTS_TEXT: u64 = 96 << 20;
/// Text of evidence in a bundle, and of one file of it.
const EVIDENCE_TEXT: u64 = 48 << 20;
const FILE_TEXT: u64 = 8 << 20;
/// Longest line of evidence that is looked into.
const LINE: u64 = 1 << 20;
/// Files of evidence.
const FILES: usize = 400;

/// Why no bundle was made.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The record cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The place does not take it: no such folder, no permission, a full disk, …
    #[error("write {}: {source}; name another place with -o", path.display())]
    Io {
        /// The bundle; what goes into it is put beside it first.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// There is something of that name, and it was not asked to be replaced.
    #[error("write {}: it is there already and stays as it is; name another file with -o, or replace it with --force", path.display())]
    Exists {
        /// Which file.
        path: PathBuf,
    },
    /// There is something of that name that is no file: a device, a pipe, a folder.
    #[error("write {}: it is there already and is no file; name a file with -o", path.display())]
    NoFile {
        /// Which.
        path: PathBuf,
    },
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The file that is made. It has this name only once it is whole.
    pub out: &'a Path,
    /// A file of that name is replaced.
    pub replace: bool,
    /// Prompts stay in.
    pub with_prompt: bool,
}

impl Wanted<'_> {
    /// Whether what is there may be replaced, and can be.
    fn check(&self) -> Result<(), ExportError> {
        let path = || self.out.to_owned();
        match self.out.symlink_metadata() {
            Ok(there) if !(there.is_file() || there.is_symlink()) => {
                Err(ExportError::NoFile { path: path() })
            }
            Ok(_) if !self.replace => Err(ExportError::Exists { path: path() }),
            _ => Ok(()),
        }
    }
}

/// What was made.
#[derive(Debug, Clone)]
pub struct Exported {
    /// What is in it.
    pub contents: Contents,
    /// Its length in bytes.
    pub bytes: u64,
}

/// Writes a bundle of the run in the folder `run`. The record is read twice, in bounded
/// memory.
pub fn export(
    run: &Path,
    id: &str,
    own: &Own,
    wanted: Wanted<'_>,
) -> Result<Exported, ExportError> {
    let Wanted {
        out,
        replace,
        with_prompt,
    } = wanted;
    let wrote = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => ExportError::Exists {
            path: out.to_owned(),
        },
        _ => ExportError::Io {
            path: out.to_owned(),
            source,
        },
    };
    wanted.check()?;
    let mut redactor = Redactor::new(own, with_prompt);
    let files = evidence_files(run);
    let lengths = learn(run, &files, &mut redactor)?;
    redactor.seal();

    let (draft, packed) = Draft::new(out, "part").map_err(wrote)?;
    let (_spool, spool) = Draft::new(out, "spool").map_err(wrote)?;
    let mut spool = Spool::new(spool);
    let mut contents = Contents {
        format: BUNDLE_FORMAT.to_owned(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        run: redactor.text(id),
        with_prompt,
        members: Vec::new(),
        left_out: Vec::new(),
        redactions: std::collections::BTreeMap::new(),
    };
    let story = events(run, out, lengths, &mut redactor, &mut spool, &mut contents)?;
    manifest(run, &mut redactor, &mut spool).map_err(wrote)?;
    evidence(run, &files, &mut redactor, &mut spool, &mut contents).map_err(wrote)?;
    contents.redactions.clone_from(redactor.counts());
    contents.members = spool.members();
    let readme = summary::page(&story, &contents);
    let bytes = archive(packed, &contents, &readme, spool).map_err(wrote)?;
    draft.publish(out, replace).map_err(wrote)?;
    Ok(Exported { contents, bytes })
}

/// Members on disk, one after the other, until their lengths are known.
struct Spool {
    file: BufWriter<File>,
    members: Vec<(String, u64)>,
}

impl Spool {
    fn new(file: File) -> Self {
        Self {
            file: BufWriter::new(file),
            members: Vec::new(),
        }
    }

    fn begin(&mut self, name: String) {
        self.members.push((name, 0));
    }

    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        if let Some(last) = self.members.last_mut() {
            last.1 += bytes.len() as u64;
        }
        Ok(())
    }

    fn members(&self) -> Vec<Member> {
        let each = self.members.iter();
        each.map(|(name, bytes)| Member {
            name: name.clone(),
            bytes: *bytes,
        })
        .collect()
    }
}

/// Files below `evidence/`, by their names within the run; what is no plain file is not
/// followed.
fn evidence_files(run: &Path) -> Vec<PathBuf> {
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

/// Reads everything once. Gives the bytes of all events, and of those that must stay.
fn learn(
    run: &Path,
    files: &[PathBuf],
    redactor: &mut Redactor,
) -> Result<(u64, u64), ExportError> {
    let mut lengths = (0, 0);
    let mut events = Events::open(run)?;
    while let Some((envelope, line)) = events.next()? {
        lengths.0 += line.len() as u64;
        if Class::of(&envelope.event) != Class::Expendable {
            lengths.1 += line.len() as u64;
        }
        // readings hold no words of the user
        if !matches!(
            envelope.event,
            crate::model::Event::Sample(_) | crate::model::Event::Tick
        ) && let Ok(value) = serde_json::from_slice::<Value>(line)
        {
            redactor.learn_json(&value);
        }
    }
    events.require_any()?;
    for path in files.iter().take(FILES) {
        // what cannot be read is told when it would be written
        let _ = each_line(path, &mut |line| {
            match as_json(path, line) {
                Some(value) => redactor.learn_json(&value),
                None => redactor.learn(line),
            }
            Ok(true)
        });
    }
    Ok(lengths)
}

fn events(
    run: &Path,
    out: &Path,
    (all, kept): (u64, u64),
    redactor: &mut Redactor,
    spool: &mut Spool,
    contents: &mut Contents,
) -> Result<Story, ExportError> {
    let mut story = Story::default();
    let mut events = Events::open(run)?;
    // of a long run the beginning and the end are whole
    let room = EVENTS_TEXT.saturating_sub(kept.min(EVENTS_TEXT));
    let (head, tail) = (room / 4, all.saturating_sub(room / 4 * 3));
    let (mut read, mut written, mut thinned, mut lost, mut unreadable) =
        (0, 0, 0_u64, 0_u64, 0_u64);
    spool.begin(EVENTS_MEMBER.to_owned());
    while let Some((envelope, line)) = events.next()? {
        read += line.len() as u64;
        let middle = all > EVENTS_TEXT && read > head && read < tail;
        if middle && Class::of(&envelope.event) == Class::Expendable {
            thinned += 1;
            continue;
        }
        let Some((redacted, text)) = redact(&envelope, line, redactor) else {
            unreadable += 1;
            continue;
        };
        story.take(&redacted);
        if written + text.len() as u64 > EVENTS_TEXT * 2 {
            lost += 1;
            continue;
        }
        written += text.len() as u64;
        spool
            .add(text.as_bytes())
            .map_err(|source| ExportError::Io {
                path: out.to_owned(),
                source,
            })?;
    }
    let limit = EVENTS_TEXT >> 20;
    let told = [
        (
            thinned,
            format!(
                "readings, console lines and ticks in the middle of the run: the events are longer than {limit} MiB"
            ),
        ),
        (
            lost,
            format!("events at the end: more than {} MiB", limit * 2),
        ),
        (
            unreadable,
            "events that are none any more without their private texts".to_owned(),
        ),
    ];
    contents.left_out.extend(
        told.into_iter()
            .filter(|t| t.0 > 0)
            .map(|(n, what)| format!("{n} {what}")),
    );
    contents.left_out.extend(
        events
            .warnings()
            .iter()
            .map(|w| redactor.text(&format!("the record: {w}"))),
    );
    Ok(story)
}

/// The event without private texts, which is still one.
fn redact(envelope: &Envelope, line: &[u8], redactor: &mut Redactor) -> Option<(Envelope, String)> {
    let value: Value = serde_json::from_slice(line).ok()?;
    let redacted = redactor.json(&value);
    let mut text = serde_json::to_string(&redacted).ok()?;
    text.push('\n');
    if redacted == value {
        return Some((envelope.clone(), text));
    }
    let event = serde_json::from_str(&text).ok()?;
    Some((event, text))
}

fn manifest(run: &Path, redactor: &mut Redactor, spool: &mut Spool) -> io::Result<()> {
    let Ok(text) = fs::read_to_string(run.join(MANIFEST)) else {
        return Ok(());
    };
    let Ok(value) = serde_json::from_str::<Value>(&text) else {
        return Ok(());
    };
    let redacted = redactor.json(&value);
    spool.begin(MANIFEST.to_owned());
    spool.add(&serde_json::to_vec_pretty(&redacted)?)?;
    spool.add(b"\n")
}

fn evidence(
    run: &Path,
    files: &[PathBuf],
    redactor: &mut Redactor,
    spool: &mut Spool,
    contents: &mut Contents,
) -> io::Result<()> {
    let mut room = EVIDENCE_TEXT;
    for (n, path) in files.iter().enumerate() {
        let name = path.strip_prefix(run).unwrap_or(path).display().to_string();
        let name = redactor.text(&name);
        if n >= FILES || room == 0 {
            contents
                .left_out
                .push(format!("{name}: there is too much evidence"));
            continue;
        }
        spool.begin(name.clone());
        let mut left = room.min(FILE_TEXT);
        let mut cut = false;
        let mut wrote = Ok(());
        let read = each_line(path, &mut |line| {
            let mut text = match as_json(path, line) {
                Some(value) => serde_json::to_string(&redactor.json(&value))?,
                None => redactor.text(line),
            };
            text.push('\n');
            if text.len() as u64 > left {
                cut = true;
                return Ok(false);
            }
            left -= text.len() as u64;
            room -= text.len() as u64;
            wrote = spool.add(text.as_bytes());
            Ok(wrote.is_ok())
        });
        wrote?;
        if let Err(e) = read {
            let why = redactor.text(&e.to_string());
            contents
                .left_out
                .push(format!("{name}, all or a part of it: {why}"));
        } else if cut {
            let mib = FILE_TEXT >> 20;
            contents.left_out.push(format!(
                "the rest of {name}: more than {mib} MiB, or too much evidence"
            ));
        }
    }
    Ok(())
}

fn as_json(path: &Path, line: &str) -> Option<Value> {
    let lines = path.extension().is_some_and(|e| e == "jsonl");
    lines.then(|| serde_json::from_str(line).ok()).flatten()
}

/// Calls `with` for each line until it says `false`. A line that is too long is not looked
/// into, and a note stands in its place.
fn each_line(path: &Path, with: &mut dyn FnMut(&str) -> io::Result<bool>) -> io::Result<()> {
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
            crate::record::reader::skip_line(&mut lines)?;
            with("[a line of more than 1 MiB was left out]")?
        } else {
            let text = String::from_utf8_lossy(&line);
            with(text.trim_end_matches(['\n', '\r']))?
        };
        if !goes_on {
            return Ok(());
        }
    }
}

/// Puts the archive together; gives its length.
fn archive(part: File, contents: &Contents, readme: &str, spool: Spool) -> io::Result<u64> {
    let folder = format!("framepack-tui-{}", contents.run);
    let packed = GzEncoder::new(BufWriter::new(part), Compression::best());
    let mut archive = tar::Builder::new(packed);
    let mut add = |name: &str, bytes: u64, data: &mut dyn Read| {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes);
        header.set_mode(0o644);
        header.set_mtime(0);
        archive.append_data(&mut header, format!("{folder}/{name}"), data)
    };
    add(README, readme.len() as u64, &mut readme.as_bytes())?;
    let mut table = serde_json::to_vec_pretty(contents)?;
    table.push(b'\n');
    add(CONTENTS, table.len() as u64, &mut table.as_slice())?;
    let mut file = spool
        .file
        .into_inner()
        .map_err(io::IntoInnerError::into_error)?;
    file.seek(SeekFrom::Start(0))?;
    let mut file = BufReader::new(file);
    for (name, bytes) in &spool.members {
        add(name, *bytes, &mut (&mut file).take(*bytes))?;
    }
    let file = archive.into_inner()?.finish()?;
    let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    Ok(file.metadata()?.len())
}
