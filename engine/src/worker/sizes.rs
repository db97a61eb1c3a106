//! The strategy of a job: from the settings, else the planner's choice for the available memory.

use serde_json::{Value, json};

use super::memory::{Most, machine};
use super::{Place, Ready, Settings, Work};
use crate::error::{Error, Result};
use crate::ops::Backend;
use crate::ops::cpu::Cpu;
use crate::plan::{self, Choice, Job, MemoryBudget};
use crate::vae::{Config, Direction, Run, Strategy, Tiling};
use crate::video::Limits;

/// Pixels of a side: twice 8K, and half of what a gif can have.
const MOST_PIXELS: usize = 1 << 14;
/// Frames: 45 minutes at 24 a second.
const MOST_FRAMES: usize = 1 << 16;
/// A video larger than this many times the memory is refused: frames go to disk chunk by chunk, but no one means that.
const DISK_SHARE: u64 = 16;

/// Copies of the latents: as read, scaled, and one more while they are scaled.
const LATENT_COPIES: u64 = 3;

/// The strategy that the settings ask for; absent: the planner chooses.
pub(super) fn asked(config: &Config, settings: &Settings) -> Option<Strategy> {
    let ratio = config.ratio();
    let down = |pixels: usize| pixels / ratio.space * ratio.space;
    let space = settings.tile().map(|tile| {
        let length = down(tile).max(ratio.space);
        let overlap = settings.overlap().unwrap_or(length / 4).min(length);
        // whole latents, rather one more than one less; never more than half a tile
        let shared = overlap.next_multiple_of(ratio.space).min(down(length / 2));
        Run {
            length,
            stride: length - shared,
        }
    });
    let time = settings.chunk().map(|chunk| {
        let overlap = config.overlap(chunk);
        Run {
            length: chunk.saturating_mul(ratio.time),
            stride: (chunk - overlap).saturating_mul(ratio.time),
        }
    });
    (space.is_some() || time.is_some()).then_some(Strategy::Tiled(Tiling { space, time }))
}

/// Sentences about settings that this model cannot follow exactly, and the values taken instead.
pub(super) fn altered(config: &Config, settings: &Settings) -> Vec<String> {
    let mut told = Vec::new();
    let (
        Some(Strategy::Tiled(Tiling {
            space: Some(run), ..
        })),
        Some(tile),
    ) = (asked(config, settings), settings.tile())
    else {
        return told;
    };
    if run.length != tile {
        told.push(format!(
            "vae_tile = {tile}: tiles are whole latents of {} pixels; {} are taken",
            config.ratio().space,
            run.length
        ));
    }
    let shared = run.length - run.stride;
    if let Some(overlap) = settings.overlap().filter(|overlap| *overlap != shared) {
        told.push(format!(
            "vae_overlap = {overlap}: tiles of {} pixels share whole latents, and half of a tile at most; {shared} are taken",
            run.length
        ));
    }
    told
}

/// Bytes for each byte of a video that is read: itself, and a number of four bytes.
const READ_COPIES: u64 = 5;

/// The largest video that is read: it lies in the host's memory, whatever the device.
pub(super) fn limits() -> Limits {
    Limits {
        frames: MOST_FRAMES,
        side: MOST_PIXELS,
        bytes: Most::at(Place::Cpu).map_or(u64::MAX, |most| most.bytes / READ_COPIES),
    }
}

/// Checks that latents of (frames, height, width) can be decoded on this device at all; an error says why not. By
/// arithmetic alone, as a header of a few bytes may claim any size.
pub(super) fn possible(
    config: &Config,
    size: [usize; 3],
    place: Place,
) -> std::result::Result<(), String> {
    possible_in(config, size, machine(), Most::at(place).as_ref())
}

/// [`possible`] on a machine with `machine` bytes of memory and swap, where a process may have `most`; absent: unknown.
fn possible_in(
    config: &Config,
    size: [usize; 3],
    machine: Option<u64>,
    most: Option<&Most>,
) -> std::result::Result<(), String> {
    let ratio = config.ratio();
    let [t, h, w] = size;
    let sides = [w, h].map(|side| side.saturating_mul(ratio.space));
    let frames = (t - 1).saturating_mul(ratio.time).saturating_add(1);
    let [width, height] = sides;
    let about = format!("{frames} frames of {width} x {height} pixels would come of these latents");
    if frames > MOST_FRAMES || sides.iter().any(|side| *side > MOST_PIXELS) {
        return Err(format!(
            "{about}, and at most {MOST_FRAMES} of {MOST_PIXELS} x {MOST_PIXELS} are decoded"
        ));
    }
    // no overflow: the limits above are far below
    let bytes = (frames * width * height * 3) as u64;
    // before the planner is asked, whose own time grows with the size; of a process's own limits the disk knows nothing
    if let Some(memory) = machine.filter(|memory| bytes / DISK_SHARE > *memory) {
        return Err(format!(
            "{about}: {} MiB of video, and this machine has {} MiB with its swap",
            bytes >> 20,
            memory >> 20
        ));
    }
    fits_somehow(config, Direction::Decode, size, &about, most)
}

