//! What fits is chosen.

#[cfg(test)]
mod tests {
    use std::path::Path;

    use framepack_engine::ops::cpu::Cpu;
    use framepack_engine::plan::{self, Half, Job, Room, Way};
    use framepack_engine::vae::{Model, Tiling};

    const WHOLE: Tiling = Tiling {
        space: None,
        time: None,
    };

    fn open(name: &str) -> Model {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        Model::open(&fixtures.join(name)).unwrap()
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
        let mut next = plan::retreat(&job, &Cpu, &all);
        while let Some(choice) = next {
            peaks.push(choice.peak);
            next = plan::retreat(&job, &Cpu, &choice);
        }
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
        assert_eq!(tight.left(), Some((5 << 20) - (5 << 20) / 20));
    }
}
