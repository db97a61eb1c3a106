//! A file of `/proc` that is read in every round and stays open between them: opening
//! one costs more than reading it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::super::file::{self, ReadResult};

/// Longest text that is read from an open file; what is longer is read anew by its name.
const PAGE: usize = 4096;

/// A file that may stay open.
#[derive(Debug, Default)]
pub(super) struct Kept(Option<File>);

impl Kept {
    /// The text of the file at `path`, which stays open where `keep` is set. A file that
    /// was removed or replaced, or whose process has ended, is looked for by its name.
    pub(super) fn read(&mut self, path: &Path, keep: bool) -> ReadResult<String> {
        if let Some(text) = self.0.as_ref().and_then(again) {
            return Ok(text);
        }
        self.0 = keep.then(|| File::open(path).ok()).flatten();
        match self.0.as_ref().and_then(again) {
            Some(text) => Ok(text),
            None => file::read_text(path),
        }
    }
}

/// The whole text of an open file; none where it cannot be told for certain.
fn again(open: &File) -> Option<String> {
    // one that has no name any more was replaced
    if rustix::fs::fstat(open).ok()?.st_nlink == 0 {
        return None;
    }
    let mut page = [0; PAGE];
    let length = open.read_at(&mut page, 0).ok()?;
    (length > 0 && length < PAGE).then(|| file::text_of(&page[..length]))
}

#[cfg(test)]
mod tests {
    use super::super::super::file::ReadError;
    use super::super::super::testing::Tree;
    use super::*;

    #[test]
    fn an_open_file_is_followed_through_change_replacement_and_removal() {
        let files = Tree::new();
        let path = files.root().join("value");
        for keep in [true, false] {
            let mut kept = Kept::default();
            assert_eq!(kept.read(&path, keep), Err(ReadError::Missing));
            files.write("value", "1\n");
            assert_eq!(kept.read(&path, keep).as_deref(), Ok("1"));
            assert_eq!(kept.0.is_some(), keep);
            // written in place
            std::fs::write(&path, "22\n").unwrap();
            assert_eq!(kept.read(&path, keep).as_deref(), Ok("22"));
            // another file of that name
            files.write("value", "333\n");
            assert_eq!(kept.read(&path, keep).as_deref(), Ok("333"));
            files.write("value", &"x".repeat(2 * PAGE));
            assert_eq!(kept.read(&path, keep).map(|t| t.len()), Ok(2 * PAGE));
            std::fs::remove_file(&path).unwrap();
            assert_eq!(kept.read(&path, keep), Err(ReadError::Missing));
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
        assert!(kept.read(&path, true).unwrap().contains("(sleep)"));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(kept.read(&path, true), Err(ReadError::Missing));
    }
}
