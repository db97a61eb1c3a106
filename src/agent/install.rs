//! The Python files of the agent: carried by the binary, unpacked to a private folder of
//! their version and content.
//!
//! The folder is written beside and renamed, so that a run never meets half of it; one
//! that is there already is compared byte by byte before it is used.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::profile::catalog::private_folder;
use crate::profile::folders::Base;

// `FILES`: (path below the folder, content) of each file of src/agent/python
include!(concat!(env!("OUT_DIR"), "/agent_files.rs"));

/// A version that no run has begun with for this long is removed: a run that goes on
/// may still import from its own.
const KEPT: Duration = Duration::from_hours(24 * 14);

/// Why the files could not be put anywhere.
#[derive(Debug, thiserror::Error)]
#[error("write {}: {source}", path.display())]
pub struct InstallError {
    path: PathBuf,
    source: io::Error,
}

/// Where the agent lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The folder for `PYTHONPATH`.
    pub folder: PathBuf,
    /// Why it is not the cache, where it is not.
    pub instead: Option<String>,
}

/// Every file that the binary carries.
pub fn files() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    FILES.iter().copied()
}

/// `VERSION-DIGEST`: the folder's name.
pub fn name() -> String {
    let mut hash = blake3::Hasher::new();
    for (path, content) in FILES {
        for part in [path.as_bytes(), content] {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    let digest = hash.finalize().to_hex();
    format!("{}-{}", env!("CARGO_PKG_VERSION"), &digest[..16])
}

/// Unpacks the agent below the user's cache, or, where that cannot be written, below
/// `otherwise` (the run's folder).
///
/// # Errors
/// When neither can be written.
pub fn install(otherwise: &Path) -> Result<Installed, InstallError> {
    let in_cache = cache().and_then(|dir| install_in(&dir).inspect(|folder| prune(&dir, folder)));
    let why = match in_cache {
        Ok(folder) => {
            return Ok(Installed {
                folder,
                instead: None,
            });
        }
        Err(e) => e,
    };
    Ok(Installed {
        folder: install_in(otherwise)?,
        instead: Some(why.to_string()),
    })
}

fn cache() -> Result<PathBuf, InstallError> {
    let cache = Base::Cache.folder().map_err(|e| InstallError {
        path: PathBuf::from("$XDG_CACHE_HOME"),
        source: io::Error::other(e),
    })?;
    let below = Path::new("framepack-tui/agent");
    private_folder::make(&cache, below).map_err(|source| InstallError {
        path: cache.join(below),
        source,
    })
}

/// Unpacks the agent below `dir`, unless it is there already.
///
/// # Errors
/// When something cannot be written.
pub fn install_in(dir: &Path) -> Result<PathBuf, InstallError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| InstallError { path, source }
    };
    speakable(dir).map_err(failed(dir))?;
    private_dirs(dir).map_err(failed(dir))?;
    let folder = dir.join(name());
    if is_intact(&folder) {
        // when it was last used, for who prunes; a folder that cannot be touched works
        let touched = fs::File::open(&folder).and_then(|d| d.set_modified(SystemTime::now()));
        drop(touched);
        return Ok(folder);
    }
    let fresh = dir.join(format!(".new-{}-{}", std::process::id(), name()));
    // what an earlier process of our number left
    let _ = fs::remove_dir_all(&fresh);
    unpack(&fresh).map_err(failed(&fresh))?;
    let placed = place(&fresh, &folder);
    let _ = fs::remove_dir_all(&fresh);
    placed.map_err(failed(&folder))?;
    Ok(folder)
}

/// Whether `PYTHONPATH` and the configuration can name the folder: one with a colon would be
/// two others on the program's search path, which anybody might fill.
fn speakable(dir: &Path) -> io::Result<()> {
    let why = match dir.to_str() {
        Some(text) if !text.contains(':') => return Ok(()),
        Some(_) => "PYTHONPATH cannot hold a path with a colon",
        None => "the path is not UTF-8",
    };
    Err(io::Error::new(
        io::ErrorKind::InvalidFilename,
        format!("{why}; set XDG_CACHE_HOME to another folder"),
    ))
}

