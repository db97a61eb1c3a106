//! Readings of real cards' folders, as JSON, and of the same folders damaged.
//!
//! The folders are not part of the repository; the readings are.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::super::super::attention::Attention;
use super::super::super::file::text_of;
use super::super::super::source::Source;
use super::super::super::testing::{Tree, snapshots};
use super::super::card;
use super::super::metrics::{self, Metrics};
use super::CardSource;
use crate::model::{Bytes, GpuSample, Metric};

/// The cards, by folder.
const CARDS: [&str; 7] = [
    "phoenix",
    "rx6900xt",
    "rx7800xt",
    "rx7900xtx",
    "rx9070",
    "rx9070xt",
    "strixpoint",
];

/// File of the card's folder (`H/` for its hwmon folder), and the value it gives.
const FILES: [(&str, &str); 25] = [
    ("gpu_busy_percent", "busy"),
    ("mem_busy_percent", "mem_busy"),
    ("vcn_busy_percent", "video_busy"),
    ("mem_info_vram_used", "vram_used"),
    ("mem_info_vram_total", "vram_total"),
    ("mem_info_gtt_used", "gtt_used"),
    ("mem_info_gtt_total", "gtt_total"),
    ("H/power1_average", "power_w"),
    ("H/power1_cap", "power_cap_w"),
    ("H/temp1_input", "temp_edge"),
    ("H/temp2_input", "temp_junction"),
    ("H/temp3_input", "temp_mem"),
    ("H/freq1_input", "sclk_mhz"),
    ("H/freq2_input", "mclk_mhz"),
    ("H/fan1_input", "fan_rpm"),
    ("H/pwm1", "fan_percent"),
    ("H/pwm1_max", "fan_percent"),
    ("power_dpm_force_performance_level", "perf_level"),
    ("current_link_speed", "link"),
    ("current_link_width", "link"),
    ("gfx_reset_mask", "resets"),
    ("compute_reset_mask", "resets"),
    ("sdma_reset_mask", "resets"),
    ("gpu_metrics", "throttle"),
    ("power/runtime_status", "state"),
];

/// Values that a zero in their file makes zero.
const ZEROS: [(&str, &str); 14] = [
    ("gpu_busy_percent", "busy"),
    ("mem_busy_percent", "mem_busy"),
    ("vcn_busy_percent", "video_busy"),
    ("mem_info_vram_used", "vram_used"),
    ("mem_info_gtt_used", "gtt_used"),
    ("H/power1_average", "power_w"),
    ("H/power1_cap", "power_cap_w"),
    ("H/temp1_input", "temp_edge"),
    ("H/temp2_input", "temp_junction"),
    ("H/temp3_input", "temp_mem"),
    ("H/freq1_input", "sclk_mhz"),
    ("H/freq2_input", "mclk_mhz"),
    ("H/fan1_input", "fan_rpm"),
    ("H/pwm1", "fan_percent"),
];

/// A tree with a copy of the card's folder, in which files can be damaged.
fn copied(folder: &Path) -> Tree {
    let tree = Tree::new();
    copy(folder, &tree.root().join("sys/class/drm"));
    tree
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let new = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &new);
        } else {
            fs::write(new, fs::read(&path).unwrap()).unwrap();
        }
    }
}

fn device(tree: &Tree) -> PathBuf {
    card::scan(tree.root()).unwrap().remove(0).device
}

fn path(device: &Path, name: &str) -> PathBuf {
    let Some(name) = name.strip_prefix("H/") else {
        return device.join(name);
    };
    let hwmon = fs::read_dir(device.join("hwmon")).unwrap().next();
    hwmon.unwrap().unwrap().path().join(name)
}

/// The second reading: throttling of v3.0 is told from one to the next.
fn sample(tree: &Tree) -> GpuSample {
    let identity = card::scan(tree.root()).unwrap().remove(0);
    let attention = Arc::new(Attention::default());
    let mut source = CardSource::new(tree.root().to_owned(), identity, attention);
    source.read().unwrap();
    source.read().unwrap().reading
}

fn json(tree: &Tree) -> Value {
    serde_json::to_value(sample(tree)).unwrap()
}

