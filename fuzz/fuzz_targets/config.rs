//! A configuration ▸ a model ▸ a plan of memory: no panic, and what is chosen fits.
#![no_main]

use framepack_engine::ops::cpu::Cpu;
use framepack_engine::plan::{self, Job, MemoryBudget};
use framepack_engine::vae::{Config, Direction};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(config) = Config::parse(data) else {
        return;
    };
    for (direction, size) in [
        (Direction::Decode, [3, 5, 4]),
        (Direction::Encode, [9, 64, 32]),
    ] {
        let job = Job {
            config: &config,
            direction,
            batch: 1,
            size,
        };
        for cap in [None, Some(1 << 28)] {
            let budget = MemoryBudget {
                cap,
                ..MemoryBudget::default()
            };
            if let Some(choice) = plan::choose(&job, &Cpu, &budget) {
                assert!(cap.is_none_or(|cap| choice.peak <= cap));
            }
        }
    }
});
