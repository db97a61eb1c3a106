//! `AutoencoderKLHunyuanVideo`.

mod blocks;
mod decoder;
mod encoder;
mod exact;

pub use self::decoder::Decoder;
pub use self::encoder::Encoder;
pub use self::exact::{Frames, Sink};
