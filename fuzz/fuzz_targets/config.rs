//! A configuration ▸ a model ▸ a plan of memory: no panic, and what is chosen fits.
#![no_main]

use framepack_engine::ops::cpu::Cpu;
use framepack_engine::plan::{self, Half, Job, Room};
use framepack_engine::vae::Config;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(config) = Config::parse(data) else {
        return;
    };
    for (half, size) in [(Half::Decoder, [3, 5, 4]), (Half::Encoder, [9, 64, 32])] {
        let job = Job {
            config: &config,
            half,
            batch: 1,
            size,
        };
        for cap in [None, Some(1 << 28)] {
            let room = Room {
                cap,
                ..Room::default()
            };
            if let Some(choice) = plan::choose(&job, &Cpu, &room) {
                assert!(cap.is_none_or(|cap| choice.peak <= cap));
            }
        }
    }
});
