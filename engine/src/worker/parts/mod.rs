//! Finished frames on disk beside the output, so that a kill loses at most one chunk.
//!
//! `OUT.parts/DIGEST/` holds `frames-FIRST-COUNT-HASH.rgb` (8-bit RGB, row by row) and the last
//! `state-FRAMES.bin`, from which the decode goes on to the same bits. The digest is of everything
//! that the frames depend on: other settings have another folder.

mod begun;
mod digest;
mod folder;
mod frames;
mod left;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use candle_core::Device;
use serde::Serialize;
use serde_json::Value;

pub(super) use self::digest::Digest;
use self::folder::{
    Finished, LOCK, has_frames, is_digest, is_own, is_still_there, locked, names, noted, remove,
};
use self::frames::{Part, Unfit};
pub use self::left::{Beginnings, Kept};
use crate::error::{Error, RAISE_LIMIT, Result, io};
use crate::vae::Carry;
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
/// A state up to this size is always kept.
const SMALL: usize = 8 << 20;
/// A larger one is kept where that costs at most one part in so many of the time.
const SHARE: u32 = 10;
/// Bytes that are assumed to be written in a second before one was.
const SPEED: usize = 500 << 20;

/// The folder of one output and one set of settings.
#[derive(Debug)]
pub(super) struct Parts {
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
    /// What of the frames is of no use, and was not told yet.
    unfit: Vec<Unfit>,
}

/// Where an earlier decode stopped.
#[derive(Debug, Default)]
pub(super) struct Stop {
    /// Frames that are there up to it.
    pub(super) frames: usize,
    /// What the next ones need; absent: nothing to go on from.
    pub(super) carry: Option<Carry>,
    /// Why states that are there are of no use, a sentence each.
    pub(super) unfit: Vec<String>,
}

impl Parts {
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

    /// Where an earlier decode stopped: the newest state whose frames are all there, and how many that is. A state has no
    /// more than `most` bytes.
    pub(super) fn resume(&mut self, device: &Device, most: u64) -> Result<Stop> {
        let there = self.frames_there()?;
        let mut states = self.states()?;
        states.sort_unstable_by_key(|(frames, _)| std::cmp::Reverse(*frames));
        let mut stop = Stop::default();
        for (frames, path) in states {
            // of frames that were not written, or are torn: it waits for nothing
            if frames > there {
                continue;
            }
            // one that cannot be read is as good as none
            match Carry::load(&path, device, most) {
                Ok(carry) if carry.frames() == frames => {
                    stop.frames = frames;
                    stop.carry = Some(carry);
                    break;
                }
                Ok(carry) => stop.unfit.push(format!(
                    "{}: is of {} frames, not of {frames}",
                    path.display(),
                    carry.frames()
                )),
                Err(e) => stop.unfit.push(e.to_string()),
            }
        }
        self.kept = stop.frames;
        Ok(stop)
    }

    /// Keeps finished frames, and, where that is worth its time, what the next ones need. That is insurance alone: where
    /// it cannot be written, or the frames need its room, the decode goes on without it; the words for that come once.
    pub(super) fn keep(
        &mut self,
        first: usize,
        frames: &[u8],
        carry: &Carry,
    ) -> Result<Option<String>> {
        let part = self.part(first, frames);
        let mut told = None;
        if let (Err(e), fit) = self.write_frames(&part, frames) {
            // where the room of the states is not enough for all frames that are to come, a later run needs them more
            let coming = self
                .total
                .saturating_sub(first)
                .saturating_mul(self.size.frame());
            let room = self.state_bytes()?.saturating_add(fit);
            if !e.is_full() || e.is_beyond_limit() || room < coming as u64 {
                return Err(e);
            }
            self.drop_states()?;
            self.write_frames(&part, frames).0?;
            told = self.refuse(&e);
        }
        self.replace_others(&part)?;
        if self.refused || carry.frames() >= self.total || !self.is_worth(carry.bytes()) {
            return Ok(told);
        }
        let begun = Instant::now();
        let name = format!("state-{:06}.bin", carry.frames());
        match self.write(&name, |path| carry.save(path)) {
            Err(e @ Error::Io { .. }) => return Ok(self.refuse(&e)),
            written => written?,
        }
        self.kept = carry.frames();
        self.cost = Some(begun.elapsed());
        self.saved = Instant::now();
        for (frames, path) in self.states()? {
            if frames < carry.frames() {
                // an old one does no harm
                let _ = fs::remove_file(path);
            }
        }
        Ok(None)
    }

    /// The second: how many bytes fitted, where they did not all.
    fn write_frames(&self, part: &Part, frames: &[u8]) -> (Result<()>, u64) {
        let mut fit = 0;
        let written = self.write_as(&part.path, |path| {
            let mut file = File::create(path).map_err(io(path))?;
            file.write_all(frames).map_err(io(path)).inspect_err(|_| {
                fit = file.metadata().map_or(0, |about| about.len());
            })
        });
        (written, fit)
    }

    /// What may be done after `e`, for which there was no room, and what a later run goes on from.
    pub(super) fn cure(&self, e: &Error) -> String {
        let (total, kept) = (self.total, self.kept);
        let there = self.frames_there().unwrap_or(0);
        let at = self.root.display();
        let done = there >= total;
        let missing = total
            .saturating_sub(there)
            .saturating_mul(self.size.frame());
        let room = missing.div_ceil(1 << 20);
        let what = match (e.is_beyond_limit(), done) {
            (true, _) => format!("no file may be as large there: {RAISE_LIMIT}"),
            (_, true) => "make room there for the video".to_owned(),
            _ => format!("make {room} MiB free there, and room for the video"),
        };
        if done {
            return format!(
                "all {total} frames are kept in {at}: {what}, and the same command writes it without decoding again"
            );
        }
        // frames alone are no place to go on from
        if kept == 0 {
            return format!(
                "{what}, and give the same command again, or name an output on another disk"
            );
        }
        format!(
            "{kept} of {total} frames are kept in {at}: {what}, and the same command goes on after them"
        )
    }

    /// From here on no state is kept; the words for it, the first time.
    fn refuse(&mut self, why: &Error) -> Option<String> {
        let first = !std::mem::replace(&mut self.refused, true);
        first.then(|| {
            format!(
                "what the decode would go on from after a kill cannot be kept ({why}): it goes on without that"
            )
        })
    }

    /// Bytes of all states.
    fn state_bytes(&self) -> Result<u64> {
        let states = self.states()?;
        let sizes = states
            .iter()
            .filter_map(|(_, path)| Some(path.metadata().ok()?.len()));
        Ok(sizes.sum())
    }

    /// Removes what the next frames would need, to have its room.
    pub(super) fn drop_states(&mut self) -> Result<()> {
        for (_, path) in self.states()? {
            // what stays takes room and does no other harm
            let _ = fs::remove_file(&path);
        }
        self.kept = 0;
        Ok(())
    }

    fn is_worth(&self, bytes: usize) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let guess = || Duration::from_secs_f64(bytes as f64 / SPEED as f64);
        let cost = self.cost.unwrap_or_else(guess);
        bytes <= SMALL || self.saved.elapsed() >= cost * SHARE
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

    fn states(&self) -> Result<Vec<(usize, PathBuf)>> {
        let names = self.names()?.into_iter();
        Ok(names
            .filter_map(|(name, path)| Some((folder::frames_of_state(&name)?, path)))
            .collect())
    }

    fn names(&self) -> Result<Vec<(String, PathBuf)>> {
        names(&self.folder)
    }
}

impl Drop for Parts {
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
