//! The PCIe link of a card.
//!
//! The link's files are the PCI core's, not the driver's. On newer kernels reading them
//! wakes the device, on older ones a sleeping device answers nonsense: so they are read
//! only where the rest of the card is read as well.

use std::path::{Path, PathBuf};

use super::super::file::{self, ReadError, ReadResult};
use super::card::AMD;
use crate::model::Link;

/// File that is there where the rest is.
pub(super) const FILE: &str = "current_link_speed";
const MAX_SPEED: &str = "max_link_speed";
const MAX_WIDTH: &str = "max_link_width";
/// PCI class of a bridge between two PCI buses.
const BRIDGE: u32 = 0x0604;

/// The folder whose link is the one into the slot. Larger cards carry a switch of AMD's
/// own, and the graphics part always runs at full speed behind it: so the topmost bridge
/// of AMD's graphics division above the card counts. (The ports of AMD's processors have
/// another vendor id.)
pub(super) fn folder(device: &Path) -> PathBuf {
    let number = |dir: &Path, name: &str| {
        let text = file::read_text(&dir.join(name)).ok()?;
        file::hex(&text)
    };
    device
        .ancestors()
        .skip(1)
        .take_while(|dir| {
            number(dir, "vendor") == Some(AMD)
                && number(dir, "class").is_some_and(|class| class >> 8 == BRIDGE)
        })
        .last()
        .unwrap_or(device)
        .to_owned()
}

/// Reads the link of a folder. `max_link_*` of a device is what that device can do; the link is at
/// its best at the lesser of the card's and of the slot's, which is the port above the card.
pub(super) fn read(dir: &Path) -> ReadResult<Link> {
    let slot = dir.parent();
    let of_slot = |name: &str| slot.map(|slot| slot.join(name));
    let slot_gts = of_slot(MAX_SPEED).and_then(|path| gts(&file::read_text(&path).ok()?));
    let slot_width = of_slot(MAX_WIDTH).and_then(|path| lanes(&file::read_text(&path).ok()?));
    let max_gts = text(dir, MAX_SPEED, gts).ok();
    let max_width = text(dir, MAX_WIDTH, lanes).ok();
    Ok(Link {
        gts: text(dir, FILE, gts)?,
        width: text(dir, "current_link_width", lanes)?,
        max_gts: max_gts.map(|card| slot_gts.map_or(card, |slot| slot.min(card))),
        max_width: max_width.map(|card| slot_width.map_or(card, |slot| slot.min(card))),
    })
}

fn text<T>(dir: &Path, name: &str, parse: fn(&str) -> Option<T>) -> ReadResult<T> {
    let path = dir.join(name);
    let text = file::read_text(&path)?;
    parse(&text)
        .ok_or_else(|| ReadError::text(&path, format!("`{}` is no link", file::short(&text))))
}

/// `16.0 GT/s PCIe`; without the last word on old kernels, `Unknown` when it is down.
fn gts(text: &str) -> Option<f64> {
    let speed: f64 = text.split_once(" GT/s")?.0.parse().ok()?;
    (speed.is_finite() && speed > 0.0).then_some(speed)
}

/// 1 to 32; 0, 63 or 255 stand for a link that is down.
fn lanes(text: &str) -> Option<u8> {
    text.parse().ok().filter(|lanes| (1..=32).contains(lanes))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn speeds_and_widths_that_are_none_are_refused() {
        for (text, speed) in [
            ("16.0 GT/s PCIe", Some(16.0)),
            ("2.5 GT/s", Some(2.5)),
            ("8 GT/s", Some(8.0)),
            ("Unknown", None),
            ("Unknown speed", None),
            ("0 GT/s", None),
            ("inf GT/s", None),
            ("", None),
        ] {
            assert_eq!(gts(text), speed, "{text}");
        }
        for (text, width) in [
            ("16", Some(16)),
            ("0", None),
            ("63", None),
            ("255", None),
            ("", None),
        ] {
            assert_eq!(lanes(text), width, "{text}");
        }
    }

    #[test]
    fn the_slot_counts_and_not_the_cards_own_switch() {
        let root = tempfile::tempdir().unwrap();
        let port = root.path().join("0000:00:01.0");
        let up = port.join("0000:01:00.0");
        let card = up.join("0000:02:00.0/0000:03:00.0");
        fs::create_dir_all(&card).unwrap();
        for (dir, vendor, class, speed, width) in [
            (port.as_path(), "0x1022", "0x060400", "8.0 GT/s PCIe", "8"),
            (&up, "0x1002", "0x060400", "8.0 GT/s PCIe", "4"),
            (
                card.parent().unwrap(),
                "0x1002",
                "0x060400",
                "16.0 GT/s PCIe",
                "16",
            ),
            (&card, "0x1002", "0x030000", "16.0 GT/s PCIe", "16"),
        ] {
            fs::write(dir.join("vendor"), vendor).unwrap();
            fs::write(dir.join("class"), class).unwrap();
            fs::write(dir.join("current_link_speed"), speed).unwrap();
            fs::write(dir.join("current_link_width"), width).unwrap();
        }
        assert_eq!(folder(&card), up);
        let link = Link {
            gts: 8.0,
            width: 4,
            max_gts: None,
            max_width: None,
        };
        assert_eq!(read(&folder(&card)), Ok(link));
        assert_eq!(folder(&port), port);
        let best = |dir: &Path, speed, width| {
            fs::write(dir.join(MAX_SPEED), speed).unwrap();
            fs::write(dir.join(MAX_WIDTH), width).unwrap();
            let link = read(&up).unwrap();
            (link.max_gts, link.max_width)
        };
        let of_card = best(&up, "16.0 GT/s PCIe", "16");
        assert_eq!(of_card, (Some(16.0), Some(16)), "the slot tells nothing");
        let of_both = best(&port, "8.0 GT/s PCIe", "32");
        assert_eq!(of_both, (Some(8.0), Some(16)), "the lesser of each");
        fs::write(up.join("current_link_speed"), "Unknown\n").unwrap();
        let error = read(&up).unwrap_err().to_string();
        assert_eq!(error, "current_link_speed: `Unknown` is no link");
        assert_eq!(read(root.path()), Err(ReadError::Missing));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in ".*") {
            if let Some(speed) = gts(&text) {
                prop_assert!(speed > 0.0 && speed.is_finite());
            }
            let _ = lanes(&text);
        }
    }
}
