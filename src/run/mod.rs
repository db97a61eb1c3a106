//! The pure fold over the event stream.

pub mod snapshot;

pub use snapshot::Snapshot;