/// `fresh`, `failed`, `unsupported` or, for what is no metric, nothing.
fn state(value: &Value) -> Option<&str> {
    match value {
        Value::String(word) => Some(word),
        Value::Object(map) => map.keys().next().map(String::as_str),
        _ => None,
    }
}

#[test]
fn readings_of_real_cards_are_as_written_down() {
    let Some(dir) = snapshots() else { return };
    for name in CARDS {
        let reading = serde_json::to_string_pretty(&json(&copied(&dir.join(name)))).unwrap();
        insta::assert_snapshot!(name, reading);
    }
}

/// A field of the table.
type Field = fn(&Metrics) -> Option<f64>;

/// Name, value, file, what the file counts for one, and the table's field that stands in.
type Number<'a> = (
    &'static str,
    &'a Metric<f64>,
    &'static str,
    f64,
    Option<Field>,
);

fn numbers(s: &GpuSample) -> [Number<'_>; 11] {
    let of = |field: Field| Some(field);
    [
        ("busy", &s.busy, "gpu_busy_percent", 1.0, of(|m| m.busy)),
        (
            "mem_busy",
            &s.mem_busy,
            "mem_busy_percent",
            1.0,
            of(|m| m.mem_busy),
        ),
        (
            "video_busy",
            &s.video_busy,
            "vcn_busy_percent",
            1.0,
            of(|m| m.video_busy),
        ),
        (
            "power_w",
            &s.power_w,
            "H/power1_average",
            1e6,
            of(|m| m.power_w),
        ),
        ("power_cap_w", &s.power_cap_w, "H/power1_cap", 1e6, None),
        (
            "temp_edge",
            &s.temp_edge,
            "H/temp1_input",
            1e3,
            of(|m| m.temp_edge),
        ),
        (
            "temp_junction",
            &s.temp_junction,
            "H/temp2_input",
            1e3,
            of(|m| m.temp_junction),
        ),
        (
            "temp_mem",
            &s.temp_mem,
            "H/temp3_input",
            1e3,
            of(|m| m.temp_mem),
        ),
        (
            "sclk_mhz",
            &s.sclk_mhz,
            "H/freq1_input",
            1e6,
            of(|m| m.sclk_mhz),
        ),
        (
            "mclk_mhz",
            &s.mclk_mhz,
            "H/freq2_input",
            1e6,
            of(|m| m.mclk_mhz),
        ),
        ("fan_rpm", &s.fan_rpm, "H/fan1_input", 1.0, None),
    ]
}

/// Every number is that of a file, in its unit, or of the table where there is no file.
#[test]
fn no_value_is_invented() {
    let Some(dir) = snapshots() else { return };
    for name in CARDS {
        let tree = copied(&dir.join(name));
        let device = device(&tree);
        let s = sample(&tree);
        let file = |name: &str| {
            let bytes = fs::read(path(&device, name)).ok()?;
            text_of(&bytes).parse::<f64>().ok()
        };
        let table = fs::read(device.join("gpu_metrics"))
            .map(|bytes| metrics::parse(&bytes).unwrap())
            .ok();
        for (what, value, source, unit, stand_in) in numbers(&s) {
            let second = (what == "power_w").then(|| file("H/power1_input"));
            let by_file = file(source).or(second.flatten()).map(|n| n / unit);
            let by_table = || table.as_ref().and_then(|m| stand_in?(m));
            let wanted = by_file
                .or_else(by_table)
                .map_or(Metric::Unsupported, Metric::Fresh);
            assert_eq!(*value, wanted, "{name}: {what}");
        }
        let bytes = |source| fs::read(path(&device, source)).ok();
        for (value, source) in [
            (&s.vram_used, "mem_info_vram_used"),
            (&s.vram_total, "mem_info_vram_total"),
            (&s.gtt_used, "mem_info_gtt_used"),
            (&s.gtt_total, "mem_info_gtt_total"),
        ] {
            let wanted = bytes(source).map(|b| Bytes(text_of(&b).parse().unwrap()));
            assert_eq!(value.fresh().copied(), wanted, "{name}: {source}");
        }
        assert_eq!(
            s.throttle.is_supported(),
            table.is_some(),
            "{name}: throttle"
        );
        let masks = device.join("gfx_reset_mask").exists();
        assert_eq!(s.resets.is_supported(), masks, "{name}: resets");
        assert_eq!(s.link.is_supported(), !s.apu, "{name}: link");
    }
}

