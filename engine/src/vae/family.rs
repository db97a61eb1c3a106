//! The families of autoencoders: what the rest of the engine asks of a model, and the list of those that can be loaded.
//!
//! A family is one folder or file with a [`Family`], a configuration that is a [`Vae`], and its networks. Planning
//! needs nothing more of it: the networks themselves are run dry.

use std::any::Any;
use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;

use candle_core::Tensor;

use super::Observer;
use super::layers::Loader;
use super::strategy::{Direction, Ratio, Run, Strategy, Tiling};
use super::stream::{Carry, FrameSink, Start};
use crate::error::{Result, argument};
use crate::ops::{Clip, Executor};
use crate::weights::Weights;

/// A kind of autoencoder, before any model of it is there.
#[derive(Debug)]
pub struct Family {
    /// The class of diffusers, as `config.json` names it (`_class_name`).
    pub class: &'static str,
    /// The name in messages.
    pub name: &'static str,
    /// The part of class names, also of other libraries, that stands for the family.
    pub word: &'static str,
    /// What the Python agent calls it where it knows a decoder by its shape alone (`vae_family`).
    pub agent_names: &'static [&'static str],
    /// Reads and checks the text of a `config.json` of its class; an error fits after the file's name.
    pub(super) parse: fn(&[u8]) -> std::result::Result<Config, String>,
    /// How checkpoints of one file are read, where the family has such.
    pub(super) single_file: Option<SingleFile>,
}

/// Gives diffusers' name of a tensor; absent: the tensor is not needed.
pub(super) type Rename = Box<dyn Fn(&str) -> Option<String>>;

/// Recognises a family by the names that are there, and tells whose names they are.
type Naming = fn(&dyn Fn(&str) -> bool) -> Option<Rename>;

/// Checkpoints of one file, without a configuration.
#[derive(Debug)]
pub(super) struct SingleFile {
    pub(super) naming: Naming,
    /// The configuration that the shapes of the tensors show, after renaming.
    pub(super) config: fn(&Weights) -> std::result::Result<Config, String>,
}

/// A model by its configuration, which was checked.
pub trait Vae: Any + Debug + Send + Sync {
    /// Its family.
    fn family(&self) -> &'static Family;

    /// The pixels and frames for one of the latents.
    fn ratio(&self) -> Ratio;

    /// Channels of the latents.
    fn latent_channels(&self) -> usize;

    /// Channels of the video that goes in ([`Direction::Encode`]) or comes out.
    fn colours(&self, direction: Direction) -> usize;

    /// Frames a second of the family's videos, where nothing else tells.
    fn fps(&self) -> f64;

    /// The runs of frames worth trying for a video of `frames` frames, longest first; absent: all frames at once. The
    /// last takes the least memory.
    fn runs(&self, frames: usize) -> Vec<Option<Run>>;

    /// Latent frames that a run of `latents` latent frames shares with the next one to be cross-faded.
    fn overlap(&self, latents: usize) -> usize;

    /// Whether its decoder has the low-memory mode without seams ([`Strategy::Exact`]).
    ///
    /// # Errors
    /// When it has not; the error says why.
    fn exact(&self) -> Result<()> {
        no_exact()
    }

    /// Where a tiled decode of `latents` latent frames has to begin so that `frame` comes out as in a whole decode.
    ///
    /// # Errors
    /// When the tiling does not suit the model.
    fn start(&self, tiling: &Tiling, latents: usize, frame: usize) -> Result<Start> {
        let _ = (tiling, latents, frame);
        Ok(Start::default())
    }

    /// Latents (B, C, t, h, w) as a diffusion model leaves them, brought to what the decoder takes.
    ///
    /// # Errors
    /// When the configuration does not say how they are scaled.
    fn unscale(&self, latents: &Tensor) -> Result<Tensor>;
}

/// A model whose networks can be built.
pub(crate) trait Networks: Vae {
    /// Builds the decoder of what `root` has.
    fn decoder(&self, root: &Loader<'_>) -> Result<Box<dyn DecoderNetwork>>;

    /// Builds the encoder of what `root` has.
    fn encoder(&self, root: &Loader<'_>) -> Result<Box<dyn EncoderNetwork>>;
}

/// The error of a family without the exact mode.
pub(super) fn no_exact() -> Result<()> {
    argument("only HunyuanVideo's decoder has an exact low-memory mode")
}

/// A decoder's layers.
pub(crate) trait DecoderNetwork: Debug + Send + Sync {
    /// Decodes `latents` (B, C, t, h, w) and gives the frames to `sink`; `from` is what an earlier decode left.
    fn decode(
        &self,
        exec: Executor<'_>,
        latents: &Clip,
        strategy: &Strategy,
        from: Option<&Carry>,
        observer: &mut dyn Observer,
        sink: &mut FrameSink<'_>,
    ) -> Result<()>;
}

/// An encoder's layers.
pub(crate) trait EncoderNetwork: Debug + Send + Sync {
    /// Encodes a video (B, 3, T, H, W) to moments (B, 2C, t, h, w) in single precision.
    fn encode(
        &self,
        exec: Executor<'_>,
        video: &Clip,
        tiling: &Tiling,
        observer: &mut dyn Observer,
    ) -> Result<Clip>;
}

/// The configuration of a model of any family.
#[derive(Clone, Debug)]
pub struct Config(Arc<dyn Networks>);

impl Deref for Config {
    type Target = dyn Vae;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl Config {
    pub(super) fn new(config: impl Networks) -> Self {
        Self(Arc::new(config))
    }

    pub(crate) fn networks(&self) -> &dyn Networks {
        &*self.0
    }

    /// The configuration as that of one family; absent: it is another's.
    pub fn of<C: Vae>(&self) -> Option<&C> {
        let any: &dyn Any = self.networks();
        any.downcast_ref()
    }

    /// diffusers' name of the class.
    pub fn class(&self) -> &'static str {
        self.family().class
    }
}

impl Start {
    /// The start for `frame` of a decode of `latents` frames with this strategy, by arithmetic alone. In the exact mode
    /// each frame hangs on all others: it begins with the first, and gives nothing out before `frame`.
    pub fn of(config: &Config, strategy: &Strategy, latents: usize, frame: usize) -> Result<Self> {
        match strategy {
            Strategy::Tiled(tiling) => config.start(tiling, latents, frame),
            Strategy::Exact { .. } => Ok(Self {
                carry: Some(Carry::stateless(frame, latents)),
                work: 0,
                first: frame,
            }),
        }
    }
}

/// The families' names or classes as a list in words: `a`, `a and b`, `a, b and c`.
pub(super) fn listed(names: &[&str], last: &str) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [rest @ .., end] => format!("{} {last} {end}", rest.join(", ")),
    }
}
