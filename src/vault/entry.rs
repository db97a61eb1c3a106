//! One entry of the vault: a file, or a job with its picture.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{Mode, OFlags};

use crate::model::Bytes;

use super::Digest;
use super::jobs::Job;
use super::safetensors::{self, Header, HeaderError, Tensor};

/// Name of a file that is being written, before the writer's process id.
const PART: &str = ".part-";
/// A job's file is no longer; graphs of ComfyUI may carry pictures of their editor.
const LONGEST_JOB: u64 = 64 << 20;

/// What an entry is, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Latents before a decode.
    Latents,
    /// A finished section of FramePack.
    Section,
    /// A finished step of a diffusers transformer.
    Step,
    /// A job of FramePack.
    Job,
    /// The queue of a ComfyUI.
    Queue,
    /// Half written.
    Part,
    /// None of ours.
    Foreign,
}

impl Kind {
    /// The word for it, the same as in file names.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Latents => "latents",
            Self::Section => "section",
            Self::Step => "step",
            Self::Job => "job",
            Self::Queue => "queue",
            Self::Part => "part",
            Self::Foreign => "foreign",
        }
    }
}

/// What is in an entry that is whole.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Latents, a section with the random sources' states, or a step.
    Tensors(Header),
    /// A job, or a queue of them.
    Job(Job),
}

/// How an entry stands; texts are fragments.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// Can be used.
    Whole(Content),
    /// A part of it is missing.
    Torn(String),
    /// Of another version, or none of ours.
    Foreign(String),
}

/// One entry of the vault.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Name of the file.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// The run, as the file is named.
    pub run: Option<String>,
    /// Bytes, of a job with its picture.
    pub bytes: Bytes,
    /// When it was written.
    pub written: Option<SystemTime>,
    /// A job's picture.
    pub picture: Option<PathBuf>,
    /// How it stands.
    pub state: State,
}

impl Entry {
    /// Looks at one file; `None`: it is gone, or it is a picture, which its job tells of.
    pub(super) fn at(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy().into_owned();
        let about = path.symlink_metadata().ok()?;
        let (kind, run) = named(&name);
        let mut entry = Self {
            kind,
            run: run.map(str::to_owned),
            bytes: Bytes(about.len()),
            written: about.modified().ok(),
            picture: None,
            state: State::Torn("half written, and its writer is gone".to_owned()),
            path: path.to_owned(),
            name,
        };
        entry.state = if about.is_dir() {
            entry.kind = Kind::Foreign;
            State::Foreign("it is a folder".to_owned())
        } else if !about.is_file() {
            entry.kind = Kind::Foreign;
            State::Foreign("it is no regular file".to_owned())
        } else {
            match entry.kind {
                Kind::Part => match entry.writer() {
                    Some(pid) => State::Torn(format!("process {pid} is writing it")),
                    None => entry.state,
                },
                Kind::Foreign => State::Foreign("its name is none of the vault's".to_owned()),
                Kind::Latents | Kind::Section | Kind::Step => tensors(path, about.len()),
                Kind::Job | Kind::Queue => job(path, entry.kind, about.len()),
            }
        };
        if let State::Whole(Content::Job(Job::FramePack(job))) = &entry.state {
            let picture = path.with_file_name(&job.image);
            match picture.symlink_metadata() {
                Ok(about) if about.is_file() => {
                    entry.bytes = Bytes(entry.bytes.0 + about.len());
                    entry.picture = Some(picture);
                }
                _ => entry.state = State::Torn(format!("its picture {} is missing", job.image)),
            }
        }
        Some(entry)
    }

    /// The process that writes this half-written file, while it is alive.
    pub(super) fn writer(&self) -> Option<u32> {
        let pid = self.name.strip_prefix(PART)?.split('-').next()?;
        let pid: u32 = pid.parse().ok()?;
        Path::new(&format!("/proc/{pid}")).exists().then_some(pid)
    }

    /// What it holds, where it is whole.
    pub const fn content(&self) -> Option<&Content> {
        match &self.state {
            State::Whole(content) => Some(content),
            _ => None,
        }
    }

