//! Bytes of another process's memory: the time limits and descriptor lists of its calls.

use std::cell::OnceCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Memory that the arguments of a system call point into.
pub(super) trait Memory {
    /// Fills the buffer from this address; none where that cannot be read whole.
    fn read(&self, address: u64, buffer: &mut [u8]) -> Option<()>;
}

/// `/proc/PID/mem`, opened when a call first points somewhere. It asks for the same right
/// as `syscall` does.
#[derive(Debug)]
pub(super) struct ProcessMemory {
    path: PathBuf,
    file: OnceCell<Option<File>>,
}

impl ProcessMemory {
    /// Memory of the process with this file.
    pub(super) const fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: OnceCell::new(),
        }
    }
}

impl Memory for ProcessMemory {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Option<()> {
        if address == 0 {
            return None;
        }
        let file = self.file.get_or_init(|| File::open(&self.path).ok());
        file.as_ref()?.read_exact_at(buffer, address).ok()
    }
}

/// Memory that holds these bytes from this address on.
impl Memory for (u64, &[u8]) {
    fn read(&self, address: u64, buffer: &mut [u8]) -> Option<()> {
        let begin = usize::try_from(address.checked_sub(self.0)?).ok()?;
        let end = begin.checked_add(buffer.len())?;
        buffer.copy_from_slice(self.1.get(begin..end)?);
        Some(())
    }
}
