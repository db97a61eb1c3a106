//! What a process has used.

use std::error::Error;
use std::time::Duration;

use framepack_tui::model::Bytes;
use procfs::process::Process;

/// CPU time of all threads up to now, waited-for children left out.
pub(crate) fn cpu(pid: i32) -> Result<Duration, Box<dyn Error>> {
    let stat = Process::new(pid)?.stat()?;
    let ticks = stat.utime + stat.stime;
    Ok(Duration::from_secs(ticks) / u32::try_from(procfs::ticks_per_second())?)
}

/// Memory in use that is in RAM.
pub(crate) fn rss(pid: i32) -> Result<Bytes, Box<dyn Error>> {
    let pages = Process::new(pid)?.statm()?.resident;
    Ok(Bytes(pages * procfs::page_size()))
}

/// Mebibytes.
pub(crate) fn mib(bytes: Bytes) -> f64 {
    bytes.as_gib_f64() * 1024.0
}
