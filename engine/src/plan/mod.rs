//! How much memory a run takes, and which way of running fits.
//!
//! The prediction runs the model on sizes alone, in the order in which the true one takes and gives back memory. It is
//! within 5 % of what is measured (`docs/benchmarks`); what a device takes for itself is the backend's word
//! ([`Backend::conv_scratch`]).

mod hunyuan;
mod joins;
mod shadow;
mod wan;

use self::joins::{Piece, Pieces};
use self::shadow::{Clip, Shadow};
use crate::error::{Result, argument};
use crate::ops::Backend;
use crate::vae::hunyuan::exact;
use crate::vae::{Config, HunyuanConfig, Run, Tiling, WanConfig};

/// Which half of the autoencoder runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// Latents to video.
    Decoder,
    /// Video to latents.
    Encoder,
}

/// What is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The model.
    pub config: &'a Config,
    /// Which half of it.
    pub half: Half,
    /// Entries of the batch.
    pub batch: usize,
    /// Frames, height and width of what goes in: latents for the decoder, video for the encoder.
    pub size: [usize; 3],
}

/// A way to run it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// `decode` or `encode` with this tiling; the default one cuts nothing.
    Tiled(Tiling),
    /// HunyuanVideo's [`decode_exact`](crate::vae::hunyuan::Decoder::decode_exact): no seams.
    Exact {
        /// Its budget in bytes.
        budget: u64,
    },
}

/// What the memory of a device leaves to a run, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// The most that the process may hold there, where that is limited.
    pub cap: Option<u64>,
    /// What the device has free, where it says so.
    pub free: Option<u64>,
    /// What the process holds there already and counts against the cap.
    pub held: u64,
    /// What it will hold there besides: weights that are not loaded yet, or the result where it is kept.
    pub coming: u64,
}

/// The share of the room that is left free: predictions have been off by half of it.
const MARGIN: u64 = 50;

impl Room {
    /// Bytes for a run; `None`: as many as it likes.
    pub fn left(&self) -> Option<u64> {
        let under = self.cap.map(|cap| cap.saturating_sub(self.held));
        let all = match (under, self.free) {
            (Some(under), Some(free)) => under.min(free),
            (one, other) => one.or(other)?,
        };
        let all = all.saturating_sub(self.coming);
        Some(all - all / MARGIN)
    }
}

/// A way that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The way.
    pub way: Way,
    /// Bytes that it takes at its worst beside the weights, the result counted.
    pub peak: u64,
}

/// Bytes that `job` takes at its worst on `backend`, beside the weights: what goes in, what comes out and all
/// between.
///
/// # Errors
/// When the way does not suit the model: its sizes are no multiples, or the exact way is asked of another
/// model than HunyuanVideo's decoder, or of one that ends with an upsampling.
pub fn peak(job: &Job<'_>, backend: &dyn Backend, way: &Way) -> Result<u64> {
    match (job.config, way) {
        (Config::Hunyuan(config), Way::Tiled(tiling)) => {
            hunyuan_tiled(job, config, backend, tiling)
        }
        (Config::Wan(config), Way::Tiled(tiling)) => wan_tiled(job, config, backend, tiling),
        (Config::Hunyuan(config), Way::Exact { budget }) if job.half == Half::Decoder => {
            exact::suits(config)?;
            Ok(hunyuan_exact(job, config, backend, *budget))
        }
        (_, Way::Exact { .. }) => {
            argument("only HunyuanVideo's decoder has an exact low-memory mode")
        }
    }
}

/// The way that suits best of those that fit: nothing cut; then HunyuanVideo's exact mode; then the longest runs of
/// frames and the largest tiles, shorter runs being tried before smaller tiles. `None`: nothing fits; a lower precision
/// or another device may.
pub fn choose(job: &Job<'_>, backend: &dyn Backend, room: &Room) -> Option<Choice> {
    first_below(job, backend, room.left().unwrap_or(u64::MAX))
}

