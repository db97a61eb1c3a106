//! The rescue vault: what the agent kept of a generation, read, pruned and sent again.
//!
//! The agent writes (`src/agent/python`), this part reads: `docs/vault.md` has the form.
//! Everything in the folder is foreign bytes: a file that is torn, of another version or
//! none of ours is an [`Entry`] with words, never an error of the whole.

mod digest;
mod entry;
mod folder;
mod jobs;
mod prune;
mod resend;
pub mod safetensors;
mod told;

pub use digest::Digest;
pub use entry::{Content, Entry, Kind, State};
pub use folder::{FindError, Vault, VaultError};
pub use jobs::{
    ComfyQueue, FramePackJob, INPUTS, Job, JobError, JobState, QueueItem, StudioItem, StudioQueue,
};
pub use prune::{Kept, Plan, Wish, plan};
pub use resend::{Heard, Options, ResendError, Sent, Server, ServerError, resend};
pub use told::Told;

#[cfg(test)]
mod tests;

/// Version of the entries' form that this program reads.
pub const VERSION: &str = "1";
