use std::fs;

use super::super::super::testing::Tree;
use super::super::card;
use super::*;
use crate::model::{Link, ThrottleReason, Vendor};

const ADDRESS: &str = "0000:0c:00.0";

fn imitated() -> Tree {
    let tree = Tree::new();
    tree.card("card0", ADDRESS);
    tree
}

/// One reading of the card of `tree`, with what is kept in `memory`.
fn read_with(tree: &Tree, memory: &mut Memory) -> GpuSample {
    let identity = card::scan(tree.root()).unwrap().remove(0);
    let device = identity.device.clone();
    let hwmon = Hwmon::find(&device);
    let mut sample = GpuSample::unread(
        identity.id.clone(),
        0,
        Vendor::Amd,
        identity.name.clone(),
        "sysfs",
    );
    sample.state = memory.state(&device);
    Reader {
        root: tree.root(),
        device: &device,
        hwmon: hwmon.as_ref(),
        memory,
        known_apu: None,
    }
    .full(&mut sample);
    sample
}

fn read_once(tree: &Tree) -> GpuSample {
    read_with(tree, &mut Memory::default())
}

fn why<T: std::fmt::Debug>(metric: &Metric<T>) -> String {
    match metric {
        Metric::Failed { why, .. } => why.clone(),
        other => panic!("not failed: {other:?}"),
    }
}

/// A table of v1.3: all sensors answer, nothing throttles.
fn table() -> Vec<u8> {
    let mut table = vec![0; 120];
    let mut put = |offset: usize, value: u16| {
        table[offset..offset + 2].copy_from_slice(&value.to_le_bytes());
    };
    for (offset, value) in [
        (0, 120),
        (2, 0x0301),
        (4, 50),
        (6, 60),
        (8, 70),
        (16, 33),
        (18, 22),
        (20, 11),
        (22, 150),
        (54, 1800),
        (58, 900),
    ] {
        put(offset, value);
    }
    table
}

fn write_table(tree: &Tree, table: &[u8]) {
    fs::write(tree.device(ADDRESS).join(METRICS), table).unwrap();
}

#[test]
fn every_new_field_is_read_in_its_unit() {
    let tree = imitated();
    for (name, text) in [
        ("hwmon/hwmon3/pwm1", "51\n"),
        ("hwmon/hwmon3/pwm1_max", "255\n"),
        ("vcn_busy_percent", "7\n"),
        ("power_dpm_force_performance_level", "auto\n"),
        ("gfx_reset_mask", "queue full \n"),
        ("current_link_speed", "16.0 GT/s PCIe\n"),
        ("current_link_width", "8\n"),
        ("max_link_speed", "Unknown\n"),
        ("max_link_width", "16\n"),
    ] {
        tree.write_device(ADDRESS, name, text);
    }
    tree.write("sys/module/ttm/parameters/pages_limit", "1000\n");
    let mut thermal = table();
    thermal[112 + 4] = 1;
    write_table(&tree, &thermal);
    let s = read_once(&tree);
    assert_eq!(s.fan_percent, Metric::Fresh(20.0));
    assert_eq!(s.video_busy, Metric::Fresh(7.0), "the file, not the table");
    assert_eq!(s.busy, Metric::Fresh(97.0), "the file, not the table");
    assert_eq!(s.perf_level, Metric::Fresh("auto".to_owned()));
    assert_eq!(s.throttle, Metric::Fresh(vec![ThrottleReason::Thermal]));
    let link = Link {
        gts: 16.0,
        width: 8,
        max_gts: None,
        max_width: Some(16),
    };
    assert_eq!(s.link, Metric::Fresh(link));
    let resets = s.resets.fresh().unwrap();
    assert_eq!(resets.kinds, ["queue", "full"]);
    assert_eq!((resets.count, resets.core_dump), (None, None));
    assert_eq!(s.ttm_limit, Metric::Fresh(Bytes(4_096_000)));
    tree.write("sys/module/amdttm/parameters/pages_limit", "2000\n");
    assert_eq!(read_once(&tree).ttm_limit, Metric::Fresh(Bytes(8_192_000)));
}

#[test]
fn the_table_stands_in_only_for_files_that_never_were() {
    let tree = imitated();
    write_table(&tree, &table());
    for name in [
        "gpu_busy_percent",
        "mem_busy_percent",
        "hwmon/hwmon3/power1_average",
    ] {
        tree.replace(ADDRESS, name, |_missing| ());
    }
    tree.replace(ADDRESS, "hwmon/hwmon3/temp2_input", |p| {
        fs::create_dir(p).unwrap();
    });
    let mut memory = Memory::default();
    let s = read_with(&tree, &mut memory);
    assert_eq!(s.busy, Metric::Fresh(33.0));
    assert_eq!(s.mem_busy, Metric::Fresh(22.0));
    assert_eq!(s.video_busy, Metric::Fresh(11.0));
    assert_eq!(s.power_w, Metric::Fresh(150.0));
    assert_eq!(s.temp_edge, Metric::Fresh(61.0));
    assert!(
        why(&s.temp_junction).starts_with("temp2_input"),
        "a failure is not papered over"
    );
    tree.replace(ADDRESS, "hwmon/hwmon3/temp1_input", |_missing| ());
    let gone = "edge temperature: no longer there";
    assert_eq!(why(&read_with(&tree, &mut memory).temp_edge), gone);
    write_table(&tree, &table()[..50]);
    let s = read_with(&tree, &mut memory);
    assert_eq!(why(&s.busy), "gpu_metrics: 50 of 120 bytes");
    assert_eq!(why(&s.throttle), "gpu_metrics: 50 of 120 bytes");
    tree.write_device(ADDRESS, "gpu_busy_percent", "5\n");
    assert_eq!(
        read_with(&tree, &mut memory).busy,
        Metric::Fresh(5.0),
        "the file comes first"
    );
    let fresh = read_once(&tree);
    assert_eq!(
        fresh.power_w,
        Metric::Unsupported,
        "what was never offered has not failed"
    );
}

