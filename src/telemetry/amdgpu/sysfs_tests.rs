use std::fs;

use super::super::super::testing::{Tree, snapshots};
use super::*;
use crate::model::Bytes;

const ADDRESS: &str = "0000:0c:00.0";

fn source(tree: &Tree) -> (CardSource, Arc<Attention>) {
    let identity = card::scan(tree.root()).unwrap().remove(0);
    let attention = Arc::new(Attention::default());
    let source = CardSource::new(tree.root().to_owned(), identity, Arc::clone(&attention));
    (source, attention)
}

fn imitated() -> Tree {
    let tree = Tree::new();
    tree.card("card0", ADDRESS);
    tree
}

fn read(source: &mut CardSource) -> GpuSample {
    source.read().unwrap().reading
}

fn why<T: std::fmt::Debug>(metric: &Metric<T>) -> String {
    match metric {
        Metric::Failed { why, .. } => why.clone(),
        other => panic!("not failed: {other:?}"),
    }
}

#[test]
fn every_field_is_read_in_its_unit() {
    let tree = imitated();
    tree.write(
        "sys/class/kfd/kfd/topology/nodes/1/properties",
        "gfx_target_version 110000\nlocation_id 3072\ndomain 0\n",
    );
    let (mut source, _) = source(&tree);
    let s = read(&mut source);
    assert_eq!(s.id.0, ADDRESS);
    assert_eq!(s.name, "AMD Radeon RX 7900 XTX");
    assert_eq!(s.arch.as_deref(), Some("gfx1100"));
    assert!(!s.apu);
    assert_eq!(s.state, Metric::Fresh("active".to_owned()));
    assert_eq!(s.busy, Metric::Fresh(97.0));
    assert_eq!(s.mem_busy, Metric::Fresh(41.0));
    assert_eq!(s.power_w, Metric::Fresh(290.0));
    assert_eq!(s.power_cap_w, Metric::Fresh(303.0));
    assert_eq!(s.vram_used, Metric::Fresh(Bytes::gib(20)));
    assert_eq!(s.vram_total, Metric::Fresh(Bytes(25_753_026_560)));
    assert_eq!(s.gtt_used, Metric::Fresh(Bytes(62_369_792)));
    assert_eq!(s.gtt_total, Metric::Fresh(Bytes(16_786_171_904)));
    assert_eq!(s.temp_edge, Metric::Fresh(61.0));
    assert_eq!(s.temp_junction, Metric::Fresh(84.0));
    assert_eq!(s.temp_mem, Metric::Fresh(78.0));
    assert_eq!(s.sclk_mhz, Metric::Fresh(2482.0));
    assert_eq!(s.mclk_mhz, Metric::Fresh(1249.0));
    assert_eq!(s.fan_rpm, Metric::Fresh(1450.0));
}

#[test]
fn each_broken_file_spoils_only_itself() {
    let tree = imitated();
    tree.replace(ADDRESS, "mem_busy_percent", |_missing| ());
    tree.replace(ADDRESS, "gpu_busy_percent", |p| fs::create_dir(p).unwrap());
    tree.write_device(ADDRESS, "mem_info_vram_used", "garbage\n");
    tree.write_device(ADDRESS, "mem_info_gtt_used", "");
    tree.write_device(ADDRESS, "hwmon/hwmon3/temp2_input", "nan\n");
    let (mut source, _) = source(&tree);
    let answer = source.read().unwrap();
    assert_eq!(answer.trouble, None);
    let s = answer.reading;
    assert_eq!(s.mem_busy, Metric::Unsupported);
    assert!(why(&s.busy).starts_with("gpu_busy_percent: Is a directory"));
    assert_eq!(
        why(&s.vram_used),
        "mem_info_vram_used: `garbage` is no number"
    );
    assert_eq!(why(&s.gtt_used), "mem_info_gtt_used: empty");
    assert_eq!(why(&s.temp_junction), "temp2_input: NaN is no number");
    assert_eq!(s.power_w, Metric::Fresh(290.0));
    assert_eq!(s.temp_edge, Metric::Fresh(61.0));
}

