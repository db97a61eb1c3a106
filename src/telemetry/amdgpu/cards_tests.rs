//! Several cards: their order, their place in HIP's list, and what happens to one of
//! them while the others go on.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use super::super::attention::Attention;
use super::super::source::Source;
use super::super::testing::Tree;
use super::{CardScan, CardSource};
use crate::model::{GpuSample, Metric};

const APU: &str = "0000:c1:00.0";
const FIRST: &str = "0000:03:00.0";
const SECOND: &str = "0000:0a:00.0";

/// Turns an imitated card into the graphics part of a processor.
fn as_apu(tree: &Tree, address: &str) {
    tree.write_device(address, "device", "0x1586\n");
    tree.write_device(address, "revision", "0xc1\n");
    for name in [
        "mem_busy_percent",
        "hwmon/hwmon3/power1_cap",
        "hwmon/hwmon3/fan1_input",
        "hwmon/hwmon3/temp2_input",
        "hwmon/hwmon3/temp3_input",
        "hwmon/hwmon3/freq2_input",
    ] {
        tree.replace(address, name, |_missing| ());
    }
}

/// A node of the KFD topology: bus of the card, and its architecture.
fn node(tree: &Tree, number: u32, bus: u32, gfx: u32) {
    let path = format!("sys/class/kfd/kfd/topology/nodes/{number}/properties");
    let units = if gfx == 0 { 0 } else { 64 };
    let location = bus << 8;
    tree.write(
        &path,
        &format!(
            "simd_count {units}\ngfx_target_version {gfx}\nlocation_id {location}\ndomain 0\n"
        ),
    );
}

/// The processor's graphics were probed first, so they are card0 and come first in HIP.
fn three() -> Tree {
    let tree = Tree::new();
    tree.card("card0", APU).card("card1", FIRST);
    tree.card("card2", SECOND);
    as_apu(&tree, APU);
    tree.write_device(SECOND, "device", "0x7550\n");
    node(&tree, 0, 0, 0);
    node(&tree, 1, 0xc1, 110_501);
    node(&tree, 2, 0x03, 110_000);
    node(&tree, 3, 0x0a, 120_001);
    tree
}

fn sources(tree: &Tree) -> Vec<CardSource> {
    let mut scan = CardScan {
        root: tree.root().to_owned(),
    };
    let attention = Arc::new(Attention::default());
    attention.set_supervised(true, true);
    let cards = scan.read().unwrap().reading;
    cards
        .into_iter()
        .map(|id| CardSource::new(tree.root().to_owned(), id, Arc::clone(&attention)))
        .collect()
}

fn read(sources: &mut [CardSource]) -> Vec<GpuSample> {
    let mut read = |s: &mut CardSource| s.read().unwrap().reading;
    sources.iter_mut().map(&mut read).collect()
}

fn is(sample: &GpuSample, state: &str) -> bool {
    sample.state == Metric::Fresh(state.to_owned())
}

