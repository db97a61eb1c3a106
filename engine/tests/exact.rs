//! The exact low-memory decode gives what the plain decode gives, whatever is kept and whatever is made again.

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::{Arc, LazyLock};

    use candle_core::{Device, Tensor};
    use framepack_engine::Result;
    use framepack_engine::ops::cpu::Cpu;
    use framepack_engine::vae::{
        Carry, Chunk, Decoder, Model, Observer, Strategy, Tiling, Unobserved,
    };
    use proptest::prelude::*;

    /// The largest difference from the reference, and from the plain decode.
    const BOUND: f32 = 3e-5;

    fn folder() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hunyuan_vae_tiny")
    }

    static DECODER: LazyLock<Decoder> = LazyLock::new(|| {
        let model = Model::open(&folder()).unwrap();
        model.decoder(Arc::new(Cpu)).unwrap()
    });

    /// All frames of all entries, one entry after the other: the mode takes one at a time. Frames must come in order.
    fn exact(latents: &Tensor, budget: u64, observer: &mut dyn Observer) -> Tensor {
        let entry = |at: usize, observer: &mut dyn Observer| {
            let latents = latents.narrow(0, at, 1).unwrap();
            let mut frames: Vec<Tensor> = Vec::new();
            let strategy = Strategy::Exact { budget };
            DECODER
                .decode_stream(&latents, &strategy, None, observer, &mut |chunk| {
                    let before: usize = frames.iter().map(|video| video.dim(2).unwrap()).sum();
                    assert_eq!(chunk.first, before);
                    frames.push(chunk.video);
                    Ok(())
                })
                .unwrap();
            Tensor::cat(&frames, 2).unwrap()
        };
        let entries: Vec<Tensor> = (0..latents.dim(0).unwrap())
            .map(|at| entry(at, observer))
            .collect();
        Tensor::cat(&entries, 0).unwrap()
    }

    fn difference(a: &Tensor, b: &Tensor) -> f32 {
        assert_eq!(a.dims(), b.dims());
        let all = (a - b).unwrap().abs().unwrap().flatten_all().unwrap();
        all.max(0).unwrap().to_scalar().unwrap()
    }

    fn plain(latents: &Tensor) -> Tensor {
        DECODER
            .decode(latents, &Tiling::default(), &mut Unobserved)
            .unwrap()
    }

    #[test]
    fn it_decodes_as_the_reference_with_any_memory() {
        let file = folder().join("cases.safetensors");
        let tensors = candle_core::safetensors::load(file, &Device::Cpu).unwrap();
        for case in ["plain", "one_frame", "batch2"] {
            let latents = &tensors[&format!("{case}.z")];
            for budget in [0, 100_000, 400_000, u64::MAX] {
                let video = exact(latents, budget, &mut Unobserved);
                let error = difference(&video, &tensors[&format!("{case}.out")]);
                assert!(error <= BOUND, "{case} in {budget} bytes: off by {error:e}");
            }
        }
    }

    /// The pieces, done and in all.
    #[derive(Default)]
    struct Seen(usize, usize);

    impl Observer for Seen {
        fn after(&mut self, _: &str, _: &Tensor) -> Result<()> {
            Ok(())
        }

        fn pieces(&mut self, done: usize, total: usize) -> Result<()> {
            assert_eq!(done, self.0 + 1);
            (self.0, self.1) = (done, total);
            Ok(())
        }
    }

    #[test]
    fn more_memory_makes_fewer_and_larger_pieces() {
        let latents =
            Tensor::ones((1, 16, 3, 6, 5), candle_core::DType::F32, &Device::Cpu).unwrap();
        let pieces = |budget| {
            let mut seen = Seen::default();
            exact(&latents, budget, &mut seen);
            assert_eq!(seen.0, seen.1);
            seen.1
        };
        let (most, some, least) = (pieces(0), pieces(500_000), pieces(u64::MAX));
        assert!(most > some && some > least, "{most} {some} {least}");
    }

    #[test]
    fn frames_that_are_given_are_left_out() {
        let latents =
            Tensor::ones((1, 16, 4, 4, 4), candle_core::DType::F32, &Device::Cpu).unwrap();
        let run = |from: Option<&Carry>| {
            let mut chunks: Vec<Chunk> = Vec::new();
            let way = Strategy::Exact { budget: 0 };
            DECODER
                .decode_stream(&latents, &way, from, &mut Unobserved, &mut |chunk| {
                    chunks.push(chunk);
                    Ok(())
                })
                .unwrap();
            chunks
        };
        let all = run(None);
        assert!(all.len() > 3);
        let rest = run(Some(&all[1].carry));
        assert_eq!(rest.len(), all.len() - 2);
        for (again, before) in rest.iter().zip(&all[2..]) {
            assert_eq!(again.first, before.first);
            assert!(difference(&again.video, &before.video) == 0.0);
        }
        assert_eq!(run(Some(&all[all.len() - 1].carry)).len(), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn it_is_the_plain_decode(
            t in 1..5usize, h in 1..8usize, w in 1..6usize, budget in 10f64..24.0, seed in 0..1000u64,
        ) {
            // of one latent pixel all pixels come out the same, and a norm of few channels makes much of the rounding
            // between them: five digits are lost, in any order of summing
            prop_assume!(h * w > 1);
            let mut state = seed | 1;
            let all: Vec<f32> = (0..16 * t * h * w)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
                    f32::from(u8::try_from(state >> 56).unwrap()) / 64.0 - 2.0
                })
                .collect();
            let latents = Tensor::from_vec(all, (1, 16, t, h, w), &Device::Cpu).unwrap();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a power of two below 2^24")]
            let budget = budget.exp2() as u64;
            let error = difference(&exact(&latents, budget, &mut Unobserved), &plain(&latents));
            prop_assert!(error <= BOUND, "{t} x {h} x {w} in {budget} bytes: off by {error:e}");
        }
    }
}
