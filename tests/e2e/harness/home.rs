//! A private home for one run, and the mark by which its processes are known.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

/// Variable that every process of a run inherits.
pub(crate) const MARK: &str = "FPT_E2E_MARK";

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Folders of one test that no other test sees.
pub(crate) struct Home {
    dir: TempDir,
    mark: String,
}

impl Home {
    /// A fresh one.
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new()
            .prefix("fpt-e2e-")
            .tempdir()
            .unwrap();
        for sub in [
            "home", "state", "config", "runtime", "data", "cache", "out", "tmp",
        ] {
            std::fs::create_dir(dir.path().join(sub)).unwrap();
        }
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(dir.path().join("runtime"), private).unwrap();
        let mark = format!(
            "{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        Self { dir, mark }
    }

    /// A path within it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Where the workload writes its results.
    pub(crate) fn out(&self) -> PathBuf {
        self.path("out")
    }

    /// `NAME=VALUE` of this test's processes.
    pub(crate) fn marked(&self) -> String {
        format!("{MARK}={}", self.mark)
    }

    /// Folder of the only run that was recorded here.
    pub(crate) fn record(&self) -> PathBuf {
        let runs = self.path("state/framepack-tui/runs");
        let found: Vec<_> = std::fs::read_dir(&runs)
            .unwrap_or_else(|e| panic!("no record: {}: {e}", runs.display()))
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir())
            .collect();
        assert_eq!(found.len(), 1, "runs recorded: {found:?}");
        found[0].clone()
    }

    /// The manifest of the one run that was recorded.
    pub(crate) fn manifest(&self) -> serde_json::Value {
        let text = std::fs::read_to_string(self.record().join("manifest.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// The process that supervises that run.
    pub(crate) fn supervisor(&self) -> u32 {
        let pid = self.manifest()["pid"].as_u64().unwrap();
        pid.try_into().unwrap()
    }

    /// Makes a command see this home instead of the user's, and none of the
    /// user's own settings of MIOpen.
    pub(crate) fn dress(&self, command: &mut Command) {
        for name in Self::users_own() {
            command.env_remove(name);
        }
        for (name, sub) in self.folders() {
            command.env(name, sub);
        }
        command.env(MARK, &self.mark);
        command.env("HF_HUB_OFFLINE", "1");
        command.env("TERM", "xterm-256color");
    }

    /// Exported variables of the user that would change what a run does.
    pub(crate) fn users_own() -> impl Iterator<Item = OsString> {
        let names = std::env::vars_os().map(|(name, _)| name);
        names.filter(|name| {
            let name = name.to_string_lossy();
            name.starts_with("MIOPEN_") || name.starts_with("FPT_")
        })
    }

    /// Environment variables that name folders, with the folders.
    pub(crate) fn folders(&self) -> [(&'static str, PathBuf); 7] {
        [
            ("HOME", self.path("home")),
            ("XDG_STATE_HOME", self.path("state")),
            ("XDG_CONFIG_HOME", self.path("config")),
            ("XDG_RUNTIME_DIR", self.path("runtime")),
            ("XDG_DATA_HOME", self.path("data")),
            ("XDG_CACHE_HOME", self.path("cache")),
            ("TMPDIR", self.path("tmp")),
        ]
    }

    /// Where the folders lie.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Home {
    /// A failed test must not leave a hung generation behind.
    fn drop(&mut self) {
        super::leftovers::end(&self.marked());
    }
}
