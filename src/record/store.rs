//! The folder of runs.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use jiff::Zoned;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::recorder::Recorder;
use crate::profile::catalog::private_folder;
use crate::profile::folders::Base;

/// Version of the folder's format: major.minor. Readers refuse a major that they do not
/// know; this one reads 1 (the stream as plain text) as well.
pub const FORMAT: &str = "2.0";
/// Name of the stream's file.
pub const EVENTS: &str = "events.jsonl.gz";
/// Its name in folders of format 1.
pub const PLAIN_EVENTS: &str = "events.jsonl";
/// Name of the manifest.
pub const MANIFEST: &str = "manifest.json";
/// Name of the file that is locked while the run lives.
pub const LOCK: &str = "run.lock";

/// The stream's file in a run's folder, whatever its format; where there is none, the
/// name that it would have.
pub fn events_file(run: &Path) -> PathBuf {
    let plain = run.join(PLAIN_EVENTS);
    let packed = run.join(EVENTS);
    // a link that leads nowhere is there all the same, and says why it cannot be read
    if plain.symlink_metadata().is_ok() && packed.symlink_metadata().is_err() {
        plain
    } else {
        packed
    }
}

/// Whether a folder of this format is read.
pub(super) fn is_readable(format: &str) -> bool {
    let major = format.split('.').next().and_then(|m| m.parse::<u32>().ok());
    matches!(major, Some(1 | 2))
}

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No home folder to put it under.
    #[error("find the state folder: {0}; set XDG_STATE_HOME to a folder you may write to")]
    NoHome(etcetera::HomeDirError),
    /// A folder or file cannot be made or read.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// `create`, `write`, `lock`, `read`.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

/// Names a run: local date, time and four hexadecimal digits, such as
/// `20261127-2231-7f3a`. Sorts by time, to the millisecond.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

/// A text that is no run id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a run id; run ids look like 20261127-2231-7f3a")]
pub struct ParseRunIdError(String);

impl RunId {
    /// The last four digits are the milliseconds of the minute, so that ids of one minute sort
    /// by time as well; `nth`: those before are taken.
    fn new(now: &Zoned, nth: u32) -> Self {
        let second = u32::try_from(now.second()).unwrap_or_default();
        let milli = u32::try_from(now.millisecond()).unwrap_or_default();
        let digits = second * 1000 + milli + nth;
        Self(format!("{}-{digits:04x}", now.strftime("%Y%m%d-%H%M")))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for RunId {
    type Err = ParseRunIdError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let digits = |t: &str, n: usize| t.len() == n && t.bytes().all(|b| b.is_ascii_digit());
        let hex = |t: &str| {
            t.len() == 4
                && t.bytes()
                    .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        };
        let mut parts = s.split('-');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(d), Some(t), Some(x), None) if digits(d, 8) && digits(t, 4) && hex(x) => {
                Ok(Self(s.to_owned()))
            }
            _ => Err(ParseRunIdError(s.to_owned())),
        }
    }
}

impl TryFrom<String> for RunId {
    type Error = ParseRunIdError;
    fn try_from(s: String) -> Result<Self, Self::Error> {
        s.parse()
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.0
    }
}

/// `manifest.json`: what a folder holds, readable without its stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the folder's format, see [`FORMAT`].
    pub format: String,
    /// Version of the program that wrote it.
    pub program: String,
    /// Id of the run.
    pub run: RunId,
    /// Wall clock when the run began, RFC 3339 with offset.
    pub wall_clock: String,
    /// The user's command.
    pub argv: Vec<String>,
    /// Process that supervises the run; absent in records of format 1.0. It means
    /// something only while `run.lock` is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The process that was watched, where it was not started by us (`watch`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<u32>,
}

/// The folder that holds every run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    root: PathBuf,
    /// The folder above the first one with our name; absent: somebody named the root, and
    /// answers for it.
    base: Option<PathBuf>,
}

impl Store {
    /// `$XDG_STATE_HOME/framepack-tui/runs`, by default below `~/.local/state`.
    pub fn open_default() -> Result<Self, StoreError> {
        let base = Base::State.folder().map_err(StoreError::NoHome)?;
        let store = Self::below(base, "framepack-tui/runs");
        store
            .is_there()
            .map_err(|e| failed("use", &store.root, e))?;
        Ok(store)
    }

    /// Where records lie when the state folder cannot be written:
    /// `framepack-tui-UID/runs` in the folder for temporary files.
    pub fn fallback() -> Self {
        let uid = rustix::process::geteuid().as_raw();
        Self::below(std::env::temp_dir(), &format!("framepack-tui-{uid}/runs"))
    }

    fn below(base: PathBuf, folder: &str) -> Self {
        Self {
            root: base.join(folder),
            base: Some(base),
        }
    }

    /// Whether its folder is there; an error: somebody else may have put something into it.
    pub fn is_there(&self) -> io::Result<bool> {
        match self.below_base() {
            Some((base, below)) => private_folder::check(base, below),
            None => Ok(self.root.is_dir()),
        }
    }

    /// The folder above the first one with our name, and the way from there.
    fn below_base(&self) -> Option<(&Path, &Path)> {
        let base = self.base.as_deref()?;
        Some((base, self.root.strip_prefix(base).ok()?))
    }

