//! A file of the vault ▸ its header, or why not; the same bytes as a job: no panic, and
//! tensors fill the file.
#![no_main]

use framepack_tui::vault::{Job, safetensors};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let size = data.len() as u64;
    if let Ok(header) = safetensors::read(&mut std::io::Cursor::new(data), size) {
        assert!(header.data_at <= 8 + safetensors::LONGEST_HEADER);
        let sum: u64 = header.tensors.iter().map(|t| t.bytes).sum();
        assert_eq!(header.data_at + sum, size);
        assert_eq!(header.data_bytes, sum);
    }
    if let Ok(Job::FramePack(job)) = Job::parse(data) {
        assert_ne!(job.sections(), Some(0));
    }
});
