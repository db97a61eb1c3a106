//! What a run leaves behind, and the readers that write the event stream out.
//!
//! A run is a folder `$XDG_STATE_HOME/framepack-tui/runs/<run id>/` with
//! `events.jsonl.gz` (one [`crate::model::Envelope`] a line, packed, append-only),
//! `manifest.json`, `run.lock` (held while the run lives) and `evidence/NNN/`.
//! The format is documented in `docs/events.md`.
//!
//! Nothing here may hold up the supervisor: sinks run behind a [`SinkThread`].

pub mod bundle;
pub mod headless;
pub mod list;
mod pack;
pub mod queue;
pub mod reader;
pub mod recorder;
pub mod redact;
pub mod retention;
pub mod sink;
pub mod store;
pub mod story;
pub mod tail;
#[cfg(test)]
pub(crate) mod tests;

pub use headless::Headless;
pub use list::{RunEntry, RunStatus, is_held};
pub use queue::{Class, QueueLimits};
pub use reader::{Events, ReadError, Record, Warning, open_text};
pub use recorder::Recorder;
pub use retention::{Pruned, Retention};
pub use sink::{EventSink, FinishError, SinkError, SinkThread};
pub use store::{Manifest, RunDir, RunId, Store, StoreError, events_file};
pub use tail::{Tail, TailError};
