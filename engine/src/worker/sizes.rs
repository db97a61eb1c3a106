//! The sizes of tiles and chunks: what the settings say, else what fits the memory.

use super::{Place, Settings};
use crate::vae::{Config, Run, Tiling};

/// Bytes of memory for each pixel of each frame that is decoded at once, in single precision: measured at 2640 to 2820
/// with the real HunyuanVideo.
const HUNYUAN_BYTES: usize = 2800;
/// The same of WAN for each pixel of one frame, whatever the length: 5.4 kB of a chunk and 9.5 kB of its caches.
const WAN_BYTES: usize = 15_000;
/// diffusers' tiles and runs of frames: edge, and from one to the next.
const TILE: Run = Run {
    length: 256,
    stride: 192,
};
const FRAMES: Run = Run {
    length: 16,
    stride: 12,
};

/// Pixels and frames of the video for one of the latents, and how many frames the model takes at once.
pub(super) struct Grid {
    pub(super) space: usize,
    pub(super) time: usize,
    /// Frames of a chunk that needs no others to be exact.
    chunk: Option<usize>,
}

impl Grid {
    pub(super) fn of(config: &Config) -> Self {
        match config {
            Config::Hunyuan(config) => Self {
                space: config.spatial_compression_ratio,
                time: config.temporal_compression_ratio,
                chunk: None,
            },
            Config::Wan(config) => Self {
                space: config.scale_factor_spatial,
                time: config.scale_factor_temporal,
                chunk: Some(config.scale_factor_temporal),
            },
        }
    }

    /// (frames, height, width) of the video that latents of (t, h, w) stand for.
    pub(super) fn video(&self, [t, h, w]: [usize; 3]) -> [usize; 3] {
        [(t - 1) * self.time + 1, h * self.space, w * self.space]
    }

    /// How a video of (frames, height, width) is cut. `free`: bytes of host memory that are.
    pub(super) fn tiling(
        &self,
        [t, h, w]: [usize; 3],
        settings: &Settings,
        place: Place,
        free: Option<usize>,
    ) -> Tiling {
        let column = match self.chunk {
            None => t.saturating_mul(HUNYUAN_BYTES),
            Some(_) => WAN_BYTES,
        };
        let need = h.saturating_mul(w).saturating_mul(column);
        let whole = place == Place::Card || free.is_none_or(|free| need <= free / 4 * 3);
        let space = match settings.tile() {
            Some(tile) => Some(self.tile(tile, settings.overlap())),
            None => (!whole).then_some(TILE),
        };
        let time = match (settings.chunk(), self.chunk) {
            (Some(chunk), Some(_)) => Some(even(chunk * self.time)),
            (Some(chunk), None) => Some(self.faded(chunk)),
            (None, Some(_)) => None,
            (None, None) => (!whole).then_some(FRAMES),
        };
        Tiling { space, time }
    }

    fn tile(&self, tile: usize, overlap: Option<usize>) -> Run {
        let down = |pixels: usize| pixels / self.space * self.space;
        let length = down(tile).max(self.space);
        let overlap = overlap.map_or(length / 4, |overlap| overlap.min(length / 2));
        Run {
            length,
            stride: down(length - overlap).max(self.space),
        }
    }

    /// Latent frames that are cross-faded: a quarter of them overlaps.
    fn faded(&self, chunk: usize) -> Run {
        Run {
            length: chunk * self.time,
            stride: (chunk - chunk / 4).max(1) * self.time,
        }
    }
}

fn even(length: usize) -> Run {
    Run {
        length,
        stride: length,
    }
}

/// Bytes of host memory that a process can have without swapping, by /proc/meminfo.
pub(super) fn free_memory() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vae::{HunyuanConfig, WanConfig};

    #[test]
    fn settings_count_and_else_what_fits() {
        let hunyuan = Grid::of(&Config::Hunyuan(HunyuanConfig::default()));
        let wan = Grid::of(&Config::Wan(WanConfig::default()));
        let none = Settings::default();
        let asked = Settings::parse(
            r#"{"settings": {"vae_tile": "259", "vae_overlap": "64", "vae_chunk": "4"}}"#,
        );
        let size = hunyuan.video([9, 90, 160]);
        assert_eq!(size, [33, 720, 1280]);
        let cut = |grid: &Grid, settings, free| grid.tiling(size, settings, Place::Cpu, Some(free));
        let gib = 1 << 30;
        assert_eq!(cut(&hunyuan, &none, 1000 * gib), Tiling::default());
        assert_eq!(
            cut(&hunyuan, &none, 32 * gib),
            Tiling {
                space: Some(TILE),
                time: Some(FRAMES)
            }
        );
        // WAN's chunks are small
        assert_eq!(cut(&wan, &none, 32 * gib), Tiling::default());
        let tile = Some(Run {
            length: 256,
            stride: 192,
        });
        let both = cut(&hunyuan, &asked, gib);
        assert_eq!((both.space, both.time), (tile, Some(FRAMES)));
        assert_eq!(cut(&wan, &asked, gib).time, Some(even(16)));
    }
}
