//! Looks a machine over before anything is generated on it: which sources work, what
//! may be opened, which versions and libraries a command would use, what in the
//! environment misleads, where room is short. Each finding has its cure.
//!
//! *Looking* ([`gather`], which does I/O, each look with a deadline of its own) is
//! apart from *judging* (`judge`, pure functions of [`facts::Facts`]).
//! `docs/doctor.md` describes the output.

pub mod facts;
pub mod finding;
pub mod gather;
pub(crate) mod judge;
pub mod report;
mod ufdb;

pub use gather::{Ask, Gathering, Rest};
pub use report::Report;

#[cfg(test)]
mod tests;
