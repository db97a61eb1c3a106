//! Where the time goes: each piece of work waited for and added up by name.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use candle_core::cuda_backend::cudarc::driver::CudaStream;

/// Times by name, if they are wanted: waiting for each piece makes the whole slower.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    times: Option<Mutex<HashMap<String, (Duration, u32)>>>,
}

impl Profile {
    pub(crate) fn new(wanted: bool) -> Self {
        Self {
            times: wanted.then(Mutex::default),
        }
    }

    /// Forgets what was measured.
    pub(crate) fn clear(&self) {
        if let Some(times) = &self.times {
            times.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    /// Runs `work`, under the name that `name` gives.
    pub(crate) fn time<T>(
        &self,
        stream: &CudaStream,
        name: impl FnOnce() -> String,
        work: impl FnOnce() -> T,
    ) -> T {
        let Some(times) = &self.times else {
            return work();
        };
        // what fails here fails again where it is asked for
        let _ = stream.synchronize();
        let start = Instant::now();
        let done = work();
        let _ = stream.synchronize();
        let mut times = times.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = times.entry(name()).or_default();
        entry.0 += start.elapsed();
        entry.1 += 1;
        done
    }

    /// Milliseconds, times and names, the longest first.
    pub(crate) fn lines(&self) -> Vec<String> {
        let Some(times) = &self.times else {
            return Vec::new();
        };
        let times = times.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = times.iter().collect();
        all.sort_by_key(|(_, (time, _))| std::cmp::Reverse(*time));
        let line = |(name, (time, count)): (&String, &(Duration, u32))| {
            format!("{:9.2} ms {count:5} x {name}", time.as_secs_f64() * 1e3)
        };
        all.into_iter().map(line).collect()
    }
}
