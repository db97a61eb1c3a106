//! A second opinion on AMD cards: librocm_smi64, in a process of its own.
//!
//! The library aborts, prints, waits seconds for a lock that somebody left behind and
//! turns failed reads into zeros (tried with 5.2.3 of Debian 12 and 7.x). So it is
//! loaded by a child, this same program started as `framepack-tui rocm-smi-reader`,
//! and what it says is put beside the readings of sysfs, never in their place.
//!
//! | part | process | what |
//! | --- | --- | --- |
//! | [`ffi`] | child | the library's functions behind safe ones; the only `unsafe` |
//! | [`reader`] | child | loads the library, answers one line of JSON per request |
//! | [`wire`] | both | those lines |
//! | [`child`] | parent | starts the child, waits for it no longer than a deadline |
//! | [`source`] | parent | when to ask, one restart, words for what goes wrong |
//! | [`locks`] | parent | the locks that the library leaves in `/dev/shm` |

mod child;
mod ffi;
mod locks;
mod reader;
mod source;
mod wire;

pub use reader::main as reader_main;
pub(crate) use source::{Candidate, RocmSmi, Spoken};

/// Name in the list of sources, and of an opinion's source.
pub(crate) const SOURCE: &str = "rocm-smi";
