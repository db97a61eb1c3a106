//! Writes finished frames and the state that the next ones need to the checkpoint.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::ops::Range;
use std::time::{Duration, Instant};

use super::CheckpointDir;
use super::index::{CheckpointIndex, Part};
use crate::error::{Error, RAISE_LIMIT, Result, io};
use crate::vae::Carry;

/// States up to this many bytes are always written.
const SMALL: usize = 8 << 20;
/// A larger state is written if that takes at most this share of the time.
const SHARE: u32 = 10;
/// The write speed assumed before the first write, in bytes a second.
const SPEED: usize = 500 << 20;

/// What is in the way of frames, and what to do.
const IS_A_FOLDER: &str = "it is a folder, where a file of finished frames belongs: remove it, and give the same command again";

impl CheckpointDir {
    /// Writes finished frames that no file has yet and, if that is worth its time, the state for the next ones. The state
    /// is insurance: if it cannot be written, or the frames need its room, the decode goes on without it, and a sentence
    /// says so once.
    pub(in crate::worker) fn keep(
        &mut self,
        first: usize,
        frames: &[u8],
        carry: &Carry,
    ) -> Result<Option<String>> {
        let part = self.part(first, frames);
        let there = CheckpointIndex::of(self)?;
        let mut told = None;
        if !there.parts.contains(&part) {
            told = self.write_or_make_room(&part, frames, &there)?;
            replace_others(&part, &there)?;
        }
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
        for (frames, path) in &there.states {
            if *frames < carry.frames() {
                // an old one does no harm
                let _ = fs::remove_file(path);
            }
        }
        Ok(None)
    }

    /// Writes frames. On a full disk they take the room of the states if that is enough for all missing frames; else a
    /// later run needs the states more.
    fn write_or_make_room(
        &mut self,
        part: &Part,
        frames: &[u8],
        there: &CheckpointIndex,
    ) -> Result<Option<String>> {
        let (Err(e), fit) = self.write_frames(part, frames) else {
            return Ok(None);
        };
        let coming = frames_in(&there.cover().gaps).saturating_mul(self.size.frame());
        let room = there.state_bytes().saturating_add(fit);
        if !e.is_full() || e.is_beyond_limit() || room < coming as u64 {
            return Err(e);
        }
        self.drop_states()?;
        self.write_frames(part, frames).0?;
        Ok(self.refuse(&e))
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
        let written = written.map_err(|e| match e {
            Error::Io { path, source } if source.kind() == ErrorKind::IsADirectory => {
                let reason = IS_A_FOLDER.to_owned();
                Error::InTheWay { path, reason }
            }
            e => e,
        });
        (written, fit)
    }

    /// What may be done after `e`, for which there was no room, and what a later run goes on from.
    pub(in crate::worker) fn cure(&self, e: &Error) -> String {
        let total = self.total;
        // a folder that cannot be read tells of nothing
        let missing = self.gaps().map_or(total, |gaps| frames_in(&gaps));
        let whole = total - missing;
        // frames alone are no place to go on from, but where the model's arithmetic makes them one
        let kept = if self.alone { whole } else { self.kept };
        let at = self.root.display();
        let done = missing == 0;
        let room = missing.saturating_mul(self.size.frame()).div_ceil(1 << 20);
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
        if kept == 0 {
            return format!(
                "{what}, and give the same command again, or name an output on another disk"
            );
        }
        format!(
            "{kept} of {total} frames are kept in {at}: {what}, and the same command goes on after them"
        )
    }

    /// Notes that a later run can go on from frames without a state.
    pub(in crate::worker) const fn need_no_state(&mut self) {
        self.alone = true;
    }

    /// Stops writing states; the sentence about it the first time.
    fn refuse(&mut self, why: &Error) -> Option<String> {
        let first = !std::mem::replace(&mut self.refused, true);
        first.then(|| {
            format!(
                "what the decode would go on from after a kill cannot be kept ({why}): it goes on without that"
            )
        })
    }

    fn is_worth(&self, bytes: usize) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let guess = || Duration::from_secs_f64(bytes as f64 / SPEED as f64);
        let cost = self.cost.unwrap_or_else(guess);
        bytes <= SMALL || self.saved.elapsed() >= cost * SHARE
    }
}

/// Frames of all gaps.
pub(in crate::worker) fn frames_in(gaps: &[Range<usize>]) -> usize {
    gaps.iter().map(ExactSizeIterator::len).sum()
}

/// Removes what there is of the same frames beside this file: of another attempt, whose bits were others.
fn replace_others(part: &Part, there: &CheckpointIndex) -> Result<()> {
    for other in &there.parts {
        if (other.first, other.count) == (part.first, part.count) && other.hash != part.hash {
            fs::remove_file(&other.path).map_err(io(&other.path))?;
        }
    }
    Ok(())
}
