//! The tail of the kernel's log, as far as it is about GPUs, memory or hung tasks.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read};

use super::output::Output;

/// Lines that are kept.
const MAX_LINES: usize = 1000;
/// Longest record of `/dev/kmsg`.
const RECORD: usize = 8192;

/// Words of the lines that matter, in lower case.
const WORDS: &[&str] = &[
    "amdgpu",
    "amdkfd",
    "kfd",
    "[drm",
    "nvrm",
    "xid",
    "nvidia",
    "oom",
    "out of memory",
    "killed process",
    "blocked for more than",
    "segfault",
    "general protection",
    "iommu",
    "amd-vi",
    "pcieport",
    "mce:",
    "machine check",
    "thermal",
    "suspend",
    "i/o error",
];

/// Lines that the run has seen, then what the ring buffer holds now.
pub(super) fn collect(out: &Output, seen: &[String]) -> Result<(), String> {
    if !seen.is_empty() {
        out.line("==== seen during the run");
        for line in seen {
            out.line(line);
        }
    }
    out.doing("while reading /dev/kmsg");
    let kmsg = open(
        "/dev/kmsg",
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(not_readable)?;
    let lines = tail(&kmsg, out).map_err(not_readable)?;
    out.line("==== kernel log, lines on GPUs, memory and hung tasks");
    if lines.is_empty() {
        out.line("(none)");
    }
    for line in lines {
        out.line(line);
    }
    Ok(())
}

fn not_readable(e: Errno) -> String {
    let e = std::io::Error::from(e);
    format!("/dev/kmsg is not readable ({e}); `sudo sysctl kernel.dmesg_restrict=0` opens it")
}

/// Each read gives one record; none is left when the read would block.
fn tail(kmsg: &OwnedFd, out: &Output) -> Result<VecDeque<String>, Errno> {
    let mut lines = VecDeque::new();
    let mut record = vec![0; RECORD];
    while !out.is_closed() {
        match read(kmsg, &mut record[..]) {
            Ok(0) | Err(Errno::AGAIN) => break,
            // The oldest records were overwritten meanwhile: reading goes on at
            // the first that is left.
            Err(Errno::PIPE | Errno::INTR) => {}
            Err(e) => return Err(e),
            Ok(n) => {
                if let Some(line) = line_of(&record[..n]) {
                    lines.push_back(line);
                }
                if lines.len() > MAX_LINES {
                    lines.pop_front();
                }
            }
        }
    }
    Ok(lines)
}

/// `6,339,5140900,-;NET: Registered …` as `[    5.140900] NET: …`, if it matters.
fn line_of(record: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(record);
    let (head, text) = text.split_once(';')?;
    // Lines that begin with a space are the record's dictionary.
    let text = text.lines().next()?;
    let lower = text.to_lowercase();
    if !WORDS.iter().any(|w| lower.contains(w)) {
        return None;
    }
    let micros: u64 = head.split(',').nth(2)?.parse().ok()?;
    let (s, us) = (micros / 1_000_000, micros % 1_000_000);
    Some(format!("[{s:5}.{us:06}] {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_lines_that_matter_are_kept() {
        assert_eq!(
            line_of(b"3,1,5140900,-;amdgpu 0000:0c:00.0: ring gfx timeout\n SUBSYSTEM=pci\n"),
            Some("[    5.140900] amdgpu 0000:0c:00.0: ring gfx timeout".to_owned())
        );
        assert_eq!(line_of(b"6,2,1,-;usb 1-1: new device\n"), None);
        assert_eq!(line_of(b""), None);
    }

    proptest! {
        #[test]
        fn no_record_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            line_of(&bytes);
        }
    }
}
