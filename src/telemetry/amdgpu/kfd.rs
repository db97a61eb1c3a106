//! Architecture of a card from the KFD topology.

use std::fs;
use std::path::Path;

use super::super::file;
use super::super::pci::PciAddress;

/// What one topology node says, as far as it is needed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Node {
    gfx_target_version: u32,
    location_id: Option<u32>,
    domain: Option<u32>,
    drm_render_minor: Option<u32>,
}

/// Architecture (`gfx1100`) of the card at `address`, or of the one with that
/// render node where the topology states no location. None where KFD is not
/// there, hides the node, or does not know the card.
pub(super) fn arch(root: &Path, address: Option<PciAddress>, minor: Option<u32>) -> Option<String> {
    let dir = root.join("sys/class/kfd/kfd/topology/nodes");
    let nodes: Vec<Node> = fs::read_dir(dir)
        .ok()?
        .filter_map(Result::ok)
        .filter_map(|entry| file::read_text(&entry.path().join("properties")).ok())
        .map(|text| parse(&text))
        .filter(|node| node.gfx_target_version != 0)
        .collect();
    let here = |node: &&Node| {
        address.is_some_and(|a| {
            node.location_id == Some(a.location()) && node.domain.unwrap_or(0) == a.domain
        })
    };
    let rendered = |node: &&Node| minor.is_some() && node.drm_render_minor == minor;
    let node = nodes
        .iter()
        .find(here)
        .or_else(|| nodes.iter().find(rendered))?;
    Some(gfx_name(node.gfx_target_version))
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
        let found = |s, m| arch(root.path(), at(s), m);
        assert_eq!(found("0000:03:00.0", None).as_deref(), Some("gfx1100"));
        assert_eq!(found("0001:03:00.0", None).as_deref(), Some("gfx1151"));
        assert_eq!(found("0000:44:00.0", Some(129)).as_deref(), Some("gfx1151"));
        assert_eq!(found("0000:44:00.0", None), None);
    }

    proptest! {
        #[test]
        fn any_properties_are_survived(text in "(.*\n){0,8}", version: u32) {
            let _ = parse(&text);
            prop_assert!(gfx_name(version).starts_with("gfx"));
        }
    }
}
