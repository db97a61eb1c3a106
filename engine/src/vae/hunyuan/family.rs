//! HunyuanVideo as one of the families.

use candle_core::Tensor;

use super::super::config::fields;
use super::super::family::{Config, DecoderNetwork, EncoderNetwork, Family, Networks, Vae};
use super::super::layers::Loader;
use super::super::strategy::{Direction, Ratio, Run, Tiling};
use super::super::stream::{Carry, Start};
use super::super::tiles::Seam;
use super::decoder::Decoder;
use super::encoder::Encoder;
use super::{HunyuanConfig, exact, single_file};
use crate::error::Result;

pub(in crate::vae) const FAMILY: Family = Family {
    class: "AutoencoderKLHunyuanVideo",
    name: "HunyuanVideo",
    word: "Hunyuan",
    agent_names: &["hunyuan"],
    parse: |text| {
        let config: HunyuanConfig = fields(text)?;
        config.check()?;
        Ok(Config::new(config))
    },
    single_file: Some(single_file::SINGLE_FILE),
};

/// Runs of frames: the reference's own, 16 every 12, and its multiples.
const RUNS: [Run; 3] = [run(64, 48), run(32, 24), run(16, 12)];

const fn run(length: usize, stride: usize) -> Run {
    Run { length, stride }
}

impl From<HunyuanConfig> for Config {
    fn from(config: HunyuanConfig) -> Self {
        Self::new(config)
    }
}

impl Vae for HunyuanConfig {
    fn family(&self) -> &'static Family {
        &FAMILY
    }

    fn ratio(&self) -> Ratio {
        Ratio {
            space: self.spatial_compression_ratio,
            time: self.temporal_compression_ratio,
        }
    }

    fn latent_channels(&self) -> usize {
        self.latent_channels
    }

    fn colours(&self, direction: Direction) -> usize {
        match direction {
            Direction::Decode => self.out_channels,
            Direction::Encode => self.in_channels,
        }
    }

    fn fps(&self) -> f64 {
        24.0
    }

    fn runs(&self, frames: usize) -> Vec<Option<Run>> {
        let shorter = RUNS.into_iter().filter(|run| run.length < frames);
        std::iter::once(None).chain(shorter.map(Some)).collect()
    }

    /// A quarter, and at least one.
    fn overlap(&self, latents: usize) -> usize {
        (latents / 4).max(1).min(latents.saturating_sub(1))
    }

    fn exact(&self) -> Result<()> {
        exact::suits(self)
    }

    /// Runs of frames need no more than the end of the run before them.
    fn start(&self, tiling: &Tiling, latents: usize, frame: usize) -> Result<Start> {
        let runs = tiling.time(self.ratio())?;
        let Some(runs) = runs.filter(|(run, _)| latents > run.length) else {
            return Ok(Start::default());
        };
        let (seam, first) = Seam::before(frame, runs, latents);
        Ok(Start {
            carry: (seam.start > 0).then(|| Carry::stateless(seam.given, seam.start)),
            work: seam.given,
            first,
        })
    }

    fn unscale(&self, latents: &Tensor) -> Result<Tensor> {
        Ok(latents.affine(1.0 / self.scaling_factor, 0.0)?)
    }
}

impl Networks for HunyuanConfig {
    fn decoder(&self, root: &Loader<'_>) -> Result<Box<dyn DecoderNetwork>> {
        Ok(Box::new(Decoder::load(self, root)?))
    }

    fn encoder(&self, root: &Loader<'_>) -> Result<Box<dyn EncoderNetwork>> {
        Ok(Box::new(Encoder::load(self, root)?))
    }
}
