//! How much the readings matter at the moment.

use std::sync::atomic::{AtomicBool, Ordering};

/// How much the readings matter at the moment.
#[derive(Debug, Default)]
pub(crate) struct Attention {
    job: AtomicBool,
    process: AtomicBool,
}

impl Attention {
    /// Says whether a job runs: then a sleeping card is read as well.
    pub(crate) fn set_job(&self, running: bool) {
        self.job.store(running, Ordering::Relaxed);
    }

    /// Says whether a process is supervised: then every card that is awake is read
    /// in every round.
    pub(crate) fn set_process(&self, supervised: bool) {
        self.process.store(supervised, Ordering::Relaxed);
    }

    pub(super) fn job(&self) -> bool {
        self.job.load(Ordering::Relaxed)
    }

    pub(crate) fn any(&self) -> bool {
        self.job() || self.process.load(Ordering::Relaxed)
    }
}