/// The next way down after one that took too much although it seemed to fit: the first that takes a fifth
/// less, and no more than there is by now. `None`: there is none.
pub fn retreat(
    job: &Job<'_>,
    backend: &dyn Backend,
    room: &Room,
    failed: &Choice,
) -> Option<Choice> {
    let less = failed.peak - failed.peak / 5;
    first_below(job, backend, room.left().unwrap_or(u64::MAX).min(less))
}

fn first_below(job: &Job<'_>, backend: &dyn Backend, room: u64) -> Option<Choice> {
    ways(job, backend, room).into_iter().find_map(|way| {
        let peak = peak(job, backend, &way).ok()?;
        (peak <= room).then_some(Choice { way, peak })
    })
}

/// Runs of frames and squares of pixels that are tried, in frames and pixels of the video: the reference's
/// own, 16 every 12 and 256 every 192, and their multiples.
const RUNS: [Run; 3] = [run(64, 48), run(32, 24), run(16, 12)];
const TILES: [Run; 5] = [
    run(768, 576),
    run(512, 384),
    run(384, 288),
    run(256, 192),
    run(128, 96),
];

/// Frames of WAN's chunks, which are exact and overlap nothing.
const CHUNKS: [usize; 3] = [16, 8, 4];

const fn run(length: usize, stride: usize) -> Run {
    Run { length, stride }
}

/// All ways, the best first.
fn ways(job: &Job<'_>, backend: &dyn Backend, room: u64) -> Vec<Way> {
    let mut ways = Vec::new();
    let ratio = job.config.ratio();
    let [t, h, w] = match job.half {
        Half::Decoder => {
            let [t, h, w] = job.size;
            [
                (t.max(1) - 1) * ratio.time + 1,
                h * ratio.space,
                w * ratio.space,
            ]
        }
        Half::Encoder => job.size,
    };
    let times: Vec<Option<Run>> = match job.config {
        Config::Hunyuan(_) => std::iter::once(None)
            .chain(RUNS.into_iter().filter(|run| run.length < t).map(Some))
            .collect(),
        Config::Wan(_) => CHUNKS
            .into_iter()
            .filter(|&length| length == CHUNKS[CHUNKS.len() - 1] || length < t)
            .map(|length| Some(run(length, length)))
            .collect(),
    };
    let spaces = std::iter::once(None).chain(
        TILES
            .into_iter()
            .map(|tile| tile.whole(ratio.space))
            .filter(|tile| tile.length < h.max(w))
            .map(Some),
    );
    for space in spaces {
        for &time in &times {
            ways.push(Way::Tiled(Tiling { space, time }));
        }
    }
    if let (Config::Hunyuan(config), Half::Decoder) = (job.config, job.half) {
        let latents = Shadow::new(backend, job.batch);
        let latents = latents.clip(job.size, config.latent_channels);
        let budget = room.saturating_sub(latents.bytes());
        ways.insert(1.min(ways.len()), Way::Exact { budget });
    }
    ways
}

/// A tile of this size by itself.
fn piece(
    job: &Job<'_>,
    backend: &dyn Backend,
    (size, channels): ([usize; 3], usize),
    run: impl FnOnce(&Shadow<'_>, &Clip) -> Clip,
) -> Piece {
    let shadow = Shadow::new(backend, job.batch);
    let tile = shadow.clip(size, channels);
    let own = tile.bytes();
    let out = run(&shadow, &tile);
    Piece {
        peak: shadow.peak() - own,
        size: out.size,
        channels: out.channels,
    }
}

fn hunyuan_tiled(
    job: &Job<'_>,
    config: &HunyuanConfig,
    backend: &dyn Backend,
    tiling: &Tiling,
) -> Result<u64> {
    let ratio = config.ratio();
    let decodes = job.half == Half::Decoder;
    let (steps, runs, channels) = if decodes {
        (
            tiling.decoder_space(ratio, 1)?,
            tiling.time(ratio)?,
            config.latent_channels,
        )
    } else {
        let runs = tiling.time(ratio)?.map(|(from, to)| (to, from));
        (tiling.encoder_space(ratio, 1)?, runs, config.in_channels)
    };
    let shadow = Shadow::new(backend, job.batch);
    let _clip = shadow.clip(job.size, channels);
    let mut pieces = Pieces::new(|size| {
        piece(job, backend, (size, channels), |shadow, tile| {
            if decodes {
                hunyuan::decode(shadow, config, tile)
            } else {
                hunyuan::encode(shadow, config, tile)
            }
        })
    });
    let each = |shadow: &Shadow<'_>, size: [usize; 3]| {
        joins::in_space(shadow, size, channels, steps, |shadow, size| {
            pieces.run(shadow, size)
        })
    };
    let t = job.size[0];
    let whole = run(t, t);
    let frames = if decodes {
        t.max(1) * ratio.time
    } else {
        t / ratio.time + 1
    };
    let runs = runs
        .filter(|(from, _)| t > from.length)
        .unwrap_or((whole, run(frames, frames)));
    let mut parts: Vec<Clip> = Vec::new();
    joins::in_time(&shadow, job.size, channels, runs, each, |part| {
        if decodes {
            shadow.give(&part);
        } else {
            parts.push(part);
        }
    });
    if let Some(last) = parts.last() {
        let total = parts.iter().map(|part| part.size[0]).sum();
        let [_, h, w] = last.size;
        let all = shadow.clip([total, h, w], last.channels);
        shadow.give(&all);
    }
    Ok(shadow.peak())
}

