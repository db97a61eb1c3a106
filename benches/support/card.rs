//! The imitated card of `tests/tools/fake-amdgpu`.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A tree with one card: the folder that stands for `/`.
pub(crate) struct Card(pub(crate) PathBuf);

impl Card {
    /// Makes an RX 7900 XTX that works, with 17 GiB in use.
    pub(crate) fn make(root: &Path) -> Result<Self, Box<dyn Error>> {
        let card = Self(root.to_owned());
        card.tool("make", &["--card", "rx7900xtx"])?;
        let readings = [
            "busy=97",
            "power_w=287",
            "vram_used=17G",
            "temp_junction=84",
        ];
        card.tool("set", &[&["card0"], readings.as_slice()].concat())?;
        Ok(card)
    }

    /// Folder that stands for `/`.
    pub(crate) fn root(&self) -> &Path {
        &self.0
    }

    /// One call of the tool: `break`, `card0`, `gpu_busy_percent`, `stall`.
    pub(crate) fn tool(&self, command: &str, rest: &[&str]) -> Result<(), Box<dyn Error>> {
        let done = Command::new("python3")
            .arg(tool())
            .arg(command)
            .arg(self.root())
            .args(rest)
            .output()?;
        if done.status.success() {
            return Ok(());
        }
        let why = String::from_utf8_lossy(&done.stderr);
        Err(format!("fake-amdgpu {command} {rest:?}: {why}").into())
    }
}

/// The tool itself.
pub(crate) fn tool() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/fake-amdgpu/fake-amdgpu")
}
