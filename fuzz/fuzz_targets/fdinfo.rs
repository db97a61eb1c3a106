//! What a DRM descriptor says ▸ a client or none: no panic, and a client is of a card.
#![no_main]

use framepack_tui::telemetry::fuzzing::drm_client;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let Some(client) = drm_client(&text) else {
        return;
    };
    assert!(client.gpu.0.len() >= "0000:00:00.0".len());
    // each engine is told once
    let mut names: Vec<_> = client.engines.iter().map(|e| &e.engine).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), client.engines.len());
    // lines in the reverse order tell the same, where none is told twice
    let mut lines: Vec<_> = text.lines().collect();
    let mut keys: Vec<_> = lines
        .iter()
        .filter_map(|l| Some(l.split_once(':')?.0.trim()))
        .collect();
    keys.sort_unstable();
    let before = keys.len();
    keys.dedup();
    if keys.len() == before {
        lines.reverse();
        let mut again = drm_client(&lines.join("\n")).expect("the same lines");
        again.engines.reverse();
        assert_eq!(again, client);
    }
});
