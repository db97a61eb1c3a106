//! The supervised process tree from `/proc`.

mod member;
mod parse;
mod source;
mod tree;

pub(crate) use source::{ProcReading, ProcSource, Target};
