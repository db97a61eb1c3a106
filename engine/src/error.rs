//! What can go wrong, in words that fit after "failed to …: ".

use std::path::PathBuf;

/// The result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the engine could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be opened or read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The disk had no room for a file, or lets none be as large.
    #[error("{}: {source}: {cure}", path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// What the system, or the program that wrote it, said.
        source: std::io::Error,
        /// What is kept, and what may be done.
        cure: String,
    },
    /// A file is not what its name promises: cut short, damaged or of another kind.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what may be done.
        reason: String,
    },
    /// Finished frames that were kept are no more as they were written.
    #[error("{}: {reason}", path.display())]
    Lost {
        /// The file that had them, or the folder in which it was.
        path: PathBuf,
        /// What is wrong, and what may be done.
        reason: String,
    },
    /// A weight that the model needs is missing or of another shape.
    #[error("{}: weight {name}: {reason}", path.display())]
    Weight {
        /// The file that has it, or the folder where it was looked for.
        path: PathBuf,
        /// Its name.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// Numbers came out that are none.
    #[error(
        "{half} returned NaN or infinite numbers in {dtype}{}",
        if *dtype == "float32" { ": the weights or what went in are damaged" } else { "" }
    )]
    NotFinite {
        /// The decoder or the encoder.
        half: &'static str,
        /// What was computed in: `float32`, `float16` or `bfloat16`.
        dtype: &'static str,
    },
    /// An argument that does not fit the model or the operation.
    #[error("{0}")]
    Argument(String),
    /// Words of the command line that ask for what there is not.
    #[error("{0}")]
    Usage(String),
    /// Something is where the output belongs.
    #[error("{}: is there already: name another, or give --force to replace it", .0.display())]
    Exists(PathBuf),
    /// What is where the output belongs is not replaced, not even with `--force`.
    #[error("{}: {reason}", path.display())]
    InTheWay {
        /// The output.
        path: PathBuf,
        /// What is there.
        reason: String,
    },
    /// The user has ended it.
    #[error("ended by the user")]
    Stopped,
    /// One piece of the work took too long.
    #[error("a piece took more than {:.0} s; it was at {module}: set a larger vae_piece_limit, or a smaller vae_tile or vae_chunk", limit.as_secs_f64())]
    Late {
        /// The module that came back last.
        module: String,
        /// What it may take.
        limit: std::time::Duration,
    },
    /// A program that writes or reads videos.
    #[error("{program}: {reason}")]
    Program {
        /// Its name.
        program: String,
        /// What it said, or why it cannot be started.
        reason: String,
    },
    /// A device that is not there, or cannot be used.
    #[error("{0}")]
    Device(String),
    /// No way of computing it fits into the memory of a device.
    #[error("not enough memory: {0}")]
    Memory(String),
    /// The tensor library refused.
    #[error("{0}")]
    Tensor(#[from] candle_core::Error),
}

/// What may be done where a file may not be as large as it has to be.
pub(crate) const RAISE_LIMIT: &str =
    "raise the limit on the size of files (ulimit -f, or the file system's own)";

impl Error {
    /// Whether a disk, or the user's share of it, had no room, or a file may not be as large.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Io { source, .. } => Self::is_full_by(source),
            Self::Full { .. } => true,
            _ => false,
        }
    }

    fn is_full_by(source: &std::io::Error) -> bool {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge)
    }

    /// Whether it is a limit on the size of one file that was met: to make room is no cure for that.
    pub(crate) fn is_beyond_limit(&self) -> bool {
        matches!(
            self,
            Self::Io { source, .. } | Self::Full { source, .. }
                if source.kind() == std::io::ErrorKind::FileTooLarge
        )
    }

    /// The same with what may be done, where it was the disk that had no room.
    #[must_use]
    pub(crate) fn with_cure(self, cure: impl FnOnce(&Self) -> String) -> Self {
        if !self.is_full() {
            return self;
        }
        let cure = cure(&self);
        match self {
            Self::Io { path, source } => Self::Full { path, source, cure },
            other => other,
        }
    }

    /// Whether a device had too little memory: by the words of CUDA's and candle's errors.
    pub fn is_out_of_memory(&self) -> bool {
        let e = match self {
            Self::Memory(_) => return true,
            Self::Tensor(e) => e,
            _ => return false,
        };
        let text = e.to_string().to_lowercase();
        ["out of memory", "out_of_memory", "status_alloc_failed"]
            .iter()
            .any(|words| text.contains(words))
    }
}

/// Shorthand for [`Error::Argument`].
pub(crate) fn argument<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::Argument(reason.into()))
}

/// An error of the system about this file.
pub(crate) fn io(path: &std::path::Path) -> impl Fn(std::io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Io {
        path: path.clone(),
        source,
    }
}

/// Opens a file to read. A pipe would wait for its writer for ever, and a device has no end: only regular files.
pub(crate) fn open(path: &std::path::Path) -> Result<std::fs::File> {
    let about = std::fs::metadata(path).map_err(io(path))?;
    if !about.is_file() {
        return Err(Error::File {
            path: path.to_owned(),
            reason: "not a regular file".to_owned(),
        });
    }
    std::fs::File::open(path).map_err(io(path))
}

/// Reads such a file.
pub(crate) fn read(path: &std::path::Path) -> Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes).map_err(io(path))?;
    Ok(bytes)
}

/// Reads such a file of `most` bytes at the most: what is longer, however long it is, is not what it is taken for.
pub(crate) fn read_small(path: &std::path::Path, most: usize) -> Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let file = open(path)?;
    file.take(most as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(io(path))?;
    if bytes.len() > most {
        return Err(Error::File {
            path: path.to_owned(),
            reason: format!("more than {most} bytes long, which no file of ours of this name is"),
        });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("config.json");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        for e in [
            open(&pipe).unwrap_err(),
            crate::weights::Weights::open(&pipe).unwrap_err(),
            crate::vae::Config::read(&pipe).unwrap_err(),
            crate::video::look(&pipe).unwrap_err(),
            crate::video::read(&pipe, crate::video::Limits::NONE, &mut || Ok(())).unwrap_err(),
        ] {
            assert!(e.to_string().ends_with("not a regular file"), "{e}");
        }
    }

    #[test]
    fn a_full_card_is_told_from_other_errors() {
        let tensor = |text: &str| Error::Tensor(candle_core::Error::Msg(text.to_owned()));
        assert!(
            tensor("DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")").is_out_of_memory()
        );
        assert!(tensor("cudnnBackendExecute: CUDNN_STATUS_ALLOC_FAILED").is_out_of_memory());
        assert!(Error::Memory("one byte is missing".to_owned()).is_out_of_memory());
        assert!(!tensor("DriverError(CUDA_ERROR_ILLEGAL_ADDRESS)").is_out_of_memory());
        assert!(!Error::Argument("CUDA_ERROR_OUT_OF_MEMORY".to_owned()).is_out_of_memory());
    }
}
