//! Lines of the kernel log about GPUs, and about processes that were killed.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::file;
use super::source::{Answer, Source, SourceError, lock};

/// Lines that wait to be fetched; more push the oldest out.
const KEEP: usize = 500;
/// A record of `/dev/kmsg` is at most 8 KiB; a smaller buffer gets EINVAL.
const RECORD: usize = 16 << 10;
/// Reads in one round, so that a storm of lines does not hold the thread.
const READS: usize = 2000;
/// Longest line that is kept.
const LONGEST: usize = 1024;

/// Lower-case words of which a line must have one.
const WORDS: &[&str] = &[
    "amdgpu",
    "kfd",
    "gpu",
    "[drm",
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
    fn push(&self, line: String) {
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

/// Follows `/dev/kmsg`, or a plain file that grows.
#[derive(Debug)]
pub(crate) struct KernelLog {
    path: PathBuf,
    lines: Arc<Lines>,
    open: Option<Open>,
    /// The first opening skips what is old; a file that appears later is new.
    seen_absent: bool,
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
    pub(crate) fn new(path: PathBuf, lines: Arc<Lines>) -> Self {
        Self {
            path,
            lines,
            open: None,
            seen_absent: false,
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
        let offset = if self.seen_absent && !device {
            0
        } else {
            file.seek(SeekFrom::End(0))?
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
fn message(record: &[u8]) -> Option<String> {
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
    WORDS.iter().any(|word| line.contains(word))
}

impl Source for KernelLog {
    type Reading = ();

    fn name(&self) -> String {
        "kernel log".to_owned()
    }

    fn read(&mut self) -> Result<Answer<()>, SourceError> {
        self.follow().map(Answer::good).map_err(|error| {
            self.open = None;
            let path = self.path.display();
            match error.kind() {
                io::ErrorKind::NotFound => {
                    self.seen_absent = true;
                    SourceError::Absent(format!("{path} is not there"))
                }
                io::ErrorKind::PermissionDenied => SourceError::Absent(format!(
                    "{path} cannot be read: needs root or group adm, and kernel.dmesg_restrict 0"
                )),
                _ => SourceError::Failed(format!("{path}: {error}")),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn append(path: &Path, text: &str) {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn a_growing_file_is_followed_from_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kmsg");
        append(&path, "amdgpu: old news\n");
        let lines = Arc::new(Lines::default());
        let mut log = KernelLog::new(path.clone(), Arc::clone(&lines));
        log.read().unwrap();
        assert_eq!(lines.drain(), Vec::<String>::new());
        append(
            &path,
            "6,1,2,-;usb 1-1: new device\n3,2,3,-;amdgpu 0000:0c:00.0: amdgpu: ring ",
        );
        log.read().unwrap();
        assert_eq!(lines.drain(), Vec::<String>::new());
        append(
            &path,
            "gfx_0.0.0 timeout\nOut of memory: Killed process 7 (python3)\n",
        );
        log.read().unwrap();
        assert_eq!(
            lines.drain(),
            [
                "amdgpu 0000:0c:00.0: amdgpu: ring gfx_0.0.0 timeout",
                "Out of memory: Killed process 7 (python3)"
            ]
        );
        std::fs::write(&path, "NVRM: Xid 79\n").unwrap();
        log.read().unwrap();
        assert_eq!(lines.drain(), ["NVRM: Xid 79"]);
    }

    #[test]
    fn a_file_that_comes_later_is_read_from_its_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kmsg");
        let lines = Arc::new(Lines::default());
        let mut log = KernelLog::new(path.clone(), Arc::clone(&lines));
        assert!(matches!(log.read(), Err(SourceError::Absent(_))));
        append(&path, "amdgpu: GPU reset begin!\n");
        log.read().unwrap();
        assert_eq!(lines.drain(), ["amdgpu: GPU reset begin!"]);
    }

    #[test]
    fn lines_about_other_things_are_left_out() {
        for line in [
            "amdgpu: MES failed",
            "NVRM: Xid (PCI:0000:03:00): 79",
            "python3[7]: segfault at 0",
            "python3 invoked oom-killer: gfp_mask=0x0",
            "[drm:foo] *ERROR* x",
        ] {
            assert!(matters(line), "{line}");
        }
        for line in ["usb 1-1: room for zoom", "EXT4-fs (sda1): mounted", ""] {
            assert!(!matters(line), "{line}");
        }
    }

    #[test]
    fn the_queue_is_bounded_and_says_what_was_dropped() {
        let lines = Lines::default();
        for n in 0..KEEP + 3 {
            lines.push(n.to_string());
        }
        let all = lines.drain();
        assert_eq!(all.len(), KEEP + 1);
        assert_eq!(all[0], "(3 earlier kernel lines were dropped)");
        assert_eq!(all[1], "3");
    }

    proptest! {
        #[test]
        fn any_record_is_survived(bytes: Vec<u8>) {
            if let Some(line) = message(&bytes) {
                prop_assert!(!line.is_empty() && !line.contains('\n'));
            }
        }

        #[test]
        fn the_head_is_cut_off(level in 0u8..192, seq: u64, us: u64, text in "[a-z][a-z ;,]{0,40}[a-z]") {
            let record = format!("{level},{seq},{us},-;{text}\n SUBSYSTEM=pci\n");
            prop_assert_eq!(message(record.as_bytes()), Some(text));
        }
    }
}
