//! Finding profiles: those that came with the program, the user's own, a file.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind as IoErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::folders::Base;
use super::lint::lint;
use super::merge::merge;
use super::parse::{MAX_LEN, parse, sorted};
use super::place::{Owner, Source};
use super::problem::{Problem, ProfileError, near};
use super::schema::Profile;

pub mod private_folder;
mod save;

pub use save::SaveError;

/// A profile may have a parent, which may have one, and so on: this many files at most.
const MAX_DEPTH: usize = 4;

/// The user's own profiles, below the folder for settings.
const OWN: &str = "framepack-tui/profiles";

const SHIPPED: &[(&str, &str)] = &[
    (
        "profiles/generic-amd.toml",
        include_str!("../../profiles/generic-amd.toml"),
    ),
    (
        "profiles/generic-nvidia.toml",
        include_str!("../../profiles/generic-nvidia.toml"),
    ),
    (
        "profiles/rx7900xtx-safe.toml",
        include_str!("../../profiles/rx7900xtx-safe.toml"),
    ),
    (
        "profiles/strix-halo-wan.toml",
        include_str!("../../profiles/strix-halo-wan.toml"),
    ),
    (
        "profiles/cpu-only.toml",
        include_str!("../../profiles/cpu-only.toml"),
    ),
];

/// One file of the catalogue: read, or not readable.
#[derive(Debug, Clone)]
enum Entry {
    Read(Box<Profile>),
    Broken(ProfileError),
}

/// All profiles that can be named.
#[derive(Debug, Clone)]
pub struct Catalog {
    entries: BTreeMap<String, Entry>,
    /// The folder of the user's own files.
    folder: Option<PathBuf>,
    /// Why that folder is not used.
    refused: Option<String>,
}

impl Catalog {
    /// The shipped profiles and those of `$XDG_CONFIG_HOME/framepack-tui/profiles/`,
    /// which shadow shipped ones of the same id.
    ///
    /// A file that cannot be read does not fail the others: [`Catalog::get`] says
    /// what is wrong with it when it is asked for.
    ///
    /// Nor is a folder used that somebody else may write to: a profile says what is run.
    pub fn load() -> Self {
        let below = Path::new(OWN);
        let Ok(config) = Base::Config.folder() else {
            return Self::with_folder(None);
        };
        let folder = config.join(below);
        let Err(e) = private_folder::check(&config, below) else {
            return Self::with_folder(Some(&folder));
        };
        let mut catalog = Self::with_folder(None);
        for path in toml_files(&folder) {
            let broken = Entry::Broken(ProfileError::Unreadable {
                path: path.display().to_string(),
                why: e.to_string(),
            });
            catalog.entries.entry(stem(&path)).or_insert(broken);
        }
        catalog.refused = Some(e.to_string());
        catalog.folder = Some(folder);
        catalog
    }

    /// The shipped profiles and those of `folder`, if there is one.
    pub fn with_folder(folder: Option<&Path>) -> Self {
        let mut catalog = Self {
            entries: BTreeMap::new(),
            folder: folder.map(Path::to_path_buf),
            refused: None,
        };
        for (name, text) in SHIPPED {
            catalog.add(Source {
                name: (*name).to_owned(),
                text: (*text).to_owned(),
                owner: Owner::Shipped,
            });
        }
        for path in folder.map(toml_files).unwrap_or_default() {
            match read(&path) {
                Ok(source) => catalog.add(source),
                Err(e) => {
                    catalog.entries.insert(stem(&path), Entry::Broken(e));
                }
            }
        }
        catalog
    }

    fn add(&mut self, source: Source) {
        let source = Arc::new(source);
        let (id, entry) = match parse(&source) {
            Ok(p) => (p.id.value.clone(), Entry::Read(Box::new(p))),
            Err(problems) => {
                let name = source.name.clone();
                let id = stem(Path::new(&name));
                (id, Entry::Broken(ProfileError::Invalid { name, problems }))
            }
        };
        self.entries.insert(id, entry);
    }

    /// Every id, those of broken files too (under the name of the file).
    pub fn ids(&self) -> Vec<String> {
        self.entries.keys().cloned().collect()
    }

    /// Every usable profile with its parents merged in, by id.
    pub fn all(&self) -> Vec<Profile> {
        self.entries
            .keys()
            .filter_map(|id| self.get(id).ok())
            .collect()
    }

    /// What is wrong with those that [`Catalog::all`] leaves out.
    pub fn broken(&self) -> Vec<ProfileError> {
        self.entries
            .keys()
            .filter_map(|id| self.get(id).err())
            .collect()
    }

    /// The profile of this id, or of this file if the argument contains `/` or ends
    /// in `.toml`; with its parents merged in and free of lint errors. Its warnings
    /// are those of [`lint`].
    ///
    /// # Errors
    ///
    /// Not found, not readable, or with errors: see [`ProfileError`].
    pub fn get(&self, name_or_path: &str) -> Result<Profile, ProfileError> {
        let is_path = name_or_path.contains('/')
            || Path::new(name_or_path)
                .extension()
                .is_some_and(|e| e == "toml");
        let profile = if is_path {
            let source = Arc::new(read(Path::new(name_or_path))?);
            parse(&source).map_err(|problems| ProfileError::Invalid {
                name: name_or_path.to_owned(),
                problems,
            })?
        } else {
            self.entry(name_or_path)?.clone()
        };
        let profile = self.with_parents(profile)?;
        let problems = sorted(lint(&profile));
        if problems.iter().any(Problem::is_error) {
            return Err(ProfileError::Invalid {
                name: name_or_path.to_owned(),
                problems,
            });
        }
        Ok(profile)
    }

