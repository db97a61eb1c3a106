//! Console bytes ▸ lines ▸ adapter of every kind: no panic, lines bounded.
#![no_main]

use std::time::Instant;

use framepack_tui::model::Stream;
use framepack_tui::workload::adapter::{AdapterKind, LaunchInfo, new};
use framepack_tui::workload::lines::{LineSplitter, MAX_TEXT};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let now = Instant::now();
    let mut lines = Vec::new();
    let mut splitter = LineSplitter::new(1, Stream::Stderr);
    for piece in data.chunks(13) {
        splitter.feed(piece, now, &mut lines);
    }
    splitter.flush(&mut lines);
    for kind in AdapterKind::ALL {
        let mut adapter = new(*kind, &LaunchInfo::default());
        adapter.start();
        for line in &lines {
            assert!(line.text.len() <= MAX_TEXT);
            adapter.feed(line);
        }
        adapter.finish(data.len().is_multiple_of(2));
    }
});
