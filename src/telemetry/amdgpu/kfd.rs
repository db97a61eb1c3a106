//! A card in the KFD topology: its architecture, and its place among the cards of HIP.
//!
//! HIP numbers the cards in the order of the topology's nodes: ROCr walks them by number
//! and takes each that has compute units (`BuildTopology` in `amd_topology.cpp`), and
//! HIP's runtime keeps that order (`Device::init` in `rocdevice.cpp`), with no preference
//! for a card over an APU. The limits: it is the order before any `*_VISIBLE_DEVICES`; a
//! card that the user's ROCm has no code for is left out by it and still counted here;
//! nodes that a container hides are left out by both; a card in several partitions has
//! the place of its first. ROCm on Windows and under WSL goes by other rules.

use std::fs;
use std::path::Path;

use super::super::file;
use super::super::pci::PciAddress;

/// What the topology tells of a card.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// Architecture (`gfx1100`).
    pub(super) arch: Option<String>,
    /// Place in HIP's list, from 0.
    pub(super) compute_index: Option<u32>,
}

/// What one topology node says, as far as it is needed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Node {
    gfx_target_version: u32,
    simd_count: Option<u32>,
    location_id: Option<u32>,
    domain: Option<u32>,
    drm_render_minor: Option<u32>,
}

impl Node {
    /// Whether it has compute units; by its architecture where it does not count them.
    fn computes(&self) -> bool {
        self.simd_count.unwrap_or(self.gfx_target_version) != 0
    }
}

/// What is known of the card at `address`, or of the one with that render node where the
/// topology states no location. None where KFD is not there, hides the node, or does not
/// know the card.
pub(super) fn find(root: &Path, address: Option<PciAddress>, minor: Option<u32>) -> Option<Found> {
    let dir = root.join("sys/class/kfd/kfd/topology/nodes");
    let mut nodes: Vec<(u32, Node)> = fs::read_dir(dir)
        .ok()?
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.parse().ok()?;
            let text = file::read_text(&entry.path().join("properties")).ok()?;
            Some((number, parse(&text)))
        })
        .filter(|(_, node)| node.computes())
        .collect();
    nodes.sort_by_key(|(number, _)| *number);
    let here = |node: &Node| {
        address.is_some_and(|a| {
            node.location_id == Some(a.location()) && node.domain.unwrap_or(0) == a.domain
        })
    };
    let rendered = |node: &Node| minor.is_some() && node.drm_render_minor == minor;
    let place = |is: &dyn Fn(&Node) -> bool| nodes.iter().position(|(_, node)| is(node));
    let place = place(&here).or_else(|| place(&rendered))?;
    let version = nodes.get(place)?.1.gfx_target_version;
    Some(Found {
        arch: (version != 0).then(|| gfx_name(version)),
        compute_index: u32::try_from(place).ok(),
    })
}

/// `properties`: one key and one number a line.
fn parse(text: &str) -> Node {
    let mut node = Node::default();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(' ') else {
            continue;
        };
        let Ok(value) = value.trim().parse::<u32>() else {
            continue;
        };
        match key {
            "gfx_target_version" => node.gfx_target_version = value,
            "simd_count" => node.simd_count = Some(value),
            "location_id" => node.location_id = Some(value),
            "domain" => node.domain = Some(value),
            "drm_render_minor" => node.drm_render_minor = Some(value),
            _ => {}
        }
    }
    node
}

/// 110501 is `gfx1151`: major, minor and stepping as two decimal digits each; the
/// last two are written in hexadecimal (90010 is `gfx90a`).
fn gfx_name(version: u32) -> String {
    format!(
        "gfx{}{:x}{:x}",
        version / 10_000,
        version / 100 % 100,
        version % 100
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn versions_become_names() {
        for (version, name) in [
            (110_000, "gfx1100"),
            (110_501, "gfx1151"),
            (120_001, "gfx1201"),
            (100_300, "gfx1030"),
            (90_010, "gfx90a"),
            (90_402, "gfx942"),
        ] {
            assert_eq!(gfx_name(version), name);
        }
    }

    #[test]
    fn a_node_is_found_by_place_then_by_render_node() {
        let root = tempfile::tempdir().unwrap();
        let node = |n: u32, text: &str| {
            let dir = root
                .path()
                .join(format!("sys/class/kfd/kfd/topology/nodes/{n}"));
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("properties"), text).unwrap();
        };
        node(0, "gfx_target_version 0\nlocation_id 0\ndomain 0\n");
        node(
            1,
            "gfx_target_version 110000\nlocation_id 768\ndomain 0\ndrm_render_minor 128\n",
        );
        node(
            2,
            "gfx_target_version 110501\nlocation_id 768\ndomain 1\ndrm_render_minor 129\n",
        );
        let at = |s| PciAddress::parse(s);
        let found = |s, m| find(root.path(), at(s), m).and_then(|f| f.arch);
        assert_eq!(found("0000:03:00.0", None).as_deref(), Some("gfx1100"));
        assert_eq!(found("0001:03:00.0", None).as_deref(), Some("gfx1151"));
        assert_eq!(found("0000:44:00.0", Some(129)).as_deref(), Some("gfx1151"));
        assert_eq!(found("0000:44:00.0", None), None);
    }

    #[test]
    fn the_place_is_that_among_computing_nodes_by_number() {
        let root = tempfile::tempdir().unwrap();
        for (n, simds, location) in [(0, 0, 0), (2, 96, 0x0300), (10, 4, 0xc100), (9, 64, 0x0a00)] {
            let dir = root
                .path()
                .join(format!("sys/class/kfd/kfd/topology/nodes/{n}"));
            fs::create_dir_all(&dir).unwrap();
            let text = format!(
                "cpu_cores_count 0\nsimd_count {simds}\ngfx_target_version 110000\nlocation_id {location}\n"
            );
            fs::write(dir.join("properties"), text).unwrap();
        }
        let place = |s| find(root.path(), PciAddress::parse(s), None)?.compute_index;
        assert_eq!(place("0000:03:00.0"), Some(0));
        assert_eq!(place("0000:0a:00.0"), Some(1), "9 comes before 10");
        assert_eq!(place("0000:c1:00.0"), Some(2));
        assert_eq!(place("0000:44:00.0"), None);
    }

    proptest! {
        #[test]
        fn any_properties_are_survived(text in "(.*\n){0,8}", version: u32) {
            let _ = parse(&text);
            prop_assert!(gfx_name(version).starts_with("gfx"));
        }
    }
}