#[test]
fn a_value_that_was_good_fails_and_comes_back() {
    let tree = imitated();
    let (mut source, _) = source(&tree);
    assert_eq!(read(&mut source).busy, Metric::Fresh(97.0));
    tree.replace(ADDRESS, "gpu_busy_percent", |_missing| ());
    assert_eq!(
        why(&read(&mut source).busy),
        "gpu_busy_percent: no longer there"
    );
    tree.write_device(ADDRESS, "gpu_busy_percent", "65535\n");
    assert_eq!(
        why(&read(&mut source).busy),
        "gpu_busy_percent: 65535 is no percentage"
    );
    tree.write_device(ADDRESS, "gpu_busy_percent", "0\n\0\0\0\0");
    assert_eq!(read(&mut source).busy, Metric::Fresh(0.0));
}

#[test]
fn power_is_the_average_then_the_momentary_value() {
    let tree = imitated();
    let (mut source, _) = source(&tree);
    tree.write_device(ADDRESS, "hwmon/hwmon3/power1_input", "31000000\n");
    assert_eq!(read(&mut source).power_w, Metric::Fresh(290.0));
    tree.replace(ADDRESS, "hwmon/hwmon3/power1_average", |_missing| ());
    assert_eq!(read(&mut source).power_w, Metric::Fresh(31.0));
    tree.replace(ADDRESS, "hwmon/hwmon3/power1_input", |p| {
        fs::create_dir(p).unwrap();
    });
    assert!(why(&read(&mut source).power_w).starts_with("power1_input"));
}

#[test]
fn a_renumbered_hwmon_folder_is_found_again() {
    let tree = imitated();
    let (mut source, _) = source(&tree);
    read(&mut source);
    let hwmon = tree.device(ADDRESS).join("hwmon");
    fs::rename(hwmon.join("hwmon3"), hwmon.join("hwmon9")).unwrap();
    tree.write_device(ADDRESS, "hwmon/hwmon9/temp1_input", "70000\n");
    let s = read(&mut source);
    assert_eq!(s.temp_edge, Metric::Fresh(70.0));
    assert_eq!(s.power_w, Metric::Fresh(290.0));
}

#[test]
fn a_card_that_vanishes_is_gone_and_may_return() {
    let tree = imitated();
    let (mut source, _) = source(&tree);
    read(&mut source);
    let away = tree.root().join("away");
    fs::rename(tree.device(ADDRESS), &away).unwrap();
    let answer = source.read().unwrap();
    assert!(answer.trouble.is_some_and(|t| t.contains("gone")));
    let s = answer.reading;
    assert_eq!(s.state, Metric::Fresh("gone".to_owned()));
    for metric in [&s.busy, &s.power_w, &s.temp_edge, &s.sclk_mhz] {
        assert!(why(metric).contains("gone"));
    }
    assert!(why(&s.vram_used).contains("gone"));
    fs::rename(&away, tree.device(ADDRESS)).unwrap();
    assert_eq!(read(&mut source).busy, Metric::Fresh(97.0));
}

#[test]
fn a_card_whose_driver_left_is_gone_too() {
    let tree = imitated();
    let (mut source, _) = source(&tree);
    read(&mut source);
    for entry in fs::read_dir(tree.device(ADDRESS)).unwrap() {
        let path = entry.unwrap().path();
        let kept = ["vendor", "device", "revision", "uevent"].map(|n| tree.device(ADDRESS).join(n));
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else if !kept.contains(&path) {
            fs::remove_file(path).unwrap();
        }
    }
    let s = read(&mut source);
    assert_eq!(s.state, Metric::Fresh("gone".to_owned()));
    assert!(why(&s.busy).contains("gone"));
}

