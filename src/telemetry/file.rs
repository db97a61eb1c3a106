//! Small text files of `/sys` and `/proc`, and the ways in which one can fail.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;

/// Longest file that is read; `/proc/net/dev` of a container host is the largest.
const LIMIT: u64 = 1 << 20;

/// Why a file gave no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReadError {
    /// The file does not exist, or the driver says that it does not offer it.
    #[error("no longer there")]
    Missing,
    /// The system call failed.
    #[error("{file}: {words}")]
    Os {
        /// Name of the file.
        file: String,
        /// Number of the error.
        errno: i32,
        /// Its words.
        words: String,
    },
    /// There was an answer, but not a value.
    #[error("{file}: {what}")]
    Text {
        /// Name of the file.
        file: String,
        /// What was wrong.
        what: String,
    },
}

/// A value, or why there is none.
pub(crate) type ReadResult<T> = Result<T, ReadError>;

impl ReadError {
    /// An answer that is no value.
    pub(crate) fn text(path: &Path, what: impl Into<String>) -> Self {
        Self::Text {
            file: file_name(path),
            what: what.into(),
        }
    }

    /// An error of the operating system.
    pub(crate) fn os(path: &Path, error: &io::Error) -> Self {
        const ESRCH: i32 = 3;
        const EOPNOTSUPP: i32 = 95;
        // A process that ends while it is read gives ESRCH; a driver without the
        // sensor EOPNOTSUPP. Both mean that the file offers nothing.
        let absent = matches!(error.raw_os_error(), Some(ESRCH | EOPNOTSUPP));
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Missing,
            _ if absent => Self::Missing,
            _ => Self::Os {
                file: file_name(path),
                errno: error.raw_os_error().unwrap_or(0),
                words: error.to_string(),
            },
        }
    }
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

/// The file's bytes.
pub(crate) fn read_bytes(path: &Path) -> ReadResult<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LIMIT).read_to_end(&mut bytes))
        .map_err(|e| ReadError::os(path, &e))?;
    Ok(bytes)
}

/// The file's text without surrounding blanks.
pub(crate) fn read_text(path: &Path) -> ReadResult<String> {
    // Nearly all of them fit: two calls, where a growing buffer takes four and a stat.
    let mut page = [0; 4096];
    let mut whole = Vec::new();
    File::open(path)
        .and_then(|mut file| {
            let length = fill(&mut file, &mut page)?;
            if length == page.len() {
                whole.extend_from_slice(&page);
                let rest = LIMIT - length as u64;
                file.take(rest).read_to_end(&mut whole)?;
            }
            Ok(length)
        })
        .map(|length| {
            text_of(if whole.is_empty() {
                &page[..length]
            } else {
                &whole
            })
        })
        .map_err(|e| ReadError::os(path, &e))
}

/// Reads until the file ends or the buffer is full.
fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(length)
}

/// Text up to the first NUL: some drivers pad their files to a page.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    text_in(bytes).into_owned()
}

/// The same, without a copy where the bytes are such text.
pub(crate) fn text_in(bytes: &[u8]) -> Cow<'_, str> {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    match std::str::from_utf8(&bytes[..end]) {
        Ok(text) => Cow::Borrowed(text.trim()),
        Err(_) => String::from_utf8_lossy(&bytes[..end])
            .trim()
            .to_owned()
            .into(),
    }
}

/// The file's one number.
pub(crate) fn read_number<T: FromStr>(path: &Path) -> ReadResult<T> {
    number(path, &read_text(path)?)
}

/// One number; `path` only names the file in the error.
pub(crate) fn number<T: FromStr>(path: &Path, text: &str) -> ReadResult<T> {
    if text.is_empty() {
        return Err(ReadError::text(path, "empty"));
    }
    text.parse()
        .map_err(|_not_a_number| ReadError::text(path, format!("`{}` is no number", short(text))))
}

/// The beginning of a text, for messages.
pub(crate) fn short(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .take(24)
        .collect::<String>()
}

/// A number written as `0x744c`.
pub(crate) fn hex(text: &str) -> Option<u32> {
    let text = text.trim();
    u32::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn absent_failed_and_garbage_are_three_things() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("value");
        assert_eq!(read_number::<u64>(&path), Err(ReadError::Missing));
        std::fs::create_dir(&path).unwrap();
        let error = read_number::<u64>(&path).unwrap_err();
        assert!(matches!(&error, ReadError::Os { errno: 21, .. }), "{error}");
        std::fs::remove_dir(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        let error = read_number::<u64>(&path).unwrap_err();
        assert_eq!(error.to_string(), "value: empty");
        std::fs::write(&path, "N/A\n").unwrap();
        let error = read_number::<u64>(&path).unwrap_err();
        assert_eq!(error.to_string(), "value: `N/A` is no number");
        std::fs::write(&path, "42\n\0\0\0").unwrap();
        assert_eq!(read_number::<u64>(&path), Ok(42));
    }

    #[test]
    fn a_file_is_read_whole_whatever_its_length() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("long");
        for length in [0, 1, 4095, 4096, 4097, 20_000] {
            std::fs::write(&path, "x".repeat(length)).unwrap();
            assert_eq!(read_text(&path).unwrap().len(), length);
        }
        std::fs::write(&path, vec![b'x'; (2 << 20) + 1]).unwrap();
        assert_eq!(read_text(&path).unwrap().len(), 1 << 20);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let text = text_of(&bytes);
            prop_assert!(!text.contains('\0'));
            let _ = number::<u64>(Path::new("f"), &text);
            let _ = hex(&text);
        }

        #[test]
        fn a_number_is_read_back(n: u64, pad in 0usize..64) {
            let mut bytes = format!("{n}\n").into_bytes();
            bytes.resize(bytes.len() + pad, 0);
            prop_assert_eq!(number::<u64>(Path::new("f"), &text_of(&bytes)), Ok(n));
        }
    }
}
