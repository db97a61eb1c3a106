//! The process that supervises another run, and what it can be told from here.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::model::Command;

/// Two signals of a kind that come at once are one.
const BETWEEN_TWO: Duration = Duration::from_millis(300);

/// Why a command does not reach the run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OwnerError {
    /// There is no signal for it.
    #[error("no signal stands for this key, and the supervisor cannot be reached otherwise")]
    NoSignal,
    /// The system refuses.
    #[error("the supervisor did not get it: {0}")]
    Refused(rustix::io::Errno),
}

/// A supervisor that was alive and held its run's lock when it was found.
#[derive(Debug)]
pub struct Owner {
    pid: u32,
    process: OwnedFd,
}

impl Owner {
    /// Finds the process `pid` if it has the file `lock` open: a number alone may
    /// belong to a later process. `None`: it is gone, or not ours to look at.
    pub fn find(pid: u32, lock: &Path) -> Option<Self> {
        let number = Pid::from_raw(i32::try_from(pid).ok()?)?;
        // from here on the number cannot come to mean another process
        let process = pidfd_open(number, PidfdFlags::empty()).ok()?;
        let lock = fs::metadata(lock).ok()?;
        has_open(pid, &lock).then_some(Self { pid, process })
    }

    /// Its process id.
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// Passes a command on as the signal that means it (see `run --help`).
    /// [`Command::Hold`] and [`Command::Release`] are one signal, which changes
    /// from the one to the other. What was done, in words.
    pub fn tell(&self, command: &Command) -> Result<&'static str, OwnerError> {
        let (signal, said) = match command {
            Command::Stop => (Signal::INT, "asked the run to stop (SIGINT)"),
            Command::Hold => (Signal::USR1, "asked to hold it (SIGUSR1)"),
            Command::Release => (Signal::USR1, "asked to release it (SIGUSR1)"),
            Command::Evidence => (Signal::USR2, "asked for evidence (SIGUSR2)"),
            Command::Kill => {
                self.send(Signal::INT)?;
                std::thread::sleep(BETWEEN_TWO);
                (Signal::INT, "asked to kill the run (SIGINT twice)")
            }
            _ => {
                return Err(OwnerError::NoSignal);
            }
        };
        self.send(signal)?;
        Ok(said)
    }

    fn send(&self, signal: Signal) -> Result<(), OwnerError> {
        pidfd_send_signal(&self.process, signal).map_err(OwnerError::Refused)
    }
}

/// Whether the process has this file open, as far as its descriptors are ours to see.
pub(super) fn has_open(pid: u32, file: &fs::Metadata) -> bool {
    fs::read_dir(format!("/proc/{pid}/fd")).is_ok_and(|descriptors| {
        descriptors
            .flatten()
            .filter_map(|fd| fs::metadata(fd.path()).ok())
            .any(|open| (open.dev(), open.ino()) == (file.dev(), file.ino()))
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command as Process, Stdio};

    use super::*;

    #[test]
    fn only_the_process_that_has_the_lock_open_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.lock");
        let held = File::create(&path).unwrap();
        let other = dir.path().join("other.lock");
        File::create(&other).unwrap();
        let mut child = Process::new("sleep")
            .arg("60")
            .stdin(Stdio::from(held))
            .spawn()
            .unwrap();
        let pid = child.id();
        assert!(Owner::find(pid, &other).is_none());
        assert!(Owner::find(0, &path).is_none());
        let owner = Owner::find(pid, &path).unwrap();
        assert_eq!(owner.pid(), pid);
        assert_eq!(owner.tell(&Command::Wait), Err(OwnerError::NoSignal));
        owner.tell(&Command::Evidence).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(Signal::USR2.as_raw()));
        assert!(owner.tell(&Command::Stop).is_err());
        assert!(Owner::find(pid, &path).is_none());
    }
}
