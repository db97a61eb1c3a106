//! `index.json`: what became of each part of a bundle.

use serde::{Deserialize, Serialize};

use crate::model::event::{EvidenceReport, ItemState};

/// Its name in the folder of the bundle.
pub(super) const FILE: &str = "index.json";
/// Its version.
const FORMAT: &str = "1.0";

/// One part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// As in the event `evidence_taken`.
    pub(super) kind: String,
    pub(super) state: ItemState,
    /// File name within the run's folder; absent where there is none.
    pub(super) file: Option<String>,
    /// Its size.
    pub(super) bytes: u64,
    /// How long the collector took; it is left behind after 3 s.
    pub(super) took_ms: u64,
    /// Why it is not whole.
    pub(super) why: Option<String>,
}

impl Entry {
    /// Of a part that did not reach the disk.
    pub(super) fn failed(kind: &str, why: String) -> Self {
        Self {
            kind: kind.to_owned(),
            state: ItemState::Failed,
            file: None,
            bytes: 0,
            took_ms: 0,
            why: Some(why),
        }
    }
}

/// The index of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Index {
    pub(super) format: String,
    /// Number of the bundle in its run.
    pub(super) number: u32,
    pub(super) attempt: u32,
    /// How long all took.
    pub(super) took_ms: u64,
    pub(super) items: Vec<Entry>,
}

impl Index {
    pub(super) fn new(report: &EvidenceReport, items: Vec<Entry>) -> Self {
        Self {
            format: FORMAT.to_owned(),
            number: report.number,
            attempt: report.attempt,
            took_ms: report.took_ms,
            items,
        }
    }
}
