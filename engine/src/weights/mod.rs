//! Weights as diffusers saves them: one safetensors file, or several and an index.
//!
//! Tensors are read when they are asked for, each by its own reads at its place in the file. A memory
//! map would save no copy, since every weight is brought into another layout or precision anyway, and
//! a file that shrinks under a map kills the process where a read fails with an error.

mod file;
mod folder;
mod unique;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use candle_core::{DType, Device, Tensor};

use self::file::TensorFile;
use self::folder::Found;
use self::unique::Pairs;
pub use self::unique::{Twice, twice};
use crate::error::{Error, Result};

/// The largest index that is read: 16 MiB name more tensors than any model has.
const MAX_INDEX: u64 = 16 << 20;

/// The tensors of a model, read on demand.
#[derive(Clone, Debug)]
pub struct Weights {
    /// What was opened: the folder or the file.
    path: PathBuf,
    files: Vec<Arc<TensorFile>>,
    /// Tensor name to file, and to the name there.
    places: BTreeMap<String, (usize, String)>,
    variant: Option<String>,
    /// A single file beside an index, which was taken.
    passed_over: Option<PathBuf>,
    description: Option<Description>,
    /// Names of the tensors that were read.
    read: Arc<Mutex<BTreeSet<String>>>,
}

/// What says which tensors there must be.
#[derive(Clone, Debug)]
pub(crate) struct Description {
    /// The `config.json`.
    pub(crate) path: PathBuf,
    /// What helps where the tensors are others.
    pub(crate) cure: &'static str,
}

/// The part of an index file that is needed.
#[derive(serde::Deserialize)]
struct Index {
    weight_map: Pairs<String>,
}

impl Weights {
    /// Opens a safetensors file, or a folder as diffusers saves it, and reads the headers.
    pub fn open(path: &Path) -> Result<Arc<Self>> {
        let weights = if path.is_dir() {
            Self::open_folder(path)?
        } else {
            Self::open_files(path, &[path.to_owned()])?
        };
        Ok(Arc::new(weights))
    }

    fn open_folder(folder: &Path) -> Result<Self> {
        let folder::Choice {
            found,
            variant,
            passed_over,
        } = folder::find(folder)?;
        let weights = match found {
            Found::One(file) => Self::open_files(folder, &[file])?,
            Found::Several(index) => Self::open_index(folder, &index, passed_over.as_deref())?,
        };
        Ok(Self {
            variant,
            passed_over,
            ..weights
        })
    }

    /// `single`: the file beside it that is not taken.
    fn open_index(folder: &Path, index: &Path, single: Option<&Path>) -> Result<Self> {
        let wrong = |reason: String| Error::File {
            path: index.to_owned(),
            reason,
        };
        let io = |source| Error::Io {
            path: index.to_owned(),
            source,
        };
        let size = std::fs::metadata(index).map_err(io)?.len();
        if size > MAX_INDEX {
            return Err(wrong(format!("{size} bytes are no index of weights")));
        }
        let text = crate::error::read(index)?;
        let map: Index = serde_json::from_slice(&text)
            .map_err(|error| wrong(format!("not an index of weights: {error}")))?;
        if let Some(name) = map.weight_map.twice() {
            return Err(Error::Weight {
                path: index.to_owned(),
                name: name.to_owned(),
                reason: "stands there twice: download the index again".to_owned(),
            });
        }
        let mut names: Vec<&String> = map.weight_map.0.iter().map(|(_, file)| file).collect();
        names.sort_unstable();
        names.dedup();
        for name in &names {
            // A name, not a path: an index must not make us read elsewhere.
            if name.contains('\0')
                || Path::new(name)
                    .file_name()
                    .is_none_or(|file| file != name.as_str())
            {
                return Err(wrong(format!(
                    "{name:?} is not the name of a file beside it"
                )));
            }
        }
        let files: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
        if let Some(gone) = files.iter().find(|file| is_gone(file)) {
            return Err(promised(gone, index, single));
        }
        let weights = Self::open_files(folder, &files)?;
        for (tensor, file) in &map.weight_map.0 {
            let promised = folder.join(file);
            let found = weights.places.get(tensor);
            let found = found.and_then(|(at, _)| Some(weights.files.get(*at)?.path()));
            if found == Some(promised.as_path()) {
                continue;
            }
            let index = index.file_name().unwrap_or_default().display();
            let elsewhere = found
                .and_then(Path::file_name)
                .map_or_else(String::new, |other| {
                    format!(" (it is in {})", other.display())
                });
            return Err(Error::Weight {
                path: promised,
                name: tensor.clone(),
                reason: format!(
                    "missing, though {index} promises it{elsewhere}: download the file and the index again"
                ),
            });
        }
        Ok(weights)
    }

