//! Readings of the machine, each source on a thread of its own.
//!
//! A read of a wedged card can block for ever, so nothing here is read by the
//! caller: every source has an OS thread and a slot with its last answer, and
//! [`Sampler::sample`] merges the slots. A source that does not answer is *stale*
//! after 2 s and *lost* after 30 s; the other sources and the caller go on.

mod aging;
mod amdgpu;
mod attention;
mod clients;
mod file;
#[doc(hidden)]
pub mod fuzzing;
mod host;
mod kmsg;
mod namespace;
#[cfg(feature = "nvml")]
mod nvml;
#[cfg(feature = "rocm-smi")]
mod opinion;
mod pci;
mod probe;
mod processes;
mod procfs;
#[cfg(feature = "rocm-smi")]
mod rocm_smi;
mod sampler;
#[cfg(feature = "rocm-smi")]
mod second;
mod source;
mod track;

#[cfg(test)]
mod testing;

pub(crate) use amdgpu::NEEDS_TWO;
pub use processes::{CardUsers, Classify, Guess, Held, Processes, ProcessesConfig};
#[cfg(feature = "rocm-smi")]
pub use rocm_smi::reader_main as rocm_smi_reader;
pub use sampler::{Sampler, SamplerConfig};
pub use source::ReadTime;
