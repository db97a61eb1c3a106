//! The index of a checkpoint: its files of frames and states, found by one walk over the folder.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::folder::frames_of_state;
use super::frames::{is_like_frames, parsed};
use super::{CheckpointDir, names};
use crate::error::Result;

/// One file of frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) first: usize,
    pub(super) count: usize,
    pub(super) hash: String,
    pub(super) path: PathBuf,
}

/// A file with the name of frames that cannot be used.
#[derive(Debug)]
pub(super) struct Unfit {
    pub(super) path: PathBuf,
    /// The reason.
    pub(super) reason: String,
    /// Whether it has the name of frames of this video, so that it must be replaced.
    pub(super) goes: bool,
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

/// The files of a checkpoint.
#[derive(Debug, Default)]
pub(super) struct CheckpointIndex {
    /// Files of frames of the right length that belong to the video, by their first frame.
    pub(super) parts: Vec<Part>,
    /// Other files with names of frames.
    pub(super) unfit: Vec<Unfit>,
    /// The states by the number of frames before them, the newest first.
    pub(super) states: Vec<(usize, PathBuf)>,
    /// Frames of the whole video.
    total: usize,
}

/// Which frames of the video the files cover.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    /// The files in order, each with the number of its first frames that the file before has too.
    pub(super) parts: Vec<(Part, usize)>,
    /// Ranges of frames that no file has.
    pub(super) gaps: Vec<Range<usize>>,
}

impl CheckpointIndex {
    /// Lists the folder; files already known to be unusable do not count.
    pub(super) fn of(parts: &CheckpointDir) -> Result<Self> {
        let mut there = Self {
            total: parts.total,
            ..Self::default()
        };
        for (name, path) in names(&parts.folder)? {
            if parts.unfit.iter().any(|unfit| unfit.path == path) {
                continue;
            }
            if is_like_frames(&name) {
                there.frames(&name, path, parts.size.frame());
            } else if let Some(frames) = frames_of_state(&name) {
                there.states.push((frames, path));
            }
        }
        there.parts.sort_unstable_by(|one, other| {
            (one.first, one.count, &one.hash).cmp(&(other.first, other.count, &other.hash))
        });
        there
            .states
            .sort_unstable_by_key(|(frames, _)| std::cmp::Reverse(*frames));
        Ok(there)
    }

    /// Adds a file with the name of frames, each frame having `bytes` bytes.
    fn frames(&mut self, name: &str, path: PathBuf, bytes: usize) {
        let own = parsed(name).filter(|(first, count, _)| {
            let end = first.checked_add(*count);
            *count > 0 && end.is_some_and(|end| end <= self.total)
        });
        let Some((first, count, hash)) = own else {
            self.unfit.push(Unfit {
                path,
                reason: "named as no frames of this video are".to_owned(),
                goes: false,
            });
            return;
        };
        let wanted = (count as u64).saturating_mul(bytes as u64);
        match wrong(&path, wanted) {
            Some(reason) => self.unfit.push(Unfit {
                path,
                reason,
                goes: true,
            }),
            None => self.parts.push(Part {
                first,
                count,
                hash: hash.to_owned(),
                path,
            }),
        }
    }

    /// The coverage of the video by these files.
    pub(super) fn cover(&self) -> Coverage {
        let (mut cover, mut at) = (Coverage::default(), 0);
        for part in &self.parts {
            let end = part.first.saturating_add(part.count);
            if part.first > at {
                cover.gaps.push(at..part.first);
                at = part.first;
            }
            // of two that overlap only what is new counts
            if end > at {
                cover.parts.push((part.clone(), at - part.first));
                at = end;
            }
        }
        if at < self.total {
            cover.gaps.push(at..self.total);
        }
        cover
    }

    /// Bytes of all states.
    pub(super) fn state_bytes(&self) -> u64 {
        let sizes = self
            .states
            .iter()
            .filter_map(|(_, path)| Some(path.metadata().ok()?.len()));
        sizes.sum()
    }
}

/// What is wrong with a file that should have so many bytes of frames.
fn wrong(path: &Path, wanted: u64) -> Option<String> {
    match path.metadata() {
        Ok(about) if !about.is_file() => Some("not a regular file".to_owned()),
        Ok(about) if about.len() != wanted => Some(format!(
            "{} bytes, where its frames take {wanted}",
            about.len()
        )),
        Ok(_) => None,
        Err(e) => Some(e.to_string()),
    }
}

impl CheckpointDir {
    /// The ranges that no file has, in order: not empty, and not adjacent.
    pub(in crate::worker) fn gaps(&self) -> Result<Vec<Range<usize>>> {
        Ok(CheckpointIndex::of(self)?.cover().gaps)
    }

    /// The number of frames before the first gap.
    pub(in crate::worker) fn frames_there(&self) -> Result<usize> {
        let gaps = self.gaps()?;
        Ok(gaps.first().map_or(self.total, |gap| gap.start))
    }
}
