//! What the driver says of each AMD card: the small files of its device folder.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::model::is_suspended;

use super::Trouble;
use super::output::{Output, read_text};

/// Files that are not state, or whose reading is not free: PCI memory and ROM,
/// switches of the PCI core, and `pcie_bw`, which counts for a whole second.
const NEVER: &[&str] = &[
    "config", "rom", "reset", "remove", "rescan", "pcie_bw", "vpd", "uevent", "modalias",
];
/// Attributes of sysfs are at most a page.
const MAX_FILE: u64 = 16 << 10;
/// Files of one card.
const MAX_FILES: usize = 400;

/// Every small file of the device folder and of its hwmon folder. A card that
/// sleeps is left asleep: on older kernels most reads would wake it.
pub(super) fn collect(out: &Output, roots: &[PathBuf]) -> Result<(), Trouble> {
    if roots.is_empty() {
        return Err(Trouble::absent("no AMD card"));
    }
    for root in roots {
        out.line(format!("==== {}", root.display()));
        let status = root.join("power/runtime_status");
        if status.is_file() {
            out.file(&status, MAX_FILE);
        }
        // one that is on its way to sleep would be woken again by being read
        if read_text(&status, MAX_FILE).is_ok_and(|s| is_suspended(s.trim())) {
            out.line("(asleep, or falling asleep; not woken)");
            continue;
        }
        folder(out, root)?;
        let hwmon = root.join("hwmon");
        for dir in sorted(&hwmon) {
            if dir.is_dir() {
                folder(out, &dir)?;
            }
        }
    }
    Ok(())
}

fn sorted(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut paths: Vec<_> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    paths
}

fn folder(out: &Output, dir: &Path) -> Result<(), String> {
    out.doing(format!("while listing {}", dir.display()));
    if let Err(e) = fs::read_dir(dir) {
        out.line(format!("({}: {e})", dir.display()));
        return Ok(());
    }
    let mut left = MAX_FILES;
    for path in sorted(dir) {
        if out.is_closed() {
            return Ok(());
        }
        if !is_state(&path) {
            continue;
        }
        if left == 0 {
            return Err(format!("only the first {MAX_FILES} files"));
        }
        left -= 1;
        if path.ends_with("gpu_metrics") {
            binary(out, &path);
        } else {
            out.file(&path, MAX_FILE);
        }
    }
    Ok(())
}

/// A regular file, not a link (links lead to other devices), that its owner may
/// read.
fn is_state(path: &Path) -> bool {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
    if NEVER.contains(&name) || name.starts_with("resource") {
        return false;
    }
    fs::symlink_metadata(path)
        .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o444 != 0 && m.len() <= 1 << 16)
}

/// The driver's metrics table, in hexadecimal: its layout depends on the card.
fn binary(out: &Output, path: &Path) {
    out.doing(format!("while reading {}", path.display()));
    out.line(format!("== {}", path.display()));
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|f| f.take(MAX_FILE).read_to_end(&mut bytes));
    if let Err(e) = read {
        out.line(format!("(not readable: {e})"));
        return;
    }
    for row in bytes.chunks(32) {
        let mut text = String::with_capacity(64);
        for byte in row {
            let _infallible = write!(text, "{byte:02x}");
        }
        out.line(text);
    }
}
