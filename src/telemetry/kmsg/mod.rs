//! Lines of the kernel log about GPUs, and about processes that were killed.

mod journal;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::file;
use super::source::{Answer, Source, SourceError, lock};
use journal::Journal;

/// Lines that wait to be fetched; more push the oldest out.
const KEEP: usize = 500;
/// A record of `/dev/kmsg` is at most 8 KiB; a smaller buffer gets EINVAL.
const RECORD: usize = 16 << 10;
/// Reads in one round, so that a storm of lines does not hold the thread.
const READS: usize = 2000;
/// Longest line that is kept.
const LONGEST: usize = 1024;
/// A journal that ended is started again after this time at the earliest.
const AGAIN: Duration = Duration::from_mins(1);

/// Lower-case words of which a line must have one.
const WORDS: &[&str] = &[
    "amdgpu",
    "kfd",
    "gpu",
    "[drm",
    "[ttm]",
    "drm:",
    "nvrm",
    "xid",
    "oom-kill",
    "oom_kill",
    "oom killer",
    "oom_reaper",
    "out of memory",
    "segfault",
    "general protection",
];

/// Lines that were read and not fetched yet.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    queue: Mutex<(VecDeque<String>, u64)>,
}

impl Lines {
    /// Adds one.
    pub(crate) fn push(&self, line: String) {
        let mut queue = lock(&self.queue);
        if queue.0.len() >= KEEP {
            queue.0.pop_front();
            queue.1 += 1;
        }
        queue.0.push_back(line);
    }

    /// Takes every line; says so where some were pushed out.
    pub(crate) fn drain(&self) -> Vec<String> {
        let mut queue = lock(&self.queue);
        let lost = std::mem::take(&mut queue.1);
        let note = (lost > 0).then(|| format!("({lost} earlier kernel lines were dropped)"));
        note.into_iter().chain(queue.0.drain(..)).collect()
    }
}

/// Follows `/dev/kmsg`, or a plain file that grows; where it may not be opened, and a
/// journal reader is given, that one's output.
#[derive(Debug)]
pub(crate) struct KernelLog {
    path: PathBuf,
    lines: Arc<Lines>,
    open: Option<Open>,
    /// `journalctl`, or nothing: then only the file counts.
    journalctl: Option<OsString>,
    journal: Option<Journal>,
    /// Why the journal is of no use either, and when that was found.
    no_journal: Option<(Instant, SourceError)>,
    /// The first opening skips what is old; a file that appears later is new, and one
    /// that could not be read goes on here.
    resume: Option<u64>,
}

#[derive(Debug)]
struct Open {
    file: File,
    device: bool,
    offset: u64,
    partial: Vec<u8>,
}

impl KernelLog {
    /// A follower of `path` from its present end on.
    pub(crate) fn new(path: PathBuf, journalctl: Option<OsString>, lines: Arc<Lines>) -> Self {
        Self {
            path,
            lines,
            open: None,
            journalctl,
            journal: None,
            no_journal: None,
            resume: None,
        }
    }

    fn open(&self) -> io::Result<Open> {
        let mut file = rustix::fs::open(
            &self.path,
            rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC,
            rustix::fs::Mode::empty(),
        )
        .map(File::from)?;
        let device = file.metadata()?.file_type().is_char_device();
        let end = file.seek(SeekFrom::End(0))?;
        let offset = match self.resume {
            // shorter than it was: another file in its place
            Some(at) if !device => at * u64::from(at <= end),
            _ => end,
        };
        Ok(Open {
            file,
            device,
            offset,
            partial: Vec::new(),
        })
    }

    fn follow(&mut self) -> io::Result<()> {
        let lines = Arc::clone(&self.lines);
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.open()?,
        };
        let result = if open.device {
            open.records(&lines)
        } else {
            open.appended(&self.path, &lines)
        };
        self.open = Some(open);
        result
    }
}

impl KernelLog {
    /// The device is closed to us, or a container shows none: the journal may be open.
    fn through_journal(&mut self, kind: io::ErrorKind) -> Result<Answer<()>, SourceError> {
        let path = self.path.display();
        let closed = if kind == io::ErrorKind::NotFound {
            format!("{path} is not there")
        } else {
            format!("{path} may not be read; cure: root, or kernel.dmesg_restrict 0")
        };
        let Some(program) = &self.journalctl else {
            return Err(SourceError::Absent(closed));
        };
        if let Some((at, why)) = &self.no_journal
            && at.elapsed() < AGAIN
        {
            return Err(why.clone());
        }
        match Journal::start(program) {
            Ok(journal) => {
                self.journal = Some(journal);
                Ok(Answer::good(()))
            }
            Err(error) => {
                let why = if error.kind() == io::ErrorKind::NotFound {
                    "there is no journalctl either".to_owned()
                } else {
                    format!("journalctl could not be started: {error}")
                };
                Err(self.give_up_journal(SourceError::Absent(format!("{closed}; {why}"))))
            }
        }
    }

