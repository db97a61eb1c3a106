//! The files of a case ▸ a report: no panic, times in order. The files are parted by the
//! byte 0xff, in the order console, index, readings, kernel log, events, meta.
#![no_main]

use std::fs;

use framepack_tui::diagnose::{Source, diagnose};
use libfuzzer_sys::fuzz_target;

const FILES: [(&str, &str); 6] = [
    ("console.log", ""),
    ("console.idx", "t_s,byte_start,byte_end\n"),
    (
        "telemetry.csv",
        "t_s,gpu_busy_pct,power_w,vram_used_mib,gtt_used_mib,cpu_pct,io_read_bps,io_write_bps,net_rx_bps,threads_d_state,proc_alive\n",
    ),
    ("kernel.log", ""),
    ("events.csv", "t_s,event,detail\n"),
    ("meta.toml", "vendor = \"amd\"\nkernel_t0 = 0.0\n"),
];

fuzz_target!(|data: &[u8]| {
    let dir = std::env::temp_dir().join(format!("fuzz-case-{}", std::process::id()));
    if fs::create_dir_all(&dir).is_err() {
        return;
    }
    let mut parts = data.split(|b| *b == 0xff);
    for (name, head) in FILES {
        let mut bytes = head.as_bytes().to_vec();
        bytes.extend(parts.next().unwrap_or_default());
        if fs::write(dir.join(name), bytes).is_err() {
            return;
        }
    }
    if let Ok(report) = diagnose(&Source::Case(dir)) {
        let times: Vec<f64> = report.history.iter().map(|c| c.t_s).collect();
        assert!(times.windows(2).all(|w| w[0] <= w[1]));
    }
});
