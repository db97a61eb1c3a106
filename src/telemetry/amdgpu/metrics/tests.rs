use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::super::super::testing::snapshots;
use super::*;
use crate::model::ThrottleReason::{Current, External, Other, Power, Thermal};

/// A table in which nothing is there.
fn blank(format: u8, content: u8) -> Vec<u8> {
    let layout = LAYOUTS.iter().find(|l| l.version == (format, content));
    let size = layout.unwrap().size;
    let mut table = vec![0xff; size];
    table[..2].copy_from_slice(&u16::try_from(size).unwrap().to_le_bytes());
    table[2] = format;
    table[3] = content;
    table
}

fn put<const N: usize>(table: &mut [u8], offset: usize, bytes: [u8; N]) {
    table[offset..offset + N].copy_from_slice(&bytes);
}

fn close(value: Option<f64>, wanted: f64) -> bool {
    value.is_some_and(|v| (v - wanted).abs() < 1e-9)
}

#[test]
fn all_bits_set_is_not_there_in_every_version() {
    for layout in LAYOUTS {
        let (format, content) = layout.version;
        let read = parse(&blank(format, content));
        assert_eq!(read, Ok(Metrics::default()), "{format}.{content}");
    }
}

#[test]
fn a_zero_is_a_value_for_what_may_be_idle_and_none_for_a_sensor() {
    let mut table = vec![0; 120];
    put(&mut table, 0, [120, 0, 1, 3]);
    let read = parse(&table).unwrap();
    assert_eq!(read.busy, Some(0.0));
    assert_eq!(read.video_busy, Some(0.0));
    assert_eq!(read.throttle, Some(Throttle::Now(Vec::new())));
    assert_eq!(read.power_w, None);
    assert_eq!(read.temp_mem, None);
    assert_eq!(read.sclk_mhz, None);
}

#[test]
fn versions_and_sizes_that_are_not_right_are_refused() {
    let words = |bytes: &[u8]| parse(bytes).unwrap_err().to_string();
    assert_eq!(words(&[]), "0 bytes are no table");
    assert_eq!(words(&[120, 0, 1]), "3 bytes are no table");
    for content in 4..=8 {
        let said = format!("version 1.{content} is not read");
        assert_eq!(words(&[0, 1, 1, content, 0, 0]), said);
    }
    assert_eq!(words(&[120, 0, 4, 0]), "version 4.0 is not read");
    let wrong = "version 1.3 with 96 bytes, where it has 120";
    assert_eq!(words(&[96, 0, 1, 3]), wrong);
    assert_eq!(words(&blank(3, 0)[..263]), "263 of 264 bytes");
    let mut padded = blank(1, 3);
    padded.resize(4096, 0);
    assert_eq!(parse(&padded), Ok(Metrics::default()));
}

#[test]
fn old_tables_of_cards_and_apus_have_their_fields_elsewhere() {
    let mut card = blank(1, 0);
    for (offset, value) in [
        (16, 61_u16),
        (20, 78),
        (28, 97),
        (34, 290),
        (54, 2482),
        (44, 1249),
    ] {
        put(&mut card, offset, value.to_le_bytes());
    }
    let read = parse(&card).unwrap();
    assert!(close(read.temp_edge, 61.0) && close(read.temp_mem, 78.0));
    assert!(close(read.busy, 97.0) && close(read.power_w, 290.0));
    assert!(close(read.sclk_mhz, 2482.0));
    assert!(
        close(read.mclk_mhz, 1249.0),
        "the average, where the momentary one is missing"
    );
    let mut apu = blank(2, 0);
    for (offset, value) in [(16, 4550_u16), (40, 9700), (80, 1600)] {
        put(&mut apu, offset, value.to_le_bytes());
    }
    let read = parse(&apu).unwrap();
    assert!(close(read.temp_edge, 45.5) && close(read.busy, 97.0));
    assert!(close(read.sclk_mhz, 1600.0));
}

#[test]
fn bits_are_grouped_and_a_chips_own_are_only_a_reason() {
    let now = |bits: u64| {
        let mut table = blank(1, 3);
        put(&mut table, 112, bits.to_le_bytes());
        parse(&table).unwrap().throttle
    };
    let reasons = |all: &[_]| Some(Throttle::Now(all.to_vec()));
    assert_eq!(now(0), reasons(&[]));
    assert_eq!(now(1), reasons(&[Power]));
    assert_eq!(now(1 << 16), reasons(&[Current]));
    assert_eq!(now(1 << 36 | 1 << 45), reasons(&[Thermal]));
    assert_eq!(now(1 << 47), reasons(&[External]));
    assert_eq!(now(1 << 57), reasons(&[Other]));
    assert_eq!(now(1 << 5 | 1 << 32), reasons(&[Power, Thermal]));
    let mut table = blank(1, 2);
    put(&mut table, 68, 0x0004_0000_u32.to_le_bytes());
    assert_eq!(parse(&table).unwrap().throttle, reasons(&[Other]));
    put(&mut table, 68, [0; 4]);
    assert_eq!(parse(&table).unwrap().throttle, reasons(&[]));
}

