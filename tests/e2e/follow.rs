//! A run that another process shows, and the list of runs.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use framepack_tui::model::{Envelope, Event};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use rustix::process::Signal;

use crate::harness::{BINARY, Home, Start, assert_none_left, kill, recorded_text, wait_until};
use crate::terminal::Terminal;

const LIMIT: Duration = Duration::from_secs(30);

/// Says a word, waits for a file, says another. The words are not in its arguments,
/// which are shown and recorded as well.
fn patient(gate: &Path) -> [String; 3] {
    let script = format!(
        "say() {{ echo $1 word; }}; say first; while ! [ -e '{}' ]; do sleep 0.1; done; say last",
        gate.display()
    );
    ["sh".to_owned(), "-c".to_owned(), script]
}

/// `framepack-tui WORDS` in this home.
fn program(home: &Home, words: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(words).current_dir(home.dir());
    home.dress(&mut command);
    command.stdin(Stdio::null());
    command
}

fn output(home: &Home, words: &[&str]) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = program(home, words).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn events(run: &Path) -> String {
    recorded_text(run)
}

/// The line drops, the run goes on, and another terminal sees the rest of it.
#[test]
fn after_a_hang_up_the_run_is_followed_to_its_end() {
    let home = Home::new();
    let gate = home.path("gate");
    let pair = native_pty_system().openpty(PtySize::default()).unwrap();
    let mut command = CommandBuilder::new(BINARY);
    command.args(["run", "--"]);
    command.args(patient(&gate));
    command.cwd(home.dir());
    for (name, folder) in home.folders() {
        command.env(name, folder);
    }
    let marked = home.marked();
    let (name, value) = marked.split_once('=').unwrap();
    command.env(name, value);
    command.env("TERM", "xterm-256color");
    let mut run = pair.slave.spawn_command(command).unwrap();
    drop(pair.slave);
    let mut screen = pair.master.try_clone_reader().unwrap();
    let mut seen = Vec::new();
    let mut bytes = [0; 4096];
    // draws at least each second
    while !String::from_utf8_lossy(&seen).contains("first word") {
        let n = screen.read(&mut bytes).unwrap();
        assert_ne!(n, 0, "the screen ended");
        seen.extend_from_slice(&bytes[..n]);
    }
    drop(screen);
    drop(pair.master);

    let record = home.record();
    assert!(
        wait_until(LIMIT, || events(&record).contains("terminal_lost")),
        "the hang-up was not noticed"
    );
    let view = program(&home, &["follow", "--plain"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (code, list, _) = output(&home, &["runs"]);
    assert_eq!(code, Some(0));
    assert!(list.contains("  running  "), "{list}");
    std::fs::write(&gate, "").unwrap();
    let followed = view.wait_with_output().unwrap();
    let text = String::from_utf8(followed.stdout).unwrap();
    assert_eq!(followed.status.code(), Some(0), "{text}");
    for word in ["out| first word", "out| last word", "end: finished"] {
        assert!(text.contains(word), "no `{word}` in:\n{text}");
    }
    assert!(wait_until(LIMIT, || run.try_wait().unwrap().is_some()));
    let (_, list, _) = output(&home, &["runs"]);
    assert!(list.contains("  finished  "), "{list}");
    assert_none_left(&home);
}

/// Leaving the view leaves the run alone, and JSON lines are those of the run itself.
#[test]
fn an_interrupted_follower_leaves_the_run_alone() {
    let home = Home::new();
    let gate = home.path("gate");
    let mut run = Start::new(&home).command(&patient(&gate)).start();
    run.wait_for_line("first word", LIMIT);
    let mut view = program(&home, &["follow", "last", "--plain"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(view.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("first word")));
    kill(view.id(), Signal::INT).unwrap();
    assert_eq!(view.wait().unwrap().code(), Some(0));

    std::fs::write(&gate, "").unwrap();
    let finished = run.finish(LIMIT);
    finished.assert_exit(0);
    let (code, text, _) = output(&home, &["follow", "--headless"]);
    assert_eq!(code, Some(0));
    let followed: Vec<Envelope> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let told: Vec<Envelope> = finished.events.into_iter().map(|h| h.envelope).collect();
    assert_eq!(followed, told);
}

/// `q` asks nothing and leaves the run alone; other keys reach it over its socket.
#[test]
fn keys_of_a_follower_reach_the_run() {
    let home = Home::new();
    let gate = home.path("gate");
    let mut run = Start::new(&home).command(&patient(&gate)).start();
    run.wait_for_line("first word", LIMIT);
    let program = [BINARY, "follow"].map(OsString::from);
    let mut left = Terminal::open(&home, (100, 30), &program);
    left.wait_for("first word", LIMIT);
    left.press("q");
    left.assert_restored(0);

    let mut terminal = Terminal::open(&home, (100, 30), &program);
    terminal.wait_for("first word", LIMIT);
    terminal.press("e");
    terminal.wait_for("evidence is being taken", LIMIT);
    run.wait_for("evidence", LIMIT, |e| matches!(e, Event::EvidenceTaken(_)));
    terminal.press("s");
    terminal.wait_for("Stop the run?", LIMIT);
    terminal.press("y");
    terminal.wait_for("ended by the user", LIMIT);
    terminal.press("q");
    terminal.assert_restored(0);
    run.finish(LIMIT).assert_exit(130);
}

/// A supervisor that is killed leaves a record without an end.
#[test]
fn a_record_without_an_end_is_shown_and_called_broken() {
    let home = Home::new();
    let gate = home.path("gate");
    let mut run = Start::new(&home).command(&patient(&gate)).start();
    run.wait_for_line("first word", LIMIT);
    let record = home.record();
    assert!(wait_until(LIMIT, || events(&record).contains("first word")));
    run.murder();
    let (code, text, said) = output(&home, &["follow", record.to_str().unwrap()]);
    assert_eq!(code, Some(65), "{said}");
    assert!(text.contains("out| first word"), "{text}");
    let line = events(&record).matches('\n').count() + 1;
    let place = format!("events.jsonl.gz:{line}: ");
    assert!(said.contains(&place), "no `{place}` in: {said}");
    let (_, list, _) = output(&home, &["runs"]);
    assert!(list.contains("  broken  "), "{list}");
}

/// A run's folder with this stream.
fn recorded(home: &Home, id: &str, stream: &str) {
    let dir = home.path("state/framepack-tui/runs").join(id);
    std::fs::create_dir_all(&dir).unwrap();
    let manifest = format!(
        r#"{{"format":"1.0","program":"0","run":"{id}","wall_clock":"2026-01-01T00:00:00Z","argv":["true"]}}"#
    );
    std::fs::write(dir.join("manifest.json"), manifest).unwrap();
    std::fs::write(dir.join("events.jsonl"), stream).unwrap();
}

#[test]
fn what_is_no_run_is_refused_with_its_reason() {
    let home = Home::new();
    let refused = |words: &[&str], code: i32, named: &[&str]| {
        let (got, text, said) = output(&home, words);
        assert_eq!(got, Some(code), "{words:?}: {text}{said}");
        for word in named {
            assert!(said.contains(word), "{words:?}: no `{word}` in: {said}");
        }
    };
    refused(&["follow"], 66, &["no run is recorded"]);
    recorded(&home, "20260101-0001-00aa", "hello\n");
    recorded(&home, "20260101-0002-00bb", "");
    refused(&["follow", "2027"], 66, &["2027", "20260101-0002-00bb"]);
    refused(&["follow", "./nowhere"], 66, &["./nowhere"]);
    refused(
        &["follow", "20260101"],
        66,
        &["20260101-0001-00aa", "20260101-0002-00bb"],
    );
    refused(&["follow", "20260101-0001"], 65, &["events.jsonl:1: "]);
    refused(&["follow", "20260101-0002"], 65, &["events.jsonl:1: "]);
    refused(&["follow", "--headless", "--plain"], 64, &["--plain"]);
}

/// A record of so many more lines than a run has written, in a folder of its own, as if its
/// supervisor went on with it: the lock is held.
fn long_record(home: &Home, lines: u64) -> (std::path::PathBuf, std::fs::File) {
    let gate = home.path("gate");
    let mut run = Start::new(home).command(&patient(&gate)).start();
    run.wait_for_line("first word", LIMIT);
    let record = home.record();
    assert!(wait_until(LIMIT, || events(&record).contains("first word")));
    run.murder();
    let mut stream = events(&record);
    let whole = stream.rfind('\n').unwrap() + 1;
    stream.truncate(whole);
    let last: Envelope = serde_json::from_str(stream.lines().last().unwrap()).unwrap();
    let line = stream.lines().find(|l| l.contains("first word")).unwrap();
    let line: Envelope = serde_json::from_str(line).unwrap();
    for n in 1..=lines {
        let mut line = line.clone();
        (line.seq, line.at) = (last.seq + n, framepack_tui::model::Mono(last.at.0 + n));
        if let Event::Line(line) = &mut line.event {
            line.text = format!("line {n}");
        }
        stream.push_str(&serde_json::to_string(&line).unwrap());
        stream.push('\n');
    }
    recorded(home, "29990101-0001-00aa", &stream);
    let folder = home.path("state/framepack-tui/runs/29990101-0001-00aa");
    let lock = std::fs::File::create(folder.join("run.lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    (folder, lock)
}

/// What an earlier moment of a run was is not shown as its present state, and keys say so.
fn a_long_record_is_caught_up_with(size: (u16, u16)) {
    let home = Home::new();
    let (folder, lock) = long_record(&home, 200_000);
    let program = [BINARY, "follow", folder.to_str().unwrap()].map(OsString::from);
    let mut terminal = Terminal::open(&home, size, &program);
    terminal.wait_for("CATCHING UP", LIMIT);
    let text = terminal.text();
    assert!(text.contains(" %"), "{text}");
    for word in ["LIVE", "HEALTHY", "STARTING", "WATCHING"] {
        assert!(!text.contains(word), "`{word}` in:\n{text}");
    }
    terminal.press("f");
    terminal.wait_for("behind the", LIMIT);
    // what means the same at any time is asked of the run as it is now; here nobody hears it
    terminal.press("e");
    terminal.wait_for("not possible", LIMIT);
    assert!(!terminal.text().contains("no process lives"));
    // once it is at the end
    let live = if size.1 < 10 { "WATCHING" } else { "LIVE" };
    let end = Duration::from_mins(3);
    terminal.wait_for(live, end);
    assert!(!terminal.text().contains("CATCHING UP"));
    if size.1 > 10 {
        terminal.wait_for("line 200000", LIMIT);
    }
    // nobody writes it any more, and it has no end
    drop(lock);
    terminal.wait_for("UNKNOWN", LIMIT);
    assert!(!terminal.text().contains(live), "{}", terminal.text());
    terminal.press("e");
    terminal.wait_for("breaks off", LIMIT);
    terminal.press("q");
    terminal.wait_for("exit 65", LIMIT);
    assert_none_left(&home);
}

#[test]
fn a_screen_says_that_it_catches_up_80x24() {
    a_long_record_is_caught_up_with((80, 24));
}

#[test]
fn a_screen_says_that_it_catches_up_30x8() {
    a_long_record_is_caught_up_with((30, 8));
}

/// Where the state folder is refused, the run that lies in the temporary folder for that reason is
/// found, and it is said why it is that one.
#[test]
fn a_run_in_the_temporary_folder_is_not_picked_without_a_word() {
    let home = Home::new();
    let tmp = home.path("tmp");
    std::fs::create_dir_all(&tmp).unwrap();
    let ours = home.path("state/framepack-tui");
    std::fs::create_dir_all(&ours).unwrap();
    let mode = |bits| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&ours, std::fs::Permissions::from_mode(bits)).unwrap();
    };
    let show = |words: &[&str]| {
        let output = program(&home, words).env("TMPDIR", &tmp).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
        )
    };
    mode(0o777);
    // nothing lies there: what is refused, with its cure
    let (code, _, said) = show(&["runs", "show", "last"]);
    assert_eq!(code, Some(70), "{said}");
    assert!(said.contains("chmod go-w"), "{said}");
    let (code, ..) = show(&["run", "--plain", "--", "true"]);
    assert_eq!(code, Some(0));
    let words: [&[&str]; 4] = [
        &["runs", "show", "last"],
        &["runs", "show"],
        &["follow", "--plain"],
        &["runs"],
    ];
    for words in words {
        let (code, text, said) = show(words);
        assert_eq!(code, Some(0), "{words:?}: {said}");
        assert!(text.contains("finished"), "{words:?}: {text}");
        assert!(said.contains("chmod go-w"), "{words:?}: {said}");
        assert!(said.contains(tmp.to_str().unwrap()), "{words:?}: {said}");
    }
    mode(0o700);
    let (code, text, said) = show(&["runs", "show", "last"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(text.contains("finished"), "{text}");
    assert!(said.contains(tmp.to_str().unwrap()), "{said}");
    // what removes things looks at all of them or at none
    mode(0o777);
    assert_eq!(
        show(&["runs", "prune", "--keep", "0", "--dry-run"]).0,
        Some(70)
    );
    mode(0o700);
}
