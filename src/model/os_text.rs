//! Words of a command as text, whatever bytes they are: names of files need not be UTF-8, and
//! a record is. A byte that is part of no character becomes a character for private use, and
//! one of those that stands in the word itself becomes its bytes; so every word comes back as
//! it was.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The character of the byte 0 of the block; only bytes from 0x80 on are ever written so.
const BLOCK: u32 = 0xef00;

fn byte_of(c: char) -> Option<u8> {
    let byte = u32::from(c).checked_sub(BLOCK)?;
    u8::try_from(byte).ok().filter(|b| *b >= 0x80)
}

fn push_bytes(text: &mut String, bytes: &[u8]) {
    let chars = bytes.iter().map(|b| char::from_u32(BLOCK + u32::from(*b)));
    text.extend(chars.map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
}

/// A word as text.
pub fn from_os(word: &OsStr) -> String {
    let mut text = String::with_capacity(word.len());
    for chunk in word.as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            if byte_of(c).is_some() {
                push_bytes(&mut text, c.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                text.push(c);
            }
        }
        push_bytes(&mut text, chunk.invalid());
    }
    text
}

/// The word that [`from_os`] made this text of.
pub fn to_os(text: &str) -> OsString {
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match byte_of(c) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    OsString::from_vec(bytes)
}

/// A path in JSON, for `#[serde(with)]`.
pub mod path {
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serializer};

    /// As [`from_os`](super::from_os).
    pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::from_os(path.as_os_str()))
    }

    /// As [`to_os`](super::to_os).
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        String::deserialize(from).map(|text| super::to_os(&text).into())
    }
}

/// The same for one that may be absent.
pub mod optional_path {
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// As [`from_os`](super::from_os).
    pub fn serialize<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
        path.as_ref()
            .map(|p| super::from_os(p.as_os_str()))
            .serialize(to)
    }

    /// As [`to_os`](super::to_os).
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        Ok(text.map(|text| super::to_os(&text).into()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_stays_as_it_is() {
        assert_eq!(
            from_os(OsStr::new("a b\u{e9}\u{1f600}")),
            "a b\u{e9}\u{1f600}"
        );
    }

    proptest! {
        #[test]
        fn every_word_comes_back(mut bytes in any::<Vec<u8>>(), private in any::<bool>()) {
            if private {
                bytes.extend("\u{ef80}\u{efff}\u{ef7f}".as_bytes());
            }
            let text = from_os(OsStr::from_bytes(&bytes));
            prop_assert_eq!(to_os(&text).into_vec(), bytes);
        }
    }
}
