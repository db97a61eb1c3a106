//! The causes behind verdicts: what must be in a program's text, what that means, and the
//! one instruction that cures it.
//!
//! A verdict says what kind of failure it was, a cause says why. The facts are data, one
//! file a verdict in `causes/`, compiled in; `docs/causes.md` is a table of them, and
//! `docs/decisions/0019-causes-are-data.md` says why they are written so.
//!
//! | module | subject |
//! | --- | --- |
//! | `entry` | a file of causes: reading it and checking it |
//! | `catalogue`, `prefilter` | all of them, and which patterns a line matches |
//! | `evidence` | what the lines of an attempt have shown so far |
//! | `settings` | the settings in force, as far as they are known |
//! | `printed` | the lines that tell them, and the arguments that set them |
//! | `facts` | backend, memory, cards, container, place of an exception: what the text and the machine tell |
//! | `choice` | the cause that fits a verdict, in words |
//! | `programs` | which program a part of a cure is for |
//! | `decode` | what to do about a decode that stands still |
//! | `template` | sentences with places for what was read |

mod catalogue;
mod choice;
mod decode;
mod entry;
mod evidence;
mod facts;
mod prefilter;
mod printed;
mod programs;
mod settings;
mod template;

pub use catalogue::{Catalogue, catalogue};
pub use choice::Explanation;
pub use decode::TILES;
pub use entry::{Cause, Needs, Strength, Variant};
pub use evidence::Evidence;
pub use facts::{Facts, Known, Pasted, PastedNeeds};
pub(crate) use prefilter::Patterns;
pub use settings::Setting;

/// Every file in `causes/`: its name without the ending, which is the verdict, and its text.
mod files {
    include!(concat!(env!("OUT_DIR"), "/cause_files.rs"));
}
