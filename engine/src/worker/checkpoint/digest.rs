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

    /// Numbers as their bytes, little end first, without a copy of them all.
    pub(in crate::worker) fn add_numbers(&mut self, what: &str, numbers: &[f32]) {
        self.0.update(what.as_bytes());
        self.0.update(&(size_of_val(numbers) as u64).to_le_bytes());
        for piece in numbers.chunks(1 << 14) {
            let bytes: Vec<u8> = piece.iter().flat_map(|x| x.to_le_bytes()).collect();
            self.0.update(&bytes);
        }
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

    /// Bytes that come in pieces: how many they are does not count.
    pub(super) fn more(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(in crate::worker) fn word(&self) -> String {
        self.0.finalize().to_hex()[..16].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_as_their_bytes() {
        let numbers: Vec<f32> = (0_u16..40_000).map(f32::from).collect();
        let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        let (mut one, mut other) = (Digest::default(), Digest::default());
        one.add_numbers("latents", &numbers);
        other.add("latents", &bytes);
        assert_eq!(one.word(), other.word());
    }
}
