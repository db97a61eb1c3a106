//! Memory of a process.

use std::error::Error;

use framepack_tui::model::Bytes;
use procfs::process::Process;

/// Memory in use that is in RAM.
pub(crate) fn rss(pid: i32) -> Result<Bytes, Box<dyn Error>> {
    let pages = Process::new(pid)?.statm()?.resident;
    Ok(Bytes(pages * procfs::page_size()))
}

/// Mebibytes.
pub(crate) fn mib(bytes: Bytes) -> f64 {
    bytes.as_gib_f64() * 1024.0
}
