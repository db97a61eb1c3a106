//! Writing an own profile: complete or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::super::parse::MAX_LEN;

/// Why an own profile was not written. What was there is still there. The reason stands
/// before the path: a narrow screen cuts the end off.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SaveError {
    /// There is no folder for own profiles.
    #[error("there is no home folder for own profiles; set HOME or XDG_CONFIG_HOME")]
    NoHome,
    /// Somebody else may write to that folder.
    #[error("{0}")]
    NotOurs(String),
    /// Another program changed the file since it was read.
    #[error("the file was changed by somebody else since it was read: `{}`", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The file is there and is not the profile that is to be written.
    #[error("the file is there already and is not this profile: `{}`", path.display())]
    Taken {
        /// The file.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("{why}: cannot write `{}`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// Replaces `path`, which is expected to hold `known`; absent: not to be there.
pub(super) fn own(
    path: &Path,
    text: &str,
    known: Option<&str>,
    overwrite: bool,
) -> Result<(), SaveError> {
    let fail = |e: &io::Error| SaveError::Io {
        path: path.to_owned(),
        why: why(e),
    };
    let there = match read_some(path) {
        Ok(bytes) => Some(bytes),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(fail(&e)),
    };
    if let (Some(bytes), false) = (&there, overwrite) {
        match known {
            Some(known) if known.as_bytes() == bytes => {}
            Some(_) => {
                return Err(SaveError::Changed {
                    path: path.to_owned(),
                });
            }
            None => {
                return Err(SaveError::Taken {
                    path: path.to_owned(),
                });
            }
        }
    }
    // A link, as dotfile managers make them, stays a link.
    let target = fs::canonicalize(path).unwrap_or_else(|_not_there| path.to_owned());
    if let Some(folder) = target.parent() {
        let mut private = fs::DirBuilder::new();
        let made = private.recursive(true).mode(0o700).create(folder);
        made.map_err(|e| fail(&e))?;
    }
    replace(&target, |file| file.write_all(text.as_bytes())).map_err(|e| fail(&e))
}

/// As much of the file as a profile can have, and a byte by which a longer one differs.
fn read_some(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    file.take(MAX_LEN as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Fills a file beside `target` and puts it in its place.
fn replace(target: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    // Not `*.toml`: a file left behind by a crash is no profile.
    let fresh = target.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o644)
        .open(&fresh)
        .and_then(|mut file| {
            fill(&mut file)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&fresh, target));
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&fresh);
    }
    written
}

/// The reason in words that say what to do.
fn why(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            String::from("the disk is full; make room and save again")
        }
        io::ErrorKind::ReadOnlyFilesystem => String::from("the file system is read-only"),
        io::ErrorKind::PermissionDenied => String::from("you may not write there"),
        _ => e.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Catalog;
    use super::*;

    const TEXT: &str = "schema = 1\n[profile]\nid = \"mine\"\nversion = \"1.0.0\"\ntitle = \"x\"\n";

    fn files(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_saved_profile_is_found_and_may_be_saved_again() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a").join("profiles");
        let catalog = Catalog::with_folder(Some(&folder));
        let path = catalog.save_own("mine", TEXT, false).unwrap();
        assert_eq!(path, folder.join("mine.toml"));
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o133, 0);
        let catalog = Catalog::with_folder(Some(&folder));
        assert_eq!(catalog.get("mine").unwrap().title.value, "x");
        let second = TEXT.replace("\"x\"", "\"y\"");
        catalog.save_own("mine", &second, false).unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), second);
        assert_eq!(files(&folder), ["mine.toml"]);
    }

    #[test]
    fn the_file_of_an_id_keeps_its_name_and_a_link_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("elsewhere");
        let folder = dir.path().join("profiles");
        fs::create_dir_all(&folder).unwrap();
        fs::write(&real, TEXT).unwrap();
        let link = folder.join("night.toml");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let catalog = Catalog::with_folder(Some(&folder));
        assert_eq!(catalog.save_own("mine", "new", false).unwrap(), link);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(real).unwrap(), "new");
    }

    #[test]
    fn what_somebody_else_wrote_is_not_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mine.toml");
        fs::write(&path, TEXT).unwrap();
        let catalog = Catalog::with_folder(Some(dir.path()));
        fs::write(&path, "edited by hand").unwrap();
        let changed = catalog.save_own("mine", TEXT, false).unwrap_err();
        assert_eq!(changed, SaveError::Changed { path: path.clone() });
        fs::write(dir.path().join("theirs.toml"), TEXT).unwrap();
        let taken = catalog.save_own("theirs", TEXT, false).unwrap_err();
        assert!(matches!(taken, SaveError::Taken { .. }), "{taken}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "edited by hand");
        catalog.save_own("mine", "asked for", true).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "asked for");
    }

    #[test]
    fn a_full_disk_leaves_the_old_file_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mine.toml");
        fs::write(&path, TEXT).unwrap();
        let full = replace(&path, |file| {
            file.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(
            why(&full.unwrap_err()),
            "the disk is full; make room and save again"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), TEXT);
        assert_eq!(files(dir.path()), ["mine.toml"]);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_a_clear_error() {
        let dir = tempfile::tempdir().unwrap();
        let blocked = dir.path().join("file");
        fs::write(&blocked, "").unwrap();
        let catalog = Catalog::with_folder(Some(&blocked.join("profiles")));
        let e = catalog.save_own("mine", TEXT, false).unwrap_err();
        assert!(matches!(e, SaveError::Io { .. }), "{e}");
        assert!(e.to_string().contains(": cannot write `"), "{e}");
        fs::create_dir_all(dir.path().join("p").join("mine.toml")).unwrap();
        let folder = Catalog::with_folder(Some(&dir.path().join("p")));
        assert!(folder.save_own("mine", TEXT, true).is_err());
        assert_eq!(files(&dir.path().join("p")), ["mine.toml"]);
        assert_eq!(
            Catalog::with_folder(None).save_own("mine", TEXT, false),
            Err(SaveError::NoHome)
        );
    }
}