    /// The file of this id as it was written, without its parents.
    pub(super) fn written(&self, id: &str) -> Option<&Profile> {
        match self.entries.get(id) {
            Some(Entry::Read(p)) => Some(p),
            Some(Entry::Broken(_)) | None => None,
        }
    }

    /// Where an own profile of this id is, or would be, written; absent where there
    /// is no home.
    pub fn own_path(&self, id: &str) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        let existing = self
            .written(id)
            .map(|p| Path::new(&p.source.name))
            .filter(|path| path.parent() == Some(folder));
        Some(existing.map_or_else(|| folder.join(format!("{id}.toml")), Path::to_path_buf))
    }

    /// Writes an own profile and says where. The file is complete or as it was
    /// before, whatever goes wrong. The catalogue itself stays as it is: load it anew.
    ///
    /// Without `overwrite` only the file of the same id is replaced, and only as it
    /// was when the catalogue was read.
    ///
    /// # Errors
    ///
    /// See [`SaveError`].
    pub fn save_own(&self, id: &str, text: &str, overwrite: bool) -> Result<PathBuf, SaveError> {
        if let Some(why) = &self.refused {
            return Err(SaveError::NotOurs(why.clone()));
        }
        let path = self.own_path(id).ok_or(SaveError::NoHome)?;
        let known = self
            .written(id)
            .filter(|p| Path::new(&p.source.name) == path);
        save::own(
            &path,
            text,
            known.map(|p| p.source.text.as_str()),
            overwrite,
        )?;
        Ok(path)
    }

    fn entry(&self, id: &str) -> Result<&Profile, ProfileError> {
        match self.entries.get(id) {
            Some(Entry::Read(p)) => Ok(p),
            Some(Entry::Broken(e)) => Err(e.clone()),
            None => {
                let mut like = near(id, self.entries.keys().map(String::as_str));
                if like.is_empty() {
                    like = self.ids();
                }
                Err(ProfileError::NotFound {
                    name: id.to_owned(),
                    near: like,
                })
            }
        }
    }

    /// A file with its parents merged in.
    pub(super) fn with_parents(&self, profile: Profile) -> Result<Profile, ProfileError> {
        let name = profile.id.value.clone();
        let mut seen = vec![name.clone()];
        let mut chain = vec![profile];
        while let Some(parent) = chain.last().and_then(|p| p.extends.clone()) {
            let fail = |message: String, fix: String| ProfileError::Invalid {
                name: name.clone(),
                problems: vec![
                    Problem::error("P107", message)
                        .at(&parent.place)
                        .label("this parent")
                        .fix(fix),
                ],
            };
            if seen.contains(&parent.value) {
                return Err(fail(
                    format!(
                        "`{}` extends itself: {} → {}",
                        parent.value,
                        seen.join(" → "),
                        parent.value
                    ),
                    String::from("take one `extends` out of the circle"),
                ));
            }
            if chain.len() >= MAX_DEPTH {
                return Err(fail(
                    format!("more than {MAX_DEPTH} profiles extend one another"),
                    String::from("extend a profile nearer to the root"),
                ));
            }
            match self.entry(&parent.value) {
                Ok(p) => chain.push(p.clone()),
                Err(ProfileError::NotFound { near, .. }) => {
                    return Err(fail(
                        format!("the parent `{}` does not exist", parent.value),
                        format!("did you mean {}?", super::problem::or_list(&near)),
                    ));
                }
                Err(e) => return Err(e),
            }
            seen.push(parent.value);
        }
        let merged = chain.into_iter().rev().reduce(merge);
        merged.ok_or(ProfileError::NotFound {
            name,
            near: Vec::new(),
        })
    }
}

/// `$XDG_CONFIG_HOME/framepack-tui/profiles`, or its default; absent where there is no home.
pub fn own_folder() -> Option<PathBuf> {
    Some(Base::Config.folder().ok()?.join(OWN))
}

/// The `*.toml` files of a folder, by name; none if there is no such folder.
fn toml_files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    files
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .map(|s| s.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Reads no more than [`parse`] accepts, so that a wrong path to something huge ends at once.
fn read(path: &Path) -> Result<Source, ProfileError> {
    let name = path.display().to_string();
    let unreadable = |why: String| ProfileError::Unreadable {
        path: path.display().to_string(),
        why,
    };
    let meta = fs::metadata(path).map_err(|e| match e.kind() {
        IoErrorKind::NotFound => ProfileError::NoFile { path: name.clone() },
        _ => unreadable(e.to_string()),
    })?;
    if !meta.is_file() {
        return Err(unreadable(String::from("it is not a regular file")));
    }
    let file = fs::File::open(path).map_err(|e| unreadable(e.to_string()))?;
    let mut bytes = Vec::new();
    file.take(MAX_LEN as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| unreadable(e.to_string()))?;
    let too_long = bytes.len() > MAX_LEN;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        // The cut may have split a character; the length is the problem then.
        Err(e) if too_long => String::from_utf8_lossy(e.as_bytes()).into_owned(),
        Err(e) => return Err(unreadable(format!("it is not UTF-8 text: {e}"))),
    };
    Ok(Source {
        name,
        text,
        owner: Owner::User,
    })
}