/// Checks that a video of (frames, height, width) within [`limits`] can be encoded on this device at all; an error says
/// why not.
pub(super) fn encodable(
    config: &Config,
    size: [usize; 3],
    place: Place,
) -> std::result::Result<(), String> {
    let [frames, height, width] = size;
    let about = format!("{frames} frames of {width} x {height} pixels");
    let most = Most::at(place);
    fits_somehow(config, Direction::Encode, size, &about, most.as_ref())
}

/// Checks that the smallest strategy fits into the most memory that a process may have.
fn fits_somehow(
    config: &Config,
    direction: Direction,
    size: [usize; 3],
    about: &str,
    most: Option<&Most>,
) -> std::result::Result<(), String> {
    let job = Job {
        config,
        direction,
        batch: 1,
        size,
    };
    let peak = plan::peak(&job, &Cpu, &least(config)).map_err(|e| e.to_string())?;
    let latents = match direction {
        Direction::Decode => LATENT_COPIES.saturating_mul(latent_bytes(config, size)),
        Direction::Encode => 0,
    };
    let peak = peak.saturating_add(latents);
    match most.filter(|most| peak > most.bytes) {
        Some(most) => Err(format!(
            "{about}: {} MiB of memory in the smallest way, and {}",
            peak >> 20,
            most.words
        )),
        None => Ok(()),
    }
}

/// Bytes of latents of (frames, height, width) in single precision.
fn latent_bytes(config: &Config, size: [usize; 3]) -> u64 {
    let sides = [config.latent_channels()].into_iter().chain(size);
    sides.fold(4, |bytes, side| bytes.saturating_mul(side as u64))
}

/// The strategy that takes the least; on the processor it is taken where nothing fits, as the host may still page
/// something out.
fn least(config: &Config) -> Strategy {
    Strategy::Tiled(plan::smallest(config))
}

/// The memory budget of a job on its device, `weights` bytes being still to be loaded. On the CPU its limit is printed.
pub(super) fn budget(work: &Work<'_>, ready: &Ready, weights: u64) -> MemoryBudget {
    if ready.backend.device().is_cpu() {
        return MemoryBudget {
            free: work.host_memory(),
            coming: weights,
            ..MemoryBudget::default()
        };
    }
    MemoryBudget {
        cap: work.settings.cap(),
        free: ready.memory.and_then(|memory| memory.free),
        held: ready.memory.map_or(0, |memory| memory.reserved),
        coming: weights,
    }
}

/// The same budget with at most `bytes` for the run.
pub(super) fn at_most(budget: &MemoryBudget, bytes: u64) -> MemoryBudget {
    let cap = budget
        .held
        .saturating_add(budget.coming)
        .saturating_add(bytes);
    MemoryBudget {
        cap: Some(budget.cap.map_or(cap, |there| there.min(cap))),
        ..*budget
    }
}

/// The planner's choice; smaller than `failed`, which took too much memory. On the CPU there always is one.
pub(super) fn choose(
    job: &Job<'_>,
    backend: &dyn Backend,
    budget: &MemoryBudget,
    failed: Option<&Choice>,
) -> Result<Choice> {
    let found = match failed {
        Some(failed) => plan::fallback(job, backend, budget, failed),
        None => plan::choose(job, backend, budget),
    };
    if let Some(choice) = found {
        return Ok(choice);
    }
    let least = least(job.config);
    let peak = plan::peak(job, backend, &least)?;
    if backend.device().is_cpu() && failed.is_none() {
        return Ok(Choice {
            strategy: least,
            peak,
        });
    }
    let there = match budget.left() {
        Some(left) => format!(", and {} MiB are left for it", left >> 20),
        None => String::new(),
    };
    Err(Error::Memory(format!(
        "the smallest way takes {} MiB beside the weights{there}",
        peak >> 20
    )))
}

/// A strategy as it stands in a checkpoint.
pub(super) fn to_json(strategy: &Strategy) -> Value {
    let pair = |run: Option<Run>| run.map(|run| [run.length, run.stride]);
    match strategy {
        Strategy::Tiled(Tiling { space, time }) => {
            json!({ "space": pair(*space), "time": pair(*time) })
        }
        Strategy::Exact { budget } => json!({ "exact": budget }),
    }
}

