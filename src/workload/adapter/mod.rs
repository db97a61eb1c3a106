//! Console lines into phase, progress and *job in flight or not*.
//!
//! An adapter knows the wording of one family of programs ([`AdapterKind`]). It starts
//! with what the command line suggests and changes over when the console says clearly
//! that it is another family. All adapters are pure: no clock, no I/O.
//!
//! A job is in flight only after a positive sign of it, for a program that shows none may be
//! anything. The job of a script begins with the first sign of a generation: a bar of steps
//! that is not full, a VAE's or a mesh's step, the job lines of a known program. It ends with
//! the script. A server (Gradio, ComfyUI) has a job in flight only between the lines that
//! begin and end one. A state of a bar that was painted before is no sign (`bars.rs`).

mod bars;
mod comfyui;
mod console;
mod detect;
mod framepack;
mod narrator;
mod scripts;
pub mod tqdm;
mod traceback;
mod wording;

use std::fmt;
use std::str::FromStr;

use crate::model::{Event, Line};

/// A family of programs whose console we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AdapterKind {
    /// FramePack, its F1 variant and forks that keep its lines.
    Framepack,
    /// ComfyUI with any node packs.
    Comfyui,
    /// A Python program with tqdm bars, as diffusers pipelines print them.
    Diffusers,
    /// Anything else.
    Generic,
}

impl AdapterKind {
    /// Every kind.
    pub const ALL: &'static [Self] = &[
        Self::Framepack,
        Self::Comfyui,
        Self::Diffusers,
        Self::Generic,
    ];

    /// The word for it in profiles, events and on screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Framepack => "framepack",
            Self::Comfyui => "comfyui",
            Self::Diffusers => "diffusers",
            Self::Generic => "generic",
        }
    }

    /// The kind that a command line suggests. `cwd` is the folder it will run in;
    /// `names_in` lists a folder, and gives an empty list where it cannot be read.
    pub fn detect(argv: &[String], cwd: &str, names_in: impl Fn(&str) -> Vec<String>) -> Self {
        detect::kind(argv, cwd, names_in)
    }

    /// The kind that the lines of a console show, where nothing else is known.
    pub fn detect_lines<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
        detect::kind_of_lines(lines)
    }
}

impl fmt::Display for AdapterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The script or module of a Python command line, with its path.
pub fn script(argv: &[String]) -> Option<&str> {
    detect::script(argv)
}

/// Whether the text of a script imports diffusers by itself.
pub fn imports_diffusers(text: &str) -> bool {
    detect::imports_diffusers(text)
}

/// A word that names no adapter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown adapter `{0}`; known are framepack, comfyui, diffusers, generic")]
pub struct UnknownAdapter(pub String);

impl FromStr for AdapterKind {
    type Err = UnknownAdapter;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .iter()
            .copied()
            .find(|k| k.as_str() == s)
            .ok_or_else(|| UnknownAdapter(s.to_owned()))
    }
}

/// What an adapter is told about the launch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaunchInfo {
    /// Command and arguments.
    pub argv: Vec<String>,
    /// The rung decodes on the CPU: the VAE phases are then marked so.
    pub on_cpu: bool,
}

/// Reads the console of one attempt. Gives only [`Event::Phase`], [`Event::Progress`],
/// [`Event::Job`] and [`Event::Find`].
pub trait Adapter {
    /// The process exists. No job is in flight yet, for a script neither.
    fn start(&mut self) -> Vec<Event>;

    /// In the place of [`Adapter::start`] for a process that was there before us: what it
    /// does is not known. `job`: the user says that a job is in flight; else the first
    /// line from the middle of one says so.
    fn join(&mut self, job: bool) -> Vec<Event>;

    /// Takes the next line, in the order of arrival.
    fn feed(&mut self, line: &Line) -> Vec<Event>;

    /// The root process ended by itself, with code 0 (`success`) or otherwise. A job
    /// that was in flight is then done, or failed with the program's last exception. A
    /// script that showed no job and failed gives its last exception as well.
    fn finish(&mut self, success: bool) -> Vec<Event>;

    /// The family whose wording is read now.
    fn kind(&self) -> AdapterKind;

    /// Whether the program is (or is about to be) a server that waits for jobs.
    fn is_server(&self) -> bool;
}

/// An adapter for one attempt.
pub fn new(kind: AdapterKind, launch: &LaunchInfo) -> Box<dyn Adapter + Send> {
    Box::new(console::Console::new(kind, launch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip() {
        for k in AdapterKind::ALL {
            assert_eq!(k.to_string().parse(), Ok(*k));
        }
        let e = "ComfyUI".parse::<AdapterKind>().unwrap_err();
        assert!(e.to_string().contains("comfyui"));
    }
}
