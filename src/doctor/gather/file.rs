//! Small bounded reads, and whether a folder may be written to.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// The text of a small file, trimmed; `None` where it cannot be read.
pub(super) fn text(path: &Path, limit: u64) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|f| f.take(limit).read_to_end(&mut bytes))
        .ok()?;
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// Names in a folder, sorted, at most `limit`; nothing where it cannot be read.
pub(super) fn names(folder: &Path, limit: usize) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let names = entries.flatten().take(limit);
    let mut names: Vec<String> = names
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The folder itself, or the nearest one above it that exists, and which of the two.
pub(super) fn nearest(path: &Path) -> (PathBuf, bool) {
    let found = path.ancestors().find(|p| p.is_dir());
    (
        found.unwrap_or_else(|| Path::new("/")).to_owned(),
        found == Some(path),
    )
}

/// Why nothing can be written into the folder; `None`: it can.
pub(super) fn not_writable(folder: &Path) -> Option<String> {
    let rights = Access::WRITE_OK | Access::EXEC_OK;
    access(folder, rights)
        .err()
        .map(|e| words(&io::Error::from(e)))
}

/// An error's words without the number.
pub(super) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
}