#[test]
fn a_sleeping_card_is_left_asleep_whatever_is_supervised_or_watched() {
    let tree = imitated();
    tree.write_device(ADDRESS, "power/runtime_status", "suspended\n");
    tree.replace(ADDRESS, "hwmon/hwmon3/fan1_input", |_missing| ());
    // A FIFO blocks whoever opens it: the reading would never come back.
    for name in ["gpu_busy_percent", "hwmon/hwmon3/power1_average"] {
        tree.replace(ADDRESS, name, super::super::super::testing::fifo);
    }
    let (mut source, attention) = source(&tree);
    attention.set_supervised(true, true);
    attention.set_watched(true);
    let answer = source.read().unwrap();
    assert_eq!(answer.trouble, None);
    let s = answer.reading;
    assert_eq!(s.state, Metric::Fresh("suspended".to_owned()));
    assert!(why(&s.busy).contains("sleeps"));
    assert!(why(&s.power_w).contains("sleeps"));
    assert!(why(&s.vram_used).contains("sleeps"));
    // the size of its memory wakes nothing, and by it the profile is chosen
    assert!(s.vram_total.fresh().is_some());
    assert_eq!(s.fan_rpm, Metric::Unsupported);
    for name in ["gpu_busy_percent", "hwmon/hwmon3/power1_average"] {
        tree.replace(ADDRESS, name, |p| fs::write(p, "5\n").unwrap());
    }
    // its own workload woke it
    tree.write_device(ADDRESS, "power/runtime_status", "active\n");
    assert_eq!(read(&mut source).busy, Metric::Fresh(5.0));
}

#[test]
fn when_nothing_is_supervised_a_card_is_read_seldom_so_that_it_may_fall_asleep() {
    let tree = imitated();
    tree.write_device(ADDRESS, "power/control", "auto\n");
    let (mut source, attention) = source(&tree);
    read(&mut source);
    tree.write_device(ADDRESS, "gpu_busy_percent", "1\n");
    let long_ago = Instant::now().checked_sub(GENTLE_AFTER);
    source.last_watched = long_ago.expect("a machine that is up for more than a minute");
    std::thread::sleep(Duration::from_millis(5));
    let s = read(&mut source);
    assert!(matches!(s.busy, Metric::Stale { value, .. } if (value - 97.0).abs() < 1e-9));
    assert_eq!(s.state, Metric::Fresh("active".to_owned()));
    attention.set_watched(true);
    assert_eq!(read(&mut source).busy, Metric::Fresh(1.0));
    attention.set_watched(false);
    tree.write_device(ADDRESS, "gpu_busy_percent", "2\n");
    source.last_watched = long_ago.expect("as above");
    std::thread::sleep(Duration::from_millis(5));
    assert!(matches!(read(&mut source).busy, Metric::Stale { .. }));
    attention.set_supervised(true, true);
    assert_eq!(read(&mut source).busy, Metric::Fresh(2.0));
}

#[test]
fn a_driver_that_only_fails_is_in_trouble() {
    let tree = imitated();
    for entry in ["gpu_busy_percent", "mem_busy_percent"] {
        tree.replace(ADDRESS, entry, |p| fs::create_dir(p).unwrap());
    }
    fs::remove_dir_all(tree.device(ADDRESS).join("hwmon")).unwrap();
    for name in ["vram_used", "vram_total", "gtt_used", "gtt_total"] {
        tree.write_device(ADDRESS, &format!("mem_info_{name}"), "\n");
    }
    let (mut source, _) = source(&tree);
    let answer = source.read().unwrap();
    assert!(answer.trouble.unwrap().starts_with("gpu_busy_percent"));
    assert_eq!(answer.reading.power_w, Metric::Unsupported);
}

/// Folder, address, name, architecture, APU, busy, watts, cap, edge °C.
type Snapshot = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    bool,
    f64,
    f64,
    Option<f64>,
    f64,
);

