use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;

use super::*;

const CLOSED: io::ErrorKind = io::ErrorKind::PermissionDenied;

fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn a_growing_file_is_followed_from_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kmsg");
    append(&path, "amdgpu: old news\n");
    let lines = Arc::new(Lines::default());
    let mut log = KernelLog::new(path.clone(), None, Arc::clone(&lines));
    log.read().unwrap();
    assert_eq!(lines.drain(), Vec::<String>::new());
    append(
        &path,
        "6,1,2,-;usb 1-1: new device\n3,2,3,-;amdgpu 0000:0c:00.0: amdgpu: ring ",
    );
    log.read().unwrap();
    assert_eq!(lines.drain(), Vec::<String>::new());
    append(
        &path,
        "gfx_0.0.0 timeout\nOut of memory: Killed process 7 (python3)\n",
    );
    log.read().unwrap();
    assert_eq!(
        lines.drain(),
        [
            "amdgpu 0000:0c:00.0: amdgpu: ring gfx_0.0.0 timeout",
            "Out of memory: Killed process 7 (python3)"
        ]
    );
    std::fs::write(&path, "NVRM: Xid 79\n").unwrap();
    log.read().unwrap();
    assert_eq!(lines.drain(), ["NVRM: Xid 79"]);
}

#[test]
fn a_file_that_comes_later_is_read_from_its_beginning() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kmsg");
    let lines = Arc::new(Lines::default());
    let mut log = KernelLog::new(path.clone(), None, Arc::clone(&lines));
    assert!(matches!(log.read(), Err(SourceError::Absent(_))));
    append(&path, "amdgpu: GPU reset begin!\n");
    log.read().unwrap();
    assert_eq!(lines.drain(), ["amdgpu: GPU reset begin!"]);
}

#[test]
fn lines_about_other_things_are_left_out() {
    for line in [
        "amdgpu: MES failed",
        "NVRM: Xid (PCI:0000:03:00): 79",
        "python3[7]: segfault at 0",
        "python3 invoked oom-killer: gfp_mask=0x0",
        "[drm:foo] *ERROR* x",
    ] {
        assert!(matters(line), "{line}");
    }
    for line in [
        "NVRM: GPU at PCI:0000:03:00: GPU-6c2f8f9c-0000-0000-0000-000000000000",
        "NVRM: GPU Board Serial Number: 0320000000000",
    ] {
        assert!(!matters(line), "{line}");
    }
    for line in ["usb 1-1: room for zoom", "EXT4-fs (sda1): mounted", ""] {
        assert!(!matters(line), "{line}");
    }
}

#[test]
fn the_queue_is_bounded_and_says_what_was_dropped() {
    let lines = Lines::default();
    for n in 0..KEEP + 3 {
        lines.push(n.to_string());
    }
    let all = lines.drain();
    assert_eq!(all.len(), KEEP + 1);
    assert_eq!(all[0], "(3 earlier kernel lines were dropped)");
    assert_eq!(all[1], "3");
}

/// A `journalctl` of our own: a script that writes its arguments beside itself.
fn stub(dir: &Path, script: &str) -> OsString {
    let path = dir.join("journalctl");
    let text = format!("#!/bin/sh\necho \"$@\" > \"$0.args\"\necho $$ > \"$0.pid\"\n{script}\n");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.into()
}

/// A log whose device is closed and whose journal is the script.
fn through(program: OsString) -> (KernelLog, Arc<Lines>) {
    let lines = Arc::new(Lines::default());
    let closed = PathBuf::from("/dev/kmsg");
    let log = KernelLog::new(closed, Some(program), Arc::clone(&lines));
    (log, lines)
}

