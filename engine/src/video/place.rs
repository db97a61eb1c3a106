//! The place of an output: what is there and is not ours is never removed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result, io};

/// Whether a file is named as those of a folder of pictures: `frame_00001.png`, …
pub fn is_picture(name: &OsStr) -> bool {
    name.to_str()
        .and_then(|name| name.strip_prefix("frame_")?.strip_suffix(".png"))
        .is_some_and(|n| n.len() >= 5 && n.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The pictures of a folder that holds nothing else; it is refused for the first other thing.
fn pictures(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).map_err(io(folder))? {
        let entry = entry.map_err(io(folder))?;
        let file = entry.file_type().map_err(io(folder))?.is_file();
        if !file || !is_picture(&entry.file_name()) {
            return in_the_way(
                folder,
                format!(
                    "it holds {}, which is none of a video's pictures (frame_00001.png, …), and is not replaced: name another folder",
                    entry.file_name().display()
                ),
            );
        }
        all.push(entry.path());
    }
    Ok(all)
}

fn in_the_way<T>(path: &Path, reason: impl Into<String>) -> Result<T> {
    Err(Error::InTheWay {
        path: path.to_owned(),
        reason: reason.into(),
    })
}

/// Whether what is at `output` may be replaced by a folder of pictures (`folder`), or by a file.
pub fn replaceable(output: &Path, folder: bool) -> Result<()> {
    let Ok(about) = output.symlink_metadata() else {
        return Ok(());
    };
    match (folder, about.is_dir()) {
        (true, true) => pictures(output).map(drop),
        (true, false) => in_the_way(output, "it is no folder, and a folder is to be written"),
        (false, true) => in_the_way(output, "it is a folder, and a file is to be written"),
        (false, false) if !about.is_file() && !about.is_symlink() => {
            in_the_way(output, "it is no regular file, and a file is to be written")
        }
        (false, false) => Ok(()),
    }
}

/// Whether `output` is a place for an output at all: not the current folder or one above it, nor anything that is
/// or holds one of `needed`.
pub fn is_free_of(output: &Path, needed: &[&Path]) -> Result<()> {
    if output.file_name().is_none() {
        return in_the_way(output, "it is no name for an output");
    }
    let Ok(real) = output.canonicalize() else {
        return Ok(());
    };
    if std::env::current_dir().is_ok_and(|at| at.starts_with(&real)) {
        return in_the_way(output, "it is the current folder, or one above it");
    }
    for path in needed {
        if path.canonicalize().is_ok_and(|at| at.starts_with(&real)) {
            return in_the_way(
                output,
                format!("{} is needed and lies there", path.display()),
            );
        }
    }
    Ok(())
}

/// Whether `output` is none of a model's files, nor in the folder that has them: weights, shards, index and
/// configuration are needed again. `model` is such a folder, the one above it, or a checkpoint of one file.
pub fn is_not_of(output: &Path, model: &Path) -> Result<()> {
    let refused = |what: &str| {
        in_the_way(
            output,
            format!(
                "it {what} the model {}, and nothing is written there: name another place",
                model.display()
            ),
        )
    };
    // where it will be, if it is not there yet, and the file that a link means
    let parent = match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let new = parent
        .canonicalize()
        .ok()
        .zip(output.file_name())
        .map(|(parent, name)| parent.join(name));
    let there = output.canonicalize().ok();
    let places = || new.iter().chain(&there);
    if model.is_file() {
        let files = [model.to_owned(), model.with_file_name("config.json")];
        let there = files.iter().filter(|file| file.exists());
        let mut files = there.flat_map(|file| all_of(file));
        if files.any(|file| places().any(|place| *place == file)) {
            return refused("is a file of");
        }
        return Ok(());
    }
    for folder in [model, &model.join("vae")] {
        let Ok(real) = folder.canonicalize() else {
            continue;
        };
        let own = folder != model || folder.join("config.json").exists();
        // beside a model's folder there may be others' files: what is there is not replaced
        let within = |place: &PathBuf| place.starts_with(&real) && (own || place.exists());
        if places().any(within) {
            return refused("lies in");
        }
        let entries = fs::read_dir(folder).map_err(io(folder))?.flatten();
        let mut files = entries.flat_map(|entry| all_of(&entry.path()));
        if files.any(|file| places().any(|place| *place == file)) {
            return refused("is a file of");
        }
    }
    Ok(())
}

/// A file's own place, and that of the file that it is a link to.
fn all_of(file: &Path) -> Vec<PathBuf> {
    let own = file.parent().and_then(|parent| {
        let here = parent.as_os_str().is_empty();
        let parent = if here { Path::new(".") } else { parent };
        Some(parent.canonicalize().ok()?.join(file.file_name()?))
    });
    own.into_iter().chain(file.canonicalize()).collect()
}

/// Removes what an earlier process of ours has left at `part`: a file, or a folder with nothing but pictures.
pub fn clear(part: &Path) -> Result<()> {
    let Ok(about) = part.symlink_metadata() else {
        return Ok(());
    };
    if !about.is_dir() {
        return fs::remove_file(part).map_err(io(part));
    }
    for path in pictures(part)? {
        fs::remove_file(&path).map_err(io(&path))?;
    }
    fs::remove_dir(part).map_err(io(part))
}

/// A file that is there whole or not at all: `work` writes it as `part`, a name that is ours alone on the same file
/// system, and `place` renames it once it is on the disk. Where that fails, nothing of it stays.
pub(crate) fn whole(
    part: &Path,
    work: impl FnOnce(&Path) -> Result<()>,
    place: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let on_disk = || File::open(part).and_then(|file| file.sync_data());
    let done = work(part)
        .and_then(|()| on_disk().map_err(io(part)))
        .and_then(|()| place(part));
    done.inspect_err(|_| {
        // half a file is of no use
        let _ = fs::remove_file(part);
    })
}

/// A new empty file beside the output, under a name that was not taken.
pub(crate) fn free_name(output: &Path) -> Result<PathBuf> {
    let mut number = 0_u32;
    loop {
        let mut name = OsString::from(".");
        name.push(output.file_name().unwrap_or_default());
        name.push(format!(".{number}.part"));
        let path = output.with_file_name(name);
        match File::create_new(&path) {
            Ok(_) => return Ok(path),
            Err(e) if e.kind() == ErrorKind::AlreadyExists && number < 1000 => number += 1,
            Err(e) => return Err(io(&path)(e)),
        }
    }
}

/// Whether something can be written beside the output: it is tried, as nothing else tells for sure.
pub fn can_be_written(output: &Path) -> Result<()> {
    let folder = match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let wrong = |reason: String| Error::File {
        path: output.to_owned(),
        reason,
    };
    if !folder.is_dir() {
        return Err(wrong(format!("there is no folder {}", folder.display())));
    }
    let tried = free_name(output).map_err(|e| match e {
        Error::Io { source, .. } if source.kind() == ErrorKind::InvalidFilename => wrong(format!(
            "the name is too long with what is added to it for files beside it (NAME.parts, .NAME.0.part; {source}): name a shorter one"
        )),
        Error::Io { source, .. } => wrong(format!(
            "nothing can be written in the folder {} ({source}): name another",
            folder.display()
        )),
        other => other,
    })?;
    fs::remove_file(&tried).map_err(io(&tried))
}

/// Puts what is whole in its place; without `force` nothing that is there is replaced.
pub fn into_place(part: &Path, output: &Path, force: bool) -> Result<()> {
    if output.symlink_metadata().is_ok() {
        if !force {
            return Err(Error::Exists(output.to_owned()));
        }
        replaceable(output, part.is_dir())?;
        if part.is_dir() {
            // a folder cannot be replaced in one step
            clear(output)?;
        }
    }
    fs::rename(part, output).map_err(io(output))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_to_which_nothing_can_be_added_is_too_long_and_its_folder_is_not_blamed() {
        let folder = tempfile::tempdir().unwrap();
        let says = |length: usize| {
            let name = format!("{}.mp4", "x".repeat(length - 4));
            can_be_written(&folder.path().join(name)).map_err(|e| e.to_string())
        };
        // a name has 255 letters at most, and `.NAME.0.part` 8 more than the output
        assert_eq!(says(247), Ok(()));
        for length in [248, 255, 300] {
            let e = says(length).unwrap_err();
            assert!(
                e.contains("the name is too long") && e.contains("NAME.parts"),
                "{e}"
            );
            assert!(!e.contains("in the folder"), "{e}");
        }
    }
}
