//! Folders of one run that nobody else sees.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::Outcome;

/// A home for one program.
pub(crate) struct Home(TempDir);

/// Variables that name folders, and their folders.
const FOLDERS: [(&str, &str); 6] = [
    ("HOME", "home"),
    ("XDG_STATE_HOME", "state"),
    ("XDG_CONFIG_HOME", "config"),
    ("XDG_RUNTIME_DIR", "runtime"),
    ("XDG_DATA_HOME", "data"),
    ("XDG_CACHE_HOME", "cache"),
];

impl Home {
    /// A fresh one.
    pub(crate) fn new() -> Outcome<Self> {
        let home = Self(tempfile::Builder::new().prefix("fpt-bench-").tempdir()?);
        for (_, folder) in FOLDERS {
            fs::create_dir(home.path(folder))?;
        }
        let private = fs::Permissions::from_mode(0o700);
        fs::set_permissions(home.path("runtime"), private)?;
        Ok(home)
    }

    /// A path within it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Environment of a program in a terminal.
    pub(crate) fn environment(&self) -> Vec<(&'static str, OsString)> {
        let mut all: Vec<_> = FOLDERS
            .iter()
            .map(|(name, folder)| (*name, self.path(folder).into()))
            .collect();
        all.push(("TERM", "xterm-256color".into()));
        all.push(("LANG", "C.UTF-8".into()));
        all.push(("PATH", std::env::var_os("PATH").unwrap_or_default()));
        all
    }

    /// The stream of the only run that was recorded here.
    pub(crate) fn events(&self) -> Outcome<PathBuf> {
        let runs = self.path("state/framepack-tui/runs");
        for entry in fs::read_dir(runs)? {
            let file = entry?.path().join("events.jsonl.gz");
            if file.is_file() {
                return Ok(file);
            }
        }
        Err("no run was recorded".into())
    }
}
