//! Real processes behind the guardian of the real binary.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use framepack_tui::model::event::Survivor;
use framepack_tui::model::{EnvChange, EnvOrigin, ExitStatus, Scope, Signal};
use framepack_tui::workload::external::{ChildEvent, LaunchSpec, Running, launch};
use rustix::process::{Pid, Signal as UnixSignal, kill_process};

const PATIENCE: Duration = Duration::from_secs(20);

fn spec(argv: &[&str], cwd: &Path) -> LaunchSpec {
    LaunchSpec {
        exe: PathBuf::from(env!("CARGO_BIN_EXE_framepack-tui")),
        argv: argv.iter().map(|a| (*a).to_owned()).collect(),
        env: Vec::new(),
        cwd: cwd.to_owned(),
        attempt: 1,
    }
}

fn shell(script: &str, cwd: &Path) -> Running {
    launch(spec(&["sh", "-c", script], cwd), None).unwrap()
}

async fn next(r: &mut Running) -> ChildEvent {
    tokio::time::timeout(PATIENCE, r.events.recv())
        .await
        .expect("an event in time")
        .expect("the stream goes on")
}

/// Events until one that `stop` accepts, that one included.
async fn until(r: &mut Running, stop: impl Fn(&ChildEvent) -> bool) -> Vec<ChildEvent> {
    let mut seen = Vec::new();
    loop {
        seen.push(next(r).await);
        if stop(&seen[seen.len() - 1]) {
            return seen;
        }
    }
}

async fn to_the_end(r: &mut Running) -> Vec<ChildEvent> {
    let seen = until(r, |e| matches!(e, ChildEvent::Gone)).await;
    let more = tokio::time::timeout(PATIENCE, r.events.recv()).await;
    assert_eq!(more, Ok(None), "nothing follows Gone");
    seen
}

async fn line(r: &mut Running) -> String {
    let seen = until(r, |e| matches!(e, ChildEvent::Line(_))).await;
    match seen.last() {
        Some(ChildEvent::Line(l)) => l.text.clone(),
        _ => unreachable!(),
    }
}

fn texts(events: &[ChildEvent]) -> Vec<&str> {
    events
        .iter()
        .filter_map(|e| match e {
            ChildEvent::Line(l) => Some(l.text.as_str()),
            _ => None,
        })
        .collect()
}

/// Whether a process lives; a zombie does not.
fn lives(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        .and_then(|s| s.rsplit(") ").next().and_then(|r| r.chars().next()))
        .is_some_and(|state| state != 'Z' && state != 'X')
}

