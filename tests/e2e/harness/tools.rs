//! Paths, signals and waiting.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// The program under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_framepack-tui");

/// Top of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The Python of `scripts/setup`; a test without it fails, it is never skipped.
pub(crate) fn python() -> PathBuf {
    let venv = std::env::var_os("FPT_VENV").map_or_else(|| root().join(".venv"), PathBuf::from);
    let python = venv.join("bin/python");
    assert!(
        venv.join(".framepack-tui-setup").is_file(),
        "{} is not set up: run scripts/setup first",
        venv.display()
    );
    python
}

/// A script of `tests/workloads`.
pub(crate) fn workload(name: &str) -> PathBuf {
    let path = root().join("tests/workloads").join(name);
    assert!(path.is_file(), "no workload {}", path.display());
    path
}

/// A port of this machine that nobody serves on.
pub(crate) fn free_port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port().to_string()
}

/// The text of the record in this folder of a run; what is not there yet has nothing in it.
pub(crate) fn recorded_text(run: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(mut text) = framepack_tui::record::open_text(run) {
        // a record that is written just now ends anywhere
        let _ = std::io::Read::read_to_end(&mut text, &mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sends a signal to one process; an error when it is gone.
pub(crate) fn kill(pid: u32, signal: Signal) -> rustix::io::Result<()> {
    kill_process(to_pid(pid), signal)
}

/// Sends a signal to a process group; an error when nobody is left in it.
pub(crate) fn kill_group(pgid: u32, signal: Signal) -> rustix::io::Result<()> {
    kill_process_group(to_pid(pgid), signal)
}

fn to_pid(pid: u32) -> Pid {
    i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .expect("a process id is a positive number")
}

/// Asks `check` each 50 ms until it says yes; `false` when it never did.
pub(crate) fn wait_until(limit: Duration, mut check: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if check() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A number of `/proc/PID/stat` behind the state of the process, from 0 on.
fn stat(pid: u32, nth: usize) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let rest = stat.rsplit_once(") ").unwrap().1;
    rest.split(' ').nth(nth + 1).unwrap().parse().unwrap()
}

/// The parent of a process.
pub(crate) fn parent(pid: u32) -> u32 {
    stat(pid, 0)
}

/// The session of a process.
pub(crate) fn session(pid: u32) -> u32 {
    stat(pid, 2)
}
