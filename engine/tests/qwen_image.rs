//! Qwen-Image's autoencoder: what diffusers gives, within rounding; the memory that it takes; and a picture of it.

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use candle_core::{Device, Tensor};
    use framepack_engine::ops::cpu::Cpu;
    use framepack_engine::plan::{self, Job, MemoryBudget};
    use framepack_engine::vae::{
        Config, Direction, Model, Run, Strategy, Tiling, Unobserved, WanConfig,
    };
    use framepack_engine::worker;
    use peak_alloc::PeakAlloc;

    #[global_allocator]
    static ALLOCATOR: PeakAlloc = PeakAlloc;

    /// The largest difference from the reference in single precision.
    const BOUND: f32 = 3e-5;

    const TILES: Run = Run {
        length: 32,
        stride: 24,
    };

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/qwen_image_tiny")
    }

    fn cases() -> HashMap<String, Tensor> {
        candle_core::safetensors::load(folder().join("cases.safetensors"), &Device::Cpu).unwrap()
    }

    fn compare(what: &str, got: &Tensor, want: &Tensor) {
        assert_eq!(got.dims(), want.dims(), "{what}");
        let off = (got - want).unwrap().abs().unwrap().flatten_all().unwrap();
        let off: f32 = off.max(0).unwrap().to_scalar().unwrap();
        println!("{what}: off by {off:.1e}");
        assert!(off <= BOUND, "{what}: off by {off:e}");
    }

    #[test]
    fn it_decodes_and_encodes_as_the_reference() {
        let (model, cases) = (Model::open(&folder()).unwrap(), cases());
        assert_eq!(model.config().class(), "AutoencoderKLQwenImage");
        let decoder = model.decoder(Arc::new(Cpu)).unwrap();
        for (name, space) in [("picture", None), ("tiles", Some(TILES)), ("video", None)] {
            let tiling = Tiling { space, time: None };
            let latents = &cases[&format!("{name}.z")];
            let video = decoder.decode(latents, &tiling, &mut Unobserved).unwrap();
            compare(name, &video, &cases[&format!("{name}.out")]);
        }
        let encoder = model.encoder(Arc::new(Cpu)).unwrap();
        let moments = encoder
            .encode(&cases["encode.x"], &Tiling::default(), &mut Unobserved)
            .unwrap();
        compare("moments", &moments, &cases["encode.moments"]);
        assert_eq!(model.unused(Direction::Decode), None);
        assert_eq!(model.unused(Direction::Encode), None);
    }

    #[test]
    fn its_memory_is_predicted_and_a_picture_is_cut_into_tiles_alone() {
        let model = Model::open(&folder()).unwrap();
        let decoder = model.decoder(Arc::new(Cpu)).unwrap();
        let zeros = |[t, h, w]: [usize; 3]| {
            Tensor::zeros((1, 16, t, h, w), candle_core::DType::F32, &Device::Cpu).unwrap()
        };
        // threads, and what the matrix product keeps for them, are there from now on
        let whole = Tiling::default();
        decoder
            .decode(&zeros([1, 8, 8]), &whole, &mut Unobserved)
            .unwrap();
        let tiles = Run {
            length: 128,
            stride: 96,
        };
        for (size, space) in [
            ([1, 40, 32], None),
            ([1, 40, 32], Some(tiles)),
            ([3, 24, 20], None),
        ] {
            let strategy = Strategy::Tiled(Tiling { space, time: None });
            let job = Job {
                config: model.config(),
                direction: Direction::Decode,
                batch: 1,
                size,
            };
            let predicted = plan::peak(&job, &Cpu, &strategy).unwrap();
            let latents = zeros(size);
            let measured = (0..3)
                .map(|_| {
                    let before = ALLOCATOR.current_usage();
                    ALLOCATOR.reset_peak_usage();
                    decoder
                        .decode_stream(&latents, &strategy, None, &mut Unobserved, &mut |_| Ok(()))
                        .unwrap();
                    ALLOCATOR.peak_usage() - before
                })
                .min()
                .unwrap() as u64;
            println!("{size:?} {strategy:?}: predicted {predicted}, measured {measured}");
            assert!(
                predicted.abs_diff(measured) < measured / 20,
                "{size:?} {strategy:?}: predicted {predicted}, measured {measured}"
            );
        }
        let job = Job {
            config: model.config(),
            direction: Direction::Decode,
            batch: 1,
            size: [1, 128, 128],
        };
        let all = plan::choose(&job, &Cpu, &MemoryBudget::default()).unwrap();
        assert_eq!(all.strategy, Strategy::Tiled(whole));
        let less = plan::fallback(&job, &Cpu, &MemoryBudget::default(), &all).unwrap();
        assert!(
            matches!(
                less.strategy,
                Strategy::Tiled(Tiling {
                    space: Some(_),
                    time: None
                })
            ),
            "{less:?}"
        );
    }

    #[test]
    fn its_configuration_is_checked_in_its_own_names() {
        let parse = |fields: &str| {
            let text = format!(r#"{{"_class_name":"AutoencoderKLQwenImage"{fields}}}"#);
            Config::parse(text.as_bytes())
        };
        let published = parse("").unwrap();
        let wan = Config::from(WanConfig::default());
        assert_eq!(published.ratio(), wan.ratio());
        assert_eq!(published.latent_channels(), 16);
        assert_eq!(published.colours(Direction::Decode), 3);
        for (fields, want) in [
            (r#","input_channels":0"#, "input_channels is 0"),
            (r#","base_dim":"x""#, "base_dim is \"x\""),
            (r#","dim_mult":[1,2]"#, "temperal_downsample has 3 entries"),
            (
                r#","z_dim":8,"latents_mean":[0.5]"#,
                "latents_mean has 1 entries",
            ),
            (
                r#","temperal_downsample":[true,true,true]"#,
                "time is compressed by 8",
            ),
        ] {
            let said = parse(fields).unwrap_err();
            assert!(said.contains(want), "{fields}: {said}");
        }
    }

    #[test]
    fn latents_of_a_picture_become_one_png() {
        let (cases, place) = (cases(), tempfile::tempdir().unwrap());
        let (latents, output) = (place.path().join("l.safetensors"), place.path().join("out"));
        let about = HashMap::from([("vae_class".to_owned(), "AutoencoderKLQwenImage".to_owned())]);
        safetensors::serialize_to_file([("latents", &cases["picture.z"])], Some(about), &latents)
            .unwrap();
        let words: [OsString; 10] = [
            "decode".into(),
            latents.into(),
            "--model".into(),
            folder().into(),
            "--output".into(),
            output.clone().into(),
            "--device".into(),
            "cpu".into(),
            "--scaling-applied".into(),
            "true".into(),
        ];
        assert_eq!(worker::main(words, None), 0);
        let files: Vec<OsString> = std::fs::read_dir(&output)
            .unwrap()
            .map(|file| file.unwrap().file_name())
            .collect();
        assert_eq!(files, ["frame_00001.png"]);
        let file = std::fs::File::open(output.join("frame_00001.png")).unwrap();
        let mut reader = png::Decoder::new(std::io::BufReader::new(file))
            .read_info()
            .unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        let want = &cases["picture.out"];
        let (_, _, _, h, w) = want.dims5().unwrap();
        assert_eq!((info.height as usize, info.width as usize), (h, w));
        let want: Vec<f32> = want
            .permute((0, 2, 3, 4, 1))
            .unwrap()
            .flatten_all()
            .unwrap()
            .to_vec1()
            .unwrap();
        assert_eq!(bytes.len(), want.len());
        for (at, (&byte, &number)) in bytes.iter().zip(&want).enumerate() {
            let want = (number.clamp(-1.0, 1.0) / 2.0 + 0.5) * 255.0;
            assert!(
                (f32::from(byte) - want).abs() < 0.6,
                "{at}: {byte} for {want}"
            );
        }
    }
}
