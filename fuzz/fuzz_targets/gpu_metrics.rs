//! A table of sensors: no panic, and no table that is cut short is taken for one.
#![no_main]

use framepack_tui::telemetry::fuzzing::gpu_metrics;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if gpu_metrics(data) {
        let size = usize::from(u16::from_le_bytes([data[0], data[1]]));
        assert!(data.len() >= size, "read beyond its end");
        assert!(!gpu_metrics(&data[..size - 1]), "cut short");
    }
});