/// Reads until `done` says so.
fn read_until(
    log: &mut KernelLog,
    mut done: impl FnMut(&Result<Answer<()>, SourceError>) -> bool,
) -> Result<Answer<()>, SourceError> {
    let begin = Instant::now();
    loop {
        let answer = log.read();
        if done(&answer) {
            return answer;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{answer:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_closed_device_is_followed_through_the_journal_and_the_child_ends_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let script =
        "echo 'usb 1-1: new device'\necho 'amdgpu 0000:0c:00.0: GPU reset begin!'\nexec sleep 600";
    let (mut log, lines) = through(stub(dir.path(), script));
    log.through_journal(CLOSED).unwrap();
    let mut got = Vec::new();
    read_until(&mut log, |_| {
        got.extend(lines.drain());
        !got.is_empty()
    })
    .unwrap();
    assert_eq!(got, ["amdgpu 0000:0c:00.0: GPU reset begin!"]);
    let told = |what: &str| std::fs::read_to_string(dir.path().join(what)).unwrap();
    assert_eq!(
        told("journalctl.args").trim(),
        "-k -f -n 0 -o cat --no-pager"
    );
    let pid = told("journalctl.pid").trim().to_owned();
    assert!(Path::new("/proc").join(&pid).exists());
    drop(log);
    assert!(!Path::new("/proc").join(&pid).exists());
}

#[test]
fn a_journal_that_shows_nothing_says_which_rights_are_missing() {
    for words in [
        "Hint: You are currently not seeing messages from other users and the system.",
        "No journal files were opened due to insufficient permissions.",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let script = format!("echo '{words}' >&2\nsleep 600");
        let (mut log, _) = through(stub(dir.path(), &script));
        log.through_journal(CLOSED).unwrap();
        let error = read_until(&mut log, Result::is_err).unwrap_err();
        let SourceError::Absent(why) = &error else {
            panic!("{error:?}")
        };
        assert!(why.contains("systemd-journal"), "{why}");
        assert!(log.journal.is_none());
        assert_eq!(
            log.through_journal(CLOSED).unwrap_err(),
            error,
            "not at once again"
        );
    }
}

#[test]
fn a_journal_that_ends_is_a_failure_in_its_own_words_and_not_started_again_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let program = stub(
        dir.path(),
        "echo 'amdgpu: MES ring buffer is full'\necho 'no space' >&2\nexit 3",
    );
    let (mut log, lines) = through(program);
    log.through_journal(CLOSED).unwrap();
    let error = read_until(&mut log, Result::is_err).unwrap_err();
    let SourceError::Failed(why) = &error else {
        panic!("{error:?}")
    };
    assert!(
        why.contains("journalctl ended") && why.ends_with("no space"),
        "{why}"
    );
    assert_eq!(lines.drain(), ["amdgpu: MES ring buffer is full"]);
    std::fs::remove_file(dir.path().join("journalctl.pid")).unwrap();
    assert_eq!(log.through_journal(CLOSED).unwrap_err(), error);
    assert!(!dir.path().join("journalctl.pid").exists());
}

#[test]
fn without_a_journal_the_device_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, _) = through(dir.path().join("none").into());
    let why = log.through_journal(CLOSED).unwrap_err().to_string();
    assert!(
        why.starts_with("/dev/kmsg may not be read; cure: root") && why.contains("no journalctl"),
        "{why}"
    );
    let (mut log, _) = through(dir.path().join("none").into());
    let none = log.through_journal(io::ErrorKind::NotFound);
    let why = none.unwrap_err().to_string();
    assert!(why.starts_with("/dev/kmsg is not there"), "{why}");
}

#[test]
fn a_container_without_the_device_is_followed_through_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let program = stub(dir.path(), "exec sleep 600");
    let lines = Arc::new(Lines::default());
    let mut log = KernelLog::new(dir.path().join("kmsg"), Some(program), lines);
    // "text file busy" where another test forked meanwhile
    while log.journal.is_none() {
        log.no_journal = None;
        let _ = log.read();
    }
    let child = log.journal.as_ref().map(journal::Journal::id).unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(child).unwrap());
    let group = rustix::process::getpgid(pid).unwrap();
    assert_eq!(Some(group), pid, "Ctrl-C does not reach it");
}

#[test]
fn what_came_while_a_file_could_not_be_read_is_not_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kmsg");
    append(&path, "amdgpu: old news\namdgpu: GPU ");
    let lines = Arc::new(Lines::default());
    let mut log = KernelLog::new(path.clone(), None, Arc::clone(&lines));
    log.read().unwrap();
    append(&path, "amdgpu: ring ");
    log.read().unwrap();
    // a folder of this name cannot be read as a file
    let away = dir.path().join("away");
    std::fs::rename(&path, &away).unwrap();
    append(&away, "gfx timeout\namdgpu: GPU reset begin!\n");
    let open = log.open.as_mut().unwrap();
    open.file = File::open(dir.path()).unwrap();
    std::fs::rename(&away, &path).unwrap();
    assert!(matches!(log.read(), Err(SourceError::Failed(_))));
    log.read().unwrap();
    assert_eq!(
        lines.drain(),
        ["amdgpu: ring gfx timeout", "amdgpu: GPU reset begin!"]
    );
}

#[test]
fn a_line_without_end_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let script = "printf 'amdgpu: '\nhead -c 3000000 /dev/zero | tr '\\0' x\necho\necho 'amdgpu: GPU reset begin!'\nexec sleep 600";
    let (mut log, lines) = through(stub(dir.path(), script));
    log.through_journal(CLOSED).unwrap();
    let mut got = Vec::new();
    read_until(&mut log, |_| {
        got.extend(lines.drain());
        got.iter().any(|l| l.ends_with("GPU reset begin!"))
    })
    .unwrap();
    assert!(got.iter().all(|l| l.len() <= LONGEST), "{}", got.len());
}

proptest! {
    #[test]
    fn any_record_is_survived(bytes: Vec<u8>) {
        if let Some(line) = message(&bytes) {
            prop_assert!(!line.is_empty() && !line.contains('\n'));
        }
    }

    #[test]
    fn the_head_is_cut_off(level in 0u8..192, seq: u64, us: u64, text in "[a-z][a-z ;,]{0,40}[a-z]") {
        let record = format!("{level},{seq},{us},-;{text}\n SUBSYSTEM=pci\n");
        prop_assert_eq!(message(record.as_bytes()), Some(text));
    }
}
