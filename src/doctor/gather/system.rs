//! Kernel, driver, ROCm, container, devices on the bus.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::file;
use crate::doctor::facts::{PciDisplay, SystemFacts};

/// Vendor id of AMD on the PCI bus.
const AMD: &str = "0x1002";
/// PCI class of display devices.
const DISPLAY: &str = "0x03";
/// Devices on the bus that are looked at.
const MOST_DEVICES: usize = 4096;

/// Looks at everything below `root`.
pub(super) fn look(root: &Path, env: &BTreeMap<String, String>) -> SystemFacts {
    let at = |p: &str| root.join(p);
    let module = at("sys/module/amdgpu");
    let rocm = rocm(root, env);
    SystemFacts {
        kernel: rustix::system::uname()
            .release()
            .to_string_lossy()
            .into_owned(),
        sysfs: at("sys/class").is_dir(),
        amdgpu_loaded: module.is_dir(),
        amdgpu_version: file::text(&module.join("version"), 256),
        rocm: rocm.as_ref().map(|(version, _)| version.clone()),
        rocm_path: rocm.map(|(_, path)| path.display().to_string()),
        container: container(root, env),
        wsl: at("dev/dxg").exists()
            || file::text(&at("proc/sys/kernel/osrelease"), 256)
                .is_some_and(|r| r.to_lowercase().contains("microsoft")),
        amd_devices: amd_devices(&at("sys/bus/pci/devices")),
    }
}

/// Version and folder of the ROCm installation.
fn rocm(root: &Path, env: &BTreeMap<String, String>) -> Option<(String, PathBuf)> {
    folders_of_rocm(root, env).into_iter().find_map(|folder| {
        let version = file::text(&folder.join(".info/version"), 256)?;
        (!version.is_empty()).then_some((version, folder))
    })
}

/// Where ROCm may be installed, the user's own word first.
pub(super) fn folders_of_rocm(root: &Path, env: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let named = ["ROCM_PATH", "ROCM_HOME"]
        .iter()
        .filter_map(|n| env.get(*n));
    let named = named.filter(|p| !p.is_empty()).map(PathBuf::from);
    named.chain([root.join("opt/rocm")]).collect()
}

/// What says that this is a container.
fn container(root: &Path, env: &BTreeMap<String, String>) -> Option<String> {
    let marks = [(".dockerenv", "docker"), ("run/.containerenv", "podman")];
    let by_file = marks.iter().find(|(mark, _)| root.join(mark).exists());
    by_file
        .map(|(_, name)| (*name).to_owned())
        .or_else(|| file::text(&root.join("run/systemd/container"), 64))
        .or_else(|| env.get("container").cloned())
        .filter(|name| !name.is_empty())
}

fn amd_devices(bus: &Path) -> Vec<PciDisplay> {
    let all = file::names(bus, MOST_DEVICES).into_iter();
    all.filter_map(|address| {
        let device = bus.join(&address);
        let starts = |name: &str, with: &str| {
            file::text(&device.join(name), 32).is_some_and(|t| t.starts_with(with))
        };
        (starts("vendor", AMD) && starts("class", DISPLAY)).then(|| PciDisplay {
            driver: std::fs::read_link(device.join("driver"))
                .ok()
                .and_then(|to| Some(to.file_name()?.to_string_lossy().into_owned())),
            address,
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_empty_tree_is_no_system_with_zeros() {
        let dir = tempfile::tempdir().unwrap();
        let seen = look(dir.path(), &BTreeMap::new());
        assert!(!seen.sysfs && !seen.amdgpu_loaded && !seen.wsl);
        assert_eq!(
            (seen.rocm, seen.amdgpu_version, seen.container),
            (None, None, None)
        );
    }

    #[test]
    fn what_is_there_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("sys/module/amdgpu/version", "6.12.12\n");
        put("opt/rocm/.info/version", "6.4.1-83\n");
        put("run/.containerenv", "");
        put("sys/bus/pci/devices/0000:03:00.0/vendor", "0x1002\n");
        put("sys/bus/pci/devices/0000:03:00.0/class", "0x030000\n");
        put("sys/bus/pci/devices/0000:03:00.1/vendor", "0x1002\n");
        put("sys/bus/pci/devices/0000:03:00.1/class", "0x040300\n");
        std::os::unix::fs::symlink(
            "../../../bus/pci/drivers/vfio-pci",
            dir.path().join("sys/bus/pci/devices/0000:03:00.0/driver"),
        )
        .unwrap();
        let seen = look(dir.path(), &BTreeMap::new());
        assert_eq!(seen.amdgpu_version.as_deref(), Some("6.12.12"));
        assert_eq!(seen.rocm.as_deref(), Some("6.4.1-83"));
        assert_eq!(seen.container.as_deref(), Some("podman"));
        assert_eq!(
            seen.amd_devices,
            [PciDisplay {
                address: "0000:03:00.0".to_owned(),
                driver: Some("vfio-pci".to_owned()),
            }]
        );
    }
}
