//! The process that is to be watched: whether it may be, and what it tells of itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use procfs::ProcError;
use procfs::process::{Process, Stat};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::cli::find;
use crate::record::{RunEntry, RunStatus};

use super::WatchError;

/// Flag of a thread of the kernel in `/proc/PID/stat` (`PF_KTHREAD` of the kernel's
/// `include/linux/sched.h`).
const KERNEL_THREAD: u32 = 0x0020_0000;
/// Longest chain of parents that is followed.
const DEEPEST: usize = 256;
/// Words of a command line that are kept.
const WORDS: usize = 256;

/// A process that may be watched.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) pid: u32,
    /// In clock ticks since boot.
    pub(super) start: u64,
    pub(super) group: u32,
    /// Stays with this very process.
    pub(super) handle: OwnedFd,
    /// Name (`comm`).
    pub(super) name: String,
    /// Command and arguments; empty where they cannot be read.
    pub(super) argv: Vec<String>,
    /// Absent where it cannot be read.
    pub(super) cwd: Option<PathBuf>,
    /// The environment that it was started with, or why it cannot be read.
    pub(super) environ: Result<BTreeMap<String, String>, io::Error>,
}

impl Target {
    /// Looks at process `pid`; `start`: only if it is still the one that began then.
    pub(super) fn open(pid: u32, start: Option<u64>) -> Result<Self, WatchError> {
        let seen = judge(pid)?;
        let is_another = |s: &Stat| start.is_some_and(|wanted| wanted != s.starttime);
        if is_another(&seen) {
            return Err(WatchError::Another { pid });
        }
        let no_such = || WatchError::NoSuchProcess { pid };
        let number = Pid::from_raw(seen.pid).ok_or_else(no_such)?;
        let handle = pidfd_open(number, PidfdFlags::empty()).map_err(|e| match e {
            rustix::io::Errno::SRCH => no_such(),
            e => WatchError::System {
                what: "get a handle of the process",
                why: e.into(),
            },
        })?;
        // from here on the number cannot come to mean another process
        let again = stat_of(pid)?;
        if again.starttime != seen.starttime {
            return Err(WatchError::Another { pid });
        }
        let dir = PathBuf::from(format!("/proc/{pid}"));
        Ok(Self {
            pid,
            start: seen.starttime,
            group: u32::try_from(seen.pgrp).unwrap_or_default(),
            handle,
            name: seen.comm,
            argv: words(&read_some(&dir.join("cmdline")).unwrap_or_default()),
            cwd: fs::read_link(dir.join("cwd")).ok(),
            environ: read_some(&dir.join("environ")).map(|bytes| variables(&bytes)),
        })
    }

    /// The command as a person would write it; at least its name.
    pub(super) fn command(&self) -> Vec<String> {
        if self.argv.is_empty() {
            vec![self.name.clone()]
        } else {
            self.argv.clone()
        }
    }

    /// What may not be read of it, in a sentence.
    pub(super) fn hidden(&self) -> Option<String> {
        let why = self.environ.as_ref().err()?;
        let owner = fs::metadata(format!("/proc/{}", self.pid)).map(|m| m.uid());
        let ours = rustix::process::geteuid().as_raw();
        let whose = match owner {
            Ok(uid) if uid != ours => format!(" of another user ({uid})"),
            _ => String::new(),
        };
        Some(format!(
            "process {}{whose} may not be looked into ({why}): its environment, open files, bytes read and written and stacks are not seen; start the watching as that user, or as root",
            self.pid
        ))
    }
}

/// As much of a file of a process as anybody looks at: a process can make its own as long as
/// its memory.
fn read_some(path: &Path) -> io::Result<Vec<u8>> {
    const MOST: u64 = 8 << 20;
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MOST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn stat_of(pid: u32) -> Result<Stat, WatchError> {
    let no_such = || WatchError::NoSuchProcess { pid };
    let number = i32::try_from(pid).map_err(|_too_large| no_such())?;
    let read = Process::new(number).and_then(|p| p.stat());
    read.map_err(|e| match e {
        ProcError::NotFound(_) if !Path::new("/proc/self").exists() => WatchError::NoProc,
        ProcError::NotFound(_) => no_such(),
        e => WatchError::Unreadable {
            pid,
            why: e.to_string(),
        },
    })
}

/// Whether it may be watched.
fn judge(pid: u32) -> Result<Stat, WatchError> {
    if pid == 1 {
        return Err(WatchError::First);
    }
    if pid == std::process::id() {
        return Err(WatchError::Own { pid });
    }
    let stat = stat_of(pid)?;
    if stat.flags & KERNEL_THREAD != 0 {
        let name = stat.comm;
        return Err(WatchError::Kernel { pid, name });
    }
    if matches!(stat.state, 'Z' | 'X' | 'x') && stat.num_threads <= 1 {
        return Err(WatchError::HasEnded { pid });
    }
    let of = Process::new(stat.pid).and_then(|p| p.status()).ok();
    if let Some(of) = of.and_then(|s| u32::try_from(s.tgid).ok())
        && of != pid
    {
        return Err(WatchError::Thread { pid, of });
    }
    if above(std::process::id()).contains(&pid) {
        let name = stat.comm;
        return Err(WatchError::Above { pid, name });
    }
    supervised(pid)?;
    Ok(stat)
}

/// The chain of parents of a process, itself included.
fn above(pid: u32) -> BTreeSet<u32> {
    let mut chain = BTreeSet::new();
    let mut next = Some(pid);
    while let Some(pid) = next.filter(|p| *p > 0 && chain.len() < DEEPEST) {
        if !chain.insert(pid) {
            break;
        }
        next = stat_of(pid).ok().and_then(|s| u32::try_from(s.ppid).ok());
    }
    chain
}

/// Refuses what a run of ours supervises already.
fn supervised(pid: u32) -> Result<(), WatchError> {
    // without a list of runs nothing is known against it
    let runs = find::all().unwrap_or_default();
    let chain = above(pid);
    match supervisor(&runs, &chain) {
        Some(run) => Err(WatchError::Supervised {
            pid,
            run: run.id.clone(),
        }),
        None => Ok(()),
    }
}

/// The run that goes on under one of these processes.
fn supervisor<'r>(runs: &'r [RunEntry], chain: &BTreeSet<u32>) -> Option<&'r RunEntry> {
    runs.iter().find(|run| {
        let by = run.manifest.as_ref().and_then(|m| m.pid);
        run.status == RunStatus::Running && by.is_some_and(|by| chain.contains(&by))
    })
}

