//! Policy: a verdict becomes a decision. Pure; reads [`crate::model`] only.

mod advise;
pub mod budget;
pub mod decide;
mod effective;
mod fit;
pub mod ladder;
mod remedy;
mod resend;

pub use advise::advise;
pub use budget::BudgetState;
pub use decide::{Answer, Standing, decide};
pub use fit::InFlight;
pub use ladder::Position;
pub use remedy::{explained, remedy};
pub use resend::{Fates, LastJob, Past, fates};
