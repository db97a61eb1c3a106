//! Who we are, and which device nodes we may open.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Access, access};

use super::file;
use crate::doctor::facts::{DeviceNode, UserFacts};

/// Longest list of users or groups that is read.
const LONGEST: u64 = 4 << 20;
/// Render nodes that are looked at.
const MOST_NODES: usize = 256;

/// Groups of `/etc/group`.
#[derive(Debug, Default)]
struct Groups {
    names: BTreeMap<u32, String>,
    members: BTreeMap<String, Vec<String>>,
}

impl Groups {
    fn read(root: &Path) -> Self {
        let text = file::text(&root.join("etc/group"), LONGEST).unwrap_or_default();
        let mut groups = Self::default();
        for line in text.lines() {
            let parts: Vec<&str> = line.split(':').collect();
            let [name, _, number, members] = parts[..] else {
                continue;
            };
            let Ok(number) = number.parse() else { continue };
            groups.names.insert(number, name.to_owned());
            let members = members.split(',').map(|m| m.trim().to_owned());
            groups.members.insert(name.to_owned(), members.collect());
        }
        groups
    }

    fn name(&self, number: u32) -> String {
        let name = self.names.get(&number);
        name.map_or_else(|| number.to_string(), Clone::clone)
    }
}

/// Who we are.
pub(super) fn user(root: &Path) -> UserFacts {
    let uid = rustix::process::geteuid().as_raw();
    let groups = Groups::read(root);
    let passwd = file::text(&root.join("etc/passwd"), LONGEST).unwrap_or_default();
    let name = passwd.lines().find_map(|line| {
        let mut parts = line.split(':');
        let name = parts.next()?;
        (parts.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    });
    let own = rustix::process::getgroups().unwrap_or_default();
    let mut numbers: Vec<u32> = own.iter().map(|g| g.as_raw()).collect();
    numbers.push(rustix::process::getegid().as_raw());
    numbers.sort_unstable();
    numbers.dedup();
    let in_force: Vec<String> = numbers.iter().map(|n| groups.name(*n)).collect();
    let given = groups
        .members
        .iter()
        .filter(|(_, members)| name.as_ref().is_some_and(|name| members.contains(name)));
    let not_in_force = given
        .map(|(group, _)| group.clone())
        .filter(|g| !in_force.contains(g))
        .collect();
    UserFacts {
        name,
        uid,
        groups: in_force,
        not_in_force,
    }
}

/// `/dev/kfd` and the render nodes, as far as they exist.
pub(super) fn devices(root: &Path) -> Vec<DeviceNode> {
    let groups = Groups::read(root);
    let dri = root.join("dev/dri");
    let render = file::names(&dri, MOST_NODES);
    let render = render.iter().filter(|n| n.starts_with("renderD"));
    let nodes = render.map(|n| (format!("/dev/dri/{n}"), pci_of(root, n)));
    [("/dev/kfd".to_owned(), None)]
        .into_iter()
        .chain(nodes)
        .filter_map(|(path, pci)| node(root, path, pci, &groups))
        .collect()
}

/// PCI address of a render node's card.
fn pci_of(root: &Path, name: &str) -> Option<String> {
    let device = root.join("sys/class/drm").join(name).join("device");
    let device = device.canonicalize().ok()?;
    Some(device.file_name()?.to_string_lossy().into_owned())
}

fn node(root: &Path, path: String, pci: Option<String>, groups: &Groups) -> Option<DeviceNode> {
    let real = root.join(path.trim_start_matches('/'));
    let told = std::fs::metadata(&real).ok()?;
    let refused = access(&real, Access::READ_OK | Access::WRITE_OK).err();
    Some(DeviceNode {
        path,
        pci,
        group: groups.name(told.gid()),
        mode: format!("{:04o}", told.mode() & 0o7777),
        accessible: refused.is_none(),
        why: refused.map(|e| file::words(&io::Error::from(e))),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn nodes_are_told_with_group_and_card() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for folder in [
            "dev/dri",
            "etc",
            "sys/class/drm/renderD128",
            "sys/devices/0000:03:00.0",
        ] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("dev/kfd"), "").unwrap();
        fs::write(root.join("dev/dri/renderD128"), "").unwrap();
        fs::write(root.join("dev/dri/card0"), "").unwrap();
        let gid = fs::metadata(root.join("dev/kfd")).unwrap().gid();
        fs::write(
            root.join("etc/group"),
            format!("broken\nrender:x:{gid}:u\n"),
        )
        .unwrap();
        std::os::unix::fs::symlink(
            "../../../devices/0000:03:00.0",
            root.join("sys/class/drm/renderD128/device"),
        )
        .unwrap();
        let nodes = devices(root);
        let paths: Vec<_> = nodes.iter().map(|n| n.path.as_str()).collect();
        assert_eq!(paths, ["/dev/kfd", "/dev/dri/renderD128"]);
        assert!(nodes.iter().all(|n| n.group == "render" && n.accessible));
        assert_eq!(nodes[1].pci.as_deref(), Some("0000:03:00.0"));
        assert!(devices(&root.join("etc")).is_empty());
    }
}
