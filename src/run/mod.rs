//! The pure fold over the event stream.

mod agent;
mod attached;
mod card;
mod card_wait;
mod command;
mod completeness;
mod ending;
mod faults;
mod follow;
mod judge;
mod kept_result;
mod launcher;
mod live;
mod log;
mod log_lines;
mod reclaim;
mod reduce;
mod rejudge;
pub mod replay;
mod resend;
pub mod snapshot;
mod stale;
mod state;
pub mod ticks;
mod tiers;
mod trail;
mod view;

pub use command::COUNTDOWN;
pub use follow::follow;
pub use reduce::reduce;
pub use rejudge::rejudge;
pub use snapshot::Snapshot;
pub use state::RunState;
