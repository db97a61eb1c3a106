//! The start screen: what is there while nothing was started, and one key to each.
//!
//! `view` draws a [`Lobby`](crate::ui::Lobby) as `choices` say; `state` makes wishes of
//! keys; `app` puts both on the stage.

mod app;
mod choices;
mod lists;
mod overlay;
mod prompt;
mod state;
mod view;

#[cfg(test)]
mod state_tests;
#[cfg(test)]
mod view_tests;

pub use app::{Check, StartMemory, StartOptions, Wish, spawn};