/// Words of a command line.
fn words(bytes: &[u8]) -> Vec<String> {
    let text = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    if text.is_empty() {
        return Vec::new();
    }
    let word = |w: &[u8]| String::from_utf8_lossy(w).into_owned();
    text.split(|b| *b == 0).take(WORDS).map(word).collect()
}

/// Variables of an environment; those that are no UTF-8 concern nobody here.
fn variables(bytes: &[u8]) -> BTreeMap<String, String> {
    let entries = bytes.split(|b| *b == 0);
    entries
        .filter_map(|e| std::str::from_utf8(e).ok()?.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use proptest::prelude::*;

    use super::*;

    struct Ended(Child);

    impl Drop for Ended {
        fn drop(&mut self) {
            // it may have ended
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn sleeper() -> Ended {
        let child = Command::new("sleep")
            .arg("60")
            .env("MIOPEN_FIND_MODE", "2")
            .stdout(Stdio::null())
            .spawn();
        Ended(child.unwrap())
    }

    #[test]
    fn a_process_tells_its_command_folder_and_environment() {
        let child = sleeper();
        // between fork and exec it is still us
        let target = loop {
            let target = Target::open(child.0.id(), None).unwrap();
            if target.name == "sleep" {
                break target;
            }
        };
        assert_eq!(target.argv, ["sleep", "60"]);
        assert_eq!(target.cwd, std::env::current_dir().ok());
        let environ = target.environ.as_ref().unwrap();
        assert_eq!(environ["MIOPEN_FIND_MODE"], "2");
        assert_eq!(target.hidden(), None);
    }

    #[test]
    fn a_number_that_is_another_process_now_is_refused() {
        let child = sleeper();
        let pid = child.0.id();
        let start = Target::open(pid, None).unwrap().start;
        assert!(Target::open(pid, Some(start)).is_ok());
        let e = Target::open(pid, Some(start + 1)).unwrap_err();
        assert!(matches!(e, WatchError::Another { .. }), "{e}");
        assert_eq!(e.exit_code(), 66);
    }

    #[test]
    fn what_must_not_be_watched_is_refused_with_a_word() {
        let own = std::process::id();
        let parent = rustix::process::getppid().unwrap().as_raw_nonzero().get();
        for (pid, word, code) in [
            (1, "first process", 64),
            (own, "itself", 64),
            (parent.unsigned_abs(), "", 64),
            (u32::MAX, "there is no process", 66),
            (4_194_305, "there is no process", 66),
        ] {
            let e = Target::open(pid, None).unwrap_err();
            assert!(e.to_string().contains(word), "{e}");
            assert_eq!(e.exit_code(), code, "{e}");
        }
        let mut child = sleeper();
        child.0.kill().unwrap();
        // not reaped yet
        let ended = loop {
            match Target::open(child.0.id(), None) {
                Err(e) => break e,
                Ok(_) => std::thread::sleep(std::time::Duration::from_millis(5)),
            }
        };
        assert!(matches!(ended, WatchError::HasEnded { .. }), "{ended}");
    }

    #[test]
    fn a_thread_is_not_its_process() {
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero().get())
                .unwrap();
            // the sender is dropped when the test has looked
            let _ = ended.recv();
        });
        let tid = told.recv().unwrap().unsigned_abs();
        let e = Target::open(tid, None).unwrap_err();
        drop(end);
        thread.join().unwrap();
        assert!(
            matches!(e, WatchError::Thread { of, .. } if of == std::process::id()),
            "{e}"
        );
    }

    #[test]
    fn a_run_of_ours_is_named() {
        let run = |id: &str, pid, status| RunEntry {
            id: id.to_owned(),
            path: PathBuf::new(),
            manifest: serde_json::from_value(serde_json::json!({
                "format": "1.1", "program": "0", "run": "20261127-2231-7f3a",
                "wall_clock": "", "argv": [], "pid": pid,
            }))
            .ok(),
            status,
        };
        let runs = [
            run(
                "over",
                7,
                RunStatus::Finished {
                    outcome: crate::model::Outcome::Left,
                    exit_code: 0,
                },
            ),
            run("lives", 7, RunStatus::Running),
        ];
        let chain = BTreeSet::from([1, 7, 9]);
        assert_eq!(
            supervisor(&runs, &chain).map(|r| r.id.as_str()),
            Some("lives")
        );
        assert_eq!(supervisor(&runs, &BTreeSet::from([1, 9])), None);
    }

    proptest! {
        #[test]
        fn no_bytes_of_procfs_break_it(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(words(&bytes).len() <= WORDS);
            variables(&bytes);
        }
    }
}
