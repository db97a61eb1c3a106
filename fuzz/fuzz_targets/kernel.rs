//! Records of the kernel log ▸ message ▸ fault and culprit: no panic, lines
//! bounded, no process 0.
#![no_main]

use framepack_tui::detect::{culprit, kernel_fault};
use framepack_tui::telemetry::fuzzing::kernel_message;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for record in data.split(|b| *b == b'\n') {
        let Some(line) = kernel_message(record) else {
            continue;
        };
        assert!(!line.is_empty() && !line.contains(char::is_control));
        assert!(line.chars().count() <= 1024);
        if let Some(fault) = kernel_fault(&line) {
            assert!(fault.pid != Some(0));
            assert!(fault.process.is_none() || fault.pid.is_some());
            assert!(fault.words().len() <= 1100);
            assert!(culprit(&line).is_none());
        }
        if let Some((_, pid, _)) = culprit(&line) {
            assert!(pid > 0);
        }
    }
});
