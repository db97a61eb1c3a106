//! The pure fold over the event stream.

mod ending;
mod log;
mod reduce;
pub mod snapshot;
mod state;
mod view;

pub use reduce::reduce;
pub use snapshot::Snapshot;
pub use state::RunState;
