//! Where another user may write, nothing of ours is read or written: what lies there would
//! run as ours, or be taken for a record of ours.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::harness::{BINARY, Home, Start, python, wait_until};

const SOON: Duration = Duration::from_mins(2);

/// Another user.
const THEIRS: u32 = 4711;

/// Says whose files the agent is.
const OWNER: &str = "import fpt_agent, os; f = os.path.dirname(fpt_agent.__file__); \
    print('agent of', os.stat(f).st_uid, oct(os.stat(f).st_mode & 0o22))";

fn run(home: &Home) -> (Option<i32>, String) {
    let mut command = Command::new(BINARY);
    command.args(["run", "--plain", "--"]).arg(python());
    command.args(["-c", OWNER]).current_dir(home.dir());
    home.dress(&mut command);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text += &String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text)
}

/// Everything below a folder: its owner, mode and length.
fn tree(top: &Path) -> BTreeMap<PathBuf, (u32, u32, u64)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            // what a run makes may be gone again
            let Ok(meta) = entry.path().symlink_metadata() else {
                continue;
            };
            if meta.is_dir() {
                folders.push(entry.path());
            }
            found.insert(entry.path(), (meta.uid(), meta.mode(), meta.len()));
        }
    }
    found
}

fn give_away(top: &Path) {
    for path in tree(top).keys() {
        std::os::unix::fs::lchown(path, Some(THEIRS), Some(THEIRS)).unwrap();
    }
    chown(top, Some(THEIRS), Some(THEIRS)).unwrap();
}

/// The folder of the agent's version.
fn version(home: &Home) -> PathBuf {
    let agents = fs::read_dir(home.path("cache/framepack-tui/agent")).unwrap();
    let mut all = agents.map(|e| e.unwrap().path());
    all.next().expect("the first run has unpacked the agent")
}

#[test]
fn no_folder_of_another_user_is_used_in_eleven_places() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can make folders of another user");
        return;
    }
    for place in [
        "cache/framepack-tui",
        "cache/framepack-tui/agent",
        "cache/framepack-tui/agent/VERSION",
        "cache/framepack-tui/agent/VERSION/fpt_agent",
        "cache/framepack-tui/agent/VERSION/fpt_agent/__pycache__",
        "state/framepack-tui",
        "state/framepack-tui/runs",
        "state/framepack-tui/baselines",
        "data/framepack-tui",
        "data/framepack-tui/vault",
        "config/framepack-tui",
    ] {
        let home = Home::new();
        let (code, text) = run(&home);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("agent of 0 0o0"), "{text}");
        let profiles = home.path("config/framepack-tui/profiles");
        fs::create_dir_all(&profiles).unwrap();
        fs::create_dir_all(home.path("state/framepack-tui/baselines")).unwrap();
        let theirs = match place.split_once("VERSION") {
            Some((_, below)) => version(&home).join(below.trim_start_matches('/')),
            None => home.path(place),
        };
        assert!(theirs.is_dir(), "{place} is not there");
        let planted = "raise SystemExit('theirs')\n";
        for name in ["sitecustomize.py", "planted.py"] {
            fs::write(theirs.join(name), planted).unwrap();
        }
        give_away(&theirs);
        let before = tree(&theirs);
        let (code, text) = run(&home);
        assert_eq!(code, Some(0), "{place}: {text}");
        assert!(text.contains("agent of 0 0o0"), "{place}: {text}");
        // it was left as it was, or removed
        let after = tree(&theirs);
        let owner = fs::metadata(&theirs).unwrap().uid();
        assert!(owner == 0 || after == before, "{place}: {text}");
        if place.starts_with("state") && !place.ends_with("baselines") {
            assert!(text.contains("another user"), "{place}: {text}");
        }
    }
}

/// With no place for a record there is no run; what others have put there is not listed.
#[test]
fn a_record_is_never_put_into_a_folder_of_another_user() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can make folders of another user");
        return;
    }
    let home = Home::new();
    for place in ["state/framepack-tui", "tmp/framepack-tui-0"] {
        let planted = home.path(place).join("runs/20261127-2231-7f3a");
        fs::create_dir_all(&planted).unwrap();
        fs::write(planted.join("events.jsonl"), "{}").unwrap();
        give_away(&home.path(place));
    }
    let before = tree(&home.path("tmp"));
    let (code, text) = run(&home);
    assert!(code != Some(0) && !text.contains("agent of"), "{text}");
    assert!(text.contains("belongs to another user"), "{text}");
    assert_eq!(tree(&home.path("tmp")), before);
    let mut command = Command::new(BINARY);
    command.args(["runs", "list"]);
    home.dress(&mut command);
    let output = command.output().unwrap();
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        !output.status.success() && !listed.contains("20261127"),
        "{listed}"
    );
}

