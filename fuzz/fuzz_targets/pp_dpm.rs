//! A table of clocks: no panic, never more levels than lines, and the one in force is
//! one of them.
#![no_main]

use framepack_tui::telemetry::fuzzing::pp_dpm;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (levels, in_force) = pp_dpm(text);
    assert!(levels.len() <= text.lines().count());
    assert!(in_force.is_none_or(|mhz| levels.contains(&mhz)));
});
