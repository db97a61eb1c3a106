//! The agent inside the user's Python: the package that the binary carries, the way by
//! which it gets into a command, and the socket on which it speaks (`docs/agent.md`).
//!
//! [`protocol`] and [`inject`] are pure; [`mod@install`] writes files, [`channel`] listens.

pub mod channel;
pub mod inject;
pub mod install;
pub mod protocol;
pub mod tracker;

pub use channel::{Bound, Channel, Door, Heard, Peer};
pub use inject::{Look, Way, way};
pub(crate) use install::private_dirs;
pub use install::{Installed, install};
pub use protocol::{Message, PROTOCOL, Said, parse};
pub use tracker::{Subject, Told, Tracker};
