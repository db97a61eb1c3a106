//! Small imitated trees for the tests of this module.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A folder that stands for `/`.
pub(crate) struct Tree(TempDir);

impl Tree {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Its path.
    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file, in one step as a driver would.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let new = path.with_extension("new~");
        fs::write(&new, text).unwrap();
        fs::rename(new, path).unwrap();
    }

    /// Device folder of a card.
    pub(crate) fn device(&self, address: &str) -> PathBuf {
        self.root().join("sys/devices/pci0000:00").join(address)
    }

    /// Writes a file of a card.
    pub(crate) fn write_device(&self, address: &str, name: &str, text: &str) {
        self.write(&format!("sys/devices/pci0000:00/{address}/{name}"), text);
    }

    /// Puts something that is no regular file in the place of a card's file.
    pub(crate) fn replace(&self, address: &str, name: &str, with: impl FnOnce(&Path)) {
        let path = self.device(address).join(name);
        fs::remove_file(&path).unwrap();
        with(&path);
    }

    /// A card with all the files of an RX 7900 XTX, busy at 97 %.
    pub(crate) fn card(&self, card: &str, address: &str) -> &Self {
        for (name, text) in [
            ("vendor", "0x1002\n"),
            ("device", "0x744c\n"),
            ("revision", "0xc8\n"),
            ("uevent", "DRIVER=amdgpu\nPCI_ID=1002:744C\n"),
            ("gpu_busy_percent", "97\n"),
            ("mem_busy_percent", "41\n"),
            ("mem_info_vram_used", "21474836480\n"),
            ("mem_info_vram_total", "25753026560\n"),
            ("mem_info_gtt_used", "62369792\n"),
            ("mem_info_gtt_total", "16786171904\n"),
            ("power/runtime_status", "active\n"),
            ("hwmon/hwmon3/name", "amdgpu\n"),
            ("hwmon/hwmon3/power1_average", "290000000\n"),
            ("hwmon/hwmon3/power1_cap", "303000000\n"),
            ("hwmon/hwmon3/temp1_label", "edge\n"),
            ("hwmon/hwmon3/temp1_input", "61000\n"),
            ("hwmon/hwmon3/temp2_label", "junction\n"),
            ("hwmon/hwmon3/temp2_input", "84000\n"),
            ("hwmon/hwmon3/temp3_label", "mem\n"),
            ("hwmon/hwmon3/temp3_input", "78000\n"),
            ("hwmon/hwmon3/freq1_label", "sclk\n"),
            ("hwmon/hwmon3/freq1_input", "2482000000\n"),
            ("hwmon/hwmon3/freq2_label", "mclk\n"),
            ("hwmon/hwmon3/freq2_input", "1249000000\n"),
            ("hwmon/hwmon3/fan1_input", "1450\n"),
        ] {
            self.write_device(address, name, text);
        }
        let drm = self.root().join("sys/class/drm").join(card);
        fs::create_dir_all(&drm).unwrap();
        symlink(
            format!("../../../devices/pci0000:00/{address}"),
            drm.join("device"),
        )
        .unwrap();
        self
    }
}

/// A FIFO: opening it blocks for ever, as a file of a wedged card does.
pub(crate) fn fifo(path: &Path) {
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
}

/// The folder with the snapshots of real cards, which is not part of the
/// repository. None, with a plain word, where it is not there; that fails when
/// `FPT_REQUIRE_FIXTURES` is 1.
pub(crate) fn snapshots() -> Option<PathBuf> {
    let dir = std::env::var_os("FPT_FIXTURES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/fixtures"),
        PathBuf::from,
    );
    let dir = dir.join("sysfs");
    if dir.is_dir() {
        return Some(dir);
    }
    let required = std::env::var("FPT_REQUIRE_FIXTURES").is_ok_and(|v| v == "1");
    assert!(!required, "no snapshots at {}", dir.display());
    eprintln!(
        "skipped: FPT_FIXTURES has no readings of real cards ({}): nothing is tested here",
        dir.display()
    );
    None
}
