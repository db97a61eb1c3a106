//! What fits is chosen.

#[cfg(test)]
mod tests {
    use std::path::Path;

    use candle_core::{DType, Device, Tensor};
    use framepack_engine::ops::cpu::Cpu;
    use framepack_engine::ops::{AttentionMask, Backend, Conv3d, ConvInput, GroupSums, Prologue};
    use framepack_engine::plan::{self, Job, MemoryBudget};
    use framepack_engine::vae::{Config, Direction, HunyuanConfig, Model, Strategy, Tiling};
    use framepack_engine::{Error, Result};

    const WHOLE: Tiling = Tiling {
        space: None,
        time: None,
    };

    fn open(name: &str) -> Model {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        Model::open(&fixtures.join(name)).unwrap()
    }

    /// A card on which nothing is computed.
    #[derive(Debug)]
    struct Card;

    impl Backend for Card {
        fn device(&self) -> &Device {
            &Device::Cpu
        }

        fn dtype(&self) -> DType {
            DType::BF16
        }

        fn load_conv(&self, _: &Tensor, _: Option<&Tensor>) -> Result<Conv3d> {
            Err(Error::Device("none".to_owned()))
        }

        fn unload_conv(&self, _: &Conv3d) -> Result<(Tensor, Option<Tensor>)> {
            Err(Error::Device("none".to_owned()))
        }

        fn conv3d(
            &self,
            _: ConvInput<'_>,
            _: &Prologue<'_>,
            _: &Conv3d,
            _: Option<&Tensor>,
        ) -> Result<Tensor> {
            Err(Error::Device("none".to_owned()))
        }

        fn group_sums(&self, _: &Tensor, _: usize) -> Result<GroupSums> {
            Err(Error::Device("none".to_owned()))
        }

        fn attention(&self, _: &Tensor, _: AttentionMask) -> Result<Tensor> {
            Err(Error::Device("none".to_owned()))
        }
    }

    #[test]
    fn large_clips_of_the_real_model_have_no_seams_on_a_small_card() {
        let config = Config::from(HunyuanConfig::default());
        let mut peaks = Vec::new();
        for (size, gib) in [([9, 68, 90], 12), ([18, 90, 160], 20), ([18, 90, 160], 24)] {
            let job = Job {
                config: &config,
                direction: Direction::Decode,
                batch: 1,
                size,
            };
            let budget = MemoryBudget {
                cap: Some(gib << 30),
                coming: 293_000_000,
                ..MemoryBudget::default()
            };
            let choice = plan::choose(&job, &Card, &budget).unwrap();
            assert!(
                matches!(choice.strategy, Strategy::Exact { .. }),
                "{size:?}: {choice:?}"
            );
            assert!(choice.peak <= budget.left().unwrap());
            peaks.push(choice.peak);
        }
        println!("{peaks:?}");
    }

    #[test]
    fn what_fits_is_chosen_and_retreats_are_smaller() {
        let model = open("hunyuan_vae_tiny");
        let job = Job {
            config: model.config(),
            direction: Direction::Decode,
            batch: 1,
            size: [9, 68, 90],
        };
        let budget = |cap| MemoryBudget {
            cap,
            ..MemoryBudget::default()
        };
        let all = plan::choose(&job, &Cpu, &budget(None)).unwrap();
        assert_eq!(all.strategy, Strategy::Tiled(WHOLE));
        let less = plan::choose(&job, &Cpu, &budget(Some(all.peak))).unwrap();
        assert!(matches!(less.strategy, Strategy::Exact { .. }), "{less:?}");
        let mut peaks = vec![all.peak];
        let mut next = plan::fallback(&job, &Cpu, &budget(None), &all);
        while let Some(choice) = next {
            peaks.push(choice.peak);
            next = plan::fallback(&job, &Cpu, &budget(None), &choice);
        }
        // others have taken more meanwhile than one step down gives
        let now = MemoryBudget {
            free: Some(peaks[2]),
            ..MemoryBudget::default()
        };
        let far = plan::fallback(&job, &Cpu, &now, &all).unwrap();
        assert!(far.peak < peaks[2], "{far:?} {peaks:?}");
        assert!(
            peaks.len() > 3 && peaks.is_sorted_by(|a, b| a > b),
            "{peaks:?}"
        );
        assert_eq!(plan::choose(&job, &Cpu, &budget(Some(1 << 20))), None);
        // what is held, what comes and what others have taken all count
        let tight = MemoryBudget {
            cap: Some(10 << 20),
            free: Some(6 << 20),
            held: 3 << 20,
            coming: 1 << 20,
        };
        assert_eq!(tight.left(), Some((5 << 20) - (5 << 20) / 50));
    }