/// Renames what is new to its place; another run may have been faster, which is as good.
fn place(fresh: &Path, folder: &Path) -> io::Result<()> {
    if fs::rename(fresh, folder).is_ok() || is_intact(folder) {
        return Ok(());
    }
    // something else is there: out of the way, not into it
    let aside = fresh.with_extension("old");
    fs::rename(folder, &aside)?;
    let done = fs::rename(fresh, folder);
    let _ = if aside.is_dir() && !aside.is_symlink() {
        fs::remove_dir_all(&aside)
    } else {
        fs::remove_file(&aside)
    };
    done
}

/// Makes a folder and those above it; new ones are readable by their owner only.
///
/// # Errors
/// When one cannot be made.
pub(crate) fn private_dirs(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Where Python keeps what it compiled.
const COMPILED: &str = "__pycache__";

fn unpack(folder: &Path) -> io::Result<()> {
    private_dirs(folder)?;
    for (path, content) in FILES {
        let to = folder.join(path);
        if let Some(parent) = to.parent() {
            private_dirs(parent)?;
            // Python would make it as the user's umask says
            private_dirs(&parent.join(COMPILED))?;
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&to)?;
        file.write_all(content)?;
    }
    Ok(())
}

/// Whether the folder is ours alone and holds every file as the binary has it, and no
/// other Python. (Python's own `__pycache__` may be there.)
fn is_intact(folder: &Path) -> bool {
    let content = |(path, content): &(&str, &[u8])| {
        let path = folder.join(path);
        ours(&path) && fs::read(&path).is_ok_and(|c| c == *content)
    };
    ours(folder) && FILES.iter().all(content) && sources(folder) == Some(FILES.len())
}

/// Whether nobody else can change it.
fn ours(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|m| {
        let own = m.uid() == rustix::process::geteuid().as_raw();
        own && !m.is_symlink() && m.mode() & 0o022 == 0
    })
}

/// Whether what Python compiled is ours alone: it is run instead of the source.
fn is_compiled_by_us(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else {
        return false;
    };
    ours(folder) && entries.flatten().all(|entry| ours(&entry.path()))
}

/// Files in a folder and below, without what Python compiled; `None`: somebody else can
/// change what is in it.
fn sources(folder: &Path) -> Option<usize> {
    let mut n = 0;
    for entry in fs::read_dir(folder).ok()? {
        let entry = entry.ok()?;
        if entry.file_name() == COMPILED {
            if !is_compiled_by_us(&entry.path()) {
                return None;
            }
            continue;
        }
        n += match entry.file_type().ok()? {
            t if t.is_dir() => sources(&entry.path()).filter(|_| ours(&entry.path()))?,
            _ => 1,
        };
    }
    Some(n)
}

