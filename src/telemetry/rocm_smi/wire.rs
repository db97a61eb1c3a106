//! The lines between us and the reader process.
//!
//! Request: the PCI addresses to read, separated by blanks. Answer: one [`Line`] as
//! JSON. Before the first request one line says how loading the library went.

use serde::{Deserialize, Serialize};

use crate::model::GpuId;

/// One line of the reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// The library is loaded and its `rsmi_init` succeeded.
    Ready(Ready),
    /// There is no library under any of its names.
    Absent,
    /// A library was found but does not load: why.
    Broken(String),
    /// The library lacks functions without which nothing can be asked.
    Lacks(Vec<String>),
    /// `rsmi_init` failed.
    InitFailed(InitFailed),
    /// Answer to a request.
    Cards(Vec<CardReading>),
    /// A request could not be answered at all: why.
    Failed(String),
}

/// A library that can be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ready {
    /// Name under which it was found.
    pub(super) library: String,
    /// What it says of its version, which does not tell the ROCm release: Debian's
    /// 5.2.3 says 1.0.0.
    pub(super) version: Option<String>,
    /// Values that it has no function for, each with the functions missed.
    pub(super) lacks: Vec<String>,
}

/// How `rsmi_init` failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InitFailed {
    /// Its status: 8 where there is no card, no KFD, or a lock in the way.
    pub(super) status: u32,
    /// The library's words for the status.
    pub(super) words: String,
    /// How long it took: five seconds where a lock was waited for.
    pub(super) took_ms: u64,
}

/// A value, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Value<T> {
    /// What the library says.
    Ok(T),
    /// It says that the card does not offer the value, or has no function for it.
    NotSupported,
    /// It answers with an error, in words.
    Error(String),
}

/// What the library says of one card.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct CardReading {
    /// PCI address.
    pub(super) id: GpuId,
    /// Percent.
    pub(super) busy: Value<f64>,
    /// Percent.
    pub(super) mem_busy: Value<f64>,
    /// Watts.
    pub(super) power_w: Value<f64>,
    /// Watts.
    pub(super) power_cap_w: Value<f64>,
    /// Bytes.
    pub(super) vram_used: Value<u64>,
    /// Bytes.
    pub(super) vram_total: Value<u64>,
    /// Bytes.
    pub(super) gtt_used: Value<u64>,
    /// Bytes.
    pub(super) gtt_total: Value<u64>,
    /// °C.
    pub(super) temp_edge: Value<f64>,
    /// °C.
    pub(super) temp_junction: Value<f64>,
    /// °C.
    pub(super) temp_mem: Value<f64>,
    /// Revolutions a minute.
    pub(super) fan_rpm: Value<f64>,
}

/// A line that ends in a newline.
pub(super) fn encode(line: &Line) -> Vec<u8> {
    // numbers, text and lists of them always have a form in JSON
    let mut bytes = serde_json::to_vec(line).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// The line, or none where it is something else: a library may print.
pub(super) fn decode(bytes: &[u8]) -> Option<Line> {
    serde_json::from_slice(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_survive_the_way_and_other_text_is_no_line() {
        let line = Line::InitFailed(InitFailed {
            status: 8,
            words: "no\nluck".to_owned(),
            took_ms: 5000,
        });
        let bytes = encode(&line);
        assert_eq!(bytes.split(|b| *b == b'\n').count(), 2);
        assert_eq!(decode(&bytes), Some(line));
        assert_eq!(decode(b"Failed to open drm root directory\n"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }
    }
}
