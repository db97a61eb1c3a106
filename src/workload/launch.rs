//! Starts the workload as a shell would, and says why it does not start.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::io::Errno;

/// What runs a script that names no interpreter.
const SHELL: &str = "/bin/sh";
/// Bytes by which a script is told from a binary file.
const HEAD: u64 = 256;

/// Why the workload did not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotStarted {
    /// The reason in words.
    pub(super) why: String,
    /// There is no such program: no file, a folder, or a script whose interpreter is missing.
    pub(super) not_found: bool,
}

/// Starts it in a process group of its own; whoever reaps collects its end.
pub(super) fn spawn(argv: &[OsString]) -> Result<i32, NotStarted> {
    let Some((program, rest)) = argv.split_first() else {
        return Err(NotStarted {
            why: "no command was given".to_owned(),
            not_found: false,
        });
    };
    let mut command = Command::new(program);
    command.args(rest);
    match start(command) {
        Ok(pid) => Ok(pid),
        Err(e) => again(program, rest, &e),
    }
}

fn start(mut command: Command) -> io::Result<i32> {
    let child = command.stdin(Stdio::null()).process_group(0).spawn()?;
    i32::try_from(child.id()).map_err(io::Error::other)
}

/// What a shell does after the system has refused: a script without `#!` is its own to run.
fn again(program: &OsStr, rest: &[OsString], refused: &io::Error) -> Result<i32, NotStarted> {
    let not_started = |not_found, why: String| Err(NotStarted { why, not_found });
    let Some(path) = find(program) else {
        let not_found = refused.kind() == io::ErrorKind::NotFound;
        return not_started(not_found, refused.to_string());
    };
    let errno = Errno::from_io_error(refused);
    if path.is_dir() {
        return not_started(true, "it is a folder".to_owned());
    }
    if refused.kind() == io::ErrorKind::NotFound {
        let why = match interpreter(&path) {
            Some(name) => format!("its interpreter `{name}` is not there"),
            None => "the loader or a library that it names is not there".to_owned(),
        };
        return not_started(true, why);
    }
    if errno != Some(Errno::NOEXEC) {
        return not_started(false, refused.to_string());
    }
    if !is_script(&path) {
        let why = "it is damaged, or no program for this machine".to_owned();
        return not_started(false, why);
    }
    let mut command = Command::new(SHELL);
    command.arg(&path).args(rest);
    start(command).or_else(|e| not_started(false, format!("{SHELL}: {e}")))
}

/// The file that is meant: by its path, or in the folders of `PATH`.
fn find(program: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        let path = PathBuf::from(program);
        return path.exists().then_some(path);
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(program))
        .find(|path| {
            let meta = fs::metadata(path);
            meta.is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
        })
}

fn head(path: &Path) -> Vec<u8> {
    let mut head = Vec::new();
    // what cannot be read is no script
    let _ = fs::File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    head
}

/// A text of lines: no zero byte in the first of them.
fn is_script(path: &Path) -> bool {
    let head = head(path);
    let line = head.split(|b| *b == b'\n').next().unwrap_or_default();
    !line.contains(&0) && !head.starts_with(b"\x7fELF")
}

/// The program that the first line of a script names.
fn interpreter(path: &Path) -> Option<String> {
    let head = head(path);
    let line = head.strip_prefix(b"#!")?;
    let line = line.split(|b| *b == b'\n').next()?;
    let line = String::from_utf8_lossy(line).into_owned();
    line.split_whitespace().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use rustix::process::{Pid, WaitOptions, waitpid};

    use super::*;

    /// A file with these bytes that may be executed.
    fn program(folder: &Path, name: &str, bytes: &[u8]) -> OsString {
        let path = folder.join(name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.into_os_string()
    }

    fn code(argv: &[OsString]) -> Option<i32> {
        let pid = Pid::from_raw(spawn(argv).unwrap()).unwrap();
        let (_, status) = waitpid(Some(pid), WaitOptions::empty()).unwrap().unwrap();
        status.exit_status()
    }

    #[test]
    fn a_script_without_its_first_line_is_run_by_a_shell() {
        let tmp = tempfile::tempdir().unwrap();
        let script = program(tmp.path(), "s", b"test \"$1\" = 'a b' && exit 7\n");
        assert_eq!(code(&[script, "a b".into()]), Some(7));
        let empty = program(tmp.path(), "empty", b"");
        assert_eq!(code(&[empty]), Some(0));
    }

    #[test]
    fn what_does_not_start_says_why_and_whether_it_is_there() {
        let tmp = tempfile::tempdir().unwrap();
        let no_interpreter = program(tmp.path(), "i", b"#!/nowhere/python -u\nx\n");
        let broken = program(tmp.path(), "b", b"\x7fELF\x02\x01\x01\0garbage");
        let data = program(tmp.path(), "d", b"\x89PNG\0\0\n");
        for (word, not_found, why) in [
            (tmp.path().as_os_str().to_owned(), true, "it is a folder"),
            (no_interpreter, true, "`/nowhere/python`"),
            (broken, false, "damaged"),
            (data, false, "damaged"),
            ("/nowhere/at/all".into(), true, "No such file"),
            ("no-such-program-4711".into(), true, "No such file"),
        ] {
            let failed = spawn(&[word]).unwrap_err();
            assert_eq!(failed.not_found, not_found, "{failed:?}");
            assert!(failed.why.contains(why), "{failed:?}");
        }
        assert!(!spawn(&[]).unwrap_err().not_found);
    }
}
