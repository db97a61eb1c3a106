//! Decodes and encodes video latents without Python.
//!
//! | module | what |
//! | --- | --- |
//! | [`ops`] | the operations, behind one trait, and the processor's way of doing them |
//! | [`error`] | what can go wrong |

pub mod error;
pub mod ops;
pub mod vae;
pub mod weights;

pub use error::{Error, Result};
