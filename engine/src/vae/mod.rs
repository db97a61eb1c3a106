//! The families of autoencoders, loaded from what diffusers saves.
//!
//! Outside, videos and latents are (B, C, T, H, W) as everywhere else; inside, clips are channels-last.

mod config;
mod family;
mod hunyuan;
mod layers;
pub mod precision;
mod qwen_image;
mod single_file;
mod strategy;
mod stream;
mod tiles;
mod validate;
mod wan;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use candle_core::{DType, Tensor};

pub use self::family::{Config, Family, Vae};
pub(crate) use self::family::{DecoderNetwork, EncoderNetwork};
pub use self::hunyuan::HunyuanConfig;
pub(crate) use self::layers::Loader;
pub use self::strategy::{Direction, Ratio, Run, Strategy, Tiling};
pub use self::stream::{Carry, Chunk, Start};
pub use self::wan::WanConfig;

use crate::error::Result;
use crate::ops::{Backend, Clip, Executor};
use crate::weights::{Description, Scope, Weights};

/// Every family. A new one is a line here, its own files, and its test.
pub const FAMILIES: &[&Family] = &[&hunyuan::FAMILY, &wan::FAMILY, &qwen_image::FAMILY];

/// Sees every block's result while a model runs: for progress, for the search for the first NaN, and
/// to stop (an error ends the run).
pub trait Observer {
    /// `clip` is what the module of this name gave: (B, T, H, W, C).
    fn after(&mut self, module: &str, clip: &Tensor) -> Result<()>;

    /// `done` pieces of `total` have gone through; a piece is one tile of one chunk, or of one pass of the exact mode.
    fn pieces(&mut self, _done: usize, _total: usize) -> Result<()> {
        Ok(())
    }
}

impl dyn Observer + '_ {
    /// [`Observer::after`], where there are numbers to be seen.
    pub(crate) fn see(&mut self, module: &str, clip: &Clip) -> Result<()> {
        clip.tensor()
            .map_or(Ok(()), |tensor| self.after(module, tensor))
    }
}

/// Sees nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn after(&mut self, _: &str, _: &Tensor) -> Result<()> {
        Ok(())
    }
}

/// A model on disk: what it is, and where its weights are.
#[derive(Clone, Debug)]
pub struct Model {
    config: Config,
    weights: Arc<Weights>,
    /// A `config.json` beside a checkpoint of one file that is of another class than it.
    foreign: Option<PathBuf>,
}

/// What helps where a folder's configuration and weights are of two models.
const TWO_MODELS: &str =
    "the two are not of one model; download both again, from one place and into an empty folder";

impl Model {
    /// Opens a folder as diffusers saves it (`config.json` and safetensors files), or a checkpoint of one file with
    /// diffusers', the authors' or ComfyUI's names. Reads no weights yet.
    pub fn open(path: &Path) -> Result<Self> {
        if path.is_file() {
            return single_file::open(path);
        }
        let said = path.join("config.json");
        let config = Config::read(&said)?;
        let weights = Weights::open(path)?.described(Description {
            path: said,
            cure: TWO_MODELS,
        });
        validate::check(&config, &weights)?;
        Ok(Self {
            config,
            weights,
            foreign: None,
        })
    }

    /// The `config.json` that stands beside a checkpoint of one file and is of another class: it is not heeded.
    pub fn foreign_config(&self) -> Option<&Path> {
        self.foreign.as_deref()
    }

    /// What `config.json` says, or the tensors' shapes where there is none.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The weights.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Weights of a half that its configuration does not ask for, once the half was loaded; a sentence, `None` where
    /// all are used.
    pub fn unused(&self, direction: Direction) -> Option<String> {
        let names = self.weights.unread(prefixes(direction));
        let some: Vec<&str> = names.iter().take(3).copied().collect();
        let (first, n) = (some.join(", "), names.len());
        let half = match direction {
            Direction::Decode => "decoder",
            Direction::Encode => "encoder",
        };
        let said = self.weights.described_by().map_or_else(
            || "the model that the file's tensors tell".to_owned(),
            |config| config.display().to_string(),
        );
        let more = n - some.len();
        let rest = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        (n > 0).then(|| {
            format!(
                "weights of the {half} that are in the file are not used, as {said} does not ask for them: {first}{rest}; if that is of another model, so is the result: download both again, from one place"
            )
        })
    }

