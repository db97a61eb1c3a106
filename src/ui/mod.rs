//! What people see: the live view in a terminal, and plain text line by line.
//!
//! Both are readers. The live view draws the latest [`crate::run::Snapshot`] from
//! a [`slot::SnapshotSlot`]; plain text reads the stream of envelopes. Neither
//! holds state of the run, and both speak the words of `words`.

pub mod diagnose;
pub mod doctor;
pub mod lobby;
pub mod page;
pub mod plain;
pub mod profiles;
pub mod slot;
pub mod tui;

mod card;
mod diagnosis;
mod find;
mod questions;
mod text;
mod words;

#[cfg(test)]
mod testing;

pub use lobby::Lobby;
pub use plain::PlainWriter;
pub use profiles::Profiles;
pub use slot::{Reach, SnapshotSlot};
pub use tui::{Clipboard, Theme, TuiError, TuiHandle, TuiOptions, spawn};
