//! The name of a folder of finished frames: a hash of everything that they depend on.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::{Result, io};

/// What everything is hashed to.
#[derive(Debug, Default)]
pub(in crate::worker) struct Digest(blake3::Hasher);

impl Digest {
    pub(in crate::worker) fn add(&mut self, what: &str, bytes: &[u8]) {
        self.0.update(what.as_bytes());
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// A file as far as it is small, else by size, time, and its head, which has the header of a safetensors file.
    pub(in crate::worker) fn add_file(&mut self, path: &Path) -> Result<()> {
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

    pub(in crate::worker) fn word(&self) -> String {
        self.0.finalize().to_hex()[..16].to_owned()
    }
}
