//! The program ffmpeg: where it is, and how it is asked and ended.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// The variable by which imageio finds its ffmpeg.
const VARIABLE: &str = "IMAGEIO_FFMPEG_EXE";
/// Bytes of its complaints that are kept.
const WORDS: u64 = 4096;
/// An answer that takes longer is none: the program is a static one of 80 MB at most, on a slow disk.
#[cfg(not(test))]
const ANSWERS: Duration = Duration::from_secs(15);
#[cfg(test)]
const ANSWERS: Duration = Duration::from_secs(4);

#[cfg(test)]
thread_local! {
    static INSTEAD: std::cell::Cell<Option<PathBuf>> = const { std::cell::Cell::new(None) };
}

/// Does `work` with another program.
#[cfg(test)]
pub(super) fn with<T>(program: &Path, work: impl FnOnce() -> T) -> T {
    INSTEAD.set(Some(program.to_owned()));
    let done = work();
    INSTEAD.set(None);
    done
}

/// The program, or what to do without it.
pub(super) fn find() -> Result<PathBuf> {
    #[cfg(test)]
    if let Some(program) = INSTEAD.take() {
        INSTEAD.set(Some(program.clone()));
        return Ok(program);
    }
    let named = std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
    if let Some(named) = named {
        return Ok(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).map(|folder| folder.join("ffmpeg"));
    // one that cannot be executed is passed over, as a shell does
    let runs = |path: &PathBuf| {
        path.metadata()
            .is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    };
    folders.find(runs).ok_or_else(|| {
        failed(
            "not found in PATH: install it (packages are called ffmpeg), name one in IMAGEIO_FFMPEG_EXE, or use .gif or a folder of png pictures instead of a video",
        )
    })
}

pub(super) fn failed(reason: impl Into<String>) -> Error {
    Error::Program {
        program: "ffmpeg".to_owned(),
        reason: reason.into(),
    }
}

pub(super) fn start(mut command: Command) -> Result<Running> {
    let child = command.stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|e| cannot_be_started(command.get_program().as_ref(), &e))?;
    let words = child.stderr.take().map(|stderr| {
        std::thread::spawn(move || {
            let mut words = Vec::new();
            let mut stderr = stderr;
            // what was read up to an error still counts
            let _ = stderr.by_ref().take(WORDS).read_to_end(&mut words);
            // a full pipe would stop it
            let _ = std::io::copy(&mut stderr, &mut std::io::sink());
            String::from_utf8_lossy(&words).trim().replace('\n', "; ")
        })
    });
    Ok(Running { child, words })
}

/// It, at work.
pub(super) struct Running {
    pub(super) child: Child,
    words: Option<JoinHandle<String>>,
}

impl Running {
    /// Waits for its end; how that was, and its words.
    pub(super) fn ended(&mut self) -> Result<(ExitStatus, Option<String>)> {
        let status = self
            .child
            .wait()
            .map_err(|e| failed(format!("lost: {e}")))?;
        let words = self.words.take().and_then(|words| words.join().ok());
        Ok((status, words.filter(|words| !words.is_empty())))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.words.is_some() {
            // it may be gone already
            let _ = self.child.kill().and_then(|()| self.child.wait());
        }
    }
}

/// What it answers; it must do so soon, as nothing is on the screen yet.
pub(super) fn asked(program: &Path, options: &[OsString]) -> Result<Output> {
    let mut command = Command::new(program);
    command
        .arg("-hide_banner")
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|e| cannot_be_started(program, &e))?;
    let [stdout, stderr] = [
        child.stdout.take().map(gathered),
        child.stderr.take().map(gathered),
    ];
    let end = Instant::now() + ANSWERS;
    let left = || end.saturating_duration_since(Instant::now());
    let read = |from: Option<Receiver<Vec<u8>>>| match from {
        Some(from) => from.recv_timeout(left()).ok(),
        None => Some(Vec::new()),
    };
    let answer = read(stdout).zip(read(stderr));
    let mut status = child.try_wait();
    while matches!(status, Ok(None)) && answer.is_some() && !left().is_zero() {
        std::thread::sleep(Duration::from_millis(5));
        status = child.try_wait();
    }
    match (answer, status) {
        (Some((stdout, stderr)), Ok(Some(status))) => Ok(Output {
            status,
            stdout,
            stderr,
        }),
        (_, Err(e)) => Err(failed(format!("lost: {e}"))),
        _ => {
            // it may be gone already
            let _ = child.kill().and_then(|()| child.wait());
            Err(failed(format!(
                "{} gave no answer within {} s: install ffmpeg, or name another in {VARIABLE}",
                program.display(),
                ANSWERS.as_secs()
            )))
        }
    }
}

/// All that comes from a pipe, read by a thread of its own, for which nobody has to wait.
fn gathered(mut from: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // what was read up to an error still counts
        let _ = from.read_to_end(&mut bytes);
        // whoever asked may have given up
        let _ = sender.send(bytes);
    });
    receiver
}

fn cannot_be_started(program: &Path, why: &std::io::Error) -> Error {
    failed(format!(
        "{} cannot be started ({why}): install ffmpeg, or name one in {VARIABLE}",
        program.display()
    ))
}

/// Whether it is there and can be started. What it can read is seen when it does.
pub(super) fn can_read() -> Result<()> {
    let program = find()?;
    let told = asked(&program, &["-version".into()])?;
    if told.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&told.stderr)
        .trim()
        .replace('\n', "; ");
    Err(failed(format!(
        "{} does not work ({}; {words}): install ffmpeg, or name another in {VARIABLE}",
        program.display(),
        told.status
    )))
}

/// A name that is no option and no protocol of its.
pub(super) fn as_file(path: &Path) -> OsString {
    let mut name = OsString::from("file:");
    name.push(path);
    name
}
