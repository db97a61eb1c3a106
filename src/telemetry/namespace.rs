//! Whether our numbers of processes are the host's.

use std::fs;
use std::path::Path;

/// The kernel's number of the first PID namespace, `PROC_PID_INIT_INO`.
pub(crate) const HOST: &str = "pid:[4026531836]";

/// Whether our numbers of processes are the host's, which KFD and NVML use. Where that
/// cannot be told it is taken for so. `proc` is the folder `/proc`.
pub(crate) fn is_host(proc: &Path) -> bool {
    fs::read_link(proc.join("self/ns/pid")).map_or(true, |to| to == Path::new(HOST))
}
