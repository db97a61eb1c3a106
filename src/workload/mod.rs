//! The workload: launching it, reading its console, knowing what it wrote.
//!
//! | module | subject |
//! | --- | --- |
//! | [`lines`] | bytes of a stream into bounded, clean lines |
//! | [`rate`] | how many lines a second are passed on |
//! | [`miopen`] | MIOpen's log lines about its convolution search |
//! | [`adapter`] | console lines into phase, progress and *job in flight or not* |
//! | [`artefacts`] | files that the workload wrote |
//! | [`capabilities`] | settings that a workload follows by its arguments |
//! | [`protocol`] | messages between supervisor and guardian |
//! | [`guardian`] | the small process between us and the workload: no orphan survives |
//! | [`external`] | the supervisor's side of a launch |
//! | [`leftovers`] | processes of runs whose supervisor was killed |
//!
//! `adapter`, `miopen`, `lines` and `capabilities` are pure.

pub mod adapter;
pub mod artefacts;
pub mod capabilities;
pub mod external;
pub mod guardian;
mod handover;
mod launch;
pub mod leftovers;
pub mod lines;
pub mod miopen;
mod pictures;
mod proctree;
pub mod protocol;
pub mod rate;

use regex::Regex;

/// Compiles one of our own literal patterns.
#[expect(
    clippy::expect_used,
    reason = "patterns are literals of this program, each is used by a test"
)]
fn pattern(literal: &str) -> Regex {
    Regex::new(literal).expect("a literal pattern is valid")
}
