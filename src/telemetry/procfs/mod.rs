//! The supervised process tree from `/proc`.

mod kept;
mod member;
pub(super) mod parse;
mod source;
mod threads;
mod tree;

pub(super) use kept::read_once;
pub(crate) use source::{Members, ProcReading, ProcSource, Target};
