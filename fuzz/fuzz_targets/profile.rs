//! Profile text ▸ problems or a profile that can be linted: no panic.
#![no_main]

use std::sync::Arc;

use framepack_tui::profile::{Owner, Source, lint, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let source = Arc::new(Source {
        name: "fuzz.toml".to_owned(),
        text: text.to_owned(),
        owner: Owner::User,
    });
    if let Ok(profile) = parse(&source) {
        lint(&profile);
    }
});
