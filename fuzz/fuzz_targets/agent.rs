//! Lines from the agent's socket: no panic, nothing grows, words come back from a record.
#![no_main]

use framepack_tui::agent::{Said, parse};
use framepack_tui::model::{AgentNote, AgentWord};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for line in data.split(|b| *b == b'\n') {
        let Ok(message) = parse(line) else {
            continue;
        };
        let word = match message.said {
            Said::Note(word) => word,
            Said::Beat { beat, .. } => AgentWord::Beat(beat),
            Said::Hello(hello) => AgentWord::Hello(hello),
            _ => continue,
        };
        let note = AgentNote { pid: 7, word };
        if let Some(words) = note.words() {
            assert!(!words.contains(char::is_control));
        }
        let text = serde_json::to_string(&note).unwrap();
        assert!(text.len() < 4 << 20);
        let back: AgentNote = serde_json::from_str(&text).unwrap();
        assert_eq!(back, note);
    }
});
