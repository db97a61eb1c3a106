//! The real binary over a real generation and an imitated card.
//!
//! Every test starts `framepack-tui run` in a private home, mostly inside the
//! imitated sysfs tree of `tests/tools/fake-amdgpu`, on the tiny generations of
//! `tests/workloads`, reads its event stream and looks for what is left behind.
//! They need `.venv` (see `scripts/setup`) and a private mount namespace.

#[cfg(test)]
mod agent;
#[cfg(test)]
mod attach;
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod bad_latents;
#[cfg(test)]
mod card;
#[cfg(test)]
mod card_lock;
#[cfg(test)]
mod cures;
#[cfg(test)]
mod decode;
#[cfg(test)]
mod detach;
#[cfg(test)]
mod diagnose;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod ending;
#[cfg(test)]
mod engine;
#[cfg(test)]
mod export_question;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod follow;
#[cfg(test)]
mod formats;
#[cfg(test)]
mod gpus;
#[cfg(test)]
mod hangs;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod last_screen;
#[cfg(test)]
mod launcher;
#[cfg(test)]
mod lost;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod no_alarm;
#[cfg(test)]
mod own_worker;
#[cfg(test)]
mod parts;
#[cfg(test)]
mod private_folders;
#[cfg(test)]
mod records;
#[cfg(test)]
mod rescue;
#[cfg(test)]
mod resend;
#[cfg(test)]
#[cfg(feature = "rocm-smi")]
mod rocm_smi;
#[cfg(test)]
mod short_memory;
#[cfg(test)]
mod start;
#[cfg(test)]
mod switching;
#[cfg(test)]
mod terminal;
#[cfg(test)]
mod vault;
#[cfg(test)]
mod video;
#[cfg(test)]
mod watch;
