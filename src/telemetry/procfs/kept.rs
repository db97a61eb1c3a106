//! A file of `/proc` that is read in every round and stays open between them: opening
//! one costs more than reading it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::super::file::{self, ReadError, ReadResult};

/// Longest text that is read from an open file; what is longer is read anew by its name.
const PAGE: usize = 4096;

/// `f_type` of procfs, statfs(2). Its files are never replaced, and one read gives them
/// whole.
const PROCFS: i64 = 0x9fa0;

/// A file that may stay open.
#[derive(Debug, Default)]
pub(super) struct Kept(Option<Open>);

#[derive(Debug)]
struct Open {
    file: File,
    procfs: bool,
}

impl Kept {
    /// What `parse` makes of the text of the file, which stays open where `keep` is set. A
    /// file that was removed or replaced, or whose process has ended, is looked for by its
    /// name; `path` makes that name, which an open file does without.
    pub(super) fn read<T>(
        &mut self,
        path: impl Fn() -> PathBuf,
        keep: bool,
        parse: impl Fn(&str) -> T,
    ) -> ReadResult<T> {
        if let Some(told) = self.0.as_ref().and_then(|open| open.text(&parse)) {
            return Ok(told);
        }
        let path = path();
        self.0 = keep.then(|| Open::new(&path)).flatten();
        match self.0.as_ref().and_then(|open| open.text(&parse)) {
            Some(told) => Ok(told),
            None => read_once(&path).map(|text| parse(&text)),
        }
    }
}

impl Open {
    fn new(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let procfs = rustix::fs::fstatfs(&file).is_ok_and(|s| s.f_type == PROCFS);
        Some(Self { file, procfs })
    }

    /// What the whole text tells; none where it cannot be had for certain.
    fn text<T>(&self, parse: &impl Fn(&str) -> T) -> Option<T> {
        // one that has no name any more was replaced
        if !self.procfs && rustix::fs::fstat(&self.file).ok()?.st_nlink == 0 {
            return None;
        }
        let mut page = [0; PAGE];
        let length = self.file.read_at(&mut page, 0).ok()?;
        (length > 0 && length < PAGE).then(|| parse(&file::text_in(&page[..length])))
    }
}

/// The text of a file of a process, in one read where it is short. It is not kept open.
pub(in crate::telemetry) fn read_once(path: &Path) -> ReadResult<String> {
    let open = File::open(path).map_err(|e| ReadError::os(path, &e))?;
    let mut page = [0; PAGE];
    match open.read_at(&mut page, 0) {
        Ok(length) if length > 0 && length < PAGE => Ok(file::text_of(&page[..length])),
        _ => file::read_text(path),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::Tree;
    use super::*;

    fn read(kept: &mut Kept, path: &Path, keep: bool) -> ReadResult<String> {
        kept.read(|| path.to_owned(), keep, str::to_owned)
    }

    #[test]
    fn an_open_file_is_followed_through_change_replacement_and_removal() {
        let files = Tree::new();
        let path = files.root().join("value");
        for keep in [true, false] {
            let mut kept = Kept::default();
            assert_eq!(read(&mut kept, &path, keep), Err(ReadError::Missing));
            files.write("value", "1\n");
            assert_eq!(read(&mut kept, &path, keep).as_deref(), Ok("1"));
            assert_eq!(kept.0.is_some(), keep);
            // written in place
            std::fs::write(&path, "22\n").unwrap();
            assert_eq!(read(&mut kept, &path, keep).as_deref(), Ok("22"));
            // another file of that name
            files.write("value", "333\n");
            assert_eq!(read(&mut kept, &path, keep).as_deref(), Ok("333"));
            files.write("value", &"x".repeat(2 * PAGE));
            assert_eq!(read(&mut kept, &path, keep).map(|t| t.len()), Ok(2 * PAGE));
            std::fs::remove_file(&path).unwrap();
            assert_eq!(read(&mut kept, &path, keep), Err(ReadError::Missing));
        }
    }

    #[test]
    fn the_file_of_a_process_that_ended_is_missing() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let path = Path::new("/proc").join(child.id().to_string()).join("stat");
        let mut kept = Kept::default();
        assert!(read(&mut kept, &path, true).unwrap().contains("(sleep)"));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(read(&mut kept, &path, true), Err(ReadError::Missing));
    }
}