    /// The job, where it is one.
    pub const fn job(&self) -> Option<&Job> {
        match self.content() {
            Some(Content::Job(job)) => Some(job),
            _ => None,
        }
    }

    /// The header of its tensors, where it has some.
    pub const fn header(&self) -> Option<&Header> {
        match self.content() {
            Some(Content::Tensors(header)) => Some(header),
            _ => None,
        }
    }

    /// Whether its header was changed after it had been written.
    pub fn is_header_changed(&self) -> bool {
        self.header()
            .is_some_and(|header| header.seal == Digest::Differs)
    }

    /// What the metadata says under this name.
    pub fn says(&self, name: &str) -> Option<&str> {
        self.header()?.metadata.get(name).map(String::as_str)
    }

    /// The latents, or what a step gave.
    pub fn latents(&self) -> Option<&Tensor> {
        main_tensor(self.header()?)
    }

    /// Attempt of the run.
    pub fn attempt(&self) -> Option<&str> {
        match self.content()? {
            Content::Tensors(_) => self.says("attempt"),
            Content::Job(job) => job.attempt(),
        }
    }

    /// How long ago it was written; zero when the clock was set back.
    pub fn age(&self, now: SystemTime) -> Option<Duration> {
        Some(now.duration_since(self.written?).unwrap_or_default())
    }
}

/// What a name says: the kind, and the run.
fn named(name: &str) -> (Kind, Option<&str>) {
    if name.starts_with(PART) {
        return (Kind::Part, None);
    }
    let parts: Vec<&str> = name.split('.').collect();
    let (kind, run, end) = match parts[..] {
        ["latents", run, _, end] => (Kind::Latents, run, end == "safetensors"),
        ["section", run, _, end] => (Kind::Section, run, end == "safetensors"),
        ["step", run, _, end] => (Kind::Step, run, end == "safetensors"),
        ["job", run, _, end] => (Kind::Job, run, end == "json"),
        ["queue", run, _, end] => (Kind::Queue, run, end == "json"),
        _ => return (Kind::Foreign, None),
    };
    if end {
        (kind, Some(run))
    } else {
        (Kind::Foreign, None)
    }
}

fn main_tensor(header: &Header) -> Option<&Tensor> {
    header.tensor("latents").or_else(|| header.tensor("out"))
}

fn tensors(path: &Path, size: u64) -> State {
    let read = open(path)
        .map_err(|e| HeaderError::Io(e.to_string()))
        .and_then(|mut file| safetensors::read(&mut file, size));
    match read {
        Ok(header) => match header.metadata.get("version").map(String::as_str) {
            Some(super::VERSION) if main_tensor(&header).is_some() => {
                State::Whole(Content::Tensors(header))
            }
            Some(super::VERSION) => {
                State::Foreign("it holds neither latents nor a step".to_owned())
            }
            Some(other) => State::Foreign(format!(
                "it is of version {other}, and this program reads version {}",
                super::VERSION
            )),
            None => State::Foreign("its metadata name no version".to_owned()),
        },
        Err(HeaderError::Torn { missing }) => {
            State::Torn(format!("{missing} bytes are missing at its end"))
        }
        Err(e) => State::Foreign(e.to_string()),
    }
}

fn job(path: &Path, kind: Kind, size: u64) -> State {
    if size > LONGEST_JOB {
        return State::Foreign(format!("it is larger than {}", Bytes(LONGEST_JOB)));
    }
    let mut text = Vec::new();
    let read = open(path).and_then(|file| file.take(LONGEST_JOB).read_to_end(&mut text));
    if let Err(e) = read {
        return State::Foreign(format!("it cannot be read: {e}"));
    }
    match (Job::parse(&text), kind) {
        (Ok(job @ Job::FramePack(_)), Kind::Job)
        | (Ok(job @ (Job::ComfyUi(_) | Job::Studio(_))), Kind::Queue) => {
            State::Whole(Content::Job(job))
        }
        (Ok(_), _) => State::Foreign("name and content do not fit".to_owned()),
        (Err(super::JobError::Torn(why)), _) => State::Torn(why),
        (Err(e), _) => State::Foreign(e.to_string()),
    }
}

/// Opens a regular file of the vault. No link is followed and no pipe is waited for.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no regular file",
        ))
    }
}
