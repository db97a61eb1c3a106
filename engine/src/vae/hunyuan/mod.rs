//! `AutoencoderKLHunyuanVideo`.

mod blocks;
mod config;
mod decoder;
mod encoder;
mod exact;
mod family;
mod single_file;

pub use self::config::HunyuanConfig;
pub(super) use self::family::FAMILY;