const SNAPSHOTS: [Snapshot; 7] = [
    (
        "phoenix",
        "0000:64:00.0",
        "AMD Radeon 780M Graphics",
        "gfx1103",
        true,
        0.0,
        3.103,
        None,
        25.0,
    ),
    (
        "rx6900xt",
        "0000:0c:00.0",
        "AMD Radeon RX 6900 XT",
        "gfx1030",
        false,
        3.0,
        36.0,
        Some(289.0),
        56.0,
    ),
    (
        "rx7800xt",
        "0000:03:00.0",
        "AMD Radeon RX 7700/7800 series",
        "gfx1101",
        false,
        2.0,
        32.0,
        Some(236.0),
        24.0,
    ),
    (
        "rx7900xtx",
        "0000:03:00.0",
        "AMD Radeon RX 7900 series",
        "gfx1100",
        false,
        3.0,
        68.0,
        Some(290.0),
        53.0,
    ),
    (
        "rx9070",
        "0000:03:00.0",
        "AMD Radeon RX 9070 series",
        "gfx1201",
        false,
        25.0,
        49.0,
        Some(200.0),
        48.0,
    ),
    (
        "rx9070xt",
        "0000:0f:00.0",
        "AMD Radeon RX 9070 series",
        "gfx1201",
        false,
        3.0,
        55.0,
        Some(120.0),
        42.0,
    ),
    (
        "strixpoint",
        "0000:c1:00.0",
        "AMD Radeon 880M Graphics",
        "gfx1150",
        true,
        3.0,
        9.087,
        None,
        38.0,
    ),
];

#[test]
fn snapshots_of_seven_real_cards_are_read() {
    let Some(dir) = snapshots() else { return };
    for (folder, address, name, arch, apu, busy, watts, cap, edge) in SNAPSHOTS {
        let tree = Tree::new();
        fs::create_dir_all(tree.root().join("sys/class")).unwrap();
        let drm = tree.root().join("sys/class/drm");
        std::os::unix::fs::symlink(dir.join(folder), drm).unwrap();
        let (mut source, _) = source(&tree);
        let answer = source.read().unwrap();
        assert_eq!(answer.trouble, None, "{folder}");
        let s = answer.reading;
        assert_eq!(s.id.0, address, "{folder}");
        assert_eq!(s.name, name, "{folder}");
        assert_eq!(s.arch.as_deref(), Some(arch), "{folder}");
        assert_eq!(s.apu, apu, "{folder}");
        assert_eq!(s.busy, Metric::Fresh(busy), "{folder}");
        assert_eq!(s.power_w, Metric::Fresh(watts), "{folder}");
        assert_eq!(
            s.power_cap_w,
            cap.map_or(Metric::Unsupported, Metric::Fresh),
            "{folder}"
        );
        assert_eq!(s.temp_edge, Metric::Fresh(edge), "{folder}");
        assert_eq!(s.temp_junction.fresh().is_some(), !apu, "{folder}");
        assert_eq!(s.fan_rpm.fresh().is_some(), !apu, "{folder}");
        assert!(
            s.sclk_mhz.fresh().is_some_and(|mhz| *mhz > 10.0),
            "{folder}"
        );
    }
}

#[test]
fn the_pool_of_a_real_apu_is_its_larger_one() {
    let Some(dir) = snapshots() else { return };
    let tree = Tree::new();
    fs::create_dir_all(tree.root().join("sys/class")).unwrap();
    std::os::unix::fs::symlink(dir.join("strixpoint"), tree.root().join("sys/class/drm")).unwrap();
    let (mut source, _) = source(&tree);
    let s = read(&mut source);
    assert_eq!(s.vram_total, Metric::Fresh(Bytes(536_870_912)));
    assert_eq!(
        s.pool(),
        Some((Bytes(3_946_811_392), Bytes(16_441_004_032)))
    );
}
