//! WAN as one of the families.

use candle_core::Tensor;

use super::super::config::fields;
use super::super::family::{Config, DecoderNetwork, EncoderNetwork, Family, Networks, Vae};
use super::super::layers::Loader;
use super::super::strategy::{Direction, Ratio, Run};
use super::decoder::Decoder;
use super::encoder::Encoder;
use super::{WanConfig, single_file};
use crate::error::{Result, argument};

pub(in crate::vae) const FAMILY: Family = Family {
    class: "AutoencoderKLWan",
    name: "WAN",
    word: "Wan",
    agent_names: &["wan", "wan2.2"],
    parse: |text| {
        let config: WanConfig = fields(text)?;
        config.check()?;
        Ok(Config::new(config))
    },
    single_file: Some(single_file::SINGLE_FILE),
};

/// Frames of the chunks, which are exact and overlap nothing.
const CHUNKS: [usize; 3] = [16, 8, 4];

impl From<WanConfig> for Config {
    fn from(config: WanConfig) -> Self {
        Self::new(config)
    }
}

impl Vae for WanConfig {
    fn family(&self) -> &'static Family {
        &FAMILY
    }

    fn ratio(&self) -> Ratio {
        Ratio {
            space: self.scale_factor_spatial,
            time: self.scale_factor_temporal,
        }
    }

    fn latent_channels(&self) -> usize {
        self.z_dim
    }

    fn colours(&self, direction: Direction) -> usize {
        let channels = match direction {
            Direction::Decode => self.out_channels,
            Direction::Encode => self.in_channels,
        };
        channels / self.patch() / self.patch()
    }

    fn fps(&self) -> f64 {
        16.0
    }

    fn runs(&self, frames: usize) -> Vec<Option<Run>> {
        let shortest = CHUNKS[CHUNKS.len() - 1];
        CHUNKS
            .into_iter()
            .filter(|&length| length == shortest || length < frames)
            .map(|length| {
                Some(Run {
                    length,
                    stride: length,
                })
            })
            .collect()
    }

    /// Chunks carry caches instead.
    fn overlap(&self, _latents: usize) -> usize {
        0
    }

    /// Times the deviation plus the mean, by channel.
    fn unscale(&self, latents: &Tensor) -> Result<Tensor> {
        let Some((mean, deviation)) = self.scaling() else {
            return argument(format!(
                "nothing says how latents of {} channels are scaled: config.json has no latents_mean and latents_std, and \
                 diffusers' defaults are for 16; add the model's own to config.json, or say that it is done already \
                 (--scaling-applied true)",
                self.z_dim
            ));
        };
        let values = |values: &[f64]| -> Result<Tensor> {
            let all = Tensor::new(values, latents.device())?.to_dtype(latents.dtype())?;
            Ok(all.reshape((1, values.len(), 1, 1, 1))?)
        };
        let (mean, deviation) = (values(mean)?, values(deviation)?);
        Ok(latents.broadcast_mul(&deviation)?.broadcast_add(&mean)?)
    }
}

impl Networks for WanConfig {
    fn decoder(&self, root: &Loader<'_>) -> Result<Box<dyn DecoderNetwork>> {
        Ok(Box::new(Decoder::load(self, root)?))
    }

    fn encoder(&self, root: &Loader<'_>) -> Result<Box<dyn EncoderNetwork>> {
        Ok(Box::new(Encoder::load(self, root)?))
    }
}
