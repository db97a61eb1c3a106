//! Programs that look at the workload for us: found, run, and ended when their time is up.

use std::env;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Output of one run.
const MAX_OUTPUT: u64 = 512 << 10;

/// First executable of that name on the PATH.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(program))
        .find(|p| is_executable(p))
}

/// Whether it can be run.
pub(super) fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// Whether nobody but us and root could have put it there: what lies beside another
/// user's program is not run, least of all by root.
pub(super) fn is_trustworthy(path: &Path) -> bool {
    let ours = rustix::process::geteuid().as_raw();
    let safe = |path: &Path| {
        fs::metadata(path)
            .is_ok_and(|m| (m.uid() == ours || m.uid() == 0) && m.permissions().mode() & 0o002 == 0)
    };
    safe(path) && path.parent().is_some_and(safe)
}

/// Output of a command; one that has not ended after `limit` is ended, first with SIGTERM,
/// at which gdb lets its target go. `name` is what messages call it.
pub(super) fn run(name: &str, mut command: Command, limit: Duration) -> Result<String, String> {
    // Room to end it within the limit.
    let reserve = (limit / 10).min(Duration::from_millis(200));
    let end = Instant::now() + limit.saturating_sub(reserve * 2);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("start {name}: {e}"))?;
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let Some(status) = wait(&mut child, end) else {
        // ESRCH: it ended just now.
        let _gone = kill_process(Pid::from_child(&child), Signal::TERM);
        if wait(&mut child, end + reserve).is_none() {
            let _gone = child.kill();
            wait(&mut child, end + reserve * 2);
        }
        return Err(format!(
            "{name} gave no answer within {limit:.1?} and was ended"
        ));
    };
    let read = |pipe: mpsc::Receiver<String>| {
        pipe.recv_timeout(Duration::from_millis(500))
            .unwrap_or_default()
    };
    let (text, said) = (read(stdout), read(stderr));
    if status.success() && !text.trim().is_empty() {
        return Ok(text);
    }
    let said = said.trim().lines().next().unwrap_or("no message");
    Err(format!(
        "{name} could not read the process ({said}){}",
        rights()
    ))
}

/// Yama lets only ancestors attach, and a tool of ours is none of the workload's.
fn rights() -> &'static str {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match scope.trim() {
        "" | "0" => "",
        _ => {
            "; kernel.yama.ptrace_scope forbids it: set it to 0, or give the tool the capability \
             cap_sys_ptrace"
        }
    }
}

/// A full pipe must not keep the command from ending.
fn drain(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (done, text) = mpsc::channel();
    // Without a thread the receiver is disconnected: no output.
    let _unread = thread::Builder::new().spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            // What came before an error is still of use.
            let _partial = pipe.take(MAX_OUTPUT).read_to_end(&mut bytes);
        }
        let _too_late = done.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    text
}

fn wait(child: &mut Child, end: Instant) -> Option<std::process::ExitStatus> {
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if Instant::now() >= end {
            return None;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_tool_that_hangs_is_ended() {
        let begun = Instant::now();
        let error = run("it", sh("exec sleep 60"), Duration::from_millis(400)).unwrap_err();
        assert!(error.contains("no answer"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn what_it_says_is_kept_whole_and_its_refusal_told() {
        let text = run("it", sh("seq 1 20000"), Duration::from_secs(10));
        assert!(text.unwrap().ends_with("20000\n"));
        let error = run(
            "it",
            sh("echo 'Permission denied' >&2; exit 1"),
            Duration::from_secs(10),
        );
        assert!(error.unwrap_err().contains("Permission denied"));
    }
}
