//! Finished frames on disk beside the output, so that a kill loses at most one chunk.
//!
//! `OUT.parts/DIGEST/` holds `frames-FIRST-COUNT-HASH.rgb` (8-bit RGB, row by row) and the last
//! `state-FRAMES.bin`, from which the decode goes on to the same bits. The digest is of everything
//! that the frames depend on: other settings have another folder.

mod attempt_marker;
mod digest;
mod folder;
mod frames;
mod index;
mod leftovers;
mod states;
mod writer;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

pub(super) use self::digest::Digest;
use self::folder::{
    Finished, LOCK, has_frames, is_digest, is_own, is_still_there, locked, names, noted, remove,
};
use self::index::Unfit;
pub use self::leftovers::{Beginnings, Kept};
pub(super) use self::states::Stop;
pub(super) use self::writer::frames_in;
use crate::error::{Error, Result, io};
use crate::video::{self, Size};

/// Of the files in a folder: another one has other folders. The second has a hash of the frames in their names.
pub(super) const FORMAT: &[u8] = b"2";
/// Says how the frames were made.
const WAY: &str = "way.json";
/// Holds what tells the whole output from any other, from before it is renamed: [`Finished`].
const FINISHING: &str = "finishing";
/// Says which attempt has begun, and with how many frames.
const BEGUN: &str = "begun.json";
/// The file while it is written, before its name is its own.
const PART: &str = ".part";
/// The output while it is written.
const WHOLE: &str = "whole";

/// The folder of one output and one set of settings.
#[derive(Debug)]
pub(super) struct CheckpointDir {
    /// `OUT.parts`.
    root: PathBuf,
    folder: PathBuf,
    size: Size,
    /// Frames of the whole video.
    total: usize,
    /// Held while the worker lives.
    lock: File,
    saved: Instant,
    cost: Option<Duration>,
    /// No state is kept any more.
    refused: bool,
    /// Frames up to the state that a later run goes on from, as far as this one knows.
    kept: usize,
    /// A later run can go on from frames without a state.
    alone: bool,
    /// What of the frames is of no use, and was not told yet.
    unfit: Vec<Unfit>,
}

impl CheckpointDir {
    /// `OUT.parts`.
    fn root(output: &Path) -> PathBuf {
        let mut name = output.as_os_str().to_owned();
        name.push(".parts");
        PathBuf::from(name)
    }

    /// Whether there is anything of `output`.
    pub(super) fn exist(output: &Path) -> bool {
        Self::root(output).is_dir()
    }

    /// Bytes of the finished frames of `output`, of the settings that have the most.
    pub(super) fn bytes_there(output: &Path) -> u64 {
        let folders = names(&Self::root(output)).unwrap_or_default().into_iter();
        let folders = folders.filter(|(name, _)| is_digest(name));
        let all = folders.map(|(_, folder)| frames::bytes(&folder));
        all.max().unwrap_or(0)
    }

    /// The folder for `output` and this digest; the video will have `total` frames.
    pub(super) fn open(output: &Path, digest: &str, size: Size, total: usize) -> Result<Self> {
        let root = Self::root(output);
        let lock = locked(&root)?;
        let folder = root.join(digest);
        fs::create_dir_all(&folder).map_err(io(&folder))?;
        Ok(Self {
            root,
            folder,
            size,
            total,
            lock,
            saved: Instant::now(),
            cost: None,
            refused: false,
            kept: 0,
            alone: false,
            unfit: Vec::new(),
        })
    }

    /// The way by which the frames that are there were made; an error where what says it cannot be read.
    pub(super) fn way(&self) -> Result<Option<Value>> {
        noted(&self.way_path())
    }

    /// Where it is said in which way the frames were made.
    pub(super) fn way_path(&self) -> PathBuf {
        self.folder.join(WAY)
    }

    /// Begins anew in this way: what was made in another one goes.
    pub(super) fn begin(&mut self, way: &Value) -> Result<()> {
        for (name, path) in self.names()? {
            if is_own(&name) {
                video::clear(&path)?;
            }
        }
        self.note(WAY, way)
    }

    /// Takes everything of ours away, of other settings as well: the output is there.
    pub(super) fn remove(&self) {
        remove(&self.root, |_| true);
    }

    /// Whether the place of the folder is taken by something else.
    pub(super) fn check_place(output: &Path) -> Result<()> {
        let path = Self::root(output);
        match path.symlink_metadata() {
            Ok(about) if !about.is_dir() => Err(Error::InTheWay {
                path,
                reason: "finished frames are kept in a folder of this name, and it is something else: name another output".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// Where the output is written until it is whole.
    pub(super) fn whole(&self) -> PathBuf {
        self.folder.join(WHOLE)
    }

    /// `whole`, of so many frames a second, is about to be put in the place of the output.
    pub(super) fn finishing(&self, whole: &Path, fps: f64) -> Result<()> {
        self.note(FINISHING, &Finished::of(whole, fps)?)
    }

    /// Whether what stands at `output` is what an earlier process has put there, of so many frames a second.
    pub(super) fn has_finished(&self, output: &Path, fps: f64) -> bool {
        folder::has_finished(&self.folder, output, Some(fps))
    }

    /// Whether it is what an earlier process of ours has put there, of whatever settings, and could not say.
    pub(super) fn is_finished(output: &Path) -> bool {
        let folders = names(&Self::root(output)).unwrap_or_default().into_iter();
        let mut folders = folders.filter(|(name, path)| is_digest(name) && !path.is_symlink());
        folders.any(|(_, folder)| folder::has_finished(&folder, output, None))
    }

    /// Writes what [`noted`] reads.
    fn note(&self, name: &str, told: &impl Serialize) -> Result<()> {
        let told = serde_json::json!(told).to_string();
        self.write(name, |path| fs::write(path, told).map_err(io(path)))
    }

    fn write(&self, name: &str, work: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        self.write_as(&self.folder.join(name), work)
    }

    fn write_as(&self, whole: &Path, work: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let rename = |part: &Path| fs::rename(part, whole).map_err(io(whole));
        video::whole(&self.folder.join(PART), work, rename)
    }

    fn names(&self) -> Result<Vec<(String, PathBuf)>> {
        names(&self.folder)
    }
}

impl Drop for CheckpointDir {
    /// Folders in which nothing is kept do not stay.
    fn drop(&mut self) {
        // once it is removed, another process may be there
        if is_still_there(&self.lock, &self.root.join(LOCK)) {
            remove(&self.root, |folder| !has_frames(folder));
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_frames;
