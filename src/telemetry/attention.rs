//! How much the readings matter at the moment.

use std::sync::atomic::{AtomicBool, Ordering};

/// How much the readings matter at the moment. None of it wakes a card that sleeps: a
/// workload wakes its own.
#[derive(Debug, Default)]
pub(crate) struct Attention {
    supervised: AtomicBool,
    on_amd: AtomicBool,
    watched: AtomicBool,
}

impl Attention {
    /// Says whether a process is supervised, and whether its card is known to be one of
    /// AMD: then every card that is awake is read in every round, those of NVIDIA not in
    /// the latter case.
    pub(crate) fn set_supervised(&self, supervised: bool, on_amd: bool) {
        self.on_amd.store(on_amd, Ordering::Relaxed);
        self.supervised.store(supervised, Ordering::Relaxed);
    }

    /// Says whether somebody looks at the readings all the time: then every card that is
    /// awake is read in every round.
    pub(crate) fn set_watched(&self, watched: bool) {
        self.watched.store(watched, Ordering::Relaxed);
    }

    /// Whether a card that is awake is read in every round.
    pub(crate) fn any(&self) -> bool {
        self.supervised.load(Ordering::Relaxed) || self.watched.load(Ordering::Relaxed)
    }

    /// Whether a process is supervised that may use a card of NVIDIA.
    #[cfg(feature = "nvml")]
    pub(crate) fn nvidia_supervised(&self) -> bool {
        self.supervised.load(Ordering::Relaxed) && !self.on_amd.load(Ordering::Relaxed)
    }

    /// Whether a card of NVIDIA that is awake is read in every round.
    #[cfg(feature = "nvml")]
    pub(crate) fn nvidia(&self) -> bool {
        self.nvidia_supervised() || self.watched.load(Ordering::Relaxed)
    }
}
