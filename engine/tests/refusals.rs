//! What does not fit is refused in words that say where to look.

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use candle_core::{DType, Device, Tensor};
    use framepack_engine::ops::cpu::Cpu;
    use framepack_engine::vae::{Model, Observer, Run, Strategy, Tiling, Unobserved};
    use framepack_engine::{Error, Result};

    fn fixture(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures")
            .join(name)
    }

    /// The model `name` with a text of its configuration replaced.
    fn changed(name: &str, from: &str, to: &str) -> (tempfile::TempDir, Result<Model>) {
        let folder = tempfile::tempdir().unwrap();
        let config = std::fs::read_to_string(fixture(name).join("config.json")).unwrap();
        assert!(config.contains(from), "{config}");
        std::fs::write(folder.path().join("config.json"), config.replace(from, to)).unwrap();
        let weights = "diffusion_pytorch_model.safetensors";
        std::fs::copy(fixture(name).join(weights), folder.path().join(weights)).unwrap();
        let model = Model::open(folder.path());
        (folder, model)
    }

    /// The model `name` with keys of its configuration left out.
    fn without(name: &str, keys: &[&str]) -> (tempfile::TempDir, Result<Model>) {
        let (folder, _) = changed(name, "{", "{");
        let path = folder.path().join("config.json");
        let text = std::fs::read(&path).unwrap();
        let mut all: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(&text).unwrap();
        for key in keys {
            assert!(all.remove(*key).is_some(), "{key}");
        }
        std::fs::write(&path, serde_json::to_vec(&all).unwrap()).unwrap();
        let model = Model::open(folder.path());
        (folder, model)
    }

    fn refused<T>(result: Result<T>) -> String {
        match result {
            Ok(_) => panic!("it was taken"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn weights_of_the_half_in_use_that_are_not_used_are_named() {
        use framepack_engine::vae::Direction;
        for name in ["hunyuan_vae_tiny", "wan21_vae_tiny", "wan22_vae_tiny"] {
            let model = Model::open(&fixture(name)).unwrap();
            model.decoder(Arc::new(Cpu)).unwrap();
            // of the other half nothing was read yet
            assert_eq!(model.unused(Direction::Decode), None, "{name}");
            model.encoder(Arc::new(Cpu)).unwrap();
            assert_eq!(model.unused(Direction::Encode), None, "{name}");
        }
        let (folder, model) = changed(
            "hunyuan_vae_tiny",
            "\"mid_block_add_attention\": true",
            "\"mid_block_add_attention\": false",
        );
        let model = model.unwrap();
        model.decoder(Arc::new(Cpu)).unwrap();
        let attention = "decoder.mid_block.attentions.0";
        let names = model.weights().names();
        let count = names.filter(|name| name.starts_with(attention)).count();
        let want = format!(
            "weights of the decoder that are in the file are not used, as {} does not ask for them: {attention}.group_norm.bias, {attention}.group_norm.weight, {attention}.to_k.bias and {} more",
            folder.path().join("config.json").display(),
            count - 3
        );
        let said = model.unused(Direction::Decode).unwrap();
        assert!(said.starts_with(&want), "{said}");
    }

    #[test]
    fn weights_of_another_model_are_told_by_the_first_that_differs() {
        let (folder, model) = changed("wan21_vae_tiny", "\"base_dim\": 4", "\"base_dim\": 6");
        let dir = folder.path().display();
        assert_eq!(
            refused(model),
            format!(
                "{dir}/diffusion_pytorch_model.safetensors: weight decoder.conv_in.weight: has the shape [16, 16, 3, 3, 3] \
                 where {dir}/config.json says [24, 16, 3, 3, 3]: the two are not of one model; download both again, from one \
                 place and into an empty folder"
            )
        );
        let said = |name, from, to| refused(changed(name, from, to).1);
        for (name, from, to, want) in [
            (
                "hunyuan_vae_tiny",
                "\"latent_channels\": 16",
                "\"latent_channels\": 8",
                "weight post_quant_conv.weight: has the shape [16, 16, 1, 1, 1] where ",
            ),
            (
                "wan21_vae_tiny",
                "\"is_residual\": false",
                "\"is_residual\": true",
                "weight decoder.up_blocks.0.upsampler.resample.1.weight: missing, and by ",
            ),
            (
                "hunyuan_vae_tiny",
                "\"AutoencoderKLHunyuanVideo\"",
                "\"AutoencoderKLWan\"",
                "weight decoder.conv_in.weight: missing, and by ",
            ),
        ] {
            let said = said(name, from, to);
            assert!(
                said.contains(want) && said.contains("/config.json "),
                "{said}"
            );
        }
        let (_folder, model) = changed(
            "hunyuan_vae_tiny",
            "\"layers_per_block\": 2",
            "\"layers_per_block\": 3",
        );
        let said = refused(model);
        assert!(
            said.contains("weight decoder.up_blocks.0.resnets.3.norm1.weight: missing, and by "),
            "{said}"
        );
    }

    #[test]
    fn latents_are_scaled_by_what_diffusers_takes_where_a_configuration_says_nothing() {
        let latents = |channels: usize| {
            let count = u16::try_from(channels).unwrap();
            let numbers: Vec<f32> = (0..count).map(|n| f32::from(n) / 8.0 - 1.0).collect();
            Tensor::from_vec(numbers, (1, channels, 1, 1, 1), &Device::Cpu).unwrap()
        };
        let (_folder, model) = without("wan21_vae_tiny", &["latents_mean", "latents_std"]);
        let decoder = model.unwrap().decoder(Arc::new(Cpu)).unwrap();
        let numbers: Vec<f32> = decoder
            .unscale(&latents(16))
            .unwrap()
            .flatten_all()
            .unwrap()
            .to_vec1()
            .unwrap();
        // -1 x 2.8184 - 0.7571, and 0.875 x 1.9160 - 0.2921
        for (number, want) in [(numbers[0], -3.5755), (numbers[15], 1.3844)] {
            assert!((number - want).abs() < 1e-5, "{number}");
        }
        let (_folder, model) = without("wan22_vae_tiny", &["latents_mean", "latents_std"]);
        let decoder = model.unwrap().decoder(Arc::new(Cpu)).unwrap();
        let said = refused(decoder.unscale(&latents(12)));
        assert!(
            said.starts_with("nothing says how latents of 12 channels are scaled")
                && said.contains("--scaling-applied true"),
            "{said}"
        );
    }

    #[test]
    fn a_folder_without_a_model_is_told_by_its_missing_file() {
        let folder = tempfile::tempdir().unwrap();
        let said = refused(Model::open(folder.path()));
        assert!(said.contains("config.json: No such file"), "{said}");
        let (folder, model) = changed(
            "hunyuan_vae_tiny",
            "AutoencoderKLHunyuanVideo",
            "AutoencoderKLMochi",
        );
        assert!(refused(model).contains("_class_name is \"AutoencoderKLMochi\""));
        std::fs::copy(
            fixture("wan21_vae_tiny").join("config.json"),
            folder.path().join("config.json"),
        )
        .unwrap();
        std::fs::remove_file(folder.path().join("diffusion_pytorch_model.safetensors")).unwrap();
        let said = refused(Model::open(folder.path()));
        assert!(
            said.contains("diffusion_pytorch_model.safetensors: No such file"),
            "{said}"
        );
    }

    #[test]
    fn shapes_that_the_model_cannot_take_are_refused() {
        let model = Model::open(&fixture("hunyuan_vae_tiny")).unwrap();
        let zeros = |dims: &[usize]| Tensor::zeros(dims, DType::F32, &Device::Cpu).unwrap();
        let decoder = model.decoder(Arc::new(Cpu)).unwrap();
        let decode = |dims: &[usize], tiling: Tiling| {
            refused(decoder.decode(&zeros(dims), &tiling, &mut Unobserved))
        };
        let none = Tiling::default();
        assert_eq!(
            decode(&[1, 4, 1, 2, 2], none),
            "latents of shape [1, 4, 1, 2, 2] where [batch, 16, frames, height, width] is needed"
        );
        assert!(decode(&[16, 2, 2], none).contains("is needed"));
        assert!(decode(&[1, 16, 0, 2, 2], none).contains("is needed"));
        let tiling = Tiling {
            space: Some(Run {
                length: 20,
                stride: 16,
            }),
            time: None,
        };
        assert!(
            decode(&[1, 16, 1, 2, 2], tiling)
                .contains("tiles of 20 every 16: both must be multiples of 8")
        );
        let encoder = model.encoder(Arc::new(Cpu)).unwrap();
        let said = refused(encoder.encode(&zeros(&[1, 3, 4, 16, 16]), &none, &mut Unobserved));
        assert!(
            said.contains("a video of 4 frames of 16 x 16: frames must be a multiple of 4 plus 1"),
            "{said}"
        );
    }

    #[test]
    fn latents_that_are_no_numbers_are_told_before_they_are_clamped() {
        for (name, channels) in [
            ("hunyuan_vae_tiny", 16),
            ("wan21_vae_tiny", 16),
            ("wan22_vae_tiny", 12),
        ] {
            let model = Model::open(&fixture(name)).unwrap();
            let decoder = model.decoder(Arc::new(Cpu)).unwrap();
            let latents = Tensor::full(f32::NAN, (1, channels, 1, 2, 2), &Device::Cpu).unwrap();
            let mut ways = vec![Strategy::Tiled(Tiling::default())];
            if name.starts_with("hunyuan") {
                ways.push(Strategy::Exact { budget: 0 });
            }
            for way in ways {
                let said = refused(decoder.decode_stream(
                    &latents,
                    &way,
                    None,
                    &mut Unobserved,
                    &mut |_| Ok(()),
                ));
                assert_eq!(
                    said,
                    "the decoder returned NaN or infinite numbers in float32: the weights or what went in are damaged",
                    "{name}"
                );
            }
        }
    }

    /// Stops at the first module.
    struct Stop;

    impl Observer for Stop {
        fn after(&mut self, module: &str, _: &Tensor) -> Result<()> {
            Err(Error::Argument(format!("stopped after {module}")))
        }
    }

    #[test]
    fn an_observer_can_stop_a_run() {
        let model = Model::open(&fixture("wan22_vae_tiny")).unwrap();
        let decoder = model.decoder(Arc::new(Cpu)).unwrap();
        let latents = Tensor::zeros((1, 12, 1, 2, 2), DType::F32, &Device::Cpu).unwrap();
        assert_eq!(
            refused(decoder.decode(&latents, &Tiling::default(), &mut Stop)),
            "stopped after decoder.conv_in"
        );
    }

    /// The model `name` whose videos have a channel more than pictures: the last of its decoder or the first of its
    /// encoder is wider.
    fn of_four_channels(name: &str, tensor: &str, axis: usize, field: &str) -> tempfile::TempDir {
        let (folder, _) = changed(name, &format!("\"{field}\": 3"), &format!("\"{field}\": 4"));
        let file = folder.path().join("diffusion_pytorch_model.safetensors");
        let mut all = candle_core::safetensors::load(&file, &Device::Cpu).unwrap();
        let names = [format!("{tensor}.weight"), format!("{tensor}.bias")];
        for name in names.iter().take(2 - axis) {
            let old = &all[name];
            let wide = Tensor::cat(&[old, &old.narrow(axis, 0, 1).unwrap()], axis).unwrap();
            all.insert(name.clone(), wide);
        }
        candle_core::safetensors::save(&all, &file).unwrap();
        folder
    }

    #[test]
    fn videos_that_are_no_pictures_are_refused_before_anything_is_computed() {
        use framepack_engine::worker::Job;
        let name = "hunyuan_vae_tiny";
        for (verb, ending, tensor, axis, field) in [
            ("decode", "", "decoder.conv_out.conv", 0, "out_channels"),
            (
                "encode",
                ".safetensors",
                "encoder.conv_in.conv",
                1,
                "in_channels",
            ),
        ] {
            let folder = of_four_channels(name, tensor, axis, field);
            let model = folder.path().display();
            Model::open(folder.path()).unwrap();
            let words =
                format!("{verb} {model}/none --model {model} --output {model}-out/o{ending}");
            let job = Job::parse(words.split(' ').map(Into::into)).unwrap();
            std::fs::create_dir(format!("{model}-out")).unwrap();
            let said = refused(job.check());
            std::fs::remove_dir(format!("{model}-out")).unwrap();
            let config = folder.path().join("config.json");
            assert_eq!(
                said,
                format!(
                    "{}: the model's videos have 4 channels, and a picture has 3 (red, green, blue): take the autoencoder \
                     of a model that makes pictures",
                    config.display()
                )
            );
        }
    }
}
