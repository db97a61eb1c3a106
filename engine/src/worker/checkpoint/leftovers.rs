//! Checkpoints and other leftovers beside an output, before and after a run: for the program that starts workers.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use super::attempt_marker::Begun;
use super::folder::{
    self, LOCK, busy, has_frames, is_digest, is_still_there, names, noted, remove,
};
use super::frames::parsed;
use super::{BEGUN, CheckpointDir};
use crate::error::Result;

/// The attempt markers beside an output, by folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Beginnings(Vec<(PathBuf, String)>);

/// The finished frames of a decode that did not end.
#[derive(Debug, PartialEq, Eq)]
pub struct Kept {
    /// The folder beside the output.
    pub folder: PathBuf,
    /// How many there are by the names of the files.
    pub frames: usize,
    /// Whether they are the first frames of the video without a gap.
    pub goes_on: bool,
}

impl std::fmt::Display for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at = self.folder.display();
        let what = match self.frames {
            1 => "1 finished frame is".to_owned(),
            n => format!("{n} finished frames are"),
        };
        let how = match (self.goes_on, self.frames) {
            (true, 1) => "goes on after it",
            (true, _) => "goes on after them",
            (false, _) => "makes what is missing",
        };
        write!(f, "{what} kept in {at}: the same command {how}")
    }
}

impl CheckpointDir {
    /// After the end of a process that was killed: what it has left that no decode could go on from is removed, or need
    /// not. What another process decodes to stays as it is.
    pub(in crate::worker) fn tidy(output: &Path) {
        let root = Self::root(output);
        // without a lock nobody of ours was there
        if let Some(lock) = lock_that_is_there(&root)
            && lock.try_lock().is_ok()
            && is_still_there(&lock, &root.join(LOCK))
        {
            let is_done = |folder: &Path| folder::has_finished(folder, output, None);
            remove(&root, |folder| !has_frames(folder) || is_done(folder));
        }
    }

    /// Whether nobody decodes to `output` now. It may be otherwise a moment later: the lock itself decides.
    pub(in crate::worker) fn check_free(output: &Path) -> Result<()> {
        let root = Self::root(output);
        match lock_that_is_there(&root).map(|lock| lock.try_lock()) {
            Some(Err(TryLockError::WouldBlock)) => Err(busy(&root)),
            // what else is wrong with it is told by whoever takes it
            _ => Ok(()),
        }
    }

    /// Reads the attempt markers.
    pub(in crate::worker) fn beginnings(output: &Path) -> Beginnings {
        let folders = names(&Self::root(output)).unwrap_or_default().into_iter();
        let folders = folders.filter(|(name, path)| is_digest(name) && !path.is_symlink());
        let begun = folders.filter_map(|(_, folder)| {
            let begun: Option<Begun> = noted(&folder.join(BEGUN)).unwrap_or_default();
            Some((folder, begun?.run))
        });
        Beginnings(begun.collect())
    }

    /// The frames that the run which began since `before` left. A resumed decode may find fewer: it reads every byte.
    pub(in crate::worker) fn left_since(output: &Path, before: &Beginnings) -> Option<Kept> {
        if Self::check_free(output).is_err() {
            return None;
        }
        let now = Self::beginnings(output).0.into_iter();
        let mut new = now.filter(|begun| !before.0.contains(begun));
        let (folder, _) = new.find(|(folder, _)| has_frames(folder))?;
        let names = names(&folder).unwrap_or_default();
        let all = names.iter().map(|(name, _)| name.as_str());
        let frames = frames_of(all.clone());
        let state = all.filter_map(folder::frames_of_state).max();
        (frames > 0).then(|| Kept {
            folder: Self::root(output),
            frames,
            goes_on: state == Some(frames),
        })
    }
}

/// How many frames the files of these names have, each counted once.
fn frames_of<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    let mut parts: Vec<_> = names
        .filter_map(parsed)
        .map(|(first, count, _)| (first, first.saturating_add(count)))
        .collect();
    parts.sort_unstable();
    let (mut at, mut all) = (0, 0);
    for (first, end) in parts {
        all += end.saturating_sub(first.max(at));
        at = at.max(end);
    }
    all
}

/// The lock, if there is one; it is not followed if it is a link.
fn lock_that_is_there(root: &Path) -> Option<File> {
    let path = root.join(LOCK);
    let about = path.symlink_metadata().ok()?;
    about.is_file().then_some(())?;
    File::options().write(true).open(&path).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::tests::{DIGEST, open, state};
    use super::*;

    #[test]
    fn what_a_run_has_left_is_told_once_it_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("o.mp4");
        let since = |before: &Beginnings| CheckpointDir::left_since(&output, before);
        let none = CheckpointDir::beginnings(&output);
        assert_eq!((since(&none), &none), (None, &Beginnings::default()));

        let mut parts = open(folder.path());
        parts.note_begin("a").unwrap();
        parts.keep(0, &[1; 6], &state(1)).unwrap();
        parts.keep(1, &[2; 24], &state(5)).unwrap();
        assert_eq!(since(&none), None, "it still decodes");
        drop(parts);
        let kept = Kept {
            folder: CheckpointDir::root(&output),
            frames: 5,
            goes_on: true,
        };
        assert_eq!(since(&none).as_ref(), Some(&kept));
        let words = kept.to_string();
        assert!(
            words.starts_with("5 finished frames are kept in ")
                && words.ends_with("o.mp4.parts: the same command goes on after them"),
            "{words}"
        );

        // a run that came to no decode has left none of them
        let before = CheckpointDir::beginnings(&output);
        assert_eq!(since(&before), None);
        // the next one begins where it stopped, and ends at once
        let parts = open(folder.path());
        parts.note_begin("b").unwrap();
        drop(parts);
        assert_eq!(since(&before).as_ref(), Some(&kept));
        // frames alone are no place to go on from
        fs::remove_file(kept.folder.join(DIGEST).join("state-000005.bin")).unwrap();
        let words = since(&before).unwrap().to_string();
        assert!(
            words.starts_with("5 finished frames are kept in ")
                && words.ends_with("o.mp4.parts: the same command makes what is missing"),
            "{words}"
        );
    }

    #[test]
    fn frames_that_two_files_have_count_once_and_what_is_missing_does_not() {
        let names = |parts: &[(usize, usize)]| -> Vec<String> {
            let name =
                |(first, count)| format!("frames-{first:06}-{count:06}-0123456789abcdef.rgb");
            parts.iter().copied().map(name).collect()
        };
        let count = |parts| frames_of(names(parts).iter().map(String::as_str));
        assert_eq!(count(&[]), 0);
        assert_eq!(count(&[(1, 4), (0, 1)]), 5);
        assert_eq!(count(&[(0, 4), (8, 4), (2, 4), (8, 2)]), 10);
    }

    #[test]
    fn an_output_is_free_when_nobody_has_its_lock() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("o.mp4");
        CheckpointDir::check_free(&output).unwrap();
        let parts = open(folder.path());
        let e = CheckpointDir::check_free(&output).unwrap_err().to_string();
        assert!(
            e.contains("another process is decoding to this output"),
            "{e}"
        );
        drop(parts);
        CheckpointDir::check_free(&output).unwrap();
        assert!(
            !CheckpointDir::root(&output).exists(),
            "nothing is made by looking"
        );
    }
}