fn wan_tiled(
    job: &Job<'_>,
    config: &WanConfig,
    backend: &dyn Backend,
    tiling: &Tiling,
) -> Result<u64> {
    let (ratio, p) = (config.ratio(), config.patch());
    let step = crate::vae::wan::step(tiling, ratio)?;
    let shadow = Shadow::new(backend, job.batch);
    let [t, h, w] = job.size;
    if job.half == Half::Encoder {
        let steps = tiling.encoder_space(ratio, p)?;
        let channels = config.in_channels;
        let (size, step) = ([t, h / p, w / p], step * ratio.time);
        let video = shadow.clip(size, channels);
        // patches are a copy
        let _patches = (p > 1).then(|| shadow.copy(&video));
        let mut pieces = Pieces::new(|size| {
            piece(job, backend, (size, channels), |shadow, tile| {
                wan::encode(shadow, config, tile, step)
            })
        });
        let moments = joins::in_space(&shadow, size, channels, steps, |shadow, size| {
            pieces.run(shadow, size)
        });
        shadow.give(&moments);
        return Ok(shadow.peak());
    }
    let steps = tiling.decoder_space(ratio, p)?;
    let _latents = shadow.clip(job.size, config.z_dim);
    // each tile has caches of its own, kept from chunk to chunk
    let mut caches: Vec<wan::Caches> = Vec::new();
    for count in wan::chunks(t, step) {
        let mut at = 0;
        let _chunk = (job.batch > 1).then(|| shadow.clip([count, h, w], config.z_dim));
        let video = joins::in_space(
            &shadow,
            [count, h, w],
            config.z_dim,
            steps,
            |shadow, size| {
                if caches.len() == at {
                    caches.push(wan::Caches::new());
                }
                let tile = shadow.clip(size, config.z_dim);
                at += 1;
                wan::decode(shadow, config, &tile, &mut caches[at - 1])
            },
        );
        let unpatched = if p > 1 {
            shadow.copy(&video)
        } else {
            video.clone()
        };
        // from below, then from above
        let below = shadow.copy(&unpatched);
        let clamped = shadow.copy(&below);
        drop((unpatched, below));
        shadow.give(&clamped);
    }
    Ok(shadow.peak())
}

fn hunyuan_exact(job: &Job<'_>, config: &HunyuanConfig, backend: &dyn Backend, budget: u64) -> u64 {
    let shadow = Shadow::new(backend, job.batch);
    let _clip = shadow.clip(job.size, config.latent_channels);
    // entries go one after the other
    let own = Shadow::new(backend, 1);
    let latents = own.clip(job.size, config.latent_channels);
    let begun = hunyuan::begin(&own, config, &latents);
    let levels = exact::levels_peak(config, job.size, backend, budget);
    drop(begun);
    shadow.peak() + own.peak().max(levels)
}
