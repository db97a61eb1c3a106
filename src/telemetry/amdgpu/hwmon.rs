//! The card's hwmon folder. Its number changes on driver reload, so it is looked
//! up again whenever it has vanished.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::file::{self, ReadError};

/// Sensors are numbered from 1; amdgpu has three temperatures and two clocks.
const SENSORS: std::ops::RangeInclusive<u8> = 1..=8;

/// A hwmon folder and which sensor number means what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hwmon {
    dir: PathBuf,
    pub(super) edge: Option<PathBuf>,
    pub(super) junction: Option<PathBuf>,
    pub(super) mem: Option<PathBuf>,
    pub(super) sclk: Option<PathBuf>,
    pub(super) mclk: Option<PathBuf>,
}

impl Hwmon {
    /// The folder of amdgpu below a device folder.
    pub(super) fn find(device: &Path) -> Option<Self> {
        let dir = fs::read_dir(device.join("hwmon"))
            .ok()?
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .find(|dir| file::read_text(&dir.join("name")).as_deref() == Ok("amdgpu"))?;
        let sensor = |kind: &str, label: &str, usual: u8| {
            let number = by_label(&dir, kind, label, usual)?;
            Some(dir.join(format!("{kind}{number}_input")))
        };
        Some(Self {
            edge: sensor("temp", "edge", 1),
            junction: sensor("temp", "junction", 2),
            mem: sensor("temp", "mem", 3),
            sclk: sensor("freq", "sclk", 1),
            mclk: sensor("freq", "mclk", 2),
            dir,
        })
    }

    /// Whether the folder is still there. Does not open anything.
    pub(super) fn is_there(&self) -> bool {
        self.dir.join("name").exists()
    }

    /// A file of the folder.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// The number of the sensor with this label. Old kernels have no label files:
/// there the usual number counts.
fn by_label(dir: &Path, kind: &str, label: &str, usual: u8) -> Option<u8> {
    let labels: Vec<_> = SENSORS
        .map(|n| (n, file::read_text(&dir.join(format!("{kind}{n}_label")))))
        .collect();
    if let Some((n, _)) = labels.iter().find(|(_, text)| text.as_deref() == Ok(label)) {
        return Some(*n);
    }
    let unlabelled = labels
        .iter()
        .any(|(n, text)| *n == usual && matches!(text, Err(ReadError::Missing)));
    unlabelled.then_some(usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sensors_go_by_label_not_by_number() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("hwmon/hwmon7");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("name"), "amdgpu\n").unwrap();
        fs::write(dir.join("temp1_label"), "junction\n").unwrap();
        fs::write(dir.join("temp4_label"), "edge\n").unwrap();
        let hwmon = Hwmon::find(root.path()).unwrap();
        assert_eq!(hwmon.edge, Some(dir.join("temp4_input")));
        assert_eq!(hwmon.junction, Some(dir.join("temp1_input")));
        assert_eq!(hwmon.sclk, Some(dir.join("freq1_input")));
        assert!(hwmon.is_there());
        fs::rename(&dir, root.path().join("hwmon/hwmon2")).unwrap();
        assert!(!hwmon.is_there());
        assert!(Hwmon::find(root.path()).is_some());
    }

    #[test]
    fn another_drivers_folder_is_not_ours() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("hwmon/hwmon1");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("name"), "k10temp\n").unwrap();
        assert_eq!(Hwmon::find(root.path()), None);
    }
}
