//! Where the output of a process that is not ours can be read.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::fstat;

use crate::model::Stream;
use crate::workload::external::ConsoleFile;

use super::WatchError;

/// The console as far as it can be read.
#[derive(Debug, Default)]
pub(super) struct Console {
    pub(super) files: Vec<ConsoleFile>,
    /// What is read.
    pub(super) read: Vec<String>,
    /// What cannot be read, and why.
    pub(super) hidden: Vec<String>,
    /// What is not read because our own words go there.
    own: Vec<String>,
}

/// Device and number of a file.
type Identity = (u64, u64);

/// The regular files that our own output goes into: read as the program's, each word of
/// ours would be followed by words about it, without end.
fn own_files() -> Vec<Identity> {
    [fstat(io::stdout().as_fd()), fstat(io::stderr().as_fd())]
        .into_iter()
        .flatten()
        .map(|s| (s.st_dev, s.st_ino))
        .collect()
}

impl Console {
    /// Of process `pid`, or the file that the user names.
    pub(super) fn find(pid: u32, log: Option<&Path>) -> Result<Self, WatchError> {
        Self::beside(pid, log, &own_files())
    }

    /// The same, where `own` are the files that our own output goes into.
    fn beside(pid: u32, log: Option<&Path>, own: &[Identity]) -> Result<Self, WatchError> {
        if let Some(path) = log {
            return Self::log(path, own);
        }
        let mut console = Self::default();
        let mut known: Vec<Identity> = Vec::new();
        for (stream, number, name) in [
            (Stream::Stdout, 1, "standard output"),
            (Stream::Stderr, 2, "standard error"),
        ] {
            let link = PathBuf::from(format!("/proc/{pid}/fd/{number}"));
            match descriptor(&link) {
                Ok((file, place)) => {
                    let meta = file.metadata().ok();
                    let identity = meta.map(|m| (m.dev(), m.ino()));
                    // both streams in one file are read once
                    if identity.is_some_and(|id| known.contains(&id)) {
                        continue;
                    }
                    known.extend(identity);
                    if identity.is_some_and(|id| own.contains(&id)) {
                        console.skip(name, &place);
                        continue;
                    }
                    console
                        .read
                        .push(format!("{name} is read from {place}, from now on"));
                    console.files.push(ConsoleFile {
                        stream,
                        file,
                        name: None,
                    });
                }
                Err(why) => console.hidden.push(format!("{name} {why}")),
            }
        }
        Ok(console)
    }

    fn skip(&mut self, name: &str, place: &str) {
        self.own.push(format!(
            "{name} goes to {place}, and so does the output of this program"
        ));
    }

    fn log(path: &Path, own: &[Identity]) -> Result<Self, WatchError> {
        let failed = |why: io::Error| WatchError::Log {
            path: path.to_owned(),
            why,
        };
        let path = path.canonicalize().map_err(failed)?;
        if !fs::metadata(&path).map_err(failed)?.is_file() {
            return Err(failed(io::Error::other(
                "it is no regular file, and only such a one can be read beside the program",
            )));
        }
        let file = File::open(&path).map_err(failed)?;
        let meta = file.metadata().map_err(failed)?;
        if own.contains(&(meta.dev(), meta.ino())) {
            let mut console = Self::default();
            console.skip("the log", &path.display().to_string());
            return Ok(console);
        }
        Ok(Self {
            read: vec![format!(
                "the console is read from {}, from now on",
                path.display()
            )],
            files: vec![ConsoleFile {
                stream: Stream::Stdout,
                file,
                name: Some(path),
            }],
            ..Self::default()
        })
    }

    /// What the user must know where nothing can be read; `job`: a job is in flight by
    /// the user's word.
    pub(super) fn warning(&self, job: bool) -> Option<String> {
        if !self.files.is_empty() {
            let own = self.own.join("; ");
            return (!own.is_empty()).then(|| format!("not all of the console is read: {own}"));
        }
        let why = self.own.iter().chain(&self.hidden).cloned();
        let why = why.collect::<Vec<_>>().join("; ");
        let cure = if self.own.is_empty() {
            "--log FILE reads a log"
        } else {
            "send the output of this program elsewhere (> watch.jsonl)"
        };
        let job = if job {
            "a job is in flight by your word"
        } else {
            "whether a job is in flight is not known, so silence is not judged as a hang (--job says that one is)"
        };
        Some(format!(
            "the console cannot be read: {why}. Verdicts rest on telemetry alone; {job}. {cure}"
        ))
    }
}

