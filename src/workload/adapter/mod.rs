//! Console lines into phase, progress and *job in flight or not*.
//!
//! An adapter knows the wording of one program or family ([`AdapterKind`]; one file each in
//! `program/`). It starts with what the command line suggests and changes over when the console says clearly
//! that it is another family. All adapters are pure: no clock, no I/O.
//!
//! A job is in flight only after a positive sign of it, for a program that shows none may be
//! anything. The job of a script begins with the first sign of a generation: a bar of steps
//! that is not full, a VAE's or a mesh's step, the job lines of a known program. It ends with
//! the script. A server (Gradio, ComfyUI) has a job in flight only between the lines that
//! begin and end one. A state of a bar that was painted before is no sign (`bars.rs`).

mod bars;
mod command;
mod console;
mod narrator;
mod program;
pub mod tqdm;
mod traceback;
mod wording;

pub use program::{AdapterKind, AfterRestart, UnknownAdapter, queue_waits_for_user, title_of};

use crate::model::{Event, Line};

/// The script or module of a Python command line, with its path.
pub fn script(argv: &[String]) -> Option<&str> {
    command::script(argv)
}

/// Whether the text of a script imports diffusers by itself.
pub fn imports_diffusers(text: &str) -> bool {
    command::imports_diffusers(text)
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
