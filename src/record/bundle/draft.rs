//! A file that gets its name once it is whole.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// A new file beside the one that it will be, readable by its owner only; removed again
/// if it never gets its name.
#[derive(Debug)]
pub(super) struct Draft {
    path: PathBuf,
}

impl Draft {
    /// Makes it; `kind` tells several drafts of one file apart.
    pub(super) fn new(of: &Path, kind: &str) -> io::Result<(Self, File)> {
        let name = of.file_name().unwrap_or_default().display();
        // a name that nobody else gives a file
        let name = format!(".{name}.{}.{kind}", std::process::id());
        let path = of.with_file_name(name);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        Ok((Self { path }, file))
    }

    /// Gives it its name. Without `replace` a file of that name stays as it is, and that
    /// is an error of kind `AlreadyExists`.
    pub(super) fn publish(self, name: &Path, replace: bool) -> io::Result<()> {
        if replace {
            return fs::rename(&self.path, name);
        }
        match renameat_with(CWD, &self.path, CWD, name, RenameFlags::NOREPLACE) {
            // not every file system can do both in one step
            Err(Errno::INVAL | Errno::NOSYS) => {
                if name.symlink_metadata().is_ok() {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                fs::rename(&self.path, name)
            }
            renamed => Ok(renamed?),
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // not there any more is what is wanted
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_stays_unless_it_may_be_replaced() {
        let tmp = tempfile::tempdir().unwrap();
        let name = tmp.path().join("bundle.tgz");
        fs::write(&name, "theirs").unwrap();
        let (draft, _) = Draft::new(&name, "part").unwrap();
        let why = draft.publish(&name, false).unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&name).unwrap(), b"theirs");
        let (draft, _) = Draft::new(&name, "part").unwrap();
        draft.publish(&name, true).unwrap();
        assert_eq!(fs::read(&name).unwrap(), b"");
        // and nothing else is left
        assert_eq!(fs::read_dir(tmp.path()).unwrap().count(), 1);
    }
}