/// A folder in which one file was damaged: all other values stay as they were.
fn damaged(folder: &Path, name: &str, damage: impl Fn(&Path)) -> Option<(Value, Value)> {
    let tree = copied(folder);
    let path = path(&device(&tree), name);
    if !path.exists() {
        return None;
    }
    let before = json(&tree);
    damage(&path);
    Some((before, json(&tree)))
}

fn others_unchanged(before: &Value, after: &Value, but: &str) {
    for (key, value) in before.as_object().unwrap() {
        if key != but {
            assert_eq!(
                Some(value),
                after.get(key),
                "{but} damaged, and {key} with it"
            );
        }
    }
}

#[test]
fn a_missing_file_is_absent_or_read_elsewhere_and_never_a_failure() {
    let Some(dir) = snapshots() else { return };
    for card in CARDS {
        for (name, value) in FILES {
            let remove = |path: &Path| fs::remove_file(path).unwrap();
            let Some((before, after)) = damaged(&dir.join(card), name, remove) else {
                continue;
            };
            // another file, the other masks or the table may know it as well
            let elsewhere = [
                "resets",
                "busy",
                "mem_busy",
                "video_busy",
                "power_w",
                "sclk_mhz",
                "mclk_mhz",
            ]
            .contains(&value)
                || value.starts_with("temp_");
            let now = state(&after[value]);
            let read = elsewhere && now == Some("fresh");
            assert!(
                read || now == Some("unsupported"),
                "{card}: {name}: {}",
                after[value]
            );
            if name != "gpu_metrics" {
                others_unchanged(&before, &after, value);
            }
        }
    }
}

#[test]
fn a_file_of_garbage_is_a_failure_of_its_value_alone() {
    let Some(dir) = snapshots() else { return };
    for card in CARDS {
        for (name, value) in FILES {
            // the first power file has a second behind it; a state is any word
            if name == "power/runtime_status" {
                continue;
            }
            let garbage = |path: &Path| fs::write(path, "\u{1}? ?\n").unwrap();
            let Some((before, after)) = damaged(&dir.join(card), name, garbage) else {
                continue;
            };
            let second = name == "H/power1_average" && before["apu"] == true;
            let text = name.ends_with("_reset_mask") || before["apu"] == true && value == "link";
            if !second && !text {
                assert_eq!(state(&after[value]), Some("failed"), "{card}: {name}");
            }
            if name != "gpu_metrics" {
                others_unchanged(&before, &after, value);
            }
        }
    }
}

#[test]
fn a_file_that_cannot_be_read_is_a_failure_of_its_value_alone() {
    let Some(dir) = snapshots() else { return };
    for card in CARDS {
        for (name, value) in FILES {
            let unreadable = |path: &Path| {
                fs::remove_file(path).unwrap();
                fs::create_dir(path).unwrap();
            };
            let Some((before, after)) = damaged(&dir.join(card), name, unreadable) else {
                continue;
            };
            let second = name == "H/power1_average" && before["apu"] == true;
            let no_link = before["apu"] == true && value == "link";
            if !second && !no_link {
                assert_eq!(state(&after[value]), Some("failed"), "{card}: {name}");
                let why = after[value]["failed"]["why"].as_str().unwrap();
                assert!(why.contains("Is a directory"), "{card}: {name}: {why}");
            }
            if name != "gpu_metrics" {
                others_unchanged(&before, &after, value);
            }
        }
    }
}

#[test]
fn a_zero_is_a_zero() {
    let Some(dir) = snapshots() else { return };
    for card in CARDS {
        for (name, value) in ZEROS {
            let zero = |path: &Path| fs::write(path, "0\n").unwrap();
            let Some((before, after)) = damaged(&dir.join(card), name, zero) else {
                continue;
            };
            let read = after[value]["fresh"].as_f64();
            assert_eq!(read, Some(0.0), "{card}: {name}: {}", after[value]);
            others_unchanged(&before, &after, value);
        }
    }
}
