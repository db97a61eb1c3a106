//! Python stacks by py-spy, if there is one.

use std::env;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::output::Output;
use crate::supervise::tree::{Member, Target};

/// Interpreters whose stacks are taken, the root first.
const MAX_INTERPRETERS: usize = 4;
/// Output of one dump.
const MAX_DUMP: u64 = 512 << 10;

/// `py-spy dump --nonblocking` of each Python process of the tree. Without that
/// flag py-spy stops its target, and leaves it stopped if it is killed itself.
pub(super) fn collect(out: &Output, target: &Target, limit: Duration) -> Result<(), String> {
    let end = Instant::now() + limit;
    let members: Vec<_> = target
        .members()?
        .into_iter()
        .filter(is_python)
        .take(MAX_INTERPRETERS)
        .collect();
    if members.is_empty() {
        return Err("no Python process in the tree".to_owned());
    }
    let py_spy = find("py-spy").ok_or(
        "py-spy is not on the PATH; `pip install py-spy` makes the stacks of a hung Python visible",
    )?;
    let mut why = Err("no stack was taken".to_owned());
    for member in members {
        out.doing(format!("while py-spy reads process {}", member.pid));
        let left = end.saturating_duration_since(Instant::now());
        let mut command = Command::new(&py_spy);
        command.args(["dump", "--nonblocking", "--pid", &member.pid.to_string()]);
        match run(command, left) {
            Ok(text) => {
                out.line(format!("==== {}", member.title()));
                out.line(text);
                why = Ok(());
            }
            Err(e) if out.is_empty() => why = Err(e),
            Err(e) => out.line(format!("==== {}\n({e})", member.title())),
        }
    }
    why
}

/// By the program's file where that can be read: `comm` is whatever the program
/// calls itself, and a shell script named `python3` has it too.
pub(super) fn is_python(member: &Member) -> bool {
    match fs::read_link(member.path("exe")) {
        Ok(exe) => exe
            .file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with("python")),
        Err(_) => member.name.starts_with("python"),
    }
}

/// First executable of that name on the PATH.
fn find(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(program))
        .find(|p| fs::metadata(p).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0))
}

/// Output of a command that is killed when its time is up.
fn run(mut command: Command, limit: Duration) -> Result<String, String> {
    // Room to end it within the limit.
    let reserve = (limit / 10).min(Duration::from_millis(200));
    let end = Instant::now() + limit.saturating_sub(reserve);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("start py-spy: {e}"))?;
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let Some(status) = wait(&mut child, end) else {
        // ESRCH: it ended just now.
        let _gone = child.kill();
        wait(&mut child, end + reserve);
        return Err(format!(
            "py-spy gave no answer within {limit:.1?} and was ended"
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
    let said = said
        .trim()
        .lines()
        .next()
        .unwrap_or("no message")
        .to_owned();
    Err(format!(
        "py-spy could not read the process ({said}){}",
        rights()
    ))
}

/// Yama lets only ancestors attach, and py-spy is a sibling of the workload.
fn rights() -> &'static str {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match scope.trim() {
        "" | "0" => "",
        _ => {
            "; kernel.yama.ptrace_scope forbids it: set it to 0, or give py-spy the capability \
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
            let _partial = pipe.take(MAX_DUMP).read_to_end(&mut bytes);
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
        let error = run(sh("exec sleep 60"), Duration::from_millis(400)).unwrap_err();
        assert!(error.contains("no answer"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn what_it_says_is_kept_whole_and_its_refusal_told() {
        let text = run(sh("seq 1 20000"), Duration::from_secs(10));
        assert!(text.unwrap().ends_with("20000\n"));
        let error = run(
            sh("echo 'Permission denied' >&2; exit 1"),
            Duration::from_secs(10),
        );
        assert!(error.unwrap_err().contains("Permission denied"));
    }
}
