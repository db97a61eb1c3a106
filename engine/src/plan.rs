//! How much memory a run takes, and which strategy fits.
//!
//! The model itself is run dry: on clips without numbers, whose bytes are counted as they come and go. The prediction
//! is within 5 % of what is measured (`docs/benchmarks`); what a device takes for itself is the backend's word
//! ([`Backend::conv_scratch`]).

use crate::error::{Result, argument};
use crate::ops::{Backend, DryRun, Executor};
use crate::vae::{
    Config, DecoderNetwork, Direction, EncoderNetwork, Loader, Run, Strategy, Tiling, Unobserved,
};

/// What is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The model.
    pub config: &'a Config,
    /// Which half of it.
    pub direction: Direction,
    /// Entries of the batch.
    pub batch: usize,
    /// Frames, height and width of what goes in: latents for the decoder, video for the encoder.
    pub size: [usize; 3],
}

/// What the memory of a device leaves to a run, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryBudget {
    /// The most that the process may hold there, where that is limited.
    pub cap: Option<u64>,
    /// What the device has free, where it says so.
    pub free: Option<u64>,
    /// What the process holds there already and counts against the cap.
    pub held: u64,
    /// What it will hold there besides: weights that are not loaded yet, or the result where it is kept.
    pub coming: u64,
}

/// The share of the memory that is left free: predictions have been off by half of it.
const MARGIN: u64 = 50;

impl MemoryBudget {
    /// Bytes for a run; absent: as many as it likes.
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

/// A strategy that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The strategy.
    pub strategy: Strategy,
    /// Bytes that it takes at its worst beside the weights, the result counted.
    pub peak: u64,
}

/// Bytes that `job` takes at its worst on `backend`, beside the weights: what goes in, what comes out and all
/// between.
///
/// # Errors
/// When the strategy does not suit the model: its sizes are no multiples, or the exact one is asked of a model or a
/// batch that has none.
pub fn peak(job: &Job<'_>, backend: &dyn Backend, strategy: &Strategy) -> Result<u64> {
    Network::of(job, backend)?.peak(job, backend, strategy)
}

/// The strategy that suits best of those that fit: nothing cut; then the exact mode, where the family has one; then the
/// longest runs of frames and the largest tiles, shorter runs being tried before smaller tiles. Absent: nothing fits; a
/// lower precision or another device may.
pub fn choose(job: &Job<'_>, backend: &dyn Backend, budget: &MemoryBudget) -> Option<Choice> {
    first_below(job, backend, budget.left().unwrap_or(u64::MAX))
}

/// The next strategy after one that took too much although it seemed to fit: the first that takes a fifth less, and no
/// more than there is by now. Absent: there is none.
pub fn fallback(
    job: &Job<'_>,
    backend: &dyn Backend,
    budget: &MemoryBudget,
    failed: &Choice,
) -> Option<Choice> {
    let less = failed.peak - failed.peak / 5;
    first_below(job, backend, budget.left().unwrap_or(u64::MAX).min(less))
}

fn first_below(job: &Job<'_>, backend: &dyn Backend, bytes: u64) -> Option<Choice> {
    let network = Network::of(job, backend).ok()?;
    strategies(job, bytes).into_iter().find_map(|strategy| {
        let peak = network.peak(job, backend, &strategy).ok()?;
        (peak <= bytes).then_some(Choice { strategy, peak })
    })
}

/// A model without weights.
enum Network {
    Decoder(Box<dyn DecoderNetwork>),
    Encoder(Box<dyn EncoderNetwork>),
}

impl Network {
    fn of(job: &Job<'_>, backend: &dyn Backend) -> Result<Self> {
        let run = DryRun::new(backend);
        let loader = Loader::of_sizes(&run);
        let networks = job.config.networks();
        Ok(match job.direction {
            Direction::Decode => Self::Decoder(networks.decoder(&loader)?),
            Direction::Encode => Self::Encoder(networks.encoder(&loader)?),
        })
    }

    fn peak(&self, job: &Job<'_>, backend: &dyn Backend, strategy: &Strategy) -> Result<u64> {
        let run = DryRun::new(backend);
        let exec = Executor::DryRun(&run);
        let [t, h, w] = job.size;
        match self {
            Self::Decoder(decoder) => {
                let latents = run.input(&[job.batch, job.config.latent_channels(), t, h, w]);
                let sink = &mut |_| Ok(());
                decoder.decode(exec, &latents, strategy, None, &mut Unobserved, sink)?;
            }
            Self::Encoder(encoder) => {
                let Strategy::Tiled(tiling) = strategy else {
                    return argument("only a decoder has an exact mode");
                };
                let colours = job.config.colours(job.direction);
                let video = run.input(&[job.batch, colours, t, h, w]);
                drop(encoder.encode(exec, &video, tiling, &mut Unobserved)?);
            }
        }
        Ok(run.peak())
    }
}

/// Squares of pixels of the video that are tried: the reference's own, 256 every 192, its multiples, and half of it.
const TILES: [Run; 5] = [
    run(768, 576),
    run(512, 384),
    run(384, 288),
    run(256, 192),
    run(128, 96),
];

const fn run(length: usize, stride: usize) -> Run {
    Run { length, stride }
}

/// The tiling that takes the least of those that are tried.
pub(crate) fn smallest(config: &Config) -> Tiling {
    let space = TILES[TILES.len() - 1].whole(config.ratio().space);
    Tiling {
        space: Some(space),
        time: config.runs(usize::MAX).last().copied().flatten(),
    }
}

/// All strategies, the best first; the exact one within `bytes`.
fn strategies(job: &Job<'_>, bytes: u64) -> Vec<Strategy> {
    let ratio = job.config.ratio();
    let [t, h, w] = match job.direction {
        Direction::Decode => {
            let [t, h, w] = job.size;
            [
                (t.max(1) - 1) * ratio.time + 1,
                h * ratio.space,
                w * ratio.space,
            ]
        }
        Direction::Encode => job.size,
    };
    let times = job.config.runs(t);
    let spaces = std::iter::once(None).chain(
        TILES
            .into_iter()
            .map(|tile| tile.whole(ratio.space))
            .filter(|tile| tile.length < h.max(w))
            .map(Some),
    );
    let mut all: Vec<Strategy> = spaces
        .flat_map(|space| {
            times
                .iter()
                .map(move |&time| Strategy::Tiled(Tiling { space, time }))
        })
        .collect();
    if job.direction == Direction::Decode && job.config.exact().is_ok() {
        all.insert(1.min(all.len()), Strategy::Exact { budget: bytes });
    }
    all
}
