//! What the scenarios share: the card, the run, the story that its events tell.

mod card;
mod comfyui;
mod home;
mod leftovers;
mod run;
mod story;
mod tools;

pub(crate) use card::Card;
pub(crate) use comfyui::{comfyui, submit};
pub(crate) use home::Home;
pub(crate) use leftovers::assert_none_left;
pub(crate) use run::{Finished, Running, Start};
pub(crate) use tools::{
    BINARY, free_port, kill, kill_group, parent, python, recorded_text, root, session, wait_until,
    workload,
};
