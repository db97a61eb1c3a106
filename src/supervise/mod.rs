//! Around the child: the lock of a card, evidence, signals, the clocks, and who
//! watches the watcher.

pub mod control;
pub mod deadline;
pub mod evidence;
pub mod lock;
pub mod owner;
pub mod signals;
pub mod standstill;
mod tree;

pub use deadline::{Fired, Watchdog};
pub use evidence::{EvidenceRequest, EvidenceRing, collect};
pub use lock::{GpuLock, LockError, guardian_of};
pub use owner::{Owner, OwnerError};
pub use signals::Signals;
pub use standstill::{Clocks, StandstillDetector};
