//! Every case of `tests/fixtures`: what the reference implementation gave, within rounding.

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::path::PathBuf;
    use std::sync::Arc;

    use candle_core::{Device, Tensor};
    use framepack_engine::Result;
    use framepack_engine::ops::cpu::Cpu;
    use framepack_engine::vae::{
        Carry, Chunk, Model, Observer, Run, Start, Strategy, Tiling, Unobserved,
    };

    /// The largest difference from the reference in single precision.
    const BOUND: f32 = 3e-5;

    #[derive(serde::Deserialize)]
    struct Cases {
        cases: Vec<Case>,
    }

    #[derive(serde::Deserialize)]
    struct Case {
        name: String,
        tile_min_stride: Option<[usize; 2]>,
        frames_min_stride: Option<[usize; 2]>,
    }

    impl Case {
        fn tiling(&self) -> Tiling {
            let run = |pair: [usize; 2]| Run {
                length: pair[0],
                stride: pair[1],
            };
            Tiling {
                space: self.tile_min_stride.map(run),
                time: self.frames_min_stride.map(run),
            }
        }
    }

    struct Fixture {
        folder: PathBuf,
        model: Model,
        cases: Vec<Case>,
        tensors: HashMap<String, Tensor>,
    }

    impl Fixture {
        fn open(name: &str) -> Self {
            let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
                .join("tests/fixtures")
                .join(name);
            let text = std::fs::read(folder.join("cases.json")).unwrap();
            let cases: Cases = serde_json::from_slice(&text).unwrap();
            let tensors =
                candle_core::safetensors::load(folder.join("cases.safetensors"), &Device::Cpu)
                    .unwrap();
            Self {
                model: Model::open(&folder).unwrap(),
                folder,
                cases: cases.cases,
                tensors,
            }
        }

        /// Decodes every case, WAN's with chunks of each of these lengths too.
        fn decodes(&self, chunks: &[Option<usize>]) {
            let decoder = self.model.decoder(Arc::new(Cpu)).unwrap();
            assert!(!self.cases.is_empty());
            for case in &self.cases {
                for &frames in chunks {
                    let mut tiling = case.tiling();
                    if let Some(length) = frames {
                        tiling.time = Some(Run {
                            length,
                            stride: length,
                        });
                    }
                    let latents = &self.tensors[&format!("{}.z", case.name)];
                    let video = decoder.decode(latents, &tiling, &mut Unobserved).unwrap();
                    let what = format!("{} in chunks of {frames:?}", case.name);
                    compare(
                        &what,
                        &video,
                        &self.tensors[&format!("{}.out", case.name)],
                        BOUND,
                    );
                }
            }
        }

        /// Stops a decode after each of its chunks and goes on from what is on disk: the rest is the same to the
        /// bit.
        fn goes_on(&self, frames: Option<usize>) {
            let decoder = self.model.decoder(Arc::new(Cpu)).unwrap();
            let folder = tempfile::tempdir().unwrap();
            let mut stopped = 0;
            for case in &self.cases {
                let mut tiling = case.tiling();
                if let Some(length) = frames {
                    tiling.time = Some(Run {
                        length,
                        stride: length,
                    });
                }
                let latents = &self.tensors[&format!("{}.z", case.name)];
                let run = |from: Option<&Carry>| {
                    chunks_of(|sink| {
                        decoder.decode_stream(
                            latents,
                            &Strategy::Tiled(tiling),
                            from,
                            &mut Unobserved,
                            sink,
                        )
                    })
                };
                let chunks = run(None);
                for (at, chunk) in chunks.iter().enumerate() {
                    let file = folder.path().join("state");
                    chunk.carry.save(&file).unwrap();
                    let carry = Carry::load(&file, &Device::Cpu, u64::MAX).unwrap();
                    assert_eq!(carry.frames(), chunk.first + chunk.video.dim(2).unwrap());
                    let rest = run(Some(&carry));
                    assert_eq!(rest.len(), chunks.len() - at - 1, "{}", case.name);
                    for (again, chunk) in rest.iter().zip(&chunks[at + 1..]) {
                        assert_eq!(again.first, chunk.first);
                        assert_eq!(bits(&again.video), bits(&chunk.video), "{}", case.name);
                        stopped += 1;
                    }
                }
            }
            assert!(stopped > 0);
        }

        /// Begins a decode for each of its frames alone, without any state: from the frame on it is the same to the bit.
        fn begins_anywhere(&self, ways: &[Strategy], size: [usize; 3]) {
            let decoder = self.model.decoder(Arc::new(Cpu)).unwrap();
            let [t, h, w] = size;
            let latents = Tensor::randn(0f32, 1.0, (1, 16, t, h, w), &Device::Cpu).unwrap();
            for way in ways {
                let run = |from: Option<&Carry>| {
                    chunks_of(|sink| {
                        decoder.decode_stream(&latents, way, from, &mut Unobserved, sink)
                    })
                };
                let whole: Vec<Tensor> = run(None).into_iter().map(|c| c.video).collect();
                let whole = Tensor::cat(&whole, 2).unwrap();
                let total = whole.dim(2).unwrap();
                assert_eq!(total, 4 * t - 3);
                for frame in 0..total {
                    let start = Start::of(self.model.config(), way, t, frame).unwrap();
                    assert!(start.work <= start.first && start.first <= frame);
                    let mut at = start.first;
                    for chunk in run(start.carry.as_ref()) {
                        if chunk.first < start.first {
                            continue;
                        }
                        assert_eq!(chunk.first, at, "{way:?} from {frame}");
                        let count = chunk.video.dim(2).unwrap();
                        let want = whole.narrow(2, at, count).unwrap();
                        assert_eq!(bits(&chunk.video), bits(&want), "{way:?} from {frame}");
                        at += count;
                    }
                    assert_eq!(at, total, "{way:?} from {frame}");
                }
            }
        }

        fn encodes(&self, tiling: Tiling) {
            let encoder = self.model.encoder(Arc::new(Cpu)).unwrap();
            let moments = encoder
                .encode(&self.tensors["encode.x"], &tiling, &mut Unobserved)
                .unwrap();
            compare("moments", &moments, &self.tensors["encode.moments"], BOUND);
        }

        /// Encodes in tiles, and in runs of frames where the model cross-fades them.
        fn encodes_in_tiles(&self, space: Run, time: Option<Run>) {
            let file = self.folder.join("encode_tiled.safetensors");
            let tensors = candle_core::safetensors::load(file, &Device::Cpu).unwrap();
            let encoder = self.model.encoder(Arc::new(Cpu)).unwrap();
            let tiling = Tiling {
                space: Some(space),
                time,
            };
            let moments = encoder
                .encode(&tensors["x"], &tiling, &mut Unobserved)
                .unwrap();
            compare("moments of tiles", &moments, &tensors["moments"], BOUND);
        }

        /// What the modules gave on the way, relative to the largest number of each.
        fn taps(&self, case: &str, prefix: &str) {
            let mut taps = Taps(HashMap::new());
            let latents = &self.tensors[&format!("{case}.z")];
            let decoder = self.model.decoder(Arc::new(Cpu)).unwrap();
            decoder
                .decode(latents, &Tiling::default(), &mut taps)
                .unwrap();
            let mut seen = 0;
            for (name, want) in &self.tensors {
                let Some(module) = name
                    .strip_prefix(prefix)
                    .and_then(|rest| rest.strip_prefix('.'))
                else {
                    continue;
                };
                let Some(clip) = taps.0.get(module) else {
                    // the reference's norm alone is no module of ours
                    assert_eq!(
                        module, "decoder.conv_norm_out",
                        "nothing was seen of {module}"
                    );
                    continue;
                };
                let got = if want.rank() == 3 {
                    // attention: tokens and channels
                    clip.reshape(want.dims()).unwrap()
                } else {
                    clip.permute((0, 4, 1, 2, 3)).unwrap()
                };
                let range = largest(want);
                compare(
                    module,
                    &(got / f64::from(range)).unwrap(),
                    &(want / f64::from(range)).unwrap(),
                    BOUND,
                );
                seen += 1;
            }
            assert!(seen > 3, "{seen} modules compared");
        }
    }

    /// The last result of each module.
    struct Taps(HashMap<String, Tensor>);

    impl Observer for Taps {
        fn after(&mut self, module: &str, clip: &Tensor) -> Result<()> {
            self.0.insert(module.to_owned(), clip.clone());
            Ok(())
        }
    }

    /// What a decode hands out, piece by piece.
    fn chunks_of(
        decode: impl FnOnce(&mut dyn FnMut(Chunk) -> Result<()>) -> Result<()>,
    ) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        let mut sink = |chunk: Chunk| {
            chunks.push(chunk);
            Ok(())
        };
        decode(&mut sink).unwrap();
        chunks
    }

    fn bits(tensor: &Tensor) -> Vec<u32> {
        let all: Vec<f32> = tensor.flatten_all().unwrap().to_vec1().unwrap();
        all.into_iter().map(f32::to_bits).collect()
    }

    fn largest(tensor: &Tensor) -> f32 {
        tensor
            .abs()
            .unwrap()
            .flatten_all()
            .unwrap()
            .max(0)
            .unwrap()
            .to_scalar()
            .unwrap()
    }

    fn compare(what: &str, got: &Tensor, want: &Tensor, bound: f32) {
        assert_eq!(got.dims(), want.dims(), "{what}");
        let error = largest(&(got - want).unwrap());
        println!(
            "{what}: {:?}, off by {error:.1e} of {:.2}",
            got.dims(),
            largest(want)
        );
        assert!(error <= bound, "{what}: off by {error:e}");
    }

    #[test]
    fn hunyuan_decodes_as_the_reference() {
        Fixture::open("hunyuan_vae_tiny").decodes(&[None]);
    }

    #[test]
    fn a_decode_that_was_stopped_goes_on_to_the_same_bits() {
        Fixture::open("hunyuan_vae_tiny").goes_on(Some(8));
        Fixture::open("wan21_vae_tiny").goes_on(None);
        Fixture::open("wan22_vae_tiny").goes_on(Some(8));
    }

    #[test]
    fn a_decode_for_the_sake_of_one_frame_gives_it_to_the_same_bits() {
        let runs = |length, stride, space| {
            Strategy::Tiled(Tiling {
                space,
                time: Some(Run { length, stride }),
            })
        };
        let tiles = Some(Run {
            length: 16,
            stride: 8,
        });
        let hunyuan = Fixture::open("hunyuan_vae_tiny");
        // runs that touch, that overlap by a quarter, and by so much that frames are cross-faded twice
        let ways = [
            runs(4, 4, None),
            runs(8, 4, tiles),
            runs(16, 12, None),
            runs(16, 4, None),
            Strategy::Exact { budget: 1 },
        ];
        hunyuan.begins_anywhere(&ways, [7, 3, 2]);
        Fixture::open("wan21_vae_tiny").begins_anywhere(&[runs(8, 8, None)], [4, 1, 1]);
    }

    #[test]
    fn hunyuan_encodes_as_the_reference() {
        Fixture::open("hunyuan_vae_tiny").encodes(Tiling::default());
    }

    #[test]
    fn tiles_are_encoded_and_joined_as_the_reference_does() {
        let run = |length: usize, stride: usize| Run { length, stride };
        Fixture::open("hunyuan_vae_tiny").encodes_in_tiles(run(32, 24), Some(run(8, 4)));
        Fixture::open("wan21_vae_tiny").encodes_in_tiles(run(32, 24), None);
        Fixture::open("wan22_vae_tiny").encodes_in_tiles(run(48, 32), None);
    }

    #[test]
    fn hunyuan_agrees_on_the_way() {
        Fixture::open("hunyuan_vae_tiny").taps("plain", "tap");
    }

    #[test]
    fn wan21_decodes_as_the_reference_in_chunks_of_any_length() {
        Fixture::open("wan21_vae_tiny").decodes(&[None, Some(8), Some(12)]);
    }

    #[test]
    fn wan22_decodes_as_the_reference_in_chunks_of_any_length() {
        Fixture::open("wan22_vae_tiny").decodes(&[None, Some(8), Some(12)]);
    }

    #[test]
    fn wan_encodes_as_the_reference_in_chunks_of_any_length() {
        for name in ["wan21_vae_tiny", "wan22_vae_tiny"] {
            let fixture = Fixture::open(name);
            for length in [4, 8] {
                fixture.encodes(Tiling {
                    time: Some(Run {
                        length,
                        stride: length,
                    }),
                    space: None,
                });
            }
        }
    }

    /// Every field of a configuration counts: other numbers of levels, of blocks and of groups, no attention, patches, a
    /// decoder of its own width; in half precision, in several files.
    #[test]
    fn models_of_other_shapes_decode_and_encode_as_the_reference() {
        for name in ["hunyuan_plain", "hunyuan_enlarging"] {
            let fixture = Fixture::open(&format!("others/{name}"));
            fixture.decodes(&[None]);
            fixture.encodes(Tiling::default());
        }
        for name in ["wan_patched", "wan_residual"] {
            let fixture = Fixture::open(&format!("others/{name}"));
            fixture.decodes(&[None, Some(8)]);
            fixture.encodes(Tiling::default());
        }
    }

    #[test]
    fn wan_agrees_on_the_way() {
        for name in ["wan21_vae_tiny", "wan22_vae_tiny"] {
            let fixture = Fixture::open(name);
            fixture.taps("one_frame", "tap.one_frame");
            fixture.taps("plain", "tap.plain_last_chunk");
        }
    }
}
