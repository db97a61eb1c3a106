//! The imitated card of `tests/tools/fake-amdgpu`.

use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A tree with one card that works.
pub(crate) struct Card(TempDir);

impl Card {
    /// An RX 7900 XTX with 17 GiB in use.
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        let card = Self(tempfile::Builder::new().prefix("fpt-card-").tempdir()?);
        card.tool(
            &["make".as_ref(), card.root().as_os_str()],
            &["--card", "rx7900xtx"],
        )?;
        card.set("busy=97 power_w=287 vram_used=17G temp_junction=84")?;
        Ok(card)
    }

    /// Sets readings.
    pub(crate) fn set(&self, readings: &str) -> Result<(), Box<dyn Error>> {
        let readings: Vec<_> = readings.split_whitespace().collect();
        let head = ["set".as_ref(), self.root().as_os_str(), "card0".as_ref()];
        self.tool(&head, &readings)
    }

    /// Folder that stands for `/`.
    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }

    fn tool(&self, head: &[&std::ffi::OsStr], rest: &[&str]) -> Result<(), Box<dyn Error>> {
        let done = Command::new("python3")
            .arg(tool())
            .args(head)
            .args(rest)
            .output()?;
        if done.status.success() {
            return Ok(());
        }
        let why = String::from_utf8_lossy(&done.stderr);
        Err(format!("fake-amdgpu {rest:?} on {}: {why}", self.root().display()).into())
    }
}

/// The tool itself.
pub(crate) fn tool() -> OsString {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/tools/fake-amdgpu/fake-amdgpu")
        .into()
}
