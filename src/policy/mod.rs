//! Policy: a verdict becomes a decision. Pure; reads [`crate::model`] only.

mod advise;
pub mod budget;
pub mod decide;
mod effective;
pub mod ladder;

pub use advise::advise;
pub use budget::BudgetState;
pub use decide::{Answer, decide, default_action};
pub use ladder::Position;
