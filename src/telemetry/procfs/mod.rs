//! The supervised process tree from `/proc`.

mod member;
pub(super) mod parse;
mod source;
mod tree;

pub(crate) use source::{Members, ProcReading, ProcSource, Target};
