//! Which AMD cards there are.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::file;
use super::super::pci::PciAddress;
use super::super::source::{Answer, Source, SourceError};
use super::{kfd, names};
use crate::model::GpuId;

/// PCI vendor id of AMD's GPUs.
pub(super) const AMD: u32 = 0x1002;
/// Name of the source that looks for cards.
pub(crate) const CARDS_SOURCE: &str = "sysfs";

/// What stays the same of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    /// PCI address.
    pub(crate) id: GpuId,
    /// The same, taken apart; absent where sysfs states none.
    pub(super) address: Option<PciAddress>,
    /// Folder with the card's files.
    pub(super) device: PathBuf,
    /// PCI device id.
    pub(super) device_id: Option<u32>,
    /// Marketing name.
    pub(crate) name: String,
}

impl Identity {
    /// Reads the identity of `cardN`; none where it is not AMD's.
    fn read(card: &Path) -> Option<Self> {
        let link = card.join("device");
        let uevent = file::read_text(&link.join("uevent")).unwrap_or_default();
        let pci_id = uevent_value(&uevent, "PCI_ID").and_then(|v| v.split_once(':'));
        let vendor = file::read_text(&link.join("vendor"))
            .ok()
            .and_then(|text| file::hex(&text))
            .or_else(|| file::hex(pci_id?.0))?;
        if vendor != AMD {
            return None;
        }
        let number = |name: &str| {
            file::read_text(&link.join(name))
                .ok()
                .and_then(|text| file::hex(&text))
        };
        let device_id = number("device").or_else(|| file::hex(pci_id?.1));
        let real = fs::canonicalize(&link).ok();
        let by_path = real
            .as_deref()
            .and_then(Path::file_name)
            .and_then(|name| PciAddress::parse(&name.to_string_lossy()));
        let address =
            by_path.or_else(|| uevent_value(&uevent, "PCI_SLOT_NAME").and_then(PciAddress::parse));
        // The number of the card may change, so its PCI folder is kept where the
        // link shows it. Without any address the DRM name must do.
        let device = match (by_path, real) {
            (Some(_), Some(real)) => real,
            _ => link.clone(),
        };
        let id = address.map_or_else(
            || {
                GpuId(
                    card.file_name()
                        .unwrap_or_default()
                        .to_string_lossy()
                        .into_owned(),
                )
            },
            PciAddress::id,
        );
        Some(Self {
            id,
            address,
            device,
            device_id,
            name: names::name(device_id, number("revision")),
        })
    }

    /// Architecture and place among the cards of HIP from KFD; else the architecture by
    /// PCI id.
    pub(super) fn topology(&self, root: &Path) -> kfd::Found {
        let mut found = kfd::find(root, self.address, self.render_minor()).unwrap_or_default();
        let by_id = || names::chip(self.device_id?).map(|chip| chip.arch.to_owned());
        found.arch = found.arch.or_else(by_id);
        found
    }

    /// Whether the PCI id is known as an APU's; none where the id is unknown.
    pub(super) fn known_apu(&self) -> Option<bool> {
        names::chip(self.device_id?).map(|chip| chip.apu)
    }

    fn render_minor(&self) -> Option<u32> {
        fs::read_dir(self.device.join("drm"))
            .ok()?
            .filter_map(Result::ok)
            .find_map(|entry| {
                let name = entry.file_name();
                name.to_string_lossy().strip_prefix("renderD")?.parse().ok()
            })
    }
}

/// Value of `KEY=value` in a uevent file.
fn uevent_value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .find(|(k, _)| *k == key)
        .map(|(_, value)| value.trim())
}

/// Whether a DRM name is a card and not one of its connectors (`card0-DP-1`).
fn is_card(name: &str) -> bool {
    name.strip_prefix("card")
        .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// Every AMD card below `root`, by PCI address. Reads identity files only, which
/// the PCI core answers without waking a card.
pub(super) fn scan(root: &Path) -> std::io::Result<Vec<Identity>> {
    let mut cards: Vec<Identity> = fs::read_dir(root.join("sys/class/drm"))?
        .filter_map(Result::ok)
        .filter(|entry| is_card(&entry.file_name().to_string_lossy()))
        .filter_map(|entry| Identity::read(&entry.path()))
        .collect();
    cards.sort_by(|a, b| a.id.cmp(&b.id));
    cards.dedup_by(|a, b| a.id == b.id);
    Ok(cards)
}

/// Looks for cards again and again, so that one that comes later is seen.
#[derive(Debug)]
pub(crate) struct CardScan {
    /// Folder that has `sys` in it.
    pub(crate) root: PathBuf,
}

impl Source for CardScan {
    type Reading = Vec<Identity>;

    fn name(&self) -> String {
        CARDS_SOURCE.to_owned()
    }

    fn read(&mut self) -> Result<Answer<Self::Reading>, SourceError> {
        match scan(&self.root) {
            Ok(cards) if cards.is_empty() => Err(SourceError::Absent(
                "no card of AMD with the amdgpu driver".to_owned(),
            )),
            Ok(cards) => Ok(Answer::good(cards)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(SourceError::Absent(
                "no /sys/class/drm here: no GPU driver, a container or WSL2".to_owned(),
            )),
            Err(error) => Err(SourceError::Failed(format!("/sys/class/drm: {error}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::testing::Tree;
    use super::*;

    #[test]
    fn cards_are_amds_in_order_of_their_address() {
        let tree = Tree::new();
        tree.card("card1", "0000:03:00.0")
            .card("card0", "0000:c1:00.0");
        tree.card("card2", "0000:0a:00.0");
        tree.write_device("0000:0a:00.0", "vendor", "0x10de\n");
        tree.write("sys/class/drm/card1-DP-1/status", "connected\n");
        tree.write("sys/class/drm/renderD128/dev", "226:128\n");
        let cards = scan(tree.root()).unwrap();
        let ids: Vec<_> = cards.iter().map(|c| c.id.0.as_str()).collect();
        assert_eq!(ids, ["0000:03:00.0", "0000:c1:00.0"]);
        assert!(cards[0].device.ends_with("0000:03:00.0"));
        assert_eq!(cards[0].name, "AMD Radeon RX 7900 XTX");
    }

    #[test]
    fn a_machine_without_cards_says_so() {
        let tree = Tree::new();
        let mut source = CardScan {
            root: tree.root().to_owned(),
        };
        assert!(matches!(source.read(), Err(SourceError::Absent(_))));
        tree.write("sys/class/drm/version", "drm 1.1.0\n");
        assert!(matches!(source.read(), Err(SourceError::Absent(_))));
    }

    proptest! {
        #[test]
        fn any_uevent_is_survived(text in "(.*\n){0,6}") {
            let _ = uevent_value(&text, "PCI_ID").and_then(|v| v.split_once(':'));
            let _ = is_card(&text);
        }
    }
}
