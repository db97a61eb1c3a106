//! One run a card: an advisory lock that dies with the process.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::process::getuid;
use serde::{Deserialize, Serialize};

use crate::model::GpuId;
use crate::model::event::Survivor;
use crate::profile::catalog::private_folder;
use crate::profile::folders::Base;
use crate::workload::leftovers::supervisor_lives;

use super::owner::has_open;

/// Why a card is not ours.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another run has it.
    #[error("take {gpu}: {}; stop it first, or choose another card with --gpu", holder(*pid, run.as_deref()))]
    Held {
        /// The card.
        gpu: GpuId,
        /// Process of the other run, where its note is readable.
        pid: Option<u32>,
        /// Its run id.
        run: Option<String>,
    },
    /// The supervisor of an earlier run was killed, and its guardian ends what is left.
    #[error("take {gpu}: what run {run} has left is still being ended; try again in some seconds")]
    Ending {
        /// The card.
        gpu: GpuId,
        /// The earlier run.
        run: String,
    },
    /// Processes of an earlier run could not be killed and still hold the card.
    #[error(
        "take {gpu}: processes of run {run} survive SIGKILL and still hold it: {pids}; \
         a reboot ends them"
    )]
    Survivors {
        /// The card.
        gpu: GpuId,
        /// The earlier run.
        run: String,
        /// `1234 python (D, in dma_fence_wait), …`.
        pids: String,
    },
    /// The file cannot be made or locked.
    #[error("lock {}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A folder in a shared place that another user made.
    #[error("use {}: {why}; set XDG_RUNTIME_DIR to a folder of your own", path.display())]
    NotOurs {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: io::Error,
    },
}

fn holder(pid: Option<u32>, run: Option<&str>) -> String {
    match (pid, run) {
        (Some(pid), Some(run)) => format!("run {run} (pid {pid}) uses it"),
        _ => "another run uses it".to_owned(),
    }
}

/// A process that outlived its run. The start time tells it from a later process
/// with the same number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Left {
    pid: u32,
    start: u64,
    text: String,
}

/// A run that had the card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Holder {
    pid: u32,
    /// Start of the process in clock ticks since boot; absent in notes of versions before 0.2.
    #[serde(default)]
    start: Option<u64>,
    run: String,
}

/// What the lock file says about its holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    #[serde(flatten)]
    holder: Holder,
    #[serde(default)]
    survivors: Vec<Left>,
    /// Runs that had the card before, the latest first.
    #[serde(default)]
    earlier: Vec<Holder>,
}

/// Earlier runs that a note names: processes of these may still be on the card.
const EARLIER: usize = 16;

/// The lock of a card. The supervisor and its guardians have the same open file, and the kernel
/// lets go of the lock when the last of them has ended, however they ended; so it is free no
/// earlier than the card. [`GpuLock::release`] lets go of it at once. The file stays behind, which
/// means nothing.
#[derive(Debug)]
pub struct GpuLock {
    file: File,
    path: PathBuf,
    run: String,
    earlier: Vec<Holder>,
}

impl AsFd for GpuLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl GpuLock {
    /// Takes the card for this run, in the user's runtime folder.
    pub fn acquire(gpu: &GpuId, run: &str) -> Result<Self, LockError> {
        Self::acquire_in(&lock_dir()?, gpu, run)
    }

    /// The same in a given folder.
    pub fn acquire_in(dir: &Path, gpu: &GpuId, run: &str) -> Result<Self, LockError> {
        let path = lock_file(dir, gpu);
        let failed = |source: io::Error| LockError::Io {
            path: path.clone(),
            source,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        let note = match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => read_note(&mut file),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let holder = read_note(&mut file).map(|note| note.holder);
                return Err(match holder {
                    Some(h) if !supervisor_lives(h.pid, h.start) => LockError::Ending {
                        gpu: gpu.clone(),
                        run: h.run,
                    },
                    holder => LockError::Held {
                        gpu: gpu.clone(),
                        pid: holder.as_ref().map(|h| h.pid),
                        run: holder.map(|h| h.run),
                    },
                });
            }
            Err(e) => return Err(failed(e.into())),
        };
        let mut earlier = Vec::new();
        if let Some(note) = note {
            if let Some(pids) = still_there(&note.survivors) {
                return Err(LockError::Survivors {
                    gpu: gpu.clone(),
                    run: note.holder.run,
                    pids,
                });
            }
            earlier.push(note.holder);
            earlier.extend(note.earlier);
            earlier.truncate(EARLIER);
        }
        let mut lock = Self {
            file,
            path: path.clone(),
            run: run.to_owned(),
            earlier,
        };
        lock.write_note(Vec::new()).map_err(failed)?;
        Ok(lock)
    }

    /// Lets go of the lock, also for a guardian that is about to end: the card is free.
    pub fn release(self) -> Result<(), LockError> {
        flock(&self.file, FlockOperation::Unlock).map_err(|errno| LockError::Io {
            path: self.path,
            source: errno.into(),
        })
    }

    /// The earlier run that the supervisor `pid`, begun at `start` (clock ticks since boot), had,
    /// as far as the lock's note remembers it.
    pub fn run_of(&self, (pid, start): (u32, u64)) -> Option<&str> {
        let is_it = |h: &&Holder| h.pid == pid && h.start == Some(start);
        self.earlier.iter().find(is_it).map(|h| h.run.as_str())
    }

    /// Leaves word of processes that survive SIGKILL, so that the card is refused
    /// to later runs for as long as they are there.
    pub fn leave_survivors(&mut self, survivors: &[Survivor]) -> Result<(), LockError> {
        let left = survivors.iter().filter_map(|s| {
            Some(Left {
                pid: s.pid,
                start: start_time(s.pid)?,
                text: match &s.wchan {
                    Some(wchan) => format!("{} {} ({}, in {wchan})", s.pid, s.name, s.state),
                    None => format!("{} {} ({})", s.pid, s.name, s.state),
                },
            })
        });
        self.write_note(left.collect())
            .map_err(|source| LockError::Io {
                path: self.path.clone(),
                source,
            })
    }

    fn write_note(&mut self, survivors: Vec<Left>) -> io::Result<()> {
        let pid = std::process::id();
        let note = Note {
            holder: Holder {
                pid,
                start: start_time(pid),
                run: self.run.clone(),
            },
            survivors,
            earlier: self.earlier.clone(),
        };
        let mut text = serde_json::to_vec(&note)?;
        text.push(b'\n');
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&text)
    }
}