async fn all_die(pids: &[String], within: Duration) {
    let began = Instant::now();
    while pids.iter().any(|p| lives(p)) {
        assert!(began.elapsed() < within, "still there: {pids:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn pid_in(file: &Path) -> String {
    let began = Instant::now();
    loop {
        if let Ok(text) = std::fs::read_to_string(file)
            && text.ends_with('\n')
        {
            return text.trim().to_owned();
        }
        assert!(began.elapsed() < PATIENCE, "{}", file.display());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn output_comes_before_the_end_and_the_end_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut s = spec(
        &[
            "sh",
            "-c",
            "echo out; pwd; echo \"$A$B\"; cat; printf 'err\\n' >&2; printf tail; exit 3",
        ],
        dir.path(),
    );
    let change = |name: &str, value: Option<&str>| EnvChange {
        name: name.to_owned(),
        value: value.map(str::to_owned),
        origin: EnvOrigin::Rung,
        overrides: None,
    };
    s.env = vec![
        change("A", Some("a")),
        change("B", None),
        change("HOME", None),
    ];
    let mut r = launch(s, None).unwrap();
    let seen = to_the_end(&mut r).await;
    let ChildEvent::Spawned { pid, pgid } = seen[0] else {
        panic!("{seen:?}");
    };
    assert_eq!(pid, pgid);
    let mut lines = texts(&seen);
    lines.sort_unstable();
    let cwd = dir.path().canonicalize().unwrap();
    let mut want = vec!["out", cwd.to_str().unwrap(), "a", "err", "tail"];
    want.sort_unstable();
    assert_eq!(lines, want);
    let n = seen.len();
    assert_eq!(seen[n - 2], ChildEvent::Exited(ExitStatus::Code(3)));
    assert_eq!(seen[n - 1], ChildEvent::Gone);
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let mut r = launch(spec(&["no-such-program-here"], dir.path()), None).unwrap();
    assert!(matches!(
        next(&mut r).await,
        ChildEvent::SpawnFailed {
            not_found: true,
            ..
        }
    ));
    assert_eq!(r.events.recv().await, None);
    let file = dir.path().join("plain.txt");
    std::fs::write(&file, "x").unwrap();
    let mut r = launch(spec(&[file.to_str().unwrap()], dir.path()), None).unwrap();
    assert!(matches!(
        next(&mut r).await,
        ChildEvent::SpawnFailed {
            not_found: false,
            ..
        }
    ));
}

#[tokio::test]
async fn a_prompt_without_newline_appears() {
    let dir = tempfile::tempdir().unwrap();
    let mut r = shell("printf 'continue? '; sleep 60", dir.path());
    assert_eq!(line(&mut r).await, "continue?");
    assert!(r.signal(Signal::Kill, Scope::Tree));
    to_the_end(&mut r).await;
}

#[tokio::test]
async fn the_group_is_signalled_and_ignorers_are_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut r = shell(
        "trap '' TERM INT; (trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done) & while :; do sleep 0.05; done",
        dir.path(),
    );
    assert_eq!(line(&mut r).await, "up");
    assert!(r.signal(Signal::Term, Scope::Group));
    let seen = until(&mut r, |e| matches!(e, ChildEvent::Signalled { .. })).await;
    assert!(matches!(
        seen.last(),
        Some(ChildEvent::Signalled { signal: Signal::Term, scope: Scope::Group, reached }) if *reached >= 2
    ));
    assert!(r.ask_survivors());
    let seen = until(&mut r, |e| matches!(e, ChildEvent::Survivors(_))).await;
    let Some(ChildEvent::Survivors(list)) = seen.last() else {
        unreachable!()
    };
    assert!(list.iter().any(|s: &Survivor| s.name == "sh"), "{list:?}");
    assert!(r.signal(Signal::Kill, Scope::Group));
    let seen = to_the_end(&mut r).await;
    assert!(
        seen.contains(&ChildEvent::Exited(ExitStatus::Signal(9))),
        "{seen:?}"
    );
}

/// Double fork and a session of its own: the classic daemon.
const DAEMON: &str = "setsid sh -c '(trap \"\" TERM HUP; echo $$ >daemon; exec sleep 300) & echo $! >inner' & wait; echo root-done";

#[tokio::test]
async fn a_daemon_outlives_the_root_but_not_the_tree_signal() {
    let dir = tempfile::tempdir().unwrap();
    let mut r = shell(DAEMON, dir.path());
    let seen = until(&mut r, |e| matches!(e, ChildEvent::Exited(_))).await;
    assert_eq!(seen.last(), Some(&ChildEvent::Exited(ExitStatus::Code(0))));
    assert!(texts(&seen).contains(&"root-done"));
    let inner = pid_in(&dir.path().join("inner")).await;
    // The guardian ends nothing by itself; the daemon also holds the output pipes open.
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(lives(&inner));
    assert!(r.signal(Signal::Kill, Scope::Group));
    let seen = until(&mut r, |e| matches!(e, ChildEvent::Signalled { .. })).await;
    assert!(matches!(
        seen.last(),
        Some(ChildEvent::Signalled { reached: 0, .. })
    ));
    assert!(lives(&inner));
    assert!(r.signal(Signal::Kill, Scope::Tree));
    to_the_end(&mut r).await;
    assert!(!lives(&inner));
}

#[tokio::test]
async fn dropping_the_handle_ends_everything() {
    let dir = tempfile::tempdir().unwrap();
    let r = shell(DAEMON, dir.path());
    let inner = pid_in(&dir.path().join("inner")).await;
    drop(r);
    all_die(&[inner], Duration::from_secs(5)).await;
}

#[tokio::test]
async fn a_stopped_workload_can_be_ended() {
    let dir = tempfile::tempdir().unwrap();
    let mut r = shell("echo $$; kill -STOP $$; sleep 300", dir.path());
    let pid = line(&mut r).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(lives(&pid));
    assert!(r.signal(Signal::Term, Scope::Group));
    let seen = to_the_end(&mut r).await;
    assert!(
        seen.contains(&ChildEvent::Exited(ExitStatus::Signal(15))),
        "{seen:?}"
    );
}

#[tokio::test]
async fn a_flood_neither_blocks_signals_nor_grows() {
    let dir = tempfile::tempdir().unwrap();
    let mut r = shell(
        "echo first; yes 'a line of a program that says far too much'",
        dir.path(),
    );
    assert_eq!(line(&mut r).await, "first");
    // Nobody reads the events for a while.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let began = Instant::now();
    assert!(r.signal(Signal::Kill, Scope::Tree));
    let seen = to_the_end(&mut r).await;
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
    let dropped: u64 = seen
        .iter()
        .map(|e| match e {
            ChildEvent::DroppedLines(n) => *n,
            ChildEvent::Flood(flood) => flood.lines,
            _ => 0,
        })
        .sum();
    assert!(dropped > 1000, "{dropped}");
    assert!(seen.len() < 5000, "{}", seen.len());
}

#[tokio::test]
async fn the_last_line_of_a_flood_is_not_lost() {
    let dir = tempfile::tempdir().unwrap();
    for n in [1500, 20_000] {
        let mut r = shell(&format!("seq {n}; echo last"), dir.path());
        let seen = to_the_end(&mut r).await;
        assert_eq!(texts(&seen).last(), Some(&"last"), "{n}");
    }
}

#[tokio::test]
async fn a_lost_guardian_is_told_and_the_group_can_still_be_ended() {
    let dir = tempfile::tempdir().unwrap();
    let mut r = shell("echo $$; exec sleep 300", dir.path());
    let pid = line(&mut r).await;
    send(UnixSignal::KILL, r.guardian_pid.unwrap());
    until(&mut r, |e| matches!(e, ChildEvent::GuardianLost)).await;
    assert!(lives(&pid));
    assert!(r.signal(Signal::Kill, Scope::Tree));
    let seen = to_the_end(&mut r).await;
    assert!(
        seen.contains(&ChildEvent::Exited(ExitStatus::Unknown)),
        "{seen:?}"
    );
    assert!(!lives(&pid));
}

/// By the system call: a program called `kill` is not on every machine.
fn send(signal: UnixSignal, pid: u32) {
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[tokio::test]
async fn what_left_the_group_of_a_lost_guardian_is_ended_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let mut r = shell(&format!("({DAEMON}) & exec sleep 300"), dir.path());
    let inner = pid_in(&dir.path().join("inner")).await;
    let mut other = shell("exec sleep 300", dir.path());
    send(UnixSignal::KILL, r.guardian_pid.unwrap());
    until(&mut r, |e| matches!(e, ChildEvent::GuardianLost)).await;
    assert!(lives(&inner));
    assert!(r.signal(Signal::Kill, Scope::Tree));
    to_the_end(&mut r).await;
    assert!(!lives(&inner));
    // Another launch of the same program is none of its business.
    assert!(other.signal(Signal::Term, Scope::Group));
    let seen = to_the_end(&mut other).await;
    assert!(
        seen.contains(&ChildEvent::Exited(ExitStatus::Signal(15))),
        "{seen:?}"
    );
}

#[tokio::test]
async fn a_stopped_guardian_is_woken() {
    let dir = tempfile::tempdir().unwrap();
    let mut r = shell("echo $$; exec sleep 300", dir.path());
    line(&mut r).await;
    send(UnixSignal::STOP, r.guardian_pid.unwrap());
    assert!(r.signal(Signal::Term, Scope::Group));
    let seen = to_the_end(&mut r).await;
    assert!(
        seen.contains(&ChildEvent::Exited(ExitStatus::Signal(15))),
        "{seen:?}"
    );
}

#[tokio::test]
async fn the_terminal_cannot_end_the_guardian() {
    let dir = tempfile::tempdir().unwrap();
    let mut r = shell("echo $$; exec sleep 300", dir.path());
    let pid = line(&mut r).await;
    for s in [
        UnixSignal::INT,
        UnixSignal::TERM,
        UnixSignal::HUP,
        UnixSignal::TTOU,
        UnixSignal::QUIT,
    ] {
        send(s, r.guardian_pid.unwrap());
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(lives(&pid) && lives(&r.guardian_pid.unwrap().to_string()));
    // What the guardian shrugs off must still work in the workload.
    assert!(r.signal(Signal::Int, Scope::Group));
    let seen = to_the_end(&mut r).await;
    assert!(
        seen.contains(&ChildEvent::Exited(ExitStatus::Signal(2))),
        "{seen:?}"
    );
}

/// The supervisor's part in `nothing_survives_a_killed_supervisor`: run as a process of
/// its own, so that it can be killed.
#[tokio::test]
async fn supervisor_process() {
    let Ok(cwd) = std::env::var("GUARDIAN_TEST_CWD") else {
        return;
    };
    let script = format!("trap '' TERM; {DAEMON}; echo $$ >root; sleep 300");
    let mut r = shell(&script, Path::new(&cwd));
    while r.events.recv().await.is_some() {}
}

#[tokio::test]
async fn nothing_survives_a_killed_supervisor() {
    let dir = tempfile::tempdir().unwrap();
    let mut supervisor = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "supervisor_process"])
        .env("GUARDIAN_TEST_CWD", dir.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let root = pid_in(&dir.path().join("root")).await;
    let inner = pid_in(&dir.path().join("inner")).await;
    assert!(lives(&root) && lives(&inner));
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    all_die(&[root, inner], Duration::from_secs(5)).await;
}

#[tokio::test]
async fn nothing_starts_without_a_supervisor() {
    let dir = tempfile::tempdir().unwrap();
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_framepack-tui"))
        .args(["guardian", "--", "touch", "made"])
        .current_dir(dir.path())
        .stdin(std::process::Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(70));
    assert!(!dir.path().join("made").exists());
}
