//! Which descriptors of a process are open files of a card.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::super::file::{self, ReadError};
use super::fdinfo::{DrmClient, drm_client};

/// Descriptors of one process that are looked at.
const MOST: usize = 4096;

/// The open files of cards of one process.
#[derive(Debug, Default, Clone)]
pub(crate) struct Descriptors {
    /// Their files in `fdinfo`, one for each client.
    files: Vec<PathBuf>,
    /// Whether it has `/dev/kfd` open: it uses ROCm, or has inherited the descriptor.
    pub(crate) kfd: bool,
}

impl Descriptors {
    /// Looks at every descriptor of the process with this folder in `/proc`, and reads
    /// those of cards. An error in words: they are not ours to see.
    pub(crate) fn look(dir: &Path) -> Result<(Self, Vec<DrmClient>), String> {
        // A look at the links first is cheaper than reading every file.
        let (links, infos) = (dir.join("fd"), dir.join("fdinfo"));
        let listed = match fs::read_dir(&infos) {
            Ok(listed) => listed,
            Err(e) if e.kind() == ErrorKind::PermissionDenied => return Err(owner(dir)),
            // ended meanwhile, or a kernel without fdinfo
            Err(_) => return Ok(Default::default()),
        };
        let mut found = Self::default();
        for entry in listed.flatten().take(MOST) {
            match fs::read_link(links.join(entry.file_name())) {
                Ok(to) if to.starts_with("/dev/dri") => found.files.push(entry.path()),
                Ok(to) if to == Path::new("/dev/kfd") => found.kfd = true,
                Ok(_) => {}
                // closed meanwhile, which its file will tell
                Err(_) => found.files.push(entry.path()),
            }
        }
        let clients = found.read(dir)?;
        Ok((found, clients))
    }

    /// Reads again what was found at the last look.
    pub(crate) fn read(&mut self, dir: &Path) -> Result<Vec<DrmClient>, String> {
        let mut clients: Vec<DrmClient> = Vec::with_capacity(self.files.len());
        let mut hidden = false;
        self.files.retain(|path| {
            let client = match file::read_text(path) {
                Ok(text) => drm_client(&text),
                Err(ReadError::Os { errno, .. }) if is_refusal(errno) => {
                    hidden = true;
                    None
                }
                Err(_) => None,
            };
            // a duplicate tells nothing new
            let new = client.filter(|c| !clients.iter().any(|k| (&k.gpu, k.id) == (&c.gpu, c.id)));
            let kept = new.is_some();
            clients.extend(new);
            kept
        });
        if hidden {
            return Err(owner(dir));
        }
        Ok(clients)
    }
}

fn is_refusal(errno: i32) -> bool {
    const EPERM: i32 = 1;
    const EACCES: i32 = 13;
    matches!(errno, EPERM | EACCES)
}

/// Why the descriptors of a process are not ours to see.
fn owner(dir: &Path) -> String {
    let us = rustix::process::geteuid().as_raw();
    match fs::metadata(dir) {
        Ok(m) if m.uid() != us => "another user's".to_owned(),
        _ => "the kernel does not show it to us".to_owned(),
    }
}