    fn give_up_journal(&mut self, error: SourceError) -> SourceError {
        self.journal = None;
        self.no_journal = Some((Instant::now(), error.clone()));
        error
    }
}

impl Open {
    /// Each read of the device is one record.
    fn records(&mut self, lines: &Lines) -> io::Result<()> {
        let mut buffer = vec![0; RECORD];
        for _ in 0..READS {
            match self.file.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => keep(&buffer[..n], lines),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                // EPIPE: records were overwritten before we read them; go on with
                // the oldest that is left.
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn appended(&mut self, path: &Path, lines: &Lines) -> io::Result<()> {
        let size = std::fs::metadata(path)?.len();
        if size < self.offset {
            // Cut off, or another file in its place.
            self.file = File::open(path)?;
            self.offset = 0;
            self.partial.clear();
        }
        self.file.seek(SeekFrom::Start(self.offset))?;
        let mut new = Vec::new();
        let n = (&self.file).take(1 << 20).read_to_end(&mut new)?;
        self.offset += n as u64;
        self.partial.append(&mut new);
        while let Some(end) = self.partial.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = self.partial.drain(..=end).collect();
            keep(&line, lines);
        }
        self.partial.truncate(RECORD);
        Ok(())
    }
}

fn keep(record: &[u8], lines: &Lines) {
    if let Some(line) = message(record).filter(|line| matters(line)) {
        lines.push(line);
    }
}

/// The message of a record: `6,1234,98765,-;text`, with further lines of
/// `KEY=value` below. A line without such a head is taken as it is.
pub(crate) fn message(record: &[u8]) -> Option<String> {
    let text = file::text_of(record);
    let first = text.lines().next()?;
    let is_head = |head: &str| {
        let numbers = head.split(',').take(3);
        head.matches(',').count() >= 3
            && numbers
                .into_iter()
                .all(|n| n.bytes().all(|b| b.is_ascii_digit()))
    };
    let line = match first.split_once(';') {
        Some((head, rest)) if is_head(head) => rest,
        _ => first,
    };
    let line: String = line
        .chars()
        .filter(|c| !c.is_control())
        .take(LONGEST)
        .collect();
    (!line.is_empty()).then_some(line)
}

/// Whether a line is about a GPU or a killed process.
fn matters(line: &str) -> bool {
    let line = line.to_lowercase();
    !is_identifier(&line) && WORDS.iter().any(|word| line.contains(word))
}

/// Whether a line, in lower case, only says which card it is, as NVIDIA's driver does
/// beside each Xid: `NVRM: GPU at PCI:0000:03:00: GPU-<uuid>` and its serial number.
fn is_identifier(line: &str) -> bool {
    let Some((_, said)) = line.split_once("nvrm: gpu ") else {
        return false;
    };
    said.starts_with("board serial number")
        || (said.starts_with("at pci:") && said.contains(": gpu-"))
}

impl Source for KernelLog {
    type Reading = ();

    fn name(&self) -> String {
        "kernel log".to_owned()
    }

    fn read(&mut self) -> Result<Answer<()>, SourceError> {
        if let Some(journal) = &mut self.journal {
            return match journal.read(&self.lines) {
                Ok(()) => Ok(Answer::good(())),
                Err(error) => Err(self.give_up_journal(error)),
            };
        }
        let Err(error) = self.follow() else {
            return Ok(Answer::good(()));
        };
        let path = self.path.display();
        let kind = error.kind();
        let failed = SourceError::Failed(format!("{path}: {error}"));
        if let Some(open) = self.open.take() {
            // what was begun is read again as a whole
            self.resume = Some(open.offset.saturating_sub(open.partial.len() as u64));
        }
        match kind {
            io::ErrorKind::NotFound => {
                self.resume = Some(0);
                self.through_journal(kind)
            }
            io::ErrorKind::PermissionDenied => self.through_journal(kind),
            _ => Err(failed),
        }
    }
}

#[cfg(test)]
mod tests;