/// Reads [`to_json`]'s value; absent: it is not a strategy.
pub(super) fn from_json(value: &Value) -> Option<Strategy> {
    if let Some(budget) = value["exact"].as_u64() {
        return Some(Strategy::Exact { budget });
    }
    let pair = |name: &str| -> Option<Option<Run>> {
        if value.get(name)?.is_null() {
            return Some(None);
        }
        let [length, stride] = [&value[name][0], &value[name][1]].map(Value::as_u64);
        Some(Some(Run {
            length: usize::try_from(length?).ok()?,
            stride: usize::try_from(stride?).ok()?,
        }))
    };
    Some(Strategy::Tiled(Tiling {
        space: pair("space")?,
        time: pair("time")?,
    }))
}

/// The strategy in words, for the console.
pub(super) fn words(strategy: &Strategy) -> String {
    match strategy {
        Strategy::Exact { budget } => format!("whole, in {} MiB", budget >> 20),
        Strategy::Tiled(Tiling {
            space: None,
            time: None,
        }) => "in one piece".to_owned(),
        Strategy::Tiled(Tiling { space, time }) => {
            let tiles =
                space.map(|run| format!("tiles of {} every {} pixels", run.length, run.stride));
            let runs = time.map(|run| format!("{} frames at a time", run.length));
            let all: Vec<String> = tiles.into_iter().chain(runs).collect();
            all.join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vae::{HunyuanConfig, WanConfig};

    const fn run(length: usize, stride: usize) -> Run {
        Run { length, stride }
    }

    #[test]
    fn settings_count() {
        let hunyuan = Config::from(HunyuanConfig::default());
        let wan = Config::from(WanConfig::default());
        let settings = Settings::parse(
            r#"{"settings": {"vae_tile": "259", "vae_overlap": "64", "vae_chunk": "4"}}"#,
        );
        let tiled = |space, time| {
            let time = Some(time);
            Some(Strategy::Tiled(Tiling { space, time }))
        };
        assert_eq!(
            asked(&hunyuan, &settings),
            tiled(Some(run(256, 192)), run(16, 12))
        );
        assert_eq!(
            asked(&wan, &settings),
            tiled(Some(run(256, 192)), run(16, 16))
        );
        assert_eq!(asked(&wan, &Settings::default()), None);
        let one = Settings::parse(r#"{"settings": {"vae_chunk": "1"}}"#);
        assert_eq!(asked(&hunyuan, &one), tiled(None, run(4, 4)));
        let two = Settings::parse(r#"{"settings": {"vae_chunk": "2"}}"#);
        assert_eq!(asked(&hunyuan, &two), tiled(None, run(8, 4)));
        assert_eq!(asked(&wan, &two), tiled(None, run(8, 8)));
    }

    #[test]
    fn what_is_not_followed_to_the_letter_is_said() {
        let wan = Config::from(WanConfig::default());
        for (tile, overlap, want) in [
            ("256", "64", &[][..]),
            ("256", "0", &[]),
            (
                "256",
                "256",
                &[
                    "vae_overlap = 256: tiles of 256 pixels share whole latents, and half of a tile at most; 128 are taken",
                ],
            ),
            (
                "250",
                "60",
                &[
                    "vae_tile = 250: tiles are whole latents of 8 pixels; 248 are taken",
                    "vae_overlap = 60: tiles of 248 pixels share whole latents, and half of a tile at most; 64 are taken",
                ],
            ),
        ] {
            let text = json!({ "settings": { "vae_tile": tile, "vae_overlap": overlap } });
            let settings = Settings::parse(&text.to_string());
            assert_eq!(settings.problems, Vec::<String>::new());
            assert_eq!(altered(&wan, &settings), want, "{tile} {overlap}");
        }
        // three latents of 16 pixels: half of them is one and a half
        let wan22 = Config::from(WanConfig {
            is_residual: true,
            patch_size: Some(2),
            scale_factor_spatial: 16,
            ..WanConfig::default()
        });
        assert_eq!(wan22.ratio().space, 16);
        let text = json!({ "settings": { "vae_tile": "50", "vae_overlap": "40" } });
        let settings = Settings::parse(&text.to_string());
        assert_eq!(
            altered(&wan22, &settings),
            [
                "vae_tile = 50: tiles are whole latents of 16 pixels; 48 are taken",
                "vae_overlap = 40: tiles of 48 pixels share whole latents, and half of a tile at most; 16 are taken",
            ]
        );
        let alone = Settings::parse(r#"{"settings": {"vae_tile": "264"}}"#);
        assert_eq!(altered(&wan, &alone), Vec::<String>::new());
        assert_eq!(altered(&wan, &Settings::default()), Vec::<String>::new());
    }

    #[test]
    fn sizes_that_nothing_can_decode_are_refused() {
        let hunyuan = Config::from(HunyuanConfig::default());
        let wan = Config::from(WanConfig::default());
        for config in [&hunyuan, &wan] {
            assert_eq!(possible(config, [9, 60, 104], Place::Cpu), Ok(()));
            for size in [
                [1, 65536, 65536],
                [1, 1, 16_777_216],
                [usize::MAX, 1, 1],
                [1, usize::MAX, 1],
                [16384, 2048, 2048],
            ] {
                let why = possible(config, size, Place::Cpu).unwrap_err();
                assert!(why.contains("would come of these latents"), "{why}");
            }
        }
    }

    fn most(bytes: u64) -> Most {
        let words = "there is so much".to_owned();
        Most { bytes, words }
    }

    #[test]
    fn a_model_whose_latents_are_no_part_of_the_smallest_tiles_can_be_decoded_too() {
        let wan = Config::from(WanConfig {
            patch_size: Some(3),
            in_channels: 27,
            out_channels: 27,
            scale_factor_spatial: 24,
            ..WanConfig::default()
        });
        assert_eq!(possible(&wan, [9, 30, 40], Place::Cpu), Ok(()));
        assert_eq!(encodable(&wan, [9, 240, 480], Place::Cpu), Ok(()));
    }

    /// Bytes from which on a decode of this size is taken to be possible.
    fn least_memory(config: &Config, size: [usize; 3]) -> u64 {
        let (mut below, mut enough) = (0_u64, 1 << 60);
        while enough - below > 1 {
            let middle = below.midpoint(enough);
            match possible_in(config, size, Some(middle), Some(&most(middle))) {
                Ok(()) => enough = middle,
                Err(_) => below = middle,
            }
        }
        enough
    }

    #[test]
    fn latents_count_with_the_smallest_way_and_the_video_with_the_disk() {
        for config in [
            Config::from(HunyuanConfig::default()),
            Config::from(WanConfig::default()),
        ] {
            // long and small: 16 channels of 4096 x 4 x 4 numbers of four bytes, three times
            let size = [4096, 4, 4];
            let latents = 3 * 16 * 4096 * 4 * 4 * 4;
            let job = Job {
                config: &config,
                direction: Direction::Decode,
                batch: 1,
                size,
            };
            let peak = plan::peak(&job, &Cpu, &least(&config)).unwrap();
            assert_eq!(least_memory(&config, size), peak + latents);
            // a limit counts, however large the machine is
            let why = possible_in(&config, size, None, Some(&most(peak))).unwrap_err();
            let want = format!(
                "{} MiB of memory in the smallest way, and there is so much",
                (peak + latents) >> 20
            );
            assert!(why.contains(&want), "{why}");
            // where nobody knows how much there is, it may be enough
            assert_eq!(possible_in(&config, size, None, None), Ok(()));
        }
        // 8001 frames of 2048 x 2048: a sixteenth of them is more than the smallest way takes
        let wan = Config::from(WanConfig::default());
        let video: u64 = 8001 * 2048 * 2048 * 3;
        let size = [2001, 256, 256];
        let why = possible_in(&wan, size, Some(video / 16 - 1), None).unwrap_err();
        let want = format!("{} MiB of video, and this machine has ", video >> 20);
        assert!(why.contains(&want), "{why}");
    }

    #[test]
    fn half_of_what_was_too_much_is_left_beside_the_weights() {
        let budget = |free, cap| MemoryBudget {
            free: Some(free),
            cap,
            held: 0,
            coming: 100,
        };
        let left = |budget: &MemoryBudget| budget.left().unwrap();
        assert_eq!(left(&at_most(&budget(10_000, None), 500)), 490);
        assert_eq!(left(&at_most(&budget(10_000, Some(300)), 500)), 196);
        assert_eq!(left(&at_most(&budget(200, None), 500)), 98);
    }

    #[test]
    fn on_the_processor_there_is_always_a_way_and_it_comes_back_from_disk() {
        let config = Config::from(HunyuanConfig::default());
        let job = Job {
            config: &config,
            direction: Direction::Decode,
            batch: 1,
            size: [9, 60, 104],
        };
        for free in [1 << 60, 8 << 30, 1 << 20] {
            let budget = MemoryBudget {
                free: Some(free),
                ..MemoryBudget::default()
            };
            let choice = choose(&job, &Cpu, &budget, None).unwrap();
            let told = to_json(&choice.strategy).to_string();
            let again = serde_json::from_str(&told).unwrap();
            assert_eq!(from_json(&again), Some(choice.strategy), "{told}");
            assert!(!words(&choice.strategy).is_empty());
        }
        assert_eq!(from_json(&json!({ "weather": "fair" })), None);
    }
}