    /// The store in this folder, which need not exist yet.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            base: None,
        }
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes the folder of a new run, readable by its owner only, with its
    /// manifest, and locks it for as long as the returned value lives.
    pub fn create(&self, argv: &[String], now: &Zoned) -> Result<RunDir, StoreError> {
        self.create_for(argv, now, None)
    }

    /// The same; `watch`: the process that is watched, where we did not start it.
    pub fn create_for(
        &self,
        argv: &[String],
        now: &Zoned,
        watch: Option<u32>,
    ) -> Result<RunDir, StoreError> {
        match self.below_base() {
            Some((base, below)) => private_folder::make(base, below)
                .map(drop)
                .map_err(|e| failed("create", &self.root, e))?,
            None => private_dirs(&self.root)?,
        }
        let (id, path) = self.fresh_folder(now)?;
        let lock_path = path.join(LOCK);
        let lock = private_file(&lock_path)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|e| failed("lock", &lock_path, e.into()))?;
        let manifest = Manifest {
            format: FORMAT.to_owned(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            run: id.clone(),
            wall_clock: now.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            argv: argv.to_vec(),
            pid: Some(std::process::id()),
            watch,
        };
        let dir = RunDir {
            id,
            path,
            manifest,
            _lock: lock,
        };
        dir.write_manifest()?;
        Ok(dir)
    }

    /// `create_dir` is what makes the id unique: of two programs with the same
    /// idea only one succeeds.
    fn fresh_folder(&self, now: &Zoned) -> Result<(RunId, PathBuf), StoreError> {
        let mut nth = 0;
        loop {
            let id = RunId::new(now, nth);
            let path = self.root.join(id.as_str());
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok((id, path)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && nth < 64 => nth += 1,
                Err(e) => return Err(failed("create", &path, e)),
            }
        }
    }
}

/// The folder of the run that is going on.
#[derive(Debug)]
pub struct RunDir {
    id: RunId,
    path: PathBuf,
    manifest: Manifest,
    _lock: File,
}

impl RunDir {
    /// Id of the run.
    pub const fn id(&self) -> &RunId {
        &self.id
    }

    /// The folder, absolute if the store's is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the manifest says.
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Folder of the bundle with this number: `evidence/001`. Not made here.
    pub fn evidence_dir(&self, number: u32) -> PathBuf {
        self.path.join("evidence").join(format!("{number:03}"))
    }

    /// The sink that appends to [`EVENTS`].
    pub fn recorder(&self) -> Result<Recorder, StoreError> {
        private_file(&self.path.join(EVENTS)).map(Recorder::new)
    }

    /// Through a second name, so that a reader never sees half of it.
    fn write_manifest(&self) -> Result<(), StoreError> {
        let path = self.path.join(MANIFEST);
        let draft = self.path.join("manifest.json.new");
        let write = || -> io::Result<()> {
            let mut text = serde_json::to_vec_pretty(&self.manifest)?;
            text.push(b'\n');
            let mut file = OpenOptions::new()
                .create(true)
                .truncate(true)
                .write(true)
                .mode(0o600)
                .open(&draft)?;
            file.write_all(&text)?;
            file.sync_data()?;
            fs::rename(&draft, &path)
        };
        write().map_err(|e| failed("write", &path, e))
    }
}

fn failed(what: &'static str, path: &Path, source: io::Error) -> StoreError {
    StoreError::Io {
        what,
        path: path.to_owned(),
        source,
    }
}

/// Makes a folder and those above it; new ones are readable by their owner only.
fn private_dirs(path: &Path) -> Result<(), StoreError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|e| failed("create", path, e))
}

/// Opens for appending; a new file is readable by its owner only.
fn private_file(path: &Path) -> Result<File, StoreError> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
        .map_err(|e| failed("create", path, e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn ids_are_read_back_and_nothing_else_is() {
        let now = Zoned::now();
        let id = RunId::new(&now, 0);
        assert_eq!(id.as_str().parse(), Ok(id.clone()));
        assert_ne!(id, RunId::new(&now, 1));
        for bad in [
            "",
            "20261127-2231",
            "20261127-2231-7f3g",
            "../../etc-1234-abcd",
            "a-b-c-d",
        ] {
            assert!(bad.parse::<RunId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_run_has_a_private_folder_with_a_manifest() {
        let tmp = tempfile::tempdir().unwrap();
        let store = Store::at(tmp.path().join("state/runs"));
        let argv = vec!["python".to_owned(), "gen.py".to_owned()];
        let now = Zoned::now();
        let run = store.create(&argv, &now).unwrap();
        let other = store.create(&argv, &now).unwrap();
        assert_ne!(run.id(), other.id());
        let mode = fs::metadata(run.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let text = fs::read_to_string(run.path().join(MANIFEST)).unwrap();
        let manifest: Manifest = serde_json::from_str(&text).unwrap();
        assert_eq!(&manifest, run.manifest());
        assert_eq!(manifest.format, FORMAT);
        assert_eq!(manifest.argv, argv);
        assert_eq!(run.evidence_dir(7), run.path().join("evidence/007"));
    }

    #[test]
    fn ids_of_one_second_sort_by_time() {
        let tmp = tempfile::tempdir().unwrap();
        let store = Store::at(tmp.path());
        let mut now: Zoned = "2026-11-27T22:31:58.990+01:00[+01:00]".parse().unwrap();
        let mut ids = Vec::new();
        for _ in 0..20 {
            // the same moment twice: the second one waits behind the first
            for _ in 0..2 {
                ids.push(store.create(&[], &now).unwrap().id().clone());
            }
            now += jiff::Span::new().milliseconds(3);
        }
        let in_order = ids.clone();
        ids.sort();
        ids.dedup();
        assert_eq!(ids, in_order);
        assert!(ids.iter().all(|id| id.as_str().parse::<RunId>().is_ok()));
    }

    #[test]
    fn a_store_that_cannot_be_made_says_which_folder() {
        let error = Store::at("/dev/null/runs")
            .create(&[], &Zoned::now())
            .unwrap_err()
            .to_string();
        assert!(error.contains("/dev/null/runs"), "{error}");
    }
}
