//! What sysfs tells of resets of a card.
//!
//! There is no counter: the driver's own (`gpu_reset_counter`) is answered only to an
//! ioctl of a process that has the card open. What there is: the kinds of reset that the
//! driver can do, and the folder of a device core dump, which the kernel makes when a card
//! is reset and takes away after five minutes.

use std::path::Path;

use super::super::file::{self, ReadError, ReadResult};
use crate::model::Resets;

/// Files with kinds of reset, from the engines that models run on.
pub(super) const MASKS: [&str; 3] = ["gfx_reset_mask", "compute_reset_mask", "sdma_reset_mask"];

/// The kinds of reset over all engines. These are fixed texts of the driver.
pub(super) fn kinds(device: &Path) -> ReadResult<Vec<String>> {
    let mut kinds: Vec<String> = Vec::new();
    let mut answered = Err(ReadError::Missing);
    for name in MASKS {
        match file::read_text(&device.join(name)) {
            Ok(text) => {
                answered = Ok(());
                for word in words(&text) {
                    if !kinds.iter().any(|kind| kind == word) {
                        kinds.push(word.to_owned());
                    }
                }
            }
            Err(ReadError::Missing) => {}
            Err(error) => return Err(error),
        }
    }
    answered.map(|()| kinds)
}

/// `queue full `; `unsupported` where there is none.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let kind = |word: &&str| {
        *word != "unsupported" && word.len() <= 16 && word.bytes().all(|b| b.is_ascii_lowercase())
    };
    text.split_whitespace().filter(kind)
}

/// Whether a core dump of the card lies there; `None`: this kernel makes none. Looks for
/// names only, which wakes nothing.
pub(super) fn core_dump(root: &Path, device: &Path) -> Option<bool> {
    if device.join("devcoredump").exists() {
        return Some(true);
    }
    root.join("sys/class/devcoredump").is_dir().then_some(false)
}

/// Both together. Kinds that fail do not hide a core dump.
pub(super) fn of(kinds: ReadResult<Vec<String>>, core_dump: Option<bool>) -> ReadResult<Resets> {
    let kinds = match (kinds, core_dump) {
        (Ok(kinds), _) => kinds,
        (Err(ReadError::Missing), Some(_)) | (Err(_), Some(true)) => Vec::new(),
        (Err(error), _) => return Err(error),
    };
    Ok(Resets {
        count: None,
        kinds,
        core_dump,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn kinds_are_those_of_all_engines_once_each() {
        let device = tempfile::tempdir().unwrap();
        let dir = device.path();
        assert_eq!(kinds(dir), Err(ReadError::Missing));
        fs::write(dir.join("sdma_reset_mask"), "unsupported\n").unwrap();
        assert_eq!(kinds(dir), Ok(vec![]));
        fs::write(dir.join("gfx_reset_mask"), "soft queue full \n").unwrap();
        fs::write(dir.join("compute_reset_mask"), "queue pipe full \n").unwrap();
        let all = ["soft", "queue", "full", "pipe"]
            .map(str::to_owned)
            .to_vec();
        assert_eq!(kinds(dir), Ok(all));
        fs::remove_file(dir.join("gfx_reset_mask")).unwrap();
        fs::create_dir(dir.join("gfx_reset_mask")).unwrap();
        assert!(matches!(kinds(dir), Err(ReadError::Os { .. })));
    }

    #[test]
    fn a_core_dump_is_told_whatever_else_fails() {
        let root = tempfile::tempdir().unwrap();
        let device = root.path().join("card");
        fs::create_dir(&device).unwrap();
        assert_eq!(core_dump(root.path(), &device), None);
        fs::create_dir_all(root.path().join("sys/class/devcoredump")).unwrap();
        assert_eq!(core_dump(root.path(), &device), Some(false));
        fs::create_dir(device.join("devcoredump")).unwrap();
        assert_eq!(core_dump(root.path(), &device), Some(true));
        let failed = || Err(ReadError::text(Path::new("gfx_reset_mask"), "empty"));
        assert_eq!(of(Err(ReadError::Missing), None), Err(ReadError::Missing));
        assert!(of(failed(), Some(false)).is_err());
        assert_eq!(of(failed(), Some(true)).unwrap().core_dump, Some(true));
        let none = of(Err(ReadError::Missing), Some(false)).unwrap();
        assert_eq!((none.count, none.kinds.len()), (None, 0));
    }
}