    fn open_files(path: &Path, files: &[PathBuf]) -> Result<Self> {
        let files: Vec<Arc<TensorFile>> = files
            .iter()
            .map(|file| TensorFile::open(file).map(Arc::new))
            .collect::<Result<_>>()?;
        let mut places: BTreeMap<String, (usize, String)> = BTreeMap::new();
        for (at, file) in files.iter().enumerate() {
            for name in file.names() {
                let before = places.insert(name.clone(), (at, name.clone()));
                if let Some(other) = before.and_then(|(at, _)| files.get(at)) {
                    let other = other.path().display();
                    return Err(Error::Weight {
                        path: file.path().to_owned(),
                        name,
                        reason: format!(
                            "is in {other} as well: the files are not of one model, download them again"
                        ),
                    });
                }
            }
        }
        Ok(Self {
            path: path.to_owned(),
            files,
            places,
            variant: None,
            passed_over: None,
            description: None,
            read: Arc::default(),
        })
    }

    /// The same, and what is asked of them from now on is what this `config.json` says.
    pub(crate) fn described(self: Arc<Self>, description: Description) -> Arc<Self> {
        Arc::new(Self {
            description: Some(description),
            ..Arc::unwrap_or_clone(self)
        })
    }

    /// The same tensors under other names; those for which there is `None` are left out. Two that would have one name
    /// are refused.
    pub fn renamed(self: Arc<Self>, rename: impl Fn(&str) -> Option<String>) -> Result<Arc<Self>> {
        let mut places: BTreeMap<String, (usize, String)> = BTreeMap::new();
        for (name, place) in &self.places {
            let Some(new) = rename(name) else {
                continue;
            };
            if let Some((_, other)) = places.insert(new, place.clone()) {
                return Err(Error::Weight {
                    path: self.path.clone(),
                    name: name.clone(),
                    reason: format!(
                        "is the same weight as {other}: two models are in the file, keep one"
                    ),
                });
            }
        }
        Ok(Arc::new(Self {
            places,
            ..Arc::unwrap_or_clone(self)
        }))
    }

    /// The single file that stands beside the index by which these weights were found, and is not read.
    pub fn passed_over(&self) -> Option<&Path> {
        self.passed_over.as_deref()
    }

    /// The variant (`fp16`) that a folder has alone, by its file's name.
    pub fn variant(&self) -> Option<&str> {
        self.variant.as_deref()
    }