/// The guardian that has the lock of `gpu` open. Looks at the descriptors of every process of ours.
pub fn guardian_of(gpu: &GpuId) -> Option<u32> {
    let lock = fs::metadata(lock_file(&lock_dir().ok()?, gpu)).ok()?;
    let is_guardian = |pid: i32| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.split(|b| *b == 0).nth(1) == Some(b"guardian")
    };
    procfs::process::all_processes()
        .ok()?
        .filter_map(|p| Some(p.ok()?.pid))
        .filter(|pid| is_guardian(*pid))
        .filter_map(|pid| u32::try_from(pid).ok())
        .find(|pid| has_open(*pid, &lock))
}

/// A PCI address has no slash; whatever else comes in must not leave the folder.
fn lock_file(dir: &Path, gpu: &GpuId) -> PathBuf {
    dir.join(format!("gpu-{}.lock", gpu.0.replace('/', "_")))
}

/// The holder may be writing just now, or the file may be from before a power
/// cut: what cannot be read is unknown.
fn read_note(file: &mut File) -> Option<Note> {
    let mut text = String::new();
    file.take(64 << 10).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// Field 22 of `/proc/P/stat`, in clock ticks since boot.
fn start_time(pid: u32) -> Option<u64> {
    let process = procfs::process::Process::new(i32::try_from(pid).ok()?).ok()?;
    process.stat().ok().map(|s| s.starttime)
}

fn still_there(survivors: &[Left]) -> Option<String> {
    let alive: Vec<_> = survivors
        .iter()
        .filter(|s| start_time(s.pid) == Some(s.start))
        .map(|s| s.text.as_str())
        .collect();
    (!alive.is_empty()).then(|| alive.join(", "))
}

/// `$XDG_RUNTIME_DIR/framepack-tui`. A session without that variable (cron, sudo)
/// must find the same lock, so the place where systemd puts it is looked at too;
/// then the state folder, then a folder of our own in /tmp.
fn lock_dir() -> Result<PathBuf, LockError> {
    let uid = getuid().as_raw();
    let from_env = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let run_user = PathBuf::from(format!("/run/user/{uid}"));
    let runtime = from_env.into_iter().chain([run_user]);
    let mut places: Vec<PathBuf> = runtime
        .filter(|p| p.is_absolute() && owned(p, uid))
        .collect();
    places.extend(Base::State.folder().ok());
    for place in places {
        if let Ok(folder) = private_folder::make(&place, Path::new("framepack-tui")) {
            return Ok(folder);
        }
    }
    shared_dir(&std::env::temp_dir(), uid)
}

fn owned(path: &Path, uid: u32) -> bool {
    fs::symlink_metadata(path).is_ok_and(|m| m.is_dir() && m.uid() == uid)
}

/// A private folder in a place where everyone may write.
fn shared_dir(tmp: &Path, uid: u32) -> Result<PathBuf, LockError> {
    let name = format!("framepack-tui-{uid}");
    private_folder::make(tmp, Path::new(&name)).map_err(|source| {
        let path = tmp.join(name);
        match source.kind() {
            io::ErrorKind::PermissionDenied => LockError::NotOurs { path, why: source },
            _ => LockError::Io { path, source },
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn gpu() -> GpuId {
        GpuId("0000:0c:00.0".into())
    }

    #[test]
    fn a_second_run_is_refused_by_name_until_the_first_is_over() {
        let tmp = tempfile::tempdir().unwrap();
        let first = GpuLock::acquire_in(tmp.path(), &gpu(), "20261127-2231-7f3a").unwrap();
        let error = GpuLock::acquire_in(tmp.path(), &gpu(), "other").unwrap_err();
        let text = error.to_string();
        assert!(text.contains("20261127-2231-7f3a"), "{text}");
        assert!(text.contains(&std::process::id().to_string()), "{text}");
        let another = GpuId("0000:0d:00.0".into());
        GpuLock::acquire_in(tmp.path(), &another, "other").unwrap();
        drop(first);
        GpuLock::acquire_in(tmp.path(), &gpu(), "other").unwrap();
    }

    #[test]
    fn a_lock_of_another_process_dies_with_it() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("gpu-0000:0c:00.0.lock");
        let mut holder = std::process::Command::new("flock")
            .args([path.as_os_str(), "sh".as_ref(), "-c".as_ref()])
            .arg("echo taken; exec cat")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut taken = [0; 5];
        holder
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut taken)
            .unwrap();
        assert!(matches!(
            GpuLock::acquire_in(tmp.path(), &gpu(), "r"),
            Err(LockError::Held { pid: None, .. })
        ));
        holder.kill().unwrap();
        holder.wait().unwrap();
        // flock(1) holds it in a parent of `cat`; both are gone once stdin closed.
        drop(holder);
        let end = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while let Err(e) = GpuLock::acquire_in(tmp.path(), &gpu(), "r") {
            assert!(std::time::Instant::now() < end, "{e}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// Its main thread ends and another one does not, until its input is closed: what a kill
    /// leaves for a moment, longer on a busy machine.
    const HALF_DEAD: &str = "
import ctypes, sys, threading
threading.Thread(target=sys.stdin.read).start()
ctypes.CDLL(None).pthread_exit(None)
";

    fn await_half_dead(pid: u32) {
        let pid = i32::try_from(pid).unwrap();
        let end = std::time::Instant::now() + std::time::Duration::from_mins(1);
        loop {
            let process = procfs::process::Process::new(pid);
            let stat = process.and_then(|p| p.stat()).unwrap();
            if stat.state == 'Z' {
                assert!(stat.num_threads > 1, "{stat:?}");
                return;
            }
            assert!(std::time::Instant::now() < end, "{stat:?}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// The lock is held until its last thread has ended, but nobody supervises any more.
    #[test]
    fn a_supervisor_that_is_being_killed_does_not_refuse_the_card() {
        let tmp = tempfile::tempdir().unwrap();
        let mut lock = GpuLock::acquire_in(tmp.path(), &gpu(), "20261127-2231-7f3a").unwrap();
        let mut dying = std::process::Command::new("python3")
            .args(["-c", HALF_DEAD])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        await_half_dead(dying.id());
        let note = Note {
            holder: Holder {
                pid: dying.id(),
                start: start_time(dying.id()),
                run: "20261127-2231-7f3a".to_owned(),
            },
            survivors: Vec::new(),
            earlier: Vec::new(),
        };
        let refused = || GpuLock::acquire_in(tmp.path(), &gpu(), "next").unwrap_err();
        lock.file.set_len(0).unwrap();
        lock.file.seek(io::SeekFrom::Start(0)).unwrap();
        serde_json::to_writer(&lock.file, &note).unwrap();
        let error = refused();
        assert!(
            matches!(&error, LockError::Ending { run, .. } if run == "20261127-2231-7f3a"),
            "{error}"
        );
        drop(dying.stdin.take());
        dying.wait().unwrap();
        assert!(matches!(refused(), LockError::Ending { .. }));
    }

    #[test]
    fn survivors_block_the_card_while_they_live() {
        let tmp = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let mut lock = GpuLock::acquire_in(tmp.path(), &gpu(), "20261127-2231-7f3a").unwrap();
        lock.leave_survivors(&[Survivor {
            pid: child.id(),
            name: "python".into(),
            state: 'D',
            wchan: Some("dma_fence_wait".into()),
        }])
        .unwrap();
        drop(lock);
        let text = acquire_after_forks(tmp.path()).unwrap_err().to_string();
        assert!(text.contains("python (D, in dma_fence_wait)"), "{text}");
        child.kill().unwrap();
        child.wait().unwrap();
        acquire_after_forks(tmp.path()).unwrap();
    }

    /// Between fork and exec a child of some other test holds a copy of the lock; it is
    /// gone a moment later.
    fn acquire_after_forks(dir: &Path) -> Result<GpuLock, LockError> {
        for _ in 0..200 {
            match GpuLock::acquire_in(dir, &gpu(), "next") {
                Err(LockError::Held { .. }) => {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                other => return other,
            }
        }
        GpuLock::acquire_in(dir, &gpu(), "next")
    }

    #[test]
    fn a_shared_place_must_be_ours_and_private() {
        let tmp = tempfile::tempdir().unwrap();
        let uid = getuid().as_raw();
        let dir = shared_dir(tmp.path(), uid).unwrap();
        assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
        let refused = || matches!(shared_dir(tmp.path(), uid), Err(LockError::NotOurs { .. }));
        assert!(refused());
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(!refused());
        if getuid().is_root() {
            std::os::unix::fs::chown(&dir, Some(4711), None).unwrap();
            assert!(refused());
        } else {
            eprintln!("in part skipped: only root can make folders of another user");
        }
    }
}