#[test]
fn three_cards_go_by_address_and_tell_their_place_in_hip() {
    let tree = three();
    let all = read(&mut sources(&tree));
    let shown: Vec<_> = all
        .iter()
        .map(|s| {
            (
                s.id.0.as_str(),
                s.arch.as_deref().unwrap(),
                s.apu,
                s.compute_index,
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            (FIRST, "gfx1100", false, Some(1)),
            (SECOND, "gfx1201", false, Some(2)),
            (APU, "gfx1151", true, Some(0)),
        ]
    );
    assert_eq!(all[2].power_cap_w, Metric::Unsupported);
    assert_eq!(all[0].power_cap_w, Metric::Fresh(303.0));
}

#[test]
fn two_cards_whose_order_differs_from_hips_and_one_that_hip_does_not_know() {
    let tree = Tree::new();
    let apu = "0000:00:01.0";
    tree.card("card0", apu).card("card1", FIRST);
    as_apu(&tree, apu);
    node(&tree, 1, 0x03, 110_000);
    let all = read(&mut sources(&tree));
    assert_eq!((all[0].id.0.as_str(), all[0].compute_index), (apu, None));
    assert_eq!(
        (all[1].id.0.as_str(), all[1].compute_index),
        (FIRST, Some(0))
    );
}

#[test]
fn hwmon_folders_that_change_places_are_found_again() {
    let tree = three();
    let mut sources = sources(&tree);
    read(&mut sources);
    for (address, new, edge) in [(FIRST, 9, 51), (SECOND, 1, 52), (APU, 12, 53)] {
        let hwmon = tree.device(address).join("hwmon");
        fs::rename(hwmon.join("hwmon3"), hwmon.join(format!("hwmon{new}"))).unwrap();
        let text = format!("{}\n", edge * 1000);
        tree.write_device(address, &format!("hwmon/hwmon{new}/temp1_input"), &text);
    }
    let edges: Vec<_> = read(&mut sources)
        .into_iter()
        .map(|s| s.temp_edge)
        .collect();
    assert_eq!(edges, [51.0, 52.0, 53.0].map(Metric::Fresh));
}

#[test]
fn one_card_vanishes_and_comes_back_under_another_number() {
    let tree = three();
    let mut sources = sources(&tree);
    read(&mut sources);
    let away = tree.root().join("away");
    fs::rename(tree.device(SECOND), &away).unwrap();
    fs::remove_dir_all(tree.root().join("sys/class/drm/card2")).unwrap();
    fs::remove_dir_all(tree.root().join("sys/class/kfd/kfd/topology/nodes/3")).unwrap();
    for _ in 0..2 {
        let all = read(&mut sources);
        assert!(is(&all[1], "gone"));
        assert!(matches!(all[1].busy, Metric::Failed { .. }));
        assert!(matches!(all[1].vram_used, Metric::Failed { .. }));
        for other in [&all[0], &all[2]] {
            assert!(is(other, "active"));
            assert_eq!(other.busy, Metric::Fresh(97.0));
        }
    }
    fs::rename(&away, tree.device(SECOND)).unwrap();
    let hwmon = tree.device(SECOND).join("hwmon");
    fs::rename(hwmon.join("hwmon3"), hwmon.join("hwmon7")).unwrap();
    let drm = tree.root().join("sys/class/drm/card5");
    fs::create_dir(&drm).unwrap();
    symlink(
        format!("../../../devices/pci0000:00/{SECOND}"),
        drm.join("device"),
    )
    .unwrap();
    tree.write_device(SECOND, "gpu_busy_percent", "4\n");
    node(&tree, 1, 0x0a, 120_001);
    node(&tree, 4, 0xc1, 110_501);
    let all = read(&mut sources);
    assert!(is(&all[1], "active"));
    assert_eq!(all[1].busy, Metric::Fresh(4.0));
    assert_eq!(all[1].temp_edge, Metric::Fresh(61.0));
    assert_eq!(all[1].compute_index, Some(0), "the topology was built anew");
    assert_eq!(super::card::scan(tree.root()).unwrap().len(), 3);
}

#[test]
fn nothing_new_is_read_of_a_sleeping_card() {
    let tree = Tree::new();
    tree.card("card0", FIRST);
    tree.write_device(FIRST, "power/runtime_status", "suspended\n");
    let read_later = [
        "gpu_metrics",
        "vcn_busy_percent",
        "current_link_speed",
        "current_link_width",
        "max_link_speed",
        "power_dpm_force_performance_level",
        "gfx_reset_mask",
        "pp_dpm_sclk",
        "hwmon/hwmon3/pwm1",
        "hwmon/hwmon3/pwm1_max",
    ];
    for name in read_later {
        // A FIFO blocks whoever opens it: the reading would never come back.
        let path = tree.device(FIRST).join(name);
        super::super::testing::fifo(&path);
    }
    let s = read(&mut sources(&tree)).remove(0);
    assert!(is(&s, "suspended"));
    let asleep = |value: serde_json::Value| {
        let why = value["failed"]["why"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert!(why.contains("sleeps"), "{value}");
    };
    asleep(serde_json::to_value(&s.throttle).unwrap());
    asleep(serde_json::to_value(&s.video_busy).unwrap());
    asleep(serde_json::to_value(&s.link).unwrap());
    asleep(serde_json::to_value(&s.perf_level).unwrap());
    asleep(serde_json::to_value(&s.resets).unwrap());
    asleep(serde_json::to_value(&s.fan_percent).unwrap());
}
