//! Native stacks by gdb. It stops its target for a moment, so it runs only where the
//! user asked for it.

use std::process::Command;
use std::time::{Duration, Instant};

use procfs::process::Process;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::Trouble;
use super::output::Output;
use super::tool;
use crate::supervise::tree::{Member, Target};

/// Processes whose stacks are taken, the root first.
const MOST: usize = 2;

/// `gdb -p PID -batch -ex "thread apply all bt"` of the first processes of the tree.
pub(super) fn collect(out: &Output, target: &Target, limit: Duration) -> Result<(), Trouble> {
    let end = Instant::now() + limit;
    let Some(gdb) = tool::find("gdb") else {
        return Err(Trouble::absent(
            "gdb is not on the PATH; the distribution's package `gdb` has it",
        ));
    };
    let mut why: Result<(), Trouble> = Err(Trouble::Failed("no stack was taken".to_owned()));
    for member in target.members()?.into_iter().take(MOST) {
        let left = end.saturating_duration_since(Instant::now());
        if left < limit / 4 {
            out.line(format!("==== {}\n(no time left)", member.title()));
            break;
        }
        out.doing(format!("while gdb reads process {}", member.pid));
        let mut command = Command::new(&gdb);
        command
            .args(["-nx", "-q", "-batch", "-p", &member.pid.to_string()])
            // symbols are not fetched from the network, and no page is waited on
            .args([
                "-iex",
                "set debuginfod enabled off",
                "-iex",
                "set pagination off",
            ])
            .args(["-iex", "set auto-load off", "-ex", "thread apply all bt"])
            .env_remove("DEBUGINFOD_URLS");
        let stopped_before = is_stopped(&member);
        let ran = tool::run("gdb", command, left);
        if !stopped_before {
            let_go(&member);
        }
        match ran {
            Ok(text) => {
                out.line(format!("==== {}", member.title()));
                text.lines().for_each(|line| out.line(line));
                why = Ok(());
            }
            Err(e) if out.is_empty() => why = Err(e.into()),
            Err(e) => out.line(format!("==== {}\n({e})", member.title())),
        }
    }
    why
}

/// Whether it is stopped by a signal.
fn is_stopped(member: &Member) -> bool {
    i32::try_from(member.pid)
        .ok()
        .and_then(|pid| Process::new(pid).and_then(|p| p.stat()).ok())
        .is_some_and(|s| s.state == 'T')
}

/// A debugger that was killed while it attached leaves the stop behind that it asked for.
fn let_go(member: &Member) {
    let pid = i32::try_from(member.pid).ok().and_then(Pid::from_raw);
    let handle = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    if let Some(handle) = handle.filter(|_| is_stopped(member)) {
        // it has ended meanwhile
        let _gone = pidfd_send_signal(&handle, Signal::CONT);
    }
}