/// The file behind a descriptor and its place, or why it cannot be read.
fn descriptor(link: &Path) -> Result<(File, String), String> {
    let unreadable = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => "is closed".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "may not be looked at (another user's process)".to_owned()
        }
        _ => format!("cannot be looked at ({e})"),
    };
    let place = fs::read_link(link).map_err(unreadable)?;
    let place = place.display().to_string();
    let kind = fs::metadata(link).map_err(unreadable)?.file_type();
    if kind.is_fifo() {
        return Err("goes into a pipe, which cannot be read from outside".to_owned());
    }
    if kind.is_socket() {
        return Err("goes into a socket, which cannot be read from outside".to_owned());
    }
    if place == "/dev/null" {
        return Err("is thrown away (/dev/null)".to_owned());
    }
    if kind.is_char_device() {
        return Err(format!(
            "goes to a terminal ({place}), which cannot be read from outside"
        ));
    }
    if !kind.is_file() {
        return Err(format!("goes to {place}, which is no regular file"));
    }
    // by the link: the file may have been removed, or lie in another mount namespace
    let file =
        File::open(link).map_err(|e| format!("goes to {place}, which cannot be read: {e}"))?;
    Ok((file, place))
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    struct Ended(Child);

    impl Drop for Ended {
        fn drop(&mut self) {
            // it may have ended
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn sleeper(stdout: Stdio, stderr: Stdio) -> Ended {
        let mut command = Command::new("sleep");
        Ended(
            command
                .arg("60")
                .stdout(stdout)
                .stderr(stderr)
                .spawn()
                .unwrap(),
        )
    }

    /// The descriptors are in place when `exec` has been.
    fn find(child: &Ended) -> Console {
        let name = format!("/proc/{}/comm", child.0.id());
        while fs::read_to_string(&name).unwrap().trim() != "sleep" {
            std::thread::yield_now();
        }
        Console::find(child.0.id(), None).unwrap()
    }

    #[test]
    fn files_are_read_and_one_file_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let out = File::create(&path).unwrap();
        let both = sleeper(out.try_clone().unwrap().into(), out.into());
        let console = find(&both);
        assert_eq!(console.files.len(), 1);
        assert!(console.read[0].contains("log"), "{:?}", console.read);
        assert_eq!(console.warning(false), None);
        let apart = sleeper(
            File::create(dir.path().join("out")).unwrap().into(),
            File::create(dir.path().join("err")).unwrap().into(),
        );
        assert_eq!(find(&apart).files.len(), 2);
    }

    #[test]
    fn a_pipe_is_told_and_what_that_means() {
        let child = sleeper(Stdio::piped(), Stdio::null());
        let console = find(&child);
        assert!(console.files.is_empty());
        let warning = console.warning(false).unwrap();
        for words in [
            "a pipe",
            "/dev/null",
            "telemetry alone",
            "not judged",
            "--log",
        ] {
            assert!(warning.contains(words), "{warning}");
        }
        assert!(console.warning(true).unwrap().contains("by your word"));
    }

    #[test]
    fn our_own_output_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let out = File::create(&path).unwrap();
        let meta = out.metadata().unwrap();
        let own = [(meta.dev(), meta.ino())];
        let both = sleeper(
            out.try_clone().unwrap().into(),
            out.try_clone().unwrap().into(),
        );
        find(&both);
        let console = Console::beside(both.0.id(), None, &own).unwrap();
        assert!(console.files.is_empty());
        let warning = console.warning(false).unwrap();
        assert!(warning.contains("the output of this program"), "{warning}");
        assert_eq!(warning.matches("goes to").count(), 1, "{warning}");
        // by another name, given by the user
        let link = dir.path().join("link");
        fs::hard_link(&path, &link).unwrap();
        let console = Console::beside(1, Some(&link), &own).unwrap();
        assert!(console.files.is_empty() && console.warning(false).is_some());
        // the other stream is read all the same
        let apart = sleeper(
            out.into(),
            File::create(dir.path().join("err")).unwrap().into(),
        );
        find(&apart);
        let console = Console::beside(apart.0.id(), None, &own).unwrap();
        assert_eq!(console.files.len(), 1);
        assert_eq!(console.files[0].stream, Stream::Stderr);
        assert!(console.warning(false).unwrap().contains("not all"));
    }

    #[test]
    fn a_log_that_is_none_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for path in [dir.path().join("absent"), dir.path().to_owned()] {
            let e = Console::find(1, Some(&path)).unwrap_err();
            assert_eq!(e.exit_code(), 66, "{e}");
        }
        let path = dir.path().join("log");
        File::create(&path).unwrap();
        let console = Console::find(1, Some(&path)).unwrap();
        assert!(console.files[0].name.is_some());
    }
}
