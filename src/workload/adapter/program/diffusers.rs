//! A Python program that generates with diffusers, or as diffusers does.

use super::scripts::Scripts;
use super::{AfterRestart, Command, Dialect, Program, Rank, is_named_as_server, tqdm};

/// Words of lines that Python programs with torch print.
const TYPICAL: &[&str] = &[
    "Traceback (most recent call last)",
    "Loading pipeline components",
    "Loading checkpoint shards",
    "diffusers",
    "torch.",
];

/// See the module.
pub(super) struct DiffusersProgram;

impl Program for DiffusersProgram {
    fn name(&self) -> &'static str {
        "diffusers"
    }

    fn title(&self) -> &'static str {
        "diffusers"
    }

    fn rank(&self) -> Rank {
        Rank::Library
    }

    fn is_run_by(&self, command: &Command<'_>) -> bool {
        command.is_python()
    }

    fn serves(&self, command: &Command<'_>) -> bool {
        is_named_as_server(command)
    }

    fn unmistakable(&self) -> Option<&'static str> {
        Some(r"Loading pipeline components")
    }

    fn is_typical(&self, text: &str) -> bool {
        TYPICAL.iter().any(|w| text.contains(w)) || tqdm::parse(text).is_some()
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(Scripts { knows_steps: true })
    }

    fn after_restart(&self) -> AfterRestart {
        AfterRestart {
            job: "the command begins again",
            kept: "latents before each decode, steps of a transformer",
            warning: None,
        }
    }
}
