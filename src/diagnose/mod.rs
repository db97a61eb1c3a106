//! A diagnosis after the fact: what happened in a recording, why we think so, and what to
//! do about it.
//!
//! | module | subject |
//! | --- | --- |
//! | `input` | what a path is, and the errors of foreign files |
//! | `case` | the files of a case, read side by side |
//! | [`player`] | a recording through the parts that a run is made of |
//! | `record` | the record of a run or a bundle of it, judged anew |
//! | `log`, `paste`, `join` | the text of a console without readings, what of a paste that is, and lines that are one |
//! | `times`, `standstill` | a hang by the log's own times, and what to do if it stands |
//! | `story`, [`report`] | what was told, put together |
//!
//! A recording is judged to its end by today's rules ([`crate::run::rejudge`]): nothing
//! is decided on the way. `docs/diagnose.md` describes the output. Memory is bounded,
//! whatever the size of the files; only bundles are held as a whole.

mod case;
pub mod head;
mod input;
mod join;
mod lines;
mod log;
pub mod meta;
mod notes;
mod paste;
pub mod player;
mod prefix;
mod prompt;
pub mod readings;
mod record;
mod remedy;
pub mod report;
mod shell;
mod standstill;
mod story;
mod table;
mod tail;
#[cfg(test)]
mod tests;
mod times;

pub use case::play;
pub use input::{InputError, Source};
pub use report::Report;
#[cfg(test)]
pub(crate) use tests::full as testing;

/// Diagnoses a source.
pub fn diagnose(source: &Source) -> Result<Report, InputError> {
    match source {
        Source::Case(dir) => case::judge(dir),
        Source::Record(path) => record::judge(path),
        Source::Bundle(path) => record::bundled(path),
        Source::Log(path) => log::file(path),
        Source::Stdin => log::stdin(),
    }
}
