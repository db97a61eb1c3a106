//! What the planner predicts is what an allocator that counts sees, within 5 %.

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use candle_core::{DType, Device, Tensor};
    use framepack_engine::ops::cpu::Cpu;
    use framepack_engine::plan::{self, Job};
    use framepack_engine::vae::{Decoder, Direction, Model, Run, Strategy, Tiling, Unobserved};
    use peak_alloc::PeakAlloc;

    #[global_allocator]
    static ALLOCATOR: PeakAlloc = PeakAlloc;

    fn open(name: &str) -> Model {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        Model::open(&fixtures.join(name)).unwrap()
    }

    fn zeros(dims: (usize, usize, usize, usize, usize)) -> Tensor {
        Tensor::zeros(dims, DType::F32, &Device::Cpu).unwrap()
    }

    /// Compares with the bytes that `run` takes at most beside what was there before. It may have three runs: what threads
    /// keep for good counts in the run in which they first do something.
    fn compare(what: &str, want: u64, run: impl Fn()) {
        let want = f64::from(u32::try_from(want).unwrap());
        let mut got = f64::INFINITY;
        for _ in 0..3 {
            let before = ALLOCATOR.current_usage();
            ALLOCATOR.reset_peak_usage();
            run();
            got = got.min(f64::from(
                u32::try_from(ALLOCATOR.peak_usage() - before).unwrap(),
            ));
            if (want / got - 1.0).abs() < 0.02 {
                break;
            }
        }
        println!(
            "{what}: predicted {want:.0}, measured {got:.0}, {:+.1} %",
            (want / got - 1.0) * 100.0
        );
        assert!(
            (want / got - 1.0).abs() < 0.05,
            "{what}: predicted {want}, measured {got}"
        );
    }

    fn decodes(model: &Model, decoder: &Decoder, size: [usize; 3], way: Strategy) {
        let [t, h, w] = size;
        let job = Job {
            config: model.config(),
            direction: Direction::Decode,
            batch: 1,
            size,
        };
        let want = plan::peak(&job, &Cpu, &way).unwrap();
        let channels = model.config().latent_channels();
        let latents = zeros((1, channels, t, h, w));
        let run = || {
            decoder
                .decode_stream(&latents, &way, None, &mut Unobserved, &mut |_| Ok(()))
                .unwrap();
        };
        compare(&format!("decode {size:?} {way:?}"), want, run);
    }

    const WHOLE: Tiling = Tiling {
        space: None,
        time: None,
    };

    fn cut(space: Option<(usize, usize)>, time: Option<(usize, usize)>) -> Strategy {
        let run = |(length, stride)| Run { length, stride };
        Strategy::Tiled(Tiling {
            space: space.map(run),
            time: time.map(run),
        })
    }

    /// One after the other: they share the allocator.
    #[test]
    fn peaks_are_predicted() {
        // threads and what the matrix product keeps for them are there from now on
        let model = open("hunyuan_vae_tiny");
        let decoder = model.decoder(Arc::new(Cpu)).unwrap();
        decoder
            .decode(&zeros((1, 16, 2, 8, 8)), &WHOLE, &mut Unobserved)
            .unwrap();
        let whole = Strategy::Tiled(WHOLE);
        decodes(&model, &decoder, [5, 16, 16], whole);
        decodes(&model, &decoder, [1, 32, 24], whole);
        decodes(&model, &decoder, [9, 16, 12], cut(None, Some((16, 12))));
        decodes(
            &model,
            &decoder,
            [5, 24, 20],
            cut(Some((128, 96)), Some((8, 4))),
        );
        for budget in [0, 9_000_000, u64::MAX] {
            decodes(&model, &decoder, [5, 16, 16], Strategy::Exact { budget });
        }
        for (name, size) in [
            ("wan21_vae_tiny", [4, 16, 20]),
            ("wan22_vae_tiny", [4, 12, 16]),
        ] {
            let model = open(name);
            let decoder = model.decoder(Arc::new(Cpu)).unwrap();
            decodes(&model, &decoder, size, cut(None, Some((4, 4))));
            decodes(&model, &decoder, size, cut(None, Some((8, 8))));
            decodes(&model, &decoder, size, cut(Some((128, 96)), None));
        }
        encoders();
    }

    fn encoders() {
        for (name, size, way) in [
            ("hunyuan_vae_tiny", [9, 128, 96], Strategy::Tiled(WHOLE)),
            ("hunyuan_vae_tiny", [9, 128, 96], cut(Some((128, 96)), None)),
            ("wan21_vae_tiny", [9, 128, 96], cut(None, None)),
            ("wan22_vae_tiny", [9, 128, 96], cut(None, Some((8, 8)))),
        ] {
            let model = open(name);
            let encoder = model.encoder(Arc::new(Cpu)).unwrap();
            let job = Job {
                config: model.config(),
                direction: Direction::Encode,
                batch: 1,
                size,
            };
            let want = plan::peak(&job, &Cpu, &way).unwrap();
            let video = zeros((1, 3, size[0], size[1], size[2]));
            let Strategy::Tiled(tiling) = way else {
                continue;
            };
            compare(&format!("{name}: encode {size:?} {way:?}"), want, || {
                encoder.encode(&video, &tiling, &mut Unobserved).unwrap();
            });
        }
    }
}
