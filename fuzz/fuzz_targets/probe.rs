//! Texts of `/proc` and messages of netlink that a probe is made of: no panic.
#![no_main]

use framepack_tui::telemetry::fuzzing::probe;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| probe(data));
