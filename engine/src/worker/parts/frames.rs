//! The files of finished frames: their names, and whether what is in them is what was written.
//!
//! `frames-FIRST-COUNT-HASH.rgb`: the hash is of the frames, their place and the folder. It stands in the name, so that a file
//! has it from the moment at which it is there, and its length is that of its frames alone.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{Digest, Parts, names};
use crate::error::{Error, Result, io, open};
use crate::video::GoOn;

const BEGIN: &str = "frames-";
const END: &str = ".rgb";
/// Bytes that are read at a time.
const PIECE: usize = 1 << 20;

/// Frames of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) first: usize,
    pub(super) count: usize,
    hash: String,
    pub(super) path: PathBuf,
}

/// A file that is named as frames are, and of no use.
#[derive(Debug)]
pub(super) struct Unfit {
    path: PathBuf,
    /// What is wrong with it.
    reason: String,
    /// It has the name of frames of this video, and would be in their way.
    goes: bool,
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
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
fn parsed(name: &str) -> Option<(usize, usize, &str)> {
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

impl Parts {
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

    /// Removes what there is of the same frames beside this file: of another attempt, whose bits were others.
    pub(super) fn replace_others(&self, part: &Part) -> Result<()> {
        for other in self.parts()? {
            if (other.first, other.count) == (part.first, part.count) && other.hash != part.hash {
                fs::remove_file(&other.path).map_err(io(&other.path))?;
            }
        }
        Ok(())
    }

    /// Reads all frames that are there: what is damaged, or none of this video's, counts no more. [`Parts::unfit`] tells it.
    pub(in crate::worker) fn check(&mut self, go_on: GoOn<'_>) -> Result<()> {
        let (parts, mut unfit) = self.found()?;
        for part in parts {
            let reason = match self.is_whole(&part, go_on) {
                Ok(true) => continue,
                Ok(false) => "damaged: its frames are not those that were written".to_owned(),
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

    /// What [`Parts::check`] has found, a sentence each. What would be in the way of frames goes.
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
    fn is_whole(&self, part: &Part, go_on: GoOn<'_>) -> Result<bool> {
        let mut hash = self.hash(part.first);
        let mut file = open(&part.path)?;
        let mut piece = vec![0; PIECE];
        loop {
            go_on()?;
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
        let mut at = 0;
        let mut parts = Vec::new();
        let (found, unfit) = self.found()?;
        for part in found {
            // of two that overlap only what is new counts
            let end = part.first.saturating_add(part.count);
            if part.first <= at && end > at {
                let skip = (at - part.first) * size;
                parts.push((part, skip));
                at = end;
            }
        }
        if at < self.total {
            let gone = unfit.into_iter().find(|unfit| unfit.goes);
            let (path, reason) = gone.map_or_else(
                || (self.folder.clone(), format!("frame {at} is gone")),
                |unfit| (unfit.path, unfit.reason),
            );
            return Err(lost(&path, &reason));
        }
        Ok(parts.into_iter().map(move |(part, skip)| {
            let mut bytes = fs::read(&part.path).map_err(io(&part.path))?;
            let mut hash = self.hash(part.first);
            hash.more(&bytes);
            if hash.word() != part.hash {
                return Err(lost(
                    &part.path,
                    "damaged: its frames are not those that were written",
                ));
            }
            bytes.drain(..skip.min(bytes.len()));
            Ok(bytes)
        }))
    }

    /// Frames from the first on without a gap.
    pub(in crate::worker) fn frames_there(&self) -> Result<usize> {
        let mut at = 0;
        for part in self.parts()? {
            if part.first > at {
                break;
            }
            at = at.max(part.first.saturating_add(part.count));
        }
        Ok(at)
    }

    /// The files that are of use, as far as that is known without reading them, by their first frame.
    fn parts(&self) -> Result<Vec<Part>> {
        let mut parts = self.found()?.0;
        parts.retain(|part| self.unfit.iter().all(|unfit| unfit.path != part.path));
        Ok(parts)
    }

    /// The files whose length is right, with frames that the video has, by their first frame, and what else is named so.
    fn found(&self) -> Result<(Vec<Part>, Vec<Unfit>)> {
        let (mut parts, mut unfit) = (Vec::new(), Vec::new());
        for (name, path) in self.names()? {
            if !name.starts_with(BEGIN) || !name.ends_with(END) {
                continue;
            }
            let own = parsed(&name).filter(|(first, count, _)| {
                let end = first.checked_add(*count);
                *count > 0 && end.is_some_and(|end| end <= self.total)
            });
            let Some((first, count, hash)) = own else {
                unfit.push(Unfit {
                    path,
                    reason: "named as no frames of this video are".to_owned(),
                    goes: false,
                });
                continue;
            };
            let wanted = (count as u64).saturating_mul(self.size.frame() as u64);
            let reason = match path.metadata() {
                Ok(about) if !about.is_file() => "not a regular file".to_owned(),
                Ok(about) if about.len() != wanted => {
                    format!("{} bytes, where its frames take {wanted}", about.len())
                }
                Ok(_) => {
                    let hash = hash.to_owned();
                    parts.push(Part {
                        first,
                        count,
                        hash,
                        path,
                    });
                    continue;
                }
                Err(e) => e.to_string(),
            };
            unfit.push(Unfit {
                path,
                reason,
                goes: true,
            });
        }
        parts.sort_unstable_by(|one, other| {
            (one.first, one.count, &one.hash).cmp(&(other.first, other.count, &other.hash))
        });
        Ok((parts, unfit))
    }
}

/// Finished frames that are no more as they were.
fn lost(path: &Path, reason: &str) -> Error {
    Error::File {
        path: path.to_owned(),
        reason: format!(
            "{reason}: no video is made of it; give the same command again, which decodes its frames anew (and look at the disk)"
        ),
    }
}
