//! `AutoencoderKLHunyuanVideo`.

mod blocks;
mod decoder;
mod encoder;
pub(crate) mod exact;

pub use self::decoder::Decoder;
pub use self::encoder::Encoder;
pub use self::exact::{Frames, Sink};
