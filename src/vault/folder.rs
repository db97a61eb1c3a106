//! The folder of the vault.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::profile::catalog::private_folder;
use crate::profile::folders::Base;

use super::entry::{Entry, Kind};

/// Entries that an error message names.
const NAMED: usize = 5;
/// Digits up to which a text is a number of the list and nothing else.
const LONGEST_NUMBER: usize = 3;

/// Why the vault cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// No home folder to look under.
    #[error("find the data folder: {0}; set XDG_DATA_HOME to the folder that holds it")]
    NoHome(etcetera::HomeDirError),
    /// A folder or file cannot be read or removed.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// `read`, `remove`.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

/// Why no entry is meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// There is none.
    #[error("there is no entry `{asked}` in the vault; {there}")]
    None {
        /// What was asked for.
        asked: String,
        /// What there is.
        there: String,
    },
    /// There are several.
    #[error("`{asked}` may be any of these entries: {}; write more of the name", which.join(", "))]
    Several {
        /// What was asked for.
        asked: String,
        /// Names that begin like this.
        which: Vec<String>,
    },
}

/// The folder of the vault; it need not exist.
#[derive(Debug, Clone)]
pub struct Vault {
    root: PathBuf,
}

impl Vault {
    /// `$XDG_DATA_HOME/framepack-tui/vault`, which the agent is told to write to.
    pub fn open_default() -> Result<Self, VaultError> {
        let data = Base::Data.folder().map_err(VaultError::NoHome)?;
        let below = Path::new("framepack-tui/vault");
        let vault = Self::at(data.join(below));
        private_folder::check(&data, below).map_err(|source| VaultError::Io {
            what: "use",
            path: vault.root.clone(),
            source,
        })?;
        Ok(vault)
    }

    /// The same for a run, which is going to write to it: its folder is made, so that nobody
    /// else makes it. Where it cannot be made, who writes says why.
    pub fn make_default() -> Result<Self, VaultError> {
        let vault = Self::open_default()?;
        let data = Base::Data.folder().map_err(VaultError::NoHome)?;
        let _ = private_folder::make(&data, Path::new("framepack-tui/vault"));
        Ok(vault)
    }

    /// The vault in this folder.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Every entry, newest first. A folder that does not exist is empty.
    pub fn list(&self) -> Result<Vec<Entry>, VaultError> {
        let failed = |source| VaultError::Io {
            what: "read",
            path: self.root.clone(),
            source,
        };
        let files = match fs::read_dir(&self.root) {
            Ok(files) => files,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(failed(e)),
        };
        let mut entries = Vec::new();
        for file in files {
            // gone meanwhile: the agent prunes and forgets
            entries.extend(Entry::at(&file.map_err(failed)?.path()));
        }
        let pictures: Vec<PathBuf> = entries.iter().filter_map(|e| e.picture.clone()).collect();
        entries.retain(|e| !pictures.contains(&e.path));
        for entry in &mut entries {
            entry.note_lone_picture();
        }
        entries.sort_by(|a, b| b.written.cmp(&a.written).then_with(|| a.name.cmp(&b.name)));
        Ok(entries)
    }

    /// The entry that `asked` means among those of [`Vault::list`]: its number there from
    /// 1 on, its name, the beginning of one, or the beginning of what follows the run.
    pub fn find(entries: &[Entry], asked: &str) -> Result<Entry, FindError> {
        let number = asked.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        if let Some(entry) = number.and_then(|n| entries.get(n)) {
            return Ok(entry.clone());
        }
        if let Some(entry) = entries.iter().find(|e| e.name == asked) {
            return Ok(entry.clone());
        }
        // a number beyond the list is a slip, not the beginning of a key
        let short = asked.len() <= LONGEST_NUMBER && asked.bytes().all(|b| b.is_ascii_digit());
        let begins = |entry: &&Entry| {
            let rest = entry.name.splitn(3, '.').nth(2).unwrap_or_default();
            !short && (entry.name.starts_with(asked) || rest.starts_with(asked))
        };
        let found: Vec<&Entry> = entries.iter().filter(begins).collect();
        let names = |of: &[&Entry]| of.iter().take(NAMED).map(|e| e.name.clone()).collect();
        let asked = asked.to_owned();
        match found[..] {
            [entry] => Ok(entry.clone()),
            [] => {
                let newest: Vec<String> = names(&entries.iter().collect::<Vec<_>>());
                let there = if newest.is_empty() {
                    "it is empty".to_owned()
                } else {
                    format!("the newest are {}", newest.join(", "))
                };
                Err(FindError::None { asked, there })
            }
            _ => Err(FindError::Several {
                asked,
                which: names(&found),
            }),
        }
    }

    /// Removes an entry, a job with its picture. One that is gone already is no error.
    pub fn remove(&self, entry: &Entry) -> Result<(), VaultError> {
        for path in std::iter::once(&entry.path).chain(&entry.picture) {
            match fs::remove_file(path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => {
                    return Err(VaultError::Io {
                        what: "remove",
                        path: path.clone(),
                        source: e,
                    });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The entries of a run with jobs that were not done: those of FramePack that were not
    /// stopped by their user, and behind them the queues of a ComfyUI, each oldest first. One
    /// that failed by an exception is among them, see [`super::JobState`].
    pub fn unfinished(&self, run: &str) -> Result<Vec<Entry>, VaultError> {
        let mut found = self.list()?;
        found.retain(|e| e.run.as_deref() == Some(run) && e.job().is_some());
        found.reverse();
        found.sort_by_key(|e| e.kind == Kind::Queue);
        Ok(found)
    }
}

impl Entry {
    /// A picture whose job is gone has a name of the vault's all the same.
    fn note_lone_picture(&mut self) {
        let ours = super::jobs::is_picture(&self.name);
        if self.kind == Kind::Foreign && ours && self.path.is_file() {
            self.state = super::State::Torn("the picture of a job that is gone".to_owned());
            self.run = self.name.split('.').nth(1).map(str::to_owned);
            self.kind = Kind::Job;
        }
    }
}
