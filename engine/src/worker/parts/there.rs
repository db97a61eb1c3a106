//! What of a decode lies in its folder, found by one walk over it.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::folder::frames_of_state;
use super::frames::{is_like_frames, parsed};
use super::{Parts, names};
use crate::error::Result;

/// Frames of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) first: usize,
    pub(super) count: usize,
    pub(super) hash: String,
    pub(super) path: PathBuf,
}

/// A file that is named as frames are, and of no use.
#[derive(Debug)]
pub(super) struct Unfit {
    pub(super) path: PathBuf,
    /// What is wrong with it.
    pub(super) reason: String,
    /// It has the name of frames of this video, and would be in their way.
    pub(super) goes: bool,
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct There {
    /// The files of frames whose length is right, with frames that the video has, by their first frame.
    pub(super) parts: Vec<Part>,
    /// What else is named so.
    pub(super) unfit: Vec<Unfit>,
    /// The states by the number of frames up to them, the newest first.
    pub(super) states: Vec<(usize, PathBuf)>,
    /// Frames of the whole video.
    total: usize,
}

/// The frames of a video as they lie in files.
#[derive(Debug, Default)]
pub(super) struct Cover {
    /// The files in their order, and how many frames at the beginning of each the one before has as well.
    pub(super) parts: Vec<(Part, usize)>,
    /// What no file has.
    pub(super) gaps: Vec<Range<usize>>,
}

impl There {
    /// One walk over the files, of which those that are known to be of no use do not count.
    pub(super) fn of(parts: &Parts) -> Result<Self> {
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

    /// A file that is named as frames are, of which each has so many bytes.
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

    /// Which files have which frames, and which frames none has.
    pub(super) fn cover(&self) -> Cover {
        let (mut cover, mut at) = (Cover::default(), 0);
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

impl Parts {
    /// What no file has of the video, in order: of no length, and none next to another.
    pub(in crate::worker) fn gaps(&self) -> Result<Vec<Range<usize>>> {
        Ok(There::of(self)?.cover().gaps)
    }

    /// Frames from the first on without a gap.
    pub(in crate::worker) fn frames_there(&self) -> Result<usize> {
        let gaps = self.gaps()?;
        Ok(gaps.first().map_or(self.total, |gap| gap.start))
    }
}
