//! Whether NVIDIA's cards sleep, by PCI's sysfs, which wakes nothing.
//!
//! An open handle of NVML, and every query, keeps or wakes a card with power
//! management: a laptop's (btop#1838). Servers' and most desktops' cards have it off
//! (`power/control` is `on`), and for them nothing of this matters.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::file;
use super::super::pci::PciAddress;
use crate::model::{GpuId, is_suspended};

/// One card of NVIDIA on the PCI bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Card {
    /// Its address.
    pub(crate) id: GpuId,
    /// Device id as the kernel writes it, `0x2684`.
    pub(crate) device: String,
    folder: PathBuf,
}

impl Card {
    /// Whether it is suspended now.
    fn sleeps(&self) -> bool {
        let status = file::read_text(&self.folder.join("power/runtime_status"));
        status.is_ok_and(|s| is_suspended(&s))
    }

    /// Whether it may fall asleep when nobody uses it.
    fn may_sleep(&self) -> bool {
        file::read_text(&self.folder.join("power/control")).as_deref() == Ok("auto")
    }
}

/// The cards below `<root>/sys`; none where that does not show them.
pub(crate) fn cards(root: &Path) -> Vec<Card> {
    let Ok(entries) = fs::read_dir(root.join("sys/bus/pci/devices")) else {
        return Vec::new();
    };
    let card = |folder: PathBuf| {
        let id = PciAddress::parse(folder.file_name()?.to_str()?)?.id();
        let is = |name: &str, begin: &str| {
            file::read_text(&folder.join(name)).is_ok_and(|t| t.starts_with(begin))
        };
        // display controllers: 0x0300 VGA, 0x0302 3D
        (is("vendor", "0x10de") && is("class", "0x03")).then(|| Card {
            id,
            device: file::read_text(&folder.join("device")).unwrap_or_default(),
            folder,
        })
    };
    let mut found: Vec<_> = entries.flatten().filter_map(|e| card(e.path())).collect();
    found.sort_by(|a, b| a.id.cmp(&b.id));
    found
}

/// Whether every card sleeps, so that asking NVML would wake one. With one card awake
/// the others are asked as well: NVML cannot list cards without touching them.
pub(crate) fn all_asleep(cards: &[Card]) -> bool {
    !cards.is_empty() && cards.iter().all(Card::sleeps)
}

/// Whether any card falls asleep when it is left alone.
pub(crate) fn any_may_sleep(cards: &[Card]) -> bool {
    cards.iter().any(Card::may_sleep)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::telemetry::testing::Tree;

    /// A laptop's card in a tree.
    pub(crate) fn laptop(tree: &Tree, control: &str, status: &str) {
        let at = |file: &str| format!("sys/bus/pci/devices/0000:01:00.0/{file}");
        tree.write(&at("vendor"), "0x10de\n");
        tree.write(&at("device"), "0x2684\n");
        tree.write(&at("class"), "0x030000\n");
        tree.write(&at("power/control"), control);
        tree.write(&at("power/runtime_status"), status);
    }

    #[test]
    fn only_cards_of_nvidia_count() {
        let tree = Tree::new();
        assert_eq!(cards(tree.root()), []);
        assert!(!all_asleep(&[]));
        laptop(&tree, "auto\n", "suspended\n");
        for (address, vendor, class) in [
            ("0000:01:00.1", "0x10de", "0x040300"),
            ("0000:0c:00.0", "0x1002", "0x030000"),
        ] {
            let at = |file: &str| format!("sys/bus/pci/devices/{address}/{file}");
            tree.write(&at("vendor"), vendor);
            tree.write(&at("class"), class);
            tree.write(&at("power/runtime_status"), "active");
        }
        let found = cards(tree.root());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].id.0, "0000:01:00.0");
        assert!(all_asleep(&found) && any_may_sleep(&found));
        laptop(&tree, "on\n", "active\n");
        assert!(!all_asleep(&found) && !any_may_sleep(&found));
    }
}
