//! The autoencoders of HunyuanVideo and WAN, loaded from what diffusers saves.
//!
//! Outside, videos and latents are (B, C, T, H, W) as everywhere else; inside, clips are channels-last.

mod agree;
pub(crate) mod config;
pub mod hunyuan;
mod layers;
pub mod precision;
mod single;
mod stream;
pub(crate) mod tiles;
pub mod wan;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use candle_core::{DType, Tensor};

pub use self::config::{Config, HunyuanConfig, WanConfig};
pub use self::stream::{Carry, Chunk, Start};
pub use self::tiles::{Run, Tiling};

use crate::error::{Result, argument};
use crate::ops::Backend;
use crate::plan::{Half, Way};
use crate::weights::{Description, Scope, Weights};

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
            return single::open(path);
        }
        let said = path.join("config.json");
        let config = Config::read(&said)?;
        let weights = Weights::open(path)?.described(Description {
            path: said,
            cure: TWO_MODELS,
        });
        agree::check(&config, &weights)?;
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
    pub fn unused(&self, half: Half) -> Option<String> {
        let names = self.weights.unread(own(half));
        let some: Vec<&str> = names.iter().take(3).copied().collect();
        let (first, n) = (some.join(", "), names.len());
        let half = match half {
            Half::Decoder => "decoder",
            Half::Encoder => "encoder",
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
    pub fn weight_bytes(&self, half: Half, dtype: DType) -> u64 {
        let own = own(half);
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
        let scope = Scope::new(Arc::clone(&self.weights));
        Ok(match &self.config {
            Config::Hunyuan(config) => {
                Decoder::Hunyuan(hunyuan::Decoder::load(config, &scope, backend)?)
            }
            Config::Wan(config) => Decoder::Wan(wan::Decoder::load(config, &scope, backend)?),
        })
    }

    /// Loads the half that makes latents of videos.
    pub fn encoder(&self, backend: Arc<dyn Backend>) -> Result<Encoder> {
        let scope = Scope::new(Arc::clone(&self.weights));
        Ok(match &self.config {
            Config::Hunyuan(config) => {
                Encoder::Hunyuan(hunyuan::Encoder::load(config, &scope, backend)?)
            }
            Config::Wan(config) => Encoder::Wan(wan::Encoder::load(config, &scope, backend)?),
        })
    }
}

/// What the names of a half's weights begin with.
const fn own(half: Half) -> &'static [&'static str] {
    match half {
        Half::Decoder => &["decoder.", "post_quant_conv."],
        Half::Encoder => &["encoder.", "quant_conv."],
    }
}

/// The half that makes videos of latents.
#[derive(Debug)]
pub enum Decoder {
    /// `AutoencoderKLHunyuanVideo`.
    Hunyuan(hunyuan::Decoder),
    /// `AutoencoderKLWan`, 2.1 and 2.2.
    Wan(wan::Decoder),
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
        stream::whole(|sink| self.decode_stream(latents, tiling, None, observer, sink))
    }

    /// The same, given to `sink` chunk by chunk: HunyuanVideo's are the runs of frames of `tiling.time` after their
    /// cross-fade (all frames where there are none), WAN's those that its caches carry over. `from` is what an
    /// earlier decode with the same arguments left: only the frames after it are made. An error of `sink` ends the
    /// decode.
    pub fn decode_stream(
        &self,
        latents: &Tensor,
        tiling: &Tiling,
        from: Option<&Carry>,
        observer: &mut dyn Observer,
        sink: &mut dyn FnMut(Chunk) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Hunyuan(decoder) => decoder.decode(latents, tiling, from, observer, sink),
            Self::Wan(decoder) => decoder.decode(latents, tiling, from, observer, sink),
        }
    }

    /// The same, in the way that a plan says. The exact way takes a batch of one; its `from` tells which frames are given
    /// already, the rest is gone through all the same.
    pub fn decode_way(
        &self,
        latents: &Tensor,
        way: &Way,
        from: Option<&Carry>,
        observer: &mut dyn Observer,
        sink: &mut dyn FnMut(Chunk) -> Result<()>,
    ) -> Result<()> {
        match (way, self) {
            (Way::Tiled(tiling), _) => self.decode_stream(latents, tiling, from, observer, sink),
            (Way::Exact { budget }, Self::Hunyuan(decoder)) => {
                if latents.dim(0)? != 1 {
                    return argument("the exact mode gives the frames of one video at a time");
                }
                let given = from.map_or(0, Carry::frames);
                let next = latents.dim(2)?;
                decoder.decode_exact(latents, *budget, observer, &mut |frames| {
                    stream::after(&frames, given, next).map_or(Ok(()), &mut *sink)
                })
            }
            (Way::Exact { .. }, Self::Wan(_)) => {
                argument("only HunyuanVideo's decoder has an exact low-memory mode")
            }
        }
    }

    /// Latents as a diffusion model leaves them, brought to what the autoencoder takes.
    pub fn unscale(&self, latents: &Tensor) -> Result<Tensor> {
        match self {
            Self::Hunyuan(decoder) => decoder.unscale(latents),
            Self::Wan(decoder) => decoder.unscale(latents),
        }
    }
}

/// The half that makes latents of videos.
#[derive(Debug)]
pub enum Encoder {
    /// `AutoencoderKLHunyuanVideo`.
    Hunyuan(hunyuan::Encoder),
    /// `AutoencoderKLWan`, 2.1 and 2.2.
    Wan(wan::Encoder),
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
        match self {
            Self::Hunyuan(encoder) => encoder.encode(video, tiling, observer),
            Self::Wan(encoder) => encoder.encode(video, tiling, observer),
        }
    }
}

/// (B, C, T, H, W) with this many channels to a clip where and as `backend` computes; empty ones are refused.
fn to_clip(tensor: &Tensor, channels: usize, what: &str, backend: &dyn Backend) -> Result<Tensor> {
    match tensor.dims() {
        [b, c, t, h, w] if *c == channels && b * t * h * w > 0 => {
            let tensor = tensor.to_device(backend.device())?;
            let clip = tensor.permute((0, 2, 3, 4, 1))?.contiguous()?;
            Ok(clip.to_dtype(backend.dtype())?)
        }
        other => argument(format!(
            "{what} of shape {other:?} where [batch, {channels}, frames, height, width] is needed"
        )),
    }
}

/// The way back, to single precision.
fn from_clip(clip: &Tensor) -> Result<Tensor> {
    let tensor = clip.permute((0, 4, 1, 2, 3))?.contiguous()?;
    Ok(tensor.to_dtype(DType::F32)?)
}