#[test]
fn counters_tell_a_reason_only_while_they_rise() {
    let at = |counters: [u32; 7]| {
        let mut table = blank(3, 0);
        for (n, value) in counters.iter().enumerate() {
            put(&mut table, 228 + 4 * n, value.to_le_bytes());
        }
        parse(&table).unwrap().throttle.unwrap()
    };
    let mut watch = Watch::default();
    let t0 = Instant::now();
    let mut after = |s: u64, counters| watch.reasons(at(counters), t0 + Duration::from_secs(s));
    assert_eq!(after(0, [28, 1, 9, 9, 5, 0, 0]), None, "the first reading");
    assert_eq!(after(1, [28, 1, 9, 9, 5, 0, 0]), Some(vec![]));
    assert_eq!(
        after(2, [28, 1, 10, 12, 5, 3, 0]),
        Some(vec![Power, Thermal])
    );
    assert_eq!(after(3, [29, 1, 10, 12, 5, 3, 0]), Some(vec![External]));
    assert_eq!(after(4, [0, 0, 0, 0, 0, 0, 0]), Some(vec![]), "begun anew");
    assert_eq!(after(60, [1, 1, 1, 1, 1, 1, 1]), None, "too long ago");
}

#[test]
fn tables_of_five_real_cards_are_read() {
    let Some(dir) = snapshots() else { return };
    let read = |name: &str| parse(&std::fs::read(dir.join(name)).unwrap()).unwrap();
    let s = read("rx6900xt/card0/device/gpu_metrics");
    assert!(close(s.busy, 3.0) && close(s.power_w, 36.0) && close(s.temp_junction, 59.0));
    assert!(close(s.mclk_mhz, 1000.0) && close(s.sclk_mhz, 500.0));
    let s = read("rx7800xt/card1/device/gpu_metrics");
    assert!(close(s.busy, 24.0) && close(s.temp_edge, 24.0) && close(s.mclk_mhz, 456.0));
    let s = read("rx9070/card1/device/gpu_metrics");
    assert!(close(s.busy, 25.0) && close(s.power_w, 49.0) && close(s.mclk_mhz, 1124.0));
    assert_eq!(s.throttle, Some(Throttle::Now(Vec::new())));
    let s = read("phoenix/card1/device/gpu_metrics");
    assert!(close(s.busy, 0.79) && close(s.power_w, 3.401) && close(s.temp_edge, 25.0));
    assert!(close(s.sclk_mhz, 800.0) && close(s.mclk_mhz, 400.0));
    let s = read("strixpoint/card1/device/gpu_metrics");
    assert!(close(s.power_w, 9.839) && close(s.temp_edge, 38.12) && close(s.mclk_mhz, 836.0));
    assert_eq!(s.busy, None, "percent or hundredths, by firmware");
    let counters = [28, 0x74c, 0x168de, 0x101, 0x703, 0, 0].map(Some);
    assert_eq!(s.throttle, Some(Throttle::Counters(counters)));
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes: Vec<u8>) {
        let _ = parse(&bytes);
    }

    #[test]
    fn any_body_gives_values_in_their_range(
        n in 0..LAYOUTS.len(),
        body in proptest::collection::vec(any::<u8>(), 264),
        extra in 0usize..64,
    ) {
        let (format, content) = LAYOUTS[n].version;
        let mut table = blank(format, content);
        let end = table.len();
        table[HEADER..].copy_from_slice(&body[..end - HEADER]);
        table.resize(end + extra, 0);
        let read = parse(&table).unwrap();
        for percent in [read.busy, read.mem_busy, read.video_busy].into_iter().flatten() {
            prop_assert!((0.0..=100.0).contains(&percent));
        }
        for sensor in [read.power_w, read.temp_edge, read.temp_junction, read.temp_mem, read.sclk_mhz, read.mclk_mhz].into_iter().flatten() {
            prop_assert!(sensor > 0.0 && sensor.is_finite());
        }
        for cut in 0..end {
            prop_assert!(parse(&table[..cut]).is_err());
        }
    }
}
