//! The attempt marker: shows the next attempt that this one was ended before it had made a frame.

use serde::{Deserialize, Serialize};

use super::folder::noted;
use super::{BEGUN, CheckpointDir};
use crate::error::Result;

/// The content of [`BEGUN`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Begun {
    /// The run: markers of other runs tell nothing.
    pub(super) run: String,
    /// Frames that were finished when the attempt began.
    frames: usize,
}

impl CheckpointDir {
    /// Writes the marker of an attempt of this run.
    pub(in super::super) fn note_begin(&self, run: &str) -> Result<()> {
        let begun = Begun {
            run: run.to_owned(),
            frames: self.frames_there()?,
        };
        self.note(BEGUN, &begun)
    }

    /// Whether an earlier attempt of this run began with the kept strategy and made no frame.
    pub(in super::super) fn got_nowhere(&self, run: &str) -> Result<bool> {
        let begun: Option<Begun> = noted(&self.folder.join(BEGUN))?;
        let Some(begun) = begun.filter(|begun| begun.run == run) else {
            return Ok(false);
        };
        Ok(self.frames_there()? <= begun.frames)
    }
}
