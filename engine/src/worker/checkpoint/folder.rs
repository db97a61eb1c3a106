//! The folder `OUT.parts`: its lock, and which files in it are ours.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{BEGUN, FINISHING, PART, WAY, WHOLE, frames};
use crate::error::{Error, Result, io, read_small};
use crate::video;

/// Held by the process that decodes.
pub(super) const LOCK: &str = "lock";
/// Of a note of ours, which has less than 200 bytes.
const MOST_NOTED: usize = 4096;
/// Another process may remove the folder while this one opens it, so often at most.
const MOST_RACES: u32 = 100;

#[cfg(test)]
thread_local! {
    /// How often a folder was listed by this thread.
    pub(super) static LISTED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Names and paths of what is in a folder.
pub(super) fn names(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    #[cfg(test)]
    LISTED.set(LISTED.get() + 1);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(io(folder))? {
        let entry = entry.map_err(io(folder))?;
        names.push((
            entry.file_name().to_string_lossy().into_owned(),
            entry.path(),
        ));
    }
    Ok(names)
}

/// Whether a folder is named by a digest, as all of ours are.
pub(super) fn is_digest(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What stands for the number of frames in the name of a state.
fn number_of_state(name: &str) -> Option<&str> {
    name.strip_prefix("state-")?.strip_suffix(".bin")
}

/// Frames up to which a state of this name reaches.
pub(super) fn frames_of_state(name: &str) -> Option<usize> {
    number_of_state(name)?.parse().ok()
}

/// Whether a file in a folder of ours is named as ours are.
pub(super) fn is_own(name: &str) -> bool {
    let state = number_of_state(name).is_some_and(|n| n.bytes().all(|byte| byte.is_ascii_digit()));
    // what a kill leaves of a state: safetensors writes it under a name that tempfile makes, then renames it
    let unfinished = name.strip_prefix(".tmp").is_some_and(|rest| {
        rest.len() == 6 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    });
    [WAY, BEGUN, FINISHING, PART, WHOLE].contains(&name)
        || unfinished
        || state
        || frames::is_named(name)
}

/// Takes the lock of a folder, which is made where it is missing.
pub(super) fn locked(root: &Path) -> Result<File> {
    let path = root.join(LOCK);
    for _ in 0..MOST_RACES {
        fs::create_dir_all(root).map_err(io(root))?;
        // to open a pipe would wait for its reader for ever
        if path.metadata().is_ok_and(|about| !about.is_file()) {
            return Err(Error::InTheWay {
                path,
                reason: "a file of this name is needed as a lock, and it is something else: remove it, or name another output"
                    .to_owned(),
            });
        }
        // a file of the user's may have this name
        let mut how = File::options();
        let lock = match how.write(true).create(true).truncate(false).open(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            opened => opened.map_err(io(&path))?,
        };
        match lock.try_lock() {
            Ok(()) if is_still_there(&lock, &path) => return Ok(lock),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(busy(root)),
            Err(TryLockError::Error(source)) => return Err(io(&path)(source)),
        }
    }
    Err(busy(root))
}

/// Another process has the lock.
pub(super) fn busy(root: &Path) -> Error {
    Error::InTheWay {
        path: root.to_owned(),
        reason: "another process is decoding to this output: wait for it, or name another"
            .to_owned(),
    }
}

/// Whether a lock is the one in the folder: whoever had it before may have removed both.
pub(super) fn is_still_there(lock: &File, path: &Path) -> bool {
    let number = |about: fs::Metadata| (about.dev(), about.ino());
    let (held, there) = (lock.metadata().map(number), path.metadata().map(number));
    matches!((held, there), (Ok(held), Ok(there)) if held == there)
}

/// What a note of ours says; absent: there is none.
pub(super) fn noted<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let text = read_small(path, MOST_NOTED)?;
    let told = serde_json::from_slice(&text).map_err(|e| Error::File {
        path: path.to_owned(),
        reason: format!("damaged: {e}"),
    })?;
    Ok(Some(told))
}

/// Whether a folder of ours has finished frames, from which a decode goes on.
pub(super) fn has_frames(folder: &Path) -> bool {
    let all = names(folder).unwrap_or_default();
    let full = |path: &Path| path.metadata().is_ok_and(|about| about.len() > 0);
    all.iter()
        .any(|(name, path)| frames::is_named(name) && full(path))
}

/// What is about to be put in the place of the output, as it is kept in [`FINISHING`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Finished {
    /// Frames a second.
    fps: f64,
    /// By which it is told from anything else that may come there.
    marks: String,
}

impl Finished {
    pub(super) fn of(whole: &Path, fps: f64) -> Result<Self> {
        let marks = marks(whole).map_err(io(whole))?;
        Ok(Self { fps, marks })
    }
}

/// Number, size and time of a file, of a folder those of all that is in it. To rename it changes none of them, and whatever
/// a user puts in its place or does to it has others: a number alone is soon given to the next file.
fn marks(path: &Path) -> std::io::Result<String> {
    let of = |about: fs::Metadata| {
        let (seconds, nanos) = (about.mtime(), about.mtime_nsec());
        format!("{} {} {seconds}.{nanos:09}", about.ino(), about.len())
    };
    let about = path.symlink_metadata()?;
    if !about.is_dir() {
        return Ok(of(about));
    }
    let mut all = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        all.push(format!("{} {}", name.display(), of(entry.metadata()?)));
    }
    all.sort_unstable();
    let all = blake3::hash(all.join("\n").as_bytes()).to_hex();
    Ok(format!("{} {all}", about.ino()))
}

/// Whether what stands at `output` is what was put there from this folder, as a video of `fps`; absent: of any.
pub(super) fn has_finished(folder: &Path, output: &Path, fps: Option<f64>) -> bool {
    let told: Option<Finished> = noted(&folder.join(FINISHING)).unwrap_or_default();
    told.is_some_and(|told| {
        fps.is_none_or(|fps| (told.fps - fps).abs() < f64::EPSILON)
            && marks(output).is_ok_and(|there| there == told.marks)
    })
}

/// Removes what is ours in the folders for which `goes` says so, each if nothing else is in it, and where nothing is left to
/// go on from, lock and folder of all settings too. Whoever calls it holds the lock. What is left over does no harm.
pub(super) fn remove(root: &Path, goes: impl Fn(&Path) -> bool) {
    for (name, folder) in names(root).unwrap_or_default() {
        if !is_digest(&name) || folder.is_symlink() || !goes(&folder) {
            continue;
        }
        for (name, path) in names(&folder).unwrap_or_default() {
            if is_own(&name) {
                let _ = video::clear(&path);
            }
        }
        let _ = fs::remove_dir(&folder);
    }
    let left = names(root).unwrap_or_default();
    if left
        .iter()
        .any(|(name, path)| is_digest(name) && has_frames(path))
    {
        return;
    }
    let path = root.join(LOCK);
    // ours is empty
    let is_ours = |about: fs::Metadata| about.is_file() && about.len() == 0;
    if path.symlink_metadata().is_ok_and(is_ours) {
        let _ = fs::remove_file(path);
    }
    let _ = fs::remove_dir(root);
}
