//! Texts of `/proc` in bounds, and the words for what may not be read.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::super::file::ReadError;

/// Characters of a link, a path or an address in a probe.
const MOST_CHARS: usize = 300;

/// The text, cut to its bound.
pub(super) fn clip(text: &str) -> String {
    text.chars().take(MOST_CHARS).collect()
}

/// The beginning of a file, up to `limit` bytes.
pub(super) fn limited(path: &Path, limit: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether the kernel refused to show something.
pub(super) fn is_refusal(error: &ReadError) -> bool {
    const EPERM: i32 = 1;
    const EACCES: i32 = 13;
    matches!(
        error,
        ReadError::Os {
            errno: EPERM | EACCES,
            ..
        }
    )
}

/// Why something of the process in `dir` was refused. `yama` is the kernel's setting
/// `ptrace_scope`, where it has one.
pub(super) fn refusal(dir: &Path, yama: Option<u32>) -> String {
    let us = rustix::process::geteuid().as_raw();
    match fs::metadata(dir) {
        Ok(of) if of.uid() != us => {
            format!(
                "it belongs to another user (uid {}): run as that one",
                of.uid()
            )
        }
        _ => match yama {
            Some(scope) if scope > 0 => {
                format!("no right to trace it: kernel.yama.ptrace_scope is {scope}")
            }
            _ => "no right to trace it: it protects itself, or a sandbox does".to_owned(),
        },
    }
}