/// `XDG_CACHE_HOME=/tmp`: everybody may have made our folder there before us.
#[test]
fn code_in_a_shared_folder_is_never_run() {
    let home = Home::new();
    let cache = home.path("cache");
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o1777)).unwrap();
    let (code, text) = run(&home);
    assert!(code == Some(0) && text.contains("agent of"), "{text}");
    let ours = cache.join("framepack-tui");
    assert_eq!(fs::metadata(&ours).unwrap().mode() & 0o7777, 0o700);
    let compiled = version(&home).join("fpt_agent/__pycache__");
    assert_eq!(fs::metadata(compiled).unwrap().mode() & 0o777, 0o700);
    // one that everybody may write to is none of ours any more
    fs::set_permissions(&ours, fs::Permissions::from_mode(0o777)).unwrap();
    let before = tree(&ours);
    let (code, text) = run(&home);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("chmod go-w") && text.contains("in the run's folder instead"),
        "{text}"
    );
    assert_eq!(tree(&ours), before);
}

#[test]
fn what_runs_have_learned_is_private() {
    let home = Home::new();
    let (code, text) = run(&home);
    assert_eq!(code, Some(0), "{text}");
    let state = home.path("state/framepack-tui");
    for (path, (_, mode, _)) in tree(&state) {
        assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", path.display());
    }
}

/// A profile says what is run.
#[test]
fn a_profile_that_others_may_write_is_refused_by_name() {
    let home = Home::new();
    let profiles = home.path("config/framepack-tui/profiles");
    fs::create_dir_all(&profiles).unwrap();
    let text = "schema = 1\n[profile]\nid = \"mine\"\nversion = \"1.0.0\"\ntitle = \"x\"\n";
    fs::write(profiles.join("mine.toml"), text).unwrap();
    fs::set_permissions(&profiles, fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = Command::new(BINARY);
    command.args(["run", "--plain", "--profile", "mine", "--", "true"]);
    home.dress(&mut command);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("chmod go-w"),
        "{said}"
    );
}

/// The sockets below a folder.
fn sockets(below: &Path) -> Vec<PathBuf> {
    let kind = |path: &PathBuf| path.symlink_metadata().map(|m| m.file_type().is_socket());
    let all = tree(below).into_keys();
    all.filter(|path| kind(path).unwrap_or(false)).collect()
}

/// What another user is answered by a socket: the error, or what was read after a word to it.
fn knock(socket: &Path) -> String {
    let program = "
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(60)
try:
    s.connect(sys.argv[1])
    s.sendall(b'{\"request\":{\"command\":{\"command\":\"kill\"},\"seen\":{\"attempt\":1}}}\\n')
    print('read', repr(s.recv(100)))
except OSError as e:
    print(type(e).__name__)
";
    let mut command = Command::new("python3");
    command.args(["-I", "-c", program]).arg(socket);
    command.current_dir("/").uid(THEIRS).gid(THEIRS);
    let output = command.output().expect("python3 is there");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The sockets of a run, of the screens and of the agent: another user cannot open them, and is
/// not heard where the modes of all folders would let anybody in.
#[test]
fn another_user_reaches_no_socket_of_a_run() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can be another user");
        return;
    }
    let home = Home::new();
    let program = "import time\nprint('up', flush=True)\ntime.sleep(600)";
    let mut run = Start::new(&home).python(program).start();
    run.wait_for_line("up", SOON);
    let there = || {
        let found = sockets(home.dir());
        (found.len() >= 2).then_some(found)
    };
    assert!(
        wait_until(SOON, || there().is_some()),
        "{:?}",
        sockets(home.dir())
    );
    let all = there().unwrap();
    assert!(all.iter().any(|s| s.ends_with("control.sock")), "{all:?}");
    for socket in &all {
        assert_eq!(knock(socket), "PermissionError", "{}", socket.display());
    }
    let everybody = |path: &Path| {
        let mode = fs::Permissions::from_mode(0o777);
        fs::set_permissions(path, mode).unwrap();
    };
    everybody(home.dir());
    for socket in &all {
        let above = socket.ancestors();
        above.take_while(|p| *p != home.dir()).for_each(everybody);
        let said = knock(socket);
        assert!(
            ["read b''", "ConnectionResetError", "BrokenPipeError"].contains(&said.as_str()),
            "{}: {said}",
            socket.display()
        );
    }
    let text = crate::harness::recorded_text(&home.record());
    assert!(!text.contains(r#""kind":"command""#), "{text}");
    run.signal(Signal::INT);
    run.finish(SOON).assert_exit(130);
}