    /// The names of all tensors.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(String::as_str)
    }

    /// Whether there is a tensor of this name.
    pub fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// The tensors below these names that nothing has read so far.
    pub(crate) fn unread(&self, below: &[&str]) -> Vec<&str> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let own = |name: &&str| below.iter().any(|prefix| name.starts_with(prefix));
        let names = self.names().filter(own);
        names.filter(|name| !read.contains(*name)).collect()
    }

    /// The `config.json` that says which tensors there must be.
    pub(crate) fn described_by(&self) -> Option<&Path> {
        Some(self.description.as_ref()?.path.as_path())
    }

    /// What the first file's `__metadata__` says under this name.
    pub fn says(&self, name: &str) -> Option<&str> {
        self.files.first()?.says(name)
    }

    /// The files, each with its size and when it was written last.
    pub fn files(&self) -> Result<Vec<(PathBuf, u64, Option<std::time::SystemTime>)>> {
        self.files.iter().map(|file| file.about()).collect()
    }

    /// The shape of a tensor.
    pub fn shape(&self, name: &str) -> Result<&[usize]> {
        let (file, own) = self.place(name)?;
        file.shape(own)
    }

    /// Reads a tensor of this shape, in single precision. Ones at the end of a shape do not count: what is a linear layer
    /// here is a convolution of one tap elsewhere.
    pub fn get(&self, name: &str, shape: &[usize], device: &Device) -> Result<Tensor> {
        self.check_shape(name, shape)?;
        let (file, own) = self.place(name)?;
        let tensor = file.read(own)?.reshape(shape)?;
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.insert(name.to_owned());
        drop(read);
        Ok(tensor.to_device(device)?.to_dtype(DType::F32)?)
    }

    /// Refuses a tensor that has another shape, or is not there.
    pub(crate) fn check_shape(&self, name: &str, shape: &[usize]) -> Result<()> {
        let (file, own) = self.place(name)?;
        let found = file.shape(own)?;
        if trimmed(found) == trimmed(shape) {
            return Ok(());
        }
        let reason = match &self.description {
            Some(Description { path, cure }) => format!(
                "has the shape {found:?} where {} says {shape:?}: {cure}",
                path.display()
            ),
            None => format!("has the shape {found:?} where {shape:?} is needed"),
        };
        Err(Error::Weight {
            path: file.path().to_owned(),
            name: own.to_owned(),
            reason,
        })
    }

    /// How a tensor's numbers are stored.
    pub(crate) fn dtype(&self, name: &str) -> Result<safetensors::Dtype> {
        let (file, own) = self.place(name)?;
        file.dtype(own)
    }

    /// Reads some of a tensor's numbers as they stand one behind the other, in single precision, whatever they are.
    pub(crate) fn numbers(&self, name: &str, which: std::ops::Range<usize>) -> Result<Vec<f32>> {
        let (file, own) = self.place(name)?;
        file.numbers(own, which)
    }

    fn place(&self, name: &str) -> Result<(&TensorFile, &str)> {
        self.places
            .get(name)
            .and_then(|(at, own)| Some((&**self.files.get(*at)?, own.as_str())))
            .ok_or_else(|| Error::Weight {
                path: self.path.clone(),
                name: name.to_owned(),
                reason: match &self.description {
                    Some(Description { path, cure }) => format!(
                        "missing, and by {} it is needed: the file is incomplete, or {cure}",
                        path.display()
                    ),
                    None => "missing: the file is of another model, or incomplete".to_owned(),
                },
            })
    }
}

fn is_gone(file: &Path) -> bool {
    std::fs::metadata(file).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound)
}

/// A file that an index names is not there. One beside it is not taken instead, and neither does diffusers: nothing tells
/// which of the two is the newer model.
fn promised(file: &Path, index: &Path, single: Option<&Path>) -> Error {
    let name = |path: &Path| path.file_name().unwrap_or_default().display().to_string();
    let cure = single.map_or_else(
        || "download it again".to_owned(),
        |single| {
            let single = name(single);
            format!("download it again, or remove the index if {single} is the model that is meant")
        },
    );
    let reason = format!("not there, though {} names it: {cure}", name(index));
    Error::Io {
        path: file.to_owned(),
        source: std::io::Error::new(std::io::ErrorKind::NotFound, reason),
    }
}

/// A shape without the ones at its end.
fn trimmed(shape: &[usize]) -> &[usize] {
    let ones = shape.iter().rev().take_while(|&&side| side == 1).count();
    &shape[..shape.len() - ones]
}

/// A place in the tree of names: `scope.under("decoder").get("weight", …)`.
#[derive(Clone, Debug)]
pub struct Scope {
    weights: Arc<Weights>,
    prefix: String,
}

impl Scope {
    /// The root.
    pub fn new(weights: Arc<Weights>) -> Self {
        Self {
            weights,
            prefix: String::new(),
        }
    }

    /// The place `name` below this one.
    #[must_use]
    pub fn under(&self, name: impl std::fmt::Display) -> Self {
        Self {
            weights: Arc::clone(&self.weights),
            prefix: self.name(&name.to_string()),
        }
    }

    /// The full name of `name` here.
    pub fn name(&self, name: &str) -> String {
        if self.prefix.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.prefix)
        }
    }

    /// Refuses a tensor that has another shape, or is missing.
    pub(crate) fn check_shape(&self, name: &str, shape: &[usize]) -> Result<()> {
        self.weights.check_shape(&self.name(name), shape)
    }

    /// Reads a tensor of this shape, in single precision.
    pub fn get(&self, name: &str, shape: &[usize], device: &Device) -> Result<Tensor> {
        self.weights.get(&self.name(name), shape, device)
    }
}

#[cfg(test)]
mod tests;
