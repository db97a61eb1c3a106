//! Makes a bundle.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::model::Envelope;
use crate::record::queue::Class;
use crate::record::reader::{Events, ReadError, read_small};
use crate::record::redact::{Mask, Own, Redactor};
use crate::record::store::{MANIFEST, RunId};
use crate::record::story::Story;

use super::draft::Draft;
use super::evidence::{FILES, as_json, each_line, evidence, evidence_files};
use super::spool::{Filter, Spool};
use super::summary;
use super::{BUNDLE_FORMAT, CONTENTS, Contents, EVENTS_MEMBER, FreeText};

/// Member for people.
const README: &str = "README.md";
/// Text of events in a bundle. Packed it is a fraction of that: trackers take 25 MB.
const EVENTS_TEXT: u64 = 96 << 20;
/// Number of the stream of lines that a file of evidence is; the console's have those before.
const OF_FILES: usize = 2;

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
    /// Which free text goes in.
    pub text: FreeText,
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
    let Wanted { out, replace, text } = wanted;
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
    let mut filter = Filter {
        mask: (text == FreeText::Masked).then(Mask::new),
        redactor: Redactor::new(own, text == FreeText::All),
    };
    let files = evidence_files(run);
    let lengths = learn(run, &files, &mut filter.redactor)?;
    filter.redactor.seal();
    // the folder of a run may have any name
    let id = id.parse::<RunId>().map_or("run", |_| id);

    let (draft, packed) = Draft::new(out, "part").map_err(wrote)?;
    let (_spool, spool) = Draft::new(out, "spool").map_err(wrote)?;
    let mut spool = Spool::new(spool);
    let mut contents = Contents {
        format: BUNDLE_FORMAT.to_owned(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        run: id.to_owned(),
        text,
        members: Vec::new(),
        left_out: Vec::new(),
        redactions: BTreeMap::new(),
        masked: BTreeMap::new(),
    };
    let story = events(run, out, lengths, &mut filter, &mut spool, &mut contents)?;
    manifest(run, &mut filter, &mut spool).map_err(wrote)?;
    evidence(run, &files, &mut filter, &mut spool, &mut contents).map_err(wrote)?;
    contents.redactions.clone_from(filter.redactor.counts());
    if let Some(mask) = &filter.mask {
        let counts = mask.counts().iter();
        contents.masked = counts.map(|(what, n)| ((*what).to_owned(), *n)).collect();
    }
    contents.members = spool.members();
    let readme = summary::page(&story, &contents);
    let bytes = archive(packed, &contents, &readme, spool).map_err(wrote)?;
    draft.publish(out, replace).map_err(wrote)?;
    Ok(Exported { contents, bytes })
}

/// How much free text a bundle would let out, by its names for people. Files count once.
pub fn free_text(run: &Path) -> Result<BTreeMap<&'static str, u64>, ExportError> {
    let mut mask = Mask::new();
    let mut events = Events::open(run)?;
    while let Some((envelope, _)) = events.next()? {
        if let Ok(value) = serde_json::to_value(&envelope) {
            mask.json(&value);
        }
    }
    events.require_any()?;
    let mut counts = mask.counts().clone();
    for path in evidence_files(run) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let what = if name.contains("stacks") {
            "files of stacks"
        } else if name.ends_with(".txt") {
            "other files of evidence"
        } else {
            continue;
        };
        *counts.entry(what).or_default() += 1;
    }
    Ok(counts)
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
        if let crate::model::Event::Line(line) = &envelope.event {
            redactor.learn_next(line.stream as usize, &line.text);
        }
    }
    events.require_any()?;
    for path in files.iter().take(FILES) {
        redactor.begin_stream(OF_FILES);
        // what cannot be read is told when it would be written
        let _ = each_line(path, &mut |line| {
            if let Some(value) = as_json(path, line) {
                redactor.learn_json(&value);
            } else {
                redactor.learn(line);
                redactor.learn_next(OF_FILES, line);
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
    filter: &mut Filter,
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
        let Some((redacted, text)) = redact(&envelope, line, filter) else {
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
            .map(|w| filter.sentence(&format!("the record: {}", w.text))),
    );
    Ok(story)
}

/// The event without private texts, which is still one.
fn redact(envelope: &Envelope, line: &[u8], filter: &mut Filter) -> Option<(Envelope, String)> {
    // fields that this version does not know are not in it
    let value = match filter.mask {
        Some(_) => serde_json::to_value(envelope).ok()?,
        None => serde_json::from_slice(line).ok()?,
    };
    let redacted = filter.json(&value);
    let mut text = serde_json::to_string(&redacted).ok()?;
    text.push('\n');
    if redacted == value {
        return Some((envelope.clone(), text));
    }
    let event = serde_json::from_str(&text).ok()?;
    Some((event, text))
}

fn manifest(run: &Path, filter: &mut Filter, spool: &mut Spool) -> io::Result<()> {
    let Ok(text) = read_small(&run.join(MANIFEST)) else {
        return Ok(());
    };
    let Ok(value) = serde_json::from_str::<Value>(&text) else {
        return Ok(());
    };
    let redacted = filter.json(&value);
    spool.begin(MANIFEST.to_owned());
    spool.add(&serde_json::to_vec_pretty(&redacted)?)?;
    spool.add(b"\n")
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
