//! A command of a person, with what was on the screen when it was given.

use serde::{Deserialize, Serialize};

use super::event::Command;
use super::setting::Chosens;
use super::vocab::VerdictId;

/// The part of a drawn screen that a command answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Number of the attempt; 0: none had begun.
    pub attempt: u32,
    /// The verdict; absent: nothing was drawn of the run yet.
    pub verdict: Option<VerdictId>,
    /// What was chosen for the attempts to come.
    pub chosen: Chosens,
}

/// A command with what its giver saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// What to do.
    pub command: Command,
    /// What it answers.
    pub seen: Seen,
}
