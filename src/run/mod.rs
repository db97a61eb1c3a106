//! The pure fold over the event stream.

mod card;
mod command;
mod ending;
mod faults;
mod follow;
mod judge;
mod live;
mod log;
mod reclaim;
mod reduce;
mod rejudge;
pub mod snapshot;
mod state;
mod view;

pub use follow::follow;
pub use reduce::reduce;
pub use rejudge::rejudge;
pub use snapshot::Snapshot;
pub use state::RunState;
