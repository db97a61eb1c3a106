//! Policy: a verdict becomes a decision. Pure; reads [`crate::model`] only.

pub mod budget;
pub mod decide;
mod effective;
pub mod ladder;
mod remedy;

pub use budget::BudgetState;
pub use decide::{Answer, decide};
pub use ladder::Position;
pub use remedy::{RemedyFacts, may_restart, remedy};
