//! What fits is chosen.

#[cfg(test)]
mod tests {
    use std::path::Path;

    use candle_core::{DType, Device, Tensor};
    use framepack_engine::ops::cpu::Cpu;
    use framepack_engine::ops::{Backend, Clip, Conv3d, GroupSums, Prologue, Sight};
    use framepack_engine::plan::{self, Half, Job, Room, Way};
    use framepack_engine::vae::{Config, HunyuanConfig, Model, Tiling};
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
            _: Clip<'_>,
            _: &Prologue<'_>,
            _: &Conv3d,
            _: Option<&Tensor>,
        ) -> Result<Tensor> {
            Err(Error::Device("none".to_owned()))
        }

        fn group_sums(&self, _: &Tensor, _: usize) -> Result<GroupSums> {
            Err(Error::Device("none".to_owned()))
        }

        fn attention(&self, _: &Tensor, _: Sight) -> Result<Tensor> {
            Err(Error::Device("none".to_owned()))
        }
    }

    #[test]
    fn large_clips_of_the_real_model_have_no_seams_on_a_small_card() {
        let config = Config::Hunyuan(HunyuanConfig::default());
        let mut peaks = Vec::new();
        for (size, gib) in [([9, 68, 90], 12), ([18, 90, 160], 20), ([18, 90, 160], 24)] {
            let job = Job {
                config: &config,
                half: Half::Decoder,
                batch: 1,
                size,
            };
            let room = Room {
                cap: Some(gib << 30),
                coming: 293_000_000,
                ..Room::default()
            };
            let choice = plan::choose(&job, &Card, &room).unwrap();
            assert!(
                matches!(choice.way, Way::Exact { .. }),
                "{size:?}: {choice:?}"
            );
            assert!(choice.peak <= room.left().unwrap());
            peaks.push(choice.peak);
        }
        println!("{peaks:?}");
    }

    #[test]
    fn what_fits_is_chosen_and_retreats_are_smaller() {
        let model = open("hunyuan_vae_tiny");
        let job = Job {
            config: model.config(),
            half: Half::Decoder,
            batch: 1,
            size: [9, 68, 90],
        };
        let room = |cap| Room {
            cap,
            ..Room::default()
        };
        let all = plan::choose(&job, &Cpu, &room(None)).unwrap();
        assert_eq!(all.way, Way::Tiled(WHOLE));
        let less = plan::choose(&job, &Cpu, &room(Some(all.peak))).unwrap();
        assert!(matches!(less.way, Way::Exact { .. }), "{less:?}");
        let mut peaks = vec![all.peak];
        let mut next = plan::retreat(&job, &Cpu, &room(None), &all);
        while let Some(choice) = next {
            peaks.push(choice.peak);
            next = plan::retreat(&job, &Cpu, &room(None), &choice);
        }
        // others have taken more meanwhile than one step down gives
        let now = Room {
            free: Some(peaks[2]),
            ..Room::default()
        };
        let far = plan::retreat(&job, &Cpu, &now, &all).unwrap();
        assert!(far.peak < peaks[2], "{far:?} {peaks:?}");
        assert!(
            peaks.len() > 3 && peaks.is_sorted_by(|a, b| a > b),
            "{peaks:?}"
        );
        assert_eq!(plan::choose(&job, &Cpu, &room(Some(1 << 20))), None);
        // what is held, what comes and what others have taken all count
        let tight = Room {
            cap: Some(10 << 20),
            free: Some(6 << 20),
            held: 3 << 20,
            coming: 1 << 20,
        };
        assert_eq!(tight.left(), Some((5 << 20) - (5 << 20) / 50));
    }
}
