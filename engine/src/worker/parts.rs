//! Finished frames on disk beside the output, so that a kill loses at most one chunk.
//!
//! `OUT.parts/DIGEST/` holds `frames-FIRST-COUNT.rgb` (8-bit RGB, row by row) and the last
//! `state-FRAMES.bin`, from which the decode goes on to the same bits. The digest is of everything
//! that the frames depend on: other settings have another folder.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use candle_core::Device;
use serde_json::Value;

use crate::error::{Error, Result, io};
use crate::vae::Carry;
use crate::video::{self, Size};

/// Says how the frames were made.
const WAY: &str = "way.json";
/// Holds the inode of the whole file before it is renamed.
const FINISHING: &str = "finishing";
/// The file while it is written, before its name is its own.
const PART: &str = ".part";
/// The output while it is written.
const WHOLE: &str = "whole";
/// Held by the process that decodes.
const LOCK: &str = "lock";
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
    /// Held while the worker lives.
    _lock: File,
    saved: Instant,
    cost: Option<Duration>,
}

/// Frames of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    first: usize,
    count: usize,
    path: PathBuf,
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

    /// The folder for `output` and this digest.
    pub(super) fn open(output: &Path, digest: &str, size: Size) -> Result<Self> {
        let root = Self::root(output);
        let folder = root.join(digest);
        fs::create_dir_all(&folder).map_err(io(&folder))?;
        let path = root.join(LOCK);
        // a file of the user's may have this name
        let mut how = File::options();
        let lock = how.write(true).create(true).truncate(false).open(&path);
        let lock = lock.map_err(io(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::File {
                    path: root,
                    reason:
                        "another process is decoding to this output: wait for it, or name another"
                            .to_owned(),
                });
            }
            Err(TryLockError::Error(source)) => return Err(io(&path)(source)),
        }
        Ok(Self {
            root,
            folder,
            size,
            _lock: lock,
            saved: Instant::now(),
            cost: None,
        })
    }

    /// The way by which the frames that are there were made.
    pub(super) fn way(&self) -> Option<Value> {
        let text = fs::read(self.folder.join(WAY)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Begins anew in this way: what was made in another one goes.
    pub(super) fn begin(&mut self, way: &Value) -> Result<()> {
        for (name, path) in self.names()? {
            if is_own(&name) {
                video::clear(&path)?;
            }
        }
        self.write(WAY, |path| {
            fs::write(path, way.to_string()).map_err(io(path))
        })
    }

    /// Where an earlier decode stopped: the newest state whose frames are all there, and how many that is.
    pub(super) fn resume(&self, device: &Device) -> Result<(usize, Option<Carry>)> {
        let there = self.frames_there()?;
        let mut states = self.states()?;
        states.sort_unstable_by_key(|(frames, _)| std::cmp::Reverse(*frames));
        for (frames, path) in states {
            // one that cannot be read is as good as none
            let carry = Carry::load(&path, device);
            if let Ok(carry) = carry
                && frames <= there
                && carry.frames() == frames
            {
                return Ok((frames, Some(carry)));
            }
        }
        Ok((0, None))
    }

    /// Keeps finished frames, and, where that is worth its time, what the next ones need.
    pub(super) fn keep(
        &mut self,
        first: usize,
        frames: &[u8],
        carry: &Carry,
        total: usize,
    ) -> Result<()> {
        let count = frames.len() / self.size.frame().max(1);
        let name = format!("frames-{first:06}-{count:06}.rgb");
        self.write(&name, |path| {
            let mut file = File::create(path).map_err(io(path))?;
            file.write_all(frames)
                .and_then(|()| file.sync_data())
                .map_err(io(path))
        })?;
        if carry.frames() >= total || !self.is_worth(carry.bytes()) {
            return Ok(());
        }
        let begun = Instant::now();
        let name = format!("state-{:06}.bin", carry.frames());
        self.write(&name, |path| {
            carry.save(path)?;
            let file = File::open(path).map_err(io(path))?;
            file.sync_data().map_err(io(path))
        })?;
        self.cost = Some(begun.elapsed());
        self.saved = Instant::now();
        for (frames, path) in self.states()? {
            if frames < carry.frames() {
                // an old one does no harm
                let _ = fs::remove_file(path);
            }
        }
        Ok(())
    }

    fn is_worth(&self, bytes: usize) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let guess = || Duration::from_secs_f64(bytes as f64 / SPEED as f64);
        let cost = self.cost.unwrap_or_else(guess);
        bytes <= SMALL || self.saved.elapsed() >= cost * SHARE
    }

    /// The frames in their order, file by file.
    pub(super) fn frames(&self) -> Result<impl Iterator<Item = Result<Vec<u8>>> + use<>> {
        let size = self.size.frame();
        let mut at = 0;
        let mut parts = Vec::new();
        for part in self.parts()? {
            // of two that overlap only what is new counts
            let end = part.first.saturating_add(part.count);
            if part.first <= at && end > at {
                parts.push((part.path, (at - part.first) * size));
                at = end;
            }
        }
        Ok(parts.into_iter().map(|(path, skip)| {
            let mut bytes = fs::read(&path).map_err(io(&path))?;
            bytes.drain(..skip.min(bytes.len()));
            Ok(bytes)
        }))
    }

    /// Takes everything of ours away, of other settings as well: the output is there.
    pub(super) fn remove(self) {
        // what is left over does no harm
        for (name, folder) in names(&self.root).unwrap_or_default() {
            if !is_digest(&name) || folder.is_symlink() {
                continue;
            }
            for (name, path) in names(&folder).unwrap_or_default() {
                if is_own(&name) {
                    let _ = video::clear(&path);
                }
            }
            let _ = fs::remove_dir(&folder);
        }
        self.remove_root();
    }

    /// Removes the folder of all settings if nothing is in it but the lock.
    fn remove_root(&self) {
        let only_lock = names(&self.root).is_ok_and(|all| all.iter().all(|(name, _)| name == LOCK));
        let path = self.root.join(LOCK);
        // ours is empty
        if path
            .symlink_metadata()
            .is_ok_and(|about| about.is_file() && about.len() == 0)
        {
            let _ = fs::remove_file(path);
        }
        if only_lock {
            let _ = fs::remove_dir(&self.root);
        }
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

    /// `whole` is about to be put in the place of the output.
    pub(super) fn finishing(&self, whole: &Path) -> Result<()> {
        let number = whole.metadata().map_err(io(whole))?.ino().to_string();
        self.write(FINISHING, |path| fs::write(path, number).map_err(io(path)))
    }

    /// Whether what stands at `output` is what an earlier process has put there.
    pub(super) fn has_finished(&self, output: &Path) -> bool {
        let number = fs::read_to_string(self.folder.join(FINISHING)).ok();
        let there = output.metadata().ok().map(|about| about.ino().to_string());
        number.is_some() && number == there
    }

    fn write(&self, name: &str, work: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let (part, whole) = (self.folder.join(PART), self.folder.join(name));
        work(&part)?;
        fs::rename(&part, &whole).map_err(io(&whole))
    }

    /// Frames from the first on without a gap.
    pub(super) fn frames_there(&self) -> Result<usize> {
        let mut at = 0;
        for part in self.parts()? {
            if part.first > at {
                break;
            }
            at = at.max(part.first.saturating_add(part.count));
        }
        Ok(at)
    }

    /// The files whose length is right, by their first frame.
    fn parts(&self) -> Result<Vec<Part>> {
        let mut parts = Vec::new();
        for (name, path) in self.names()? {
            let numbers = name
                .strip_prefix("frames-")
                .and_then(|rest| rest.strip_suffix(".rgb")?.split_once('-'));
            let Some((first, count)) =
                numbers.and_then(|(first, count)| Some((first.parse().ok()?, count.parse().ok()?)))
            else {
                continue;
            };
            let count: usize = count;
            let wanted = count.checked_mul(self.size.frame());
            let has = path.metadata().map_err(io(&path))?.len();
            if wanted.is_some_and(|wanted| wanted as u64 == has) {
                parts.push(Part { first, count, path });
            }
        }
        parts.sort_unstable_by_key(|part| (part.first, part.count));
        Ok(parts)
    }

    fn states(&self) -> Result<Vec<(usize, PathBuf)>> {
        let names = self.names()?.into_iter();
        Ok(names
            .filter_map(|(name, path)| {
                let frames = name.strip_prefix("state-")?.strip_suffix(".bin")?;
                Some((frames.parse().ok()?, path))
            })
            .collect())
    }

    fn names(&self) -> Result<Vec<(String, PathBuf)>> {
        names(&self.folder)
    }
}

/// Names and paths of what is in a folder.
fn names(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
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

/// Whether a folder is named as [`Digest::word`] names them.
fn is_digest(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a file in a folder of ours is named as ours are.
fn is_own(name: &str) -> bool {
    let numbered = |begin: &str, end: &str| {
        name.strip_prefix(begin)
            .and_then(|rest| rest.strip_suffix(end))
            .is_some_and(|n| n.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'))
    };
    // what a kill leaves of a state: safetensors writes it under a name that tempfile makes, then renames it
    let unfinished = name.strip_prefix(".tmp").is_some_and(|rest| {
        rest.len() == 6 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    });
    [WAY, FINISHING, PART, WHOLE].contains(&name)
        || unfinished
        || numbered("frames-", ".rgb")
        || numbered("state-", ".bin")
}

impl Drop for Parts {
    /// Folders in which nothing is kept do not stay.
    fn drop(&mut self) {
        let none = self
            .names()
            .is_ok_and(|all| all.iter().all(|(name, _)| name == WAY));
        if none {
            let _ = fs::remove_file(self.folder.join(WAY));
        }
        // only empty ones go
        if fs::remove_dir(&self.folder).is_ok() {
            self.remove_root();
        }
    }
}

/// What everything is hashed to.
#[derive(Debug, Default)]
pub(super) struct Digest(blake3::Hasher);

impl Digest {
    pub(super) fn add(&mut self, what: &str, bytes: &[u8]) {
        self.0.update(what.as_bytes());
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// A file as far as it is small, else by size, time, and its head, which has the header of a safetensors file.
    pub(super) fn add_file(&mut self, path: &Path) -> Result<()> {
        let file = File::open(path).map_err(io(path))?;
        let about = file.metadata().map_err(io(path))?;
        let mut head = Vec::new();
        file.take(1 << 20)
            .read_to_end(&mut head)
            .map_err(io(path))?;
        self.add("size", &about.len().to_le_bytes());
        self.add("head", &head);
        let since = about
            .modified()
            .ok()
            .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        self.add(
            "time",
            &since.map_or(0, |since| since.as_nanos()).to_le_bytes(),
        );
        Ok(())
    }

    pub(super) fn word(&self) -> String {
        self.0.finalize().to_hex()[..16].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size {
        width: 2,
        height: 1,
    };

    const DIGEST: &str = "0123456789abcdef";

    fn state(frames: usize) -> Carry {
        // the numbers are private to the decoders: written as a decoder writes them
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let number = |n: usize| {
            candle_core::Tensor::new(&[u32::try_from(n).unwrap()], &Device::Cpu).unwrap()
        };
        let all = [("given", frames), ("next", frames)];
        let all = all.map(|(name, n)| (name.to_owned(), number(n)));
        candle_core::safetensors::save(&all.into(), &path).unwrap();
        Carry::load(&path, &Device::Cpu).unwrap()
    }

    fn open(folder: &Path) -> Parts {
        Parts::open(&folder.join("o.mp4"), DIGEST, SIZE).unwrap()
    }

    #[test]
    fn whole_frames_and_their_state_are_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut parts = open(folder.path());
        assert_eq!(parts.resume(&Device::Cpu).unwrap().0, 0);
        parts.keep(0, &[1; 6], &state(1), 9).unwrap();
        parts.keep(1, &[2; 24], &state(5), 9).unwrap();
        drop(parts);
        let parts = open(folder.path());
        let (frames, carry) = parts.resume(&Device::Cpu).unwrap();
        assert_eq!((frames, carry.unwrap().frames()), (5, 5));
        // cut short, as by a full disk: only what lies before it counts
        let path = folder
            .path()
            .join("o.mp4.parts/0123456789abcdef/frames-000001-000004.rgb");
        std::fs::write(&path, [2; 23]).unwrap();
        assert_eq!(parts.resume(&Device::Cpu).unwrap().0, 0);
        std::fs::write(&path, [2; 24]).unwrap();
        std::fs::write(
            folder
                .path()
                .join("o.mp4.parts/0123456789abcdef/state-000005.bin"),
            "rubbish",
        )
        .unwrap();
        assert_eq!(parts.resume(&Device::Cpu).unwrap().0, 0);
        assert_eq!(parts.frames_there().unwrap(), 5);
        // a number that no decode reaches: nobody counts beyond it
        let far = format!("frames-{}-000001.rgb", usize::MAX);
        std::fs::write(parts.folder.join(far), [3; 6]).unwrap();
        assert_eq!(parts.frames_there().unwrap(), 5);
        let all: Vec<Vec<u8>> = parts.frames().unwrap().map(Result::unwrap).collect();
        assert_eq!(all.concat(), [vec![1; 6], vec![2; 24]].concat());
        parts.remove();
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn nothing_stays_of_a_decode_that_kept_nothing_and_a_finished_one_is_known() {
        let folder = tempfile::tempdir().unwrap();
        drop(open(folder.path()));
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
        let (parts, output) = (open(folder.path()), folder.path().join("o.mp4"));
        std::fs::write(&output, "another").unwrap();
        let whole = folder.path().join("whole");
        std::fs::write(&whole, "video").unwrap();
        parts.finishing(&whole).unwrap();
        assert!(!parts.has_finished(&output));
        std::fs::rename(&whole, &output).unwrap();
        assert!(parts.has_finished(&output));
    }

    #[test]
    fn files_of_the_users_beside_ours_stay() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("o.mp4.parts");
        let mine = [
            "notes.txt",
            "lock",
            "album/way.json",
            "0123456789abcdef/mine.txt",
        ];
        for name in mine {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "mine").unwrap();
        }
        let mut parts = open(folder.path());
        parts.begin(&serde_json::json!({})).unwrap();
        parts.keep(0, &[1; 6], &state(1), 9).unwrap();
        fs::write(parts.whole(), "half a video").unwrap();
        fs::write(parts.folder.join(".tmpAb12Cd"), "half a state").unwrap();
        parts.remove();
        for name in mine {
            assert_eq!(fs::read(root.join(name)).unwrap(), b"mine", "{name}");
        }
        let left = names(&root.join(DIGEST)).unwrap();
        assert_eq!(left.len(), 1, "{left:?}");
        assert!(Parts::check_place(&folder.path().join("o.mp4")).is_ok());
        fs::write(folder.path().join("q.parts"), "mine").unwrap();
        assert!(Parts::check_place(&folder.path().join("q")).is_err());
    }

    #[test]
    fn one_output_is_written_by_one_process() {
        let folder = tempfile::tempdir().unwrap();
        let _first = open(folder.path());
        let second = Parts::open(&folder.path().join("o.mp4"), "other", SIZE).unwrap_err();
        assert!(
            second.to_string().contains("another process is decoding"),
            "{second}"
        );
    }
}
