//! AMD cards through amdgpu's sysfs, hwmon and the KFD topology: no ROCm needed.

mod card;
pub(super) mod dpm;
mod hwmon;
mod kfd;
mod link;
pub(super) mod metrics;
mod names;
mod numbers;
mod reading;
mod resets;
mod sysfs;
mod values;

pub(crate) use card::{CARDS_SOURCE, CardScan, Identity};
pub(crate) use reading::NEEDS_TWO;
pub(crate) use sysfs::CardSource;
#[cfg(feature = "nvml")]
pub(crate) use sysfs::{GENTLE_AFTER, GENTLE_PERIOD};

#[cfg(test)]
mod cards_tests;
