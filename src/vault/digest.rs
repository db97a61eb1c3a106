//! Whether an entry's data are what was written.

use std::io::{self, Read, Seek, SeekFrom};

use sha2::{Digest as _, Sha256};

use super::entry::{Entry, open};

const PIECE: usize = 1 << 20;

/// Whether the SHA-256 of an entry's data, or of its header, is the one that its metadata name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Digest {
    /// It is.
    Holds,
    /// It is not: data or header were changed after they were written.
    Differs,
    /// No digest is named, as in jobs.
    NotTold,
}

impl Digest {
    /// Reads all data of the entry. An error is the system's.
    pub fn of(entry: &Entry) -> io::Result<Self> {
        let (Some(header), Some(told)) = (entry.header(), entry.says("sha256")) else {
            return Ok(Self::NotTold);
        };
        let mut file = open(&entry.path)?;
        file.seek(SeekFrom::Start(header.data_at))?;
        let mut data = file.take(header.data_bytes);
        let (mut digest, mut piece) = (Sha256::new(), vec![0; PIECE]);
        loop {
            match data.read(&mut piece)? {
                0 => break,
                n => digest.update(&piece[..n]),
            }
        }
        let found = format!("{:x}", digest.finalize());
        Ok(if found.eq_ignore_ascii_case(told.trim()) {
            Self::Holds
        } else {
            Self::Differs
        })
    }
}