#[test]
fn a_version_that_is_not_read_is_named_and_nothing_is_guessed() {
    let tree = imitated();
    tree.replace(ADDRESS, "gpu_busy_percent", |_missing| ());
    let mut data_centre = table();
    data_centre[3] = 5;
    write_table(&tree, &data_centre);
    let s = read_once(&tree);
    assert_eq!(why(&s.throttle), "gpu_metrics: version 1.5 is not read");
    assert_eq!(s.busy, Metric::Unsupported);
    fs::remove_file(tree.device(ADDRESS).join(METRICS)).unwrap();
    assert_eq!(read_once(&tree).throttle, Metric::Unsupported);
}

#[test]
fn what_is_latched_after_a_wake_is_not_taken() {
    let tree = imitated();
    write_table(&tree, &table());
    for name in [
        "gpu_busy_percent",
        "hwmon/hwmon3/freq1_input",
        "hwmon/hwmon3/power1_average",
    ] {
        tree.replace(ADDRESS, name, |_missing| ());
    }
    let mut memory = Memory::default();
    tree.write_device(ADDRESS, "power/runtime_status", "suspended\n");
    memory.state(&tree.device(ADDRESS));
    tree.write_device(ADDRESS, "power/runtime_status", "active\n");
    let s = read_with(&tree, &mut memory);
    assert!(why(&s.busy).contains("after a wake"), "{:?}", s.busy);
    assert!(why(&s.sclk_mhz).contains("after a wake"));
    assert_eq!(s.power_w, Metric::Fresh(150.0));
    assert_eq!(s.throttle, Metric::Fresh(vec![]));
    memory.slept = Instant::now().checked_sub(LATCHED);
    assert_eq!(read_with(&tree, &mut memory).busy, Metric::Fresh(33.0));
}

#[test]
fn a_clock_without_a_sensor_is_the_level_in_force() {
    let tree = imitated();
    tree.replace(ADDRESS, "hwmon/hwmon3/freq1_input", |_missing| ());
    tree.replace(ADDRESS, "hwmon/hwmon3/freq2_input", |_missing| ());
    tree.write_device(ADDRESS, "pp_dpm_sclk", "S: 19Mhz *\n0: 615Mhz\n");
    tree.write_device(ADDRESS, "pp_dpm_mclk", "0: 96Mhz \n1: 456Mhz \n");
    let s = read_once(&tree);
    assert_eq!(s.sclk_mhz, Metric::Fresh(19.0));
    assert_eq!(s.mclk_mhz, Metric::Unsupported, "no level is marked");
    write_table(&tree, &table());
    assert_eq!(read_once(&tree).mclk_mhz, Metric::Fresh(900.0));
}

#[test]
fn duties_and_levels_that_are_none_are_failures() {
    let tree = imitated();
    tree.write_device(ADDRESS, "hwmon/hwmon3/pwm1", "300\n");
    assert_eq!(
        read_once(&tree).fan_percent,
        Metric::Unsupported,
        "of what?"
    );
    tree.write_device(ADDRESS, "hwmon/hwmon3/pwm1_max", "255\n");
    assert_eq!(
        why(&read_once(&tree).fan_percent),
        "pwm1: 300 of 255 is no duty"
    );
    tree.write_device(ADDRESS, "hwmon/hwmon3/pwm1", "0\n");
    assert_eq!(read_once(&tree).fan_percent, Metric::Fresh(0.0));
    tree.write_device(ADDRESS, "power_dpm_force_performance_level", "\n");
    assert!(why(&read_once(&tree).perf_level).ends_with("empty"));
    tree.write_device(ADDRESS, "power_dpm_force_performance_level", "a b\n");
    assert!(why(&read_once(&tree).perf_level).ends_with("`a b` is no level"));
}

#[test]
fn an_apu_has_no_link_of_its_own() {
    let tree = imitated();
    for name in [
        "mem_busy_percent",
        "hwmon/hwmon3/power1_cap",
        "hwmon/hwmon3/fan1_input",
    ] {
        tree.replace(ADDRESS, name, |_missing| ());
    }
    tree.replace(ADDRESS, "hwmon/hwmon3/temp2_input", |_missing| ());
    tree.write_device(ADDRESS, "current_link_speed", "16.0 GT/s PCIe\n");
    tree.write_device(ADDRESS, "current_link_width", "16\n");
    let s = read_once(&tree);
    assert!(s.apu);
    assert_eq!(s.link, Metric::Unsupported);
}