    /// A configuration of `HunyuanVideo` with levels of so many channels, all of which enlarge.
    fn enlarging(levels: usize) -> Config {
        let kinds =
            |kind: &str| serde_json::json!(vec![format!("HunyuanVideo{kind}Block3D"); levels]);
        let fields = serde_json::json!({
            "_class_name": "AutoencoderKLHunyuanVideo",
            "block_out_channels": vec![8; levels],
            "norm_num_groups": 2,
            "spatial_compression_ratio": 1 << levels,
            "down_block_types": kinds("Down"),
            "up_block_types": kinds("Up"),
        });
        Config::parse(fields.to_string().as_bytes()).unwrap()
    }

    /// The ways that are chosen as less and less memory is there.
    fn ever_smaller(job: &Job<'_>) -> Vec<Strategy> {
        let all = plan::choose(job, &Cpu, &MemoryBudget::default()).unwrap();
        let caps = (0..10).map(|tenths| all.peak - all.peak / 10 * tenths);
        let ways = caps.filter_map(|cap| {
            let budget = MemoryBudget {
                cap: Some(cap),
                ..MemoryBudget::default()
            };
            Some(plan::choose(job, &Cpu, &budget)?.strategy)
        });
        ways.collect()
    }

    #[test]
    fn a_decoder_that_ends_with_an_upsampling_is_cut_as_it_has_no_exact_mode() {
        let config = enlarging(3);
        let job = Job {
            config: &config,
            direction: Direction::Decode,
            batch: 1,
            size: [9, 40, 40],
        };
        let ways = ever_smaller(&job);
        assert!(ways.len() > 2, "{ways:?}");
        for way in &ways {
            assert!(matches!(way, Strategy::Tiled(_)), "{way:?} cannot be gone");
        }
        let exact = Strategy::Exact { budget: 0 };
        let said = plan::peak(&job, &Cpu, &exact).unwrap_err().to_string();
        assert!(said.contains("ends with an upsampling"), "{said}");
    }

    #[test]
    fn tiles_are_whole_latents_of_any_model() {
        let wan = r#"{"_class_name": "AutoencoderKLWan", "patch_size": 3, "in_channels": 27, "out_channels": 27,
            "scale_factor_spatial": 24}"#;
        let patches = Config::parse(wan.as_bytes()).unwrap();
        for (config, space) in [(patches, 24), (enlarging(6), 64), (enlarging(8), 256)] {
            let mut tiles = Vec::new();
            for (direction, size) in [
                (Direction::Decode, [3, 1536 / space, 1536 / space]),
                (Direction::Encode, [9, 1536, 1536]),
            ] {
                let job = Job {
                    config: &config,
                    direction,
                    batch: 1,
                    size,
                };
                tiles.extend(ever_smaller(&job).into_iter().filter_map(|way| match way {
                    Strategy::Tiled(tiling) => tiling.space,
                    Strategy::Exact { .. } => None,
                }));
            }
            assert!(!tiles.is_empty(), "no tiles of {space}");
            for tile in tiles {
                assert_eq!(
                    (tile.length % space, tile.stride % space),
                    (0, 0),
                    "{tile:?}"
                );
            }
        }
    }
}
