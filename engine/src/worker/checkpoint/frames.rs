//! The files of finished frames: their names, and whether what is in them is what was written.
//!
//! `frames-FIRST-COUNT-HASH.rgb`: the hash is of the frames, their place and the folder. It stands in the name, so that a file
//! has it from the moment at which it is there, and its length is that of its frames alone.

use std::fs;
use std::io::Read;
use std::path::Path;

use super::index::{CheckpointIndex, Coverage, Part, Unfit};
use super::{CheckpointDir, Digest, names};
use crate::error::{Error, Result, io, open};
use crate::video::CheckCancelled;

const BEGIN: &str = "frames-";
const END: &str = ".rgb";
/// What is said of frames whose hash is another.
const DAMAGED: &str = "damaged: its frames are not those that were written";
/// Bytes that are read at a time.
const PIECE: usize = 1 << 20;

/// Whether a file is named as frames are, of whatever video and format.
pub(super) fn is_like_frames(name: &str) -> bool {
    name.starts_with(BEGIN) && name.ends_with(END)
}

/// Whether a file is named as frames are, or as an earlier format named them: without a hash.
pub(super) fn is_named(name: &str) -> bool {
    let inner = name
        .strip_prefix(BEGIN)
        .and_then(|rest| rest.strip_suffix(END));
    let digits = |n: &str| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit());
    parsed(name).is_some()
        || inner
            .and_then(|rest| rest.split_once('-'))
            .is_some_and(|(first, count)| digits(first) && digits(count))
}

/// First, count and hash of a name.
pub(super) fn parsed(name: &str) -> Option<(usize, usize, &str)> {
    let rest = name.strip_prefix(BEGIN)?.strip_suffix(END)?;
    let mut words = rest.splitn(3, '-');
    let (first, count) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let hash = words.next().filter(|hash| super::is_digest(hash))?;
    Some((first, count, hash))
}

/// Bytes of the frames in a folder.
pub(super) fn bytes(folder: &Path) -> u64 {
    let all = names(folder).unwrap_or_default().into_iter();
    all.filter(|(name, _)| parsed(name).is_some())
        .filter_map(|(_, path)| Some(path.metadata().ok()?.len()))
        .sum()
}

impl CheckpointDir {
    /// What frames are hashed with: in another place, or another decode's, they are not what their name says.
    fn hash(&self, first: usize) -> Digest {
        let mut hash = Digest::default();
        let folder = self.folder.file_name().unwrap_or_default();
        hash.add("folder", folder.as_encoded_bytes());
        hash.add("first", &(first as u64).to_le_bytes());
        hash
    }

    /// The file for these frames.
    pub(super) fn part(&self, first: usize, frames: &[u8]) -> Part {
        let count = frames.len() / self.size.frame().max(1);
        let mut hash = self.hash(first);
        hash.more(frames);
        let hash = hash.word();
        let name = format!("{BEGIN}{first:06}-{count:06}-{hash}{END}");
        Part {
            first,
            count,
            hash,
            path: self.folder.join(name),
        }
    }

    /// Reads all frames; damaged and foreign ones do not count from then on ([`CheckpointDir::unfit`]).
    pub(in crate::worker) fn check(&mut self, check_cancelled: CheckCancelled<'_>) -> Result<()> {
        // what was found before is looked at anew
        self.unfit.clear();
        let CheckpointIndex {
            parts, mut unfit, ..
        } = CheckpointIndex::of(self)?;
        for part in parts {
            let reason = match self.is_whole(&part, check_cancelled) {
                Ok(true) => continue,
                Ok(false) => DAMAGED.to_owned(),
                Err(Error::Io { source, .. }) => source.to_string(),
                Err(e) => return Err(e),
            };
            let path = part.path;
            unfit.push(Unfit {
                path,
                reason,
                goes: true,
            });
        }
        unfit.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        self.unfit = unfit;
        Ok(())
    }

    /// Whether [`CheckpointDir::check`] found this file unusable.
    pub(in crate::worker) fn is_unfit(&self, path: &Path) -> bool {
        self.unfit.iter().any(|unfit| unfit.path == path)
    }

    /// Sentences about the unusable files that [`CheckpointDir::check`] found; those in the way of frames are removed.
    pub(in crate::worker) fn unfit(&mut self) -> Result<Vec<String>> {
        let mut told = Vec::new();
        for unfit in std::mem::take(&mut self.unfit) {
            let there = unfit.path.symlink_metadata();
            if unfit.goes && there.is_ok_and(|about| !about.is_dir()) {
                fs::remove_file(&unfit.path).map_err(io(&unfit.path))?;
            }
            told.push(unfit.to_string());
        }
        Ok(told)
    }

    /// Whether the frames of a file are those that were written to it; no more than a piece of them is held.
    fn is_whole(&self, part: &Part, check_cancelled: CheckCancelled<'_>) -> Result<bool> {
        let mut hash = self.hash(part.first);
        let mut file = open(&part.path)?;
        let mut piece = vec![0; PIECE];
        loop {
            check_cancelled()?;
            match file.read(&mut piece) {
                Ok(0) => return Ok(hash.word() == part.hash),
                Ok(n) => hash.more(piece.get(..n).unwrap_or_default()),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(io(&part.path)(e)),
            }
        }
    }

    /// The frames in their order, file by file, each looked at once more.
    pub(in crate::worker) fn frames(&self) -> Result<impl Iterator<Item = Result<Vec<u8>>>> {
        let size = self.size.frame();
        let there = CheckpointIndex::of(self)?;
        let Coverage { parts, gaps } = there.cover();
        if let Some(gap) = gaps.first() {
            let gone = there.unfit.into_iter().find(|unfit| unfit.goes);
            let (path, reason) = gone.map_or_else(
                || {
                    let reason = format!("frame {} is gone", gap.start);
                    (self.folder.clone(), reason)
                },
                |unfit| (unfit.path, unfit.reason),
            );
            return Err(lost(&path, reason));
        }
        Ok(parts.into_iter().map(move |(part, skip)| {
            let read = fs::read(&part.path);
            let mut bytes = read.map_err(|e| lost(&part.path, e.to_string()))?;
            let mut hash = self.hash(part.first);
            hash.more(&bytes);
            if hash.word() != part.hash {
                return Err(lost(&part.path, DAMAGED.to_owned()));
            }
            let skip = skip.saturating_mul(size);
            bytes.drain(..skip.min(bytes.len()));
            Ok(bytes)
        }))
    }
}

/// Finished frames that are no more as they were.
fn lost(path: &Path, reason: String) -> Error {
    Error::Lost {
        path: path.to_owned(),
        reason,
    }
}
