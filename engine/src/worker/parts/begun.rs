//! By what the next attempt knows that one was ended before it had made a frame.

use std::fs;

use serde::{Deserialize, Serialize};

use super::{BEGUN, Parts};
use crate::error::{Error, Result, io, read_small};

/// Ours has less than 100 bytes.
const MOST_BEGUN: usize = 4096;

/// As it is kept in [`BEGUN`].
#[derive(Debug, Serialize, Deserialize)]
struct Begun {
    /// Another run may have been ended by whatever.
    run: String,
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
        let text = serde_json::json!(begun).to_string();
        self.write(BEGUN, |path| fs::write(path, text).map_err(io(path)))
    }

    /// Whether an attempt of this run has begun in the way that is kept, and no frame came of it.
    pub(in super::super) fn got_nowhere(&self, run: &str) -> Result<bool> {
        let path = self.folder.join(BEGUN);
        if path.symlink_metadata().is_err() {
            return Ok(false);
        }
        let text = read_small(&path, MOST_BEGUN)?;
        let begun: Begun = serde_json::from_slice(&text).map_err(|e| Error::File {
            path,
            reason: format!("damaged: {e}"),
        })?;
        Ok(begun.run == run && self.frames_there()? <= begun.frames)
    }
}
