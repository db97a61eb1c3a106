//! A file of weights ▸ its tensors, and the model that it is of: no panic, no more memory than the file has bytes,
//! and every number of a tensor that is given is one.
#![no_main]

use std::sync::Arc;

use framepack_engine::Device;
use framepack_engine::ops::cpu::Cpu;
use framepack_engine::vae::Model;
use framepack_engine::weights::Weights;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // one file a process, written over
    let path =
        std::env::temp_dir().join(format!("framepack-fuzz-{}.safetensors", std::process::id()));
    if std::fs::write(&path, data).is_err() {
        return;
    }
    if let Ok(weights) = Weights::open(&path) {
        for name in weights.names() {
            let Ok(shape) = weights.shape(name) else {
                panic!("{name} has no shape");
            };
            if let Ok(tensor) = weights.get(name, shape, &Device::Cpu) {
                assert_eq!(tensor.dims(), shape);
                assert!(tensor.elem_count() <= data.len());
            }
        }
    }
    if let Ok(model) = Model::open(&path) {
        let _ = model.decoder(Arc::new(Cpu));
        let _ = model.encoder(Arc::new(Cpu));
    }
});
