//! A record's bytes, packed or plain ▸ envelopes and warnings ▸ the fold: no panic.
#![no_main]

use framepack_tui::model::Event;
use framepack_tui::record::Record;
use framepack_tui::run::{RunState, reduce};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(record) = Record::from_lines(std::io::Cursor::new(data.to_vec())) else {
        return;
    };
    let Some(Event::RunStarted(started)) = record.envelopes.first().map(|e| &e.event) else {
        return;
    };
    let mut state = RunState::new(started);
    for env in &record.envelopes {
        reduce(&mut state, env);
    }
    state.snapshot();
});
