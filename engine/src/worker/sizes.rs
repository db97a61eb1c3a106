//! How a job is cut: as the settings say, else as the planner chooses for the memory that is there.

use serde_json::{Value, json};

use super::{DeviceMemory, Settings};
use crate::error::{Error, Result};
use crate::ops::Backend;
use crate::plan::{self, Choice, Job, Room, Way};
use crate::vae::{Config, Run, Tiling};

/// What is left where nothing fits: the host may still page something out.
const LEAST: Run = Run {
    length: 128,
    stride: 96,
};
const FEWEST: Run = Run {
    length: 16,
    stride: 12,
};

/// What the settings say; `None`: nothing, the planner chooses.
pub(super) fn asked(config: &Config, settings: &Settings) -> Option<Way> {
    let ratio = config.ratio();
    let down = |pixels: usize| pixels / ratio.space * ratio.space;
    let space = settings.tile().map(|tile| {
        let length = down(tile).max(ratio.space);
        let overlap = settings.overlap().unwrap_or(length / 4).min(length / 2);
        Run {
            length,
            stride: down(length - overlap).max(ratio.space),
        }
    });
    let time = settings.chunk().map(|chunk| {
        // a quarter of the frames that are cross-faded overlaps; WAN's overlap nothing
        let overlap = match config {
            Config::Hunyuan(_) => chunk / 4,
            Config::Wan(_) => 0,
        };
        Run {
            length: chunk * ratio.time,
            stride: (chunk - overlap) * ratio.time,
        }
    });
    (space.is_some() || time.is_some()).then_some(Way::Tiled(Tiling { space, time }))
}

/// The memory that a job may take on a device: `weights` are not loaded yet.
pub(super) fn room(
    backend: &dyn Backend,
    memory: Option<DeviceMemory>,
    weights: u64,
    cap: Option<u64>,
) -> Room {
    if backend.device().is_cpu() {
        return Room {
            free: free_memory(),
            coming: weights,
            ..Room::default()
        };
    }
    Room {
        cap,
        free: memory.and_then(|memory| memory.free),
        held: memory.map_or(0, |memory| memory.reserved),
        coming: weights,
    }
}

/// The planner's choice; below `failed`, which took too much. On the processor there is always one.
pub(super) fn choose(
    job: &Job<'_>,
    backend: &dyn Backend,
    room: &Room,
    failed: Option<&Choice>,
) -> Result<Choice> {
    let found = match failed {
        Some(failed) => plan::retreat(job, backend, failed),
        None => plan::choose(job, backend, room),
    };
    if let Some(choice) = found {
        return Ok(choice);
    }
    let least = Way::Tiled(Tiling {
        space: Some(LEAST),
        time: matches!(job.config, Config::Hunyuan(_)).then_some(FEWEST),
    });
    let peak = plan::peak(job, backend, &least)?;
    if backend.device().is_cpu() && failed.is_none() {
        return Ok(Choice { way: least, peak });
    }
    Err(Error::Device(format!(
        "not enough memory: the smallest way takes {} MiB beside the weights",
        peak >> 20
    )))
}

/// Bytes of host memory that a process can have without swapping, by /proc/meminfo.
fn free_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// A way as it is kept on disk.
pub(super) fn to_json(way: &Way) -> Value {
    let pair = |run: Option<Run>| run.map(|run| [run.length, run.stride]);
    match way {
        Way::Tiled(Tiling { space, time }) => json!({ "space": pair(*space), "time": pair(*time) }),
        Way::Exact { budget } => json!({ "exact": budget }),
    }
}

/// The way back; `None`: it is something else.
pub(super) fn from_json(value: &Value) -> Option<Way> {
    if let Some(budget) = value["exact"].as_u64() {
        return Some(Way::Exact { budget });
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
    Some(Way::Tiled(Tiling {
        space: pair("space")?,
        time: pair("time")?,
    }))
}

/// In words, for the console.
pub(super) fn words(way: &Way) -> String {
    match way {
        Way::Exact { budget } => format!("whole, in {} MiB", budget >> 20),
        Way::Tiled(Tiling {
            space: None,
            time: None,
        }) => "in one piece".to_owned(),
        Way::Tiled(Tiling { space, time }) => {
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
    use crate::ops::cpu::Cpu;
    use crate::plan::Half;
    use crate::vae::{HunyuanConfig, WanConfig};

    const fn run(length: usize, stride: usize) -> Run {
        Run { length, stride }
    }

    #[test]
    fn settings_count() {
        let hunyuan = Config::Hunyuan(HunyuanConfig::default());
        let wan = Config::Wan(WanConfig::default());
        let settings = Settings::parse(
            r#"{"settings": {"vae_tile": "259", "vae_overlap": "64", "vae_chunk": "4"}}"#,
        );
        let tiled = |space, time| {
            let time = Some(time);
            Some(Way::Tiled(Tiling { space, time }))
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
    }

    #[test]
    fn on_the_processor_there_is_always_a_way_and_it_comes_back_from_disk() {
        let config = Config::Hunyuan(HunyuanConfig::default());
        let job = Job {
            config: &config,
            half: Half::Decoder,
            batch: 1,
            size: [9, 60, 104],
        };
        for free in [1 << 60, 8 << 30, 1 << 20] {
            let room = Room {
                free: Some(free),
                ..Room::default()
            };
            let choice = choose(&job, &Cpu, &room, None).unwrap();
            let told = to_json(&choice.way).to_string();
            let again = serde_json::from_str(&told).unwrap();
            assert_eq!(from_json(&again), Some(choice.way), "{told}");
            assert!(!words(&choice.way).is_empty());
        }
        assert_eq!(from_json(&json!({ "weather": "fair" })), None);
    }
}
