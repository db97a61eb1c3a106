//! `AutoencoderKLHunyuanVideo`.

mod blocks;
mod decoder;
mod encoder;

pub use self::decoder::Decoder;
pub use self::encoder::Encoder;
