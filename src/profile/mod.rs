//! Profiles: settings that can be shared and trusted.
//!
//! A profile is one TOML file: which machine it is for, what environment and
//! arguments the first attempt gets, the limits of the detector, and the ladder
//! of fallbacks. [`parse()`] reads a file, [`lint()`] judges it, [`Catalog`] finds
//! it, [`best`] chooses one for a machine, and [`resolve()`] turns it into the
//! [`Plan`](crate::model::Plan) of a run. `docs/profiles.md` describes the format.
//!
//! Only [`catalog`] touches files.

pub mod catalog;
pub mod edit;
pub mod environment;
pub mod folders;
pub mod knob;
pub mod lint;
mod lint_ladder;
mod lint_release;
mod lint_settings;
pub mod matching;
mod merge;
pub mod parse;
mod parse_ladder;
pub mod place;
pub mod problem;
mod reader;
pub mod resolve;
pub mod schema;
pub mod shelf;

pub use catalog::{Catalog, SaveError};
pub use edit::{EditError, Edited, NewProfile, save_as};
pub use environment::check_environment;
pub use knob::{KnobProblem, check_value};
pub use lint::lint;
pub use matching::{Card, Choice, Condition, Holds, Machine, NO_GPU, best};
pub use parse::{is_id, parse};
pub use place::{Owner, Source};
pub use problem::{ErrorKind, Level, Problem, ProfileError};
pub use resolve::{Inputs, Resolved, resolve};
pub use schema::{ATTEMPT_DIR, Profile, expand_placeholders};
pub use shelf::{Fit, ShelfEntry, shelf};