/// Removes versions that nobody has used for long, and what was left half written. That
/// it fails costs only the space.
fn prune(dir: &Path, keep: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let old = entry.metadata().and_then(|m| m.modified()).is_ok_and(|t| {
            SystemTime::now()
                .duration_since(t)
                .is_ok_and(|age| age > KEPT)
        });
        if path != keep && old && is_ours(&name) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// `0.1.0-0123456789abcdef` or `.new-…`: nothing else is touched.
fn is_ours(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let digest = name.rsplit('-').next().unwrap_or_default();
    let hex = digest.trim_end_matches(".old");
    name.contains('-') && hex.len() == 16 && hex.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn every_python_file_is_carried() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/agent/python");
        let mut folders = vec![top.clone()];
        let mut found = BTreeSet::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension() == Some("py".as_ref()) {
                    let name = path.strip_prefix(&top).unwrap().to_str().unwrap();
                    found.insert((name.to_owned(), fs::read(&path).unwrap()));
                }
            }
        }
        let carried: BTreeSet<_> = files()
            .map(|(name, content)| (name.to_owned(), content.to_vec()))
            .collect();
        assert_eq!(carried, found);
        assert!(carried.iter().any(|(name, _)| name == "sitecustomize.py"));
        let version = format!("VERSION = \"{}\"", env!("CARGO_PKG_VERSION"));
        let package = carried.iter().find(|(n, _)| n == "fpt_agent/__init__.py");
        let text = String::from_utf8(package.unwrap().1.clone()).unwrap();
        assert!(text.contains(&version), "the package's version is not ours");
        assert!(text.contains(&format!("PROTOCOL = {}", crate::agent::PROTOCOL)));
    }

    #[test]
    fn it_is_private_used_again_and_made_anew_where_it_was_changed() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path().join("a/agent");
        let folder = install_in(&dir).unwrap();
        let mode = |p: &Path| fs::metadata(p).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&dir), mode(&folder)), (0o700, 0o700));
        let file = folder.join("fpt_agent/link.py");
        assert_eq!(mode(&file), 0o600);
        let begun = fs::metadata(&file).unwrap().ino();
        let compiled = folder.join("__pycache__/x.pyc");
        assert_eq!(mode(compiled.parent().unwrap()), 0o700);
        fs::write(&compiled, "x").unwrap();
        assert_eq!(install_in(&dir).unwrap(), folder);
        assert_eq!(fs::metadata(&file).unwrap().ino(), begun, "used again");

        for harm in [
            |f: &Path| {
                // Python would run it in the place of the source
                let planted = f.join("fpt_agent/__pycache__/link.pyc");
                fs::write(&planted, "x").unwrap();
                fs::set_permissions(planted, fs::Permissions::from_mode(0o666)).unwrap();
            },
            |f: &Path| fs::write(f.join("fpt_agent/link.py"), "import os").unwrap(),
            |f: &Path| fs::write(f.join("torch.py"), "import os").unwrap(),
            |f: &Path| fs::remove_file(f.join("sitecustomize.py")).unwrap(),
            |f: &Path| fs::set_permissions(f, fs::Permissions::from_mode(0o777)).unwrap(),
            |f: &Path| {
                fs::remove_dir_all(f).unwrap();
                std::os::unix::fs::symlink("/tmp", f).unwrap();
            },
        ] {
            harm(&folder);
            assert!(!is_intact(&folder));
            assert_eq!(install_in(&dir).unwrap(), folder);
            assert!(is_intact(&folder));
        }
        assert_eq!(
            fs::read_dir(&dir).unwrap().count(),
            1,
            "nothing is left beside it"
        );
    }

    #[test]
    fn no_folder_that_pythonpath_cannot_hold_is_used() {
        use std::os::unix::ffi::OsStrExt;

        let tmp = tempfile::tempdir().unwrap();
        for (name, why) in [
            (OsStr::new("a:b"), "with a colon"),
            (OsStr::from_bytes(b"a\xff"), "not UTF-8"),
        ] {
            let dir = tmp.path().join(name);
            let said = install_in(&dir).unwrap_err().to_string();
            assert!(said.contains(why), "{said}");
            assert!(said.contains("XDG_CACHE_HOME"), "{said}");
            assert!(!dir.exists());
        }
    }

    #[test]
    fn only_old_versions_of_our_own_are_removed() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path();
        let keep = install_in(dir).unwrap();
        let long_ago = SystemTime::now() - KEPT - Duration::from_mins(1);
        for (name, old) in [
            ("0.0.9-0123456789abcdef", true),
            ("0.0.8-0123456789abcdef", false),
            ("photos", true),
        ] {
            let path = dir.join(name);
            fs::create_dir(&path).unwrap();
            if old {
                fs::File::open(&path)
                    .unwrap()
                    .set_modified(long_ago)
                    .unwrap();
            }
        }
        fs::File::open(&keep)
            .unwrap()
            .set_modified(long_ago)
            .unwrap();
        prune(dir, &keep);
        let mut left: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(
            left,
            [
                "0.0.8-0123456789abcdef".to_owned(),
                name(),
                "photos".to_owned()
            ]
        );
    }

    #[test]
    fn two_runs_that_begin_at_once_do_not_meet() {
        let tmp = tempfile::tempdir().unwrap();
        let fresh = tmp.path().join("fresh");
        unpack(&fresh).unwrap();
        let folder = install_in(tmp.path()).unwrap();
        place(&fresh, &folder).unwrap();
        assert!(is_intact(&folder));
    }
}