    /// Bytes that the weights of a half take when they are loaded in this precision: what a plan must leave room for.
    pub fn weight_bytes(&self, direction: Direction, dtype: DType) -> u64 {
        let own = prefixes(direction);
        let tensors = self
            .weights
            .names()
            .filter(|name| own.iter().any(|prefix| name.starts_with(prefix)));
        let numbers = tensors.filter_map(|name| {
            let shape = self.weights.shape(name).ok()?;
            Some(shape.iter().product::<usize>() as u64)
        });
        numbers.sum::<u64>() * dtype.size_in_bytes() as u64
    }

    /// Loads the half that makes videos of latents.
    pub fn decoder(&self, backend: Arc<dyn Backend>) -> Result<Decoder> {
        let network = self.config.networks().decoder(&self.loader(&*backend))?;
        Ok(Decoder {
            config: self.config.clone(),
            network,
            backend,
        })
    }

    /// Loads the half that makes latents of videos.
    pub fn encoder(&self, backend: Arc<dyn Backend>) -> Result<Encoder> {
        let network = self.config.networks().encoder(&self.loader(&*backend))?;
        Ok(Encoder { network, backend })
    }

    fn loader<'a>(&self, backend: &'a dyn Backend) -> Loader<'a> {
        let scope = Scope::new(Arc::clone(&self.weights));
        Loader::of_weights(Executor::Backend(backend), scope)
    }
}

/// The first parts of the names of a half's weights.
const fn prefixes(direction: Direction) -> &'static [&'static str] {
    match direction {
        Direction::Decode => &["decoder.", "post_quant_conv."],
        Direction::Encode => &["encoder.", "quant_conv."],
    }
}

/// The half that makes videos of latents.
#[derive(Debug)]
pub struct Decoder {
    config: Config,
    network: Box<dyn DecoderNetwork>,
    backend: Arc<dyn Backend>,
}

impl Decoder {
    /// Decodes `latents` (B, C, t, h, w), as the autoencoder takes them (see [`Decoder::unscale`]), to a video
    /// (B, 3, T, H, W), about -1 to 1.
    pub fn decode(
        &self,
        latents: &Tensor,
        tiling: &Tiling,
        observer: &mut dyn Observer,
    ) -> Result<Tensor> {
        let strategy = Strategy::Tiled(*tiling);
        stream::whole(|sink| self.decode_stream(latents, &strategy, None, observer, sink))
    }

    /// The same, given to `sink` chunk by chunk: runs of frames after their cross-fade (HunyuanVideo; all frames
    /// where there are none), or those that caches carry over (WAN). `from` is what an earlier decode with the same
    /// arguments left: only the frames after it are given. An error of `sink` ends the decode. The exact strategy
    /// takes a batch of one, and goes through everything whatever `from` says.
    pub fn decode_stream(
        &self,
        latents: &Tensor,
        strategy: &Strategy,
        from: Option<&Carry>,
        observer: &mut dyn Observer,
        sink: &mut dyn FnMut(Chunk) -> Result<()>,
    ) -> Result<()> {
        self.network.decode(
            Executor::Backend(&*self.backend),
            &latents.clone().into(),
            strategy,
            from,
            observer,
            &mut |frames| sink(frames.try_into()?),
        )
    }

    /// Latents as a diffusion model leaves them, brought to what the autoencoder takes.
    pub fn unscale(&self, latents: &Tensor) -> Result<Tensor> {
        self.config.unscale(latents)
    }
}

/// The half that makes latents of videos.
#[derive(Debug)]
pub struct Encoder {
    network: Box<dyn EncoderNetwork>,
    backend: Arc<dyn Backend>,
}

impl Encoder {
    /// Encodes a video (B, 3, T, H, W) of -1 to 1 to moments (B, 2C, t, h, w): the mean, then the
    /// logarithm of the variance.
    pub fn encode(
        &self,
        video: &Tensor,
        tiling: &Tiling,
        observer: &mut dyn Observer,
    ) -> Result<Tensor> {
        let exec = Executor::Backend(&*self.backend);
        let moments = self
            .network
            .encode(exec, &video.clone().into(), tiling, observer)?;
        moments.tensor().cloned()
    }
}
