//! Folders that are used only if nobody else can put anything into them. From the one with
//! our name down each belongs to us and is writable by nobody else; those above it let
//! nobody else put another one in its place. Otherwise what lies there may be anybody's, and
//! code among it would run as ours.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, Stat, fstat, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

/// Writable by the group or by everybody.
const OTHERS_WRITE: u32 = 0o022;
/// In a folder with this bit nobody renames what belongs to another.
const STICKY: u32 = 0o1000;
/// Owner of files whose own account does not exist in a container.
const UNMAPPED: u32 = 65_534;

/// Makes `base/below` and what is missing of the way there, and checks it. New folders can be
/// read by their owner only; so can `base/below` itself from now on.
///
/// # Errors
/// When it cannot be made, or is not ours alone.
pub fn make(base: &Path, below: &Path) -> io::Result<PathBuf> {
    let private = || {
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        builder
    };
    private().recursive(true).create(base)?;
    let mut path = base.to_owned();
    for part in below.components() {
        path.push(part);
        match private().create(&path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            _ => examine(&path)?,
        }
    }
    check_way(&path)?;
    let mode = fs::metadata(&path)?.mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(&path, Permissions::from_mode(mode & 0o700))?;
    }
    Ok(path)
}

/// Whether `base/below` exists.
///
/// # Errors
/// When it is, and is not ours alone.
pub fn check(base: &Path, below: &Path) -> io::Result<bool> {
    let mut path = base.to_owned();
    for part in below.components() {
        path.push(part);
        match examine(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
            examined => examined?,
        }
    }
    check_way(&path).map(|()| true)
}

/// One folder of ours, by its descriptor. A link that we made ourselves may stand for it, and
/// both may be root's, which a system that manages homes makes.
fn examine(path: &Path) -> io::Result<()> {
    let own = geteuid().as_raw();
    let folder = match open(path, OFlags::NOFOLLOW) {
        // it is a link, or no folder
        Err(Errno::NOTDIR | Errno::LOOP) => {
            let link = fs::symlink_metadata(path)?;
            if ![own, 0].contains(&link.uid()) {
                return Err(not_ours(path, link.uid()));
            }
            open(path, OFlags::empty())?
        }
        folder => folder?,
    };
    let stat: Stat = fstat(&folder)?;
    if ![own, 0].contains(&stat.st_uid) {
        return Err(not_ours(path, stat.st_uid));
    }
    if stat.st_mode & OTHERS_WRITE != 0 {
        return Err(refused(format!(
            "others may write to {0}; look at what is in it, and use `chmod go-w {0}`",
            path.display()
        )));
    }
    Ok(())
}

fn open(path: &Path, more: OFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | more;
    openat(CWD, path, flags, Mode::empty())
}

/// Nobody else can put another folder in the place of this one.
fn check_way(path: &Path) -> io::Result<()> {
    let own = geteuid().as_raw();
    for above in path.canonicalize()?.ancestors().skip(1) {
        let meta = fs::metadata(above)?;
        if ![own, 0, UNMAPPED].contains(&meta.uid()) {
            return Err(not_ours(above, meta.uid()));
        }
        if meta.mode() & 0o002 != 0 && meta.mode() & STICKY == 0 {
            return Err(refused(format!(
                "everybody may rename what is in {}",
                above.display()
            )));
        }
    }
    Ok(())
}

fn not_ours(path: &Path, owner: u32) -> io::Error {
    refused(format!(
        "{} belongs to another user (number {owner})",
        path.display()
    ))
}

fn refused(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn what_is_made_is_private_and_what_others_may_write_to_is_refused() {
        let tmp = tempfile::tempdir().unwrap();
        let (base, below) = (tmp.path().join("cache"), Path::new("ours/agent"));
        assert!(!check(&base, below).unwrap());
        let made = make(&base, below).unwrap();
        assert_eq!((mode(&made), mode(&base.join("ours"))), (0o700, 0o700));
        assert!(check(&base, below).unwrap());
        // what an earlier version left readable is so no more
        chmod(&made, 0o755);
        make(&base, below).unwrap();
        assert_eq!(mode(&made), 0o700);
        for (path, mode) in [(&made, 0o770), (&made, 0o702), (&base.join("ours"), 0o777)] {
            chmod(path, mode);
            let why = make(&base, below).unwrap_err().to_string();
            assert!(why.contains("chmod go-w"), "{why}");
            assert!(check(&base, below).is_err());
            chmod(path, 0o700);
        }
        chmod(&base, 0o777);
        assert!(
            check(&base, below)
                .unwrap_err()
                .to_string()
                .contains("everybody may rename")
        );
        chmod(&base, 0o1777);
        assert!(check(&base, below).unwrap());
    }

    #[test]
    fn a_link_of_our_own_is_followed_to_a_folder_of_our_own() {
        let tmp = tempfile::tempdir().unwrap();
        let elsewhere = tmp.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        chmod(&elsewhere, 0o700);
        symlink(&elsewhere, tmp.path().join("ours")).unwrap();
        assert!(check(tmp.path(), Path::new("ours")).unwrap());
        chmod(&elsewhere, 0o777);
        assert!(check(tmp.path(), Path::new("ours")).is_err());
        fs::write(tmp.path().join("file"), "").unwrap();
        assert!(make(tmp.path(), Path::new("file")).is_err());
    }

    /// The folder itself, one on the way, a link of theirs, and the one that holds it.
    #[test]
    fn a_folder_of_another_user_is_refused() {
        if !geteuid().is_root() {
            eprintln!("skipped: only root can make files of another user");
            return;
        }
        let tmp = tempfile::tempdir().unwrap();
        let base = tmp.path().join("base");
        let below = Path::new("ours/agent");
        let made = make(&base, below).unwrap();
        for theirs in [&made, &base.join("ours"), &base] {
            chown(theirs, Some(4711), Some(4711)).unwrap();
            let why = make(&base, below).unwrap_err().to_string();
            assert!(why.contains("another user (number 4711)"), "{why}");
            assert!(check(&base, below).is_err());
            chown(theirs, Some(0), Some(0)).unwrap();
        }
        let link = base.join("link");
        symlink(&made, &link).unwrap();
        assert!(check(&base, Path::new("link")).unwrap());
        std::os::unix::fs::lchown(&link, Some(4711), Some(4711)).unwrap();
        assert!(check(&base, Path::new("link")).is_err());
    }
}
