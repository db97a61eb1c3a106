//! AMD cards through amdgpu's sysfs, hwmon and the KFD topology: no ROCm needed.

mod card;
mod hwmon;
mod kfd;
mod names;
mod sysfs;

pub(crate) use card::{CARDS_SOURCE, CardScan, Identity};
pub(crate) use sysfs::{Attention, CardSource};
#[cfg(feature = "nvml")]
pub(crate) use sysfs::{GENTLE_AFTER, GENTLE_PERIOD};
