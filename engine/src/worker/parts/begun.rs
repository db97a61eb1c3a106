//! By what the next attempt knows that one was ended before it had made a frame.

use serde::{Deserialize, Serialize};

use super::folder::noted;
use super::{BEGUN, Parts};
use crate::error::Result;

/// As it is kept in [`BEGUN`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Begun {
    /// Another run may have been ended by whatever.
    pub(super) run: String,
    /// Frames that were there.
    frames: usize,
}

impl Parts {
    /// An attempt of this run begins in the way that is kept.
    pub(in super::super) fn note_begin(&self, run: &str) -> Result<()> {
        let begun = Begun {
            run: run.to_owned(),
            frames: self.frames_there()?,
        };
        self.note(BEGUN, &begun)
    }

    /// Whether an attempt of this run has begun in the way that is kept, and no frame came of it.
    pub(in super::super) fn got_nowhere(&self, run: &str) -> Result<bool> {
        let begun: Option<Begun> = noted(&self.folder.join(BEGUN))?;
        let Some(begun) = begun.filter(|begun| begun.run == run) else {
            return Ok(false);
        };
        Ok(self.frames_there()? <= begun.frames)
    }
}
