//! The live view in a terminal.
//!
//! `view` draws a snapshot and nothing else; `state` makes commands of keys;
//! `app` runs both on a thread of its own, so that a blocked terminal never
//! holds up the supervisor.

mod app;
mod chart;
mod chrome;
mod keymap;
mod keys;
mod panel;
mod parts;
mod state;
mod terminal;
mod theme;
mod view;

#[cfg(test)]
mod pty_tests;
#[cfg(test)]
mod view_tests;

pub use app::{TuiError, TuiHandle, TuiOptions, spawn};
pub use keymap::Overlay;
pub use state::LogView;
pub use theme::Theme;
pub use view::{ViewOptions, draw};
