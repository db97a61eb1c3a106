//! The live view in a terminal.
//!
//! `view` draws a snapshot as `choices` say and nothing else; `state` makes commands of keys;
//! `stage` runs both on a thread of their own, so that a blocked terminal never
//! holds up the supervisor.

mod app;
mod argument;
mod bindings;
mod chart;
mod chart_choices;
mod choices;
mod chrome;
mod consequence;
mod deliver;
mod diagnose_choices;
mod diagnose_keys;
mod diagnose_screen;
mod keymap;
mod keys;
mod lists;
mod log_choices;
mod log_cursor;
mod log_screen;
mod log_text;
mod naming;
mod panel;
mod parts;
mod profile_boxes;
mod profile_choices;
mod profile_keys;
mod profile_screen;
mod small;
mod stage;
pub mod start;
mod state;
mod terminal;
mod theme;
mod view;
mod zoom;

#[cfg(test)]
mod diagnose_tests;
#[cfg(test)]
mod keymap_tests;
#[cfg(test)]
mod profile_tests;
#[cfg(test)]
mod pty_tests;
#[cfg(test)]
mod state_tests;
#[cfg(test)]
mod view_tests;

pub use app::{TuiOptions, spawn};
pub use chart_choices::{ChartChoices, Picture};
pub use choices::{Choices, Overlay, Screen};
pub use deliver::Clipboard;
pub use diagnose_choices::DiagnoseChoices;
pub use log_choices::{LogChoices, LogView, Search};
pub use profile_choices::{ProfileChoices, ProfilePane};
pub use stage::{TuiError, TuiHandle};
pub use theme::Theme;
pub use view::{ViewOptions, draw};
