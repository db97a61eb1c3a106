//! Checkpoints of one file with the names of others give what the same weights give as diffusers saves them.

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use candle_core::{Device, Tensor};
    use framepack_engine::ops::cpu::Cpu;
    use framepack_engine::vae::{Model, Tiling, Unobserved, WanConfig};

    fn fixture(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures")
            .join(name)
    }

    fn weights(name: &str) -> HashMap<String, Tensor> {
        let file = fixture(name).join("diffusion_pytorch_model.safetensors");
        candle_core::safetensors::load(file, &Device::Cpu).unwrap()
    }

    /// Replaces the first text that is there.
    fn replaced(name: &str, pairs: &[(&str, &str)]) -> String {
        let mut name = name.to_owned();
        for (from, to) in pairs {
            name = name.replacen(from, to, 1);
        }
        name
    }

    /// The numbers in a name.
    fn numbers(name: &str) -> Vec<usize> {
        name.split('.')
            .filter_map(|part| part.parse().ok())
            .collect()
    }

    const RESIDUAL: [(&str, &str); 5] = [
        ("norm1.", "residual.0."),
        ("conv1.", "residual.2."),
        ("norm2.", "residual.3."),
        ("conv2.", "residual.6."),
        ("conv_shortcut.", "shortcut."),
    ];

    /// WAN's own name of what diffusers calls `name`.
    fn wan(name: &str, flat: bool) -> String {
        let name = replaced(
            name,
            &[
                ("post_quant_conv.", "conv2."),
                ("quant_conv.", "conv1."),
                ("coder.conv_in.", "coder.conv1."),
                ("norm_out.", "head.0."),
                ("conv_out.", "head.2."),
                ("mid_block.attentions.0.", "middle.1."),
            ],
        );
        if name.contains("middle.1.") {
            return name;
        }
        let inner = |rest: &str| replaced(rest, &RESIDUAL);
        if let Some((half, rest)) = name.split_once(".mid_block.resnets.") {
            let (at, rest) = rest.split_once('.').unwrap();
            let at = 2 * at.parse::<usize>().unwrap();
            return format!("{half}.middle.{at}.{}", inner(rest));
        }
        let n = numbers(&name);
        let tail = |marker: &str| name.split_once(marker).map(|(_, rest)| rest.to_owned());
        let after = |text: &str| text.split_once('.').unwrap().1.to_owned();
        if let Some(rest) = tail("encoder.down_blocks.") {
            if flat {
                return format!("encoder.downsamples.{}.{}", n[0], inner(&after(&rest)));
            }
            return match rest.split_once(".resnets.") {
                Some((level, rest)) => {
                    format!(
                        "encoder.downsamples.{level}.downsamples.{}.{}",
                        n[1],
                        inner(&after(rest))
                    )
                }
                // two residual blocks come before it
                None => format!(
                    "encoder.downsamples.{}",
                    rest.replacen(".downsampler.", ".downsamples.2.", 1)
                ),
            };
        }
        if let Some(rest) = tail("decoder.up_blocks.") {
            let level = n[0];
            return match (rest.split_once(".resnets."), flat) {
                (Some((_, rest)), true) => {
                    format!(
                        "decoder.upsamples.{}.{}",
                        4 * level + n[1],
                        inner(&after(rest))
                    )
                }
                (Some((_, rest)), false) => {
                    format!(
                        "decoder.upsamples.{level}.upsamples.{}.{}",
                        n[1],
                        inner(&after(rest))
                    )
                }
                (None, true) => {
                    format!(
                        "decoder.upsamples.{}.{}",
                        4 * level + 3,
                        tail("upsamplers.0.").unwrap()
                    )
                }
                (None, false) => {
                    format!(
                        "decoder.upsamples.{level}.upsamples.3.{}",
                        tail("upsampler.").unwrap()
                    )
                }
            };
        }
        name
    }

    /// ComfyUI's name in its repackaged `HunyuanVideo` checkpoint.
    fn comfy(name: &str) -> String {
        let mut name = replaced(
            name,
            &[
                ("conv_norm_out", "norm_out"),
                ("mid_block.attentions.0.group_norm", "mid.attn_1.norm"),
                ("mid_block.attentions.0.to_out.0", "mid.attn_1.proj_out"),
                ("mid_block.attentions.0.to_", "mid.attn_1."),
                ("mid_block.resnets.0", "mid.block_1"),
                ("mid_block.resnets.1", "mid.block_2"),
                ("conv_shortcut", "nin_shortcut"),
                ("downsamplers.0", "downsample"),
                ("upsamplers.0", "upsample"),
                ("down_blocks", "down"),
                ("resnets", "block"),
            ],
        );
        for level in 0..4 {
            name = name.replacen(
                &format!("up_blocks.{level}."),
                &format!("up.{}.", 3 - level),
                1,
            );
        }
        name
    }

    /// A folder with a checkpoint of these tensors.
    fn checkpoint(tensors: &HashMap<String, Tensor>) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vae.safetensors");
        candle_core::safetensors::save(tensors, &path).unwrap();
        (folder, path)
    }

    fn same(name: &str, path: &Path) -> Model {
        let (ours, theirs) = (
            Model::open(path).unwrap(),
            Model::open(&fixture(name)).unwrap(),
        );
        let cases =
            candle_core::safetensors::load(fixture(name).join("cases.safetensors"), &Device::Cpu)
                .unwrap();
        let run = |model: &Model| {
            let video = model
                .decoder(Arc::new(Cpu))
                .unwrap()
                .decode(&cases["one_frame.z"], &Tiling::default(), &mut Unobserved)
                .unwrap();
            let moments = model
                .encoder(Arc::new(Cpu))
                .unwrap()
                .encode(&cases["encode.x"], &Tiling::default(), &mut Unobserved)
                .unwrap();
            let all = [video, moments].map(|t| t.flatten_all().unwrap().to_vec1::<f32>().unwrap());
            all.concat()
        };
        assert!(run(&ours) == run(&theirs), "{name}: other numbers come out");
        ours
    }

    #[test]
    fn wan_in_its_own_names() {
        for (name, flat) in [("wan21_vae_tiny", true), ("wan22_vae_tiny", false)] {
            let tensors: HashMap<String, Tensor> = weights(name)
                .into_iter()
                .map(|(name, tensor)| (wan(&name, flat), tensor))
                .collect();
            let (_folder, path) = checkpoint(&tensors);
            let model = same(name, &path);
            let theirs = Model::open(&fixture(name)).unwrap();
            let wan = |model: &Model| model.config().of::<WanConfig>().cloned();
            let (Some(ours), Some(mut theirs)) = (wan(&model), wan(&theirs)) else {
                panic!("it is a WAN model");
            };
            // known of the real models by their number of channels alone
            theirs.latents_mean.clone_from(&ours.latents_mean);
            theirs.latents_std.clone_from(&ours.latents_std);
            theirs.decoder_base_dim = ours.decoder_base_dim;
            assert_eq!(ours, theirs);
            assert_eq!(ours.scaling().is_some(), flat);
        }
    }

    #[test]
    fn a_wrong_configuration_beside_a_checkpoint_is_not_passed_over() {
        let name = "hunyuan_vae_tiny";
        let (folder, path) = checkpoint(&weights(name));
        let beside = folder.path().join("config.json");
        let text = std::fs::read_to_string(fixture(name).join("config.json")).unwrap();
        let wrong = text.replace("\"silu\"", "\"gelu\"");
        assert_ne!(text, wrong);
        std::fs::write(&beside, wrong).unwrap();
        let error = Model::open(&path).unwrap_err().to_string();
        assert!(error.contains("config.json: act_fn is \"gelu\""), "{error}");
        // of something else: it says nothing about this file
        std::fs::write(&beside, r#"{"_class_name":"UNet2DConditionModel"}"#).unwrap();
        let error = Model::open(&path).unwrap_err().to_string();
        assert!(
            error.contains("vae.safetensors: ") && error.contains("groups"),
            "{error}"
        );
    }

    /// A checkpoint of one file with another model's configuration beside it.
    fn beside_that_of(name: &str, other: &str) -> (tempfile::TempDir, PathBuf) {
        let (folder, path) = checkpoint(&weights(name));
        let config = fixture(other).join("config.json");
        std::fs::copy(config, folder.path().join("config.json")).unwrap();
        (folder, path)
    }

    #[test]
    fn the_configuration_of_a_relative_beside_a_checkpoint_is_told_by_the_first_tensor() {
        for (name, other, tensor, found, said) in [
            (
                "wan21_vae_tiny",
                "wan22_vae_tiny",
                "post_quant_conv.weight",
                "[16, 16, 1, 1, 1]",
                "[12, 12, 1, 1, 1]",
            ),
            (
                "wan22_vae_tiny",
                "wan21_vae_tiny",
                "post_quant_conv.weight",
                "[12, 12, 1, 1, 1]",
                "[16, 16, 1, 1, 1]",
            ),
        ] {
            let (folder, path) = beside_that_of(name, other);
            let config = folder.path().join("config.json");
            let error = Model::open(&path).unwrap_err().to_string();
            let want = format!(
                "{}: weight {tensor}: has the shape {found} where {} says {said}: the two are not of one model; put the \
                 config.json of this file in its place, ",
                path.display(),
                config.display()
            );
            assert!(error.starts_with(&want), "{error}");
        }
        // in its author's names it is told by these
        let tensors = weights("wan21_vae_tiny").into_iter();
        let tensors = tensors.map(|(name, tensor)| (wan(&name, true), tensor));
        let (folder, path) = checkpoint(&tensors.collect());
        let config = fixture("wan22_vae_tiny").join("config.json");
        std::fs::copy(config, folder.path().join("config.json")).unwrap();
        let error = Model::open(&path).unwrap_err().to_string();
        assert!(
            error.contains("weight conv2.weight: has the shape"),
            "{error}"
        );
    }

    #[test]
    fn the_configuration_of_another_class_beside_a_checkpoint_is_not_heeded() {
        let (folder, path) = beside_that_of("wan21_vae_tiny", "hunyuan_vae_tiny");
        let model = same("wan21_vae_tiny", &path);
        let config = folder.path().join("config.json");
        assert_eq!(model.foreign_config(), Some(config.as_path()));
        let (_folder, path) = beside_that_of("wan21_vae_tiny", "wan21_vae_tiny");
        assert_eq!(Model::open(&path).unwrap().foreign_config(), None);
    }

    #[test]
    fn hunyuan_in_comfyui_names_and_behind_a_prefix() {
        let name = "hunyuan_vae_tiny";
        for prefix in ["", "vae."] {
            let tensors: HashMap<String, Tensor> = weights(name)
                .into_iter()
                .map(|(name, tensor)| {
                    let other = comfy(&name);
                    // its attention is of convolutions
                    let tensor = if other.contains("attn_1") && tensor.rank() == 2 {
                        let (o, i) = tensor.dims2().unwrap();
                        tensor.reshape((o, i, 1, 1, 1)).unwrap()
                    } else {
                        tensor
                    };
                    (format!("{prefix}{other}"), tensor)
                })
                .collect();
            let (folder, path) = checkpoint(&tensors);
            // groups of 32 are a fact of the real model; the tiny one's are in its config.json alone
            let error = Model::open(&path).unwrap_err().to_string();
            assert!(
                error.contains("4 channels do not make 32 groups"),
                "{error}"
            );
            std::fs::copy(
                fixture(name).join("config.json"),
                folder.path().join("config.json"),
            )
            .unwrap();
            same(name, &path);
        }
    }

    #[test]
    fn diffusers_names_need_no_configuration_and_other_files_are_told() {
        for name in ["wan21_vae_tiny", "wan22_vae_tiny"] {
            let (_folder, path) = checkpoint(&weights(name));
            same(name, &path);
        }
        let mut some = weights("wan21_vae_tiny");
        some.retain(|name, _| name.starts_with("decoder"));
        let (_folder, path) = checkpoint(&some);
        let model = Model::open(&path).unwrap();
        let error = model.encoder(Arc::new(Cpu)).unwrap_err().to_string();
        assert!(
            error.contains("weight encoder.") && error.contains(": missing"),
            "{error}"
        );
        some.retain(|name, _| name.starts_with("decoder.up_blocks.3"));
        let (_folder, path) = checkpoint(&some);
        let error = Model::open(&path).unwrap_err().to_string();
        assert!(
            error.contains("not the autoencoder of HunyuanVideo or WAN"),
            "{error}"
        );
    }

    #[test]
    fn a_hunyuan_of_other_levels_needs_its_configuration() {
        let folder = fixture("others/hunyuan_enlarging");
        let mut tensors = HashMap::new();
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy();
            if name.contains("-of-") {
                tensors.extend(candle_core::safetensors::load(&path, &Device::Cpu).unwrap());
            }
        }
        let (beside, path) = checkpoint(&tensors);
        let error = Model::open(&path).unwrap_err().to_string();
        assert!(
            error.ends_with(
                "3 levels, where HunyuanVideo's autoencoder has 4: put the config.json of this model beside the file"
            ),
            "{error}"
        );
        let config = "config.json";
        std::fs::copy(folder.join(config), beside.path().join(config)).unwrap();
        same("others/hunyuan_enlarging", &path);
    }
}
