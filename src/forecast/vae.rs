//! Where in a video decoder a layer stands.
//!
//! The decoders of HunyuanVideo (also FramePack's; channels 128, 256, 512, 512) and WAN
//! (96, 192, 384, 384) enlarge a latent 8 times in each direction and 4 times in time. Of
//! the layers whose two channel numbers occur at one resolution only, the size of the
//! picture follows (diffusers' `AutoencoderKLHunyuanVideo` and `AutoencoderKLWan`).
//! Decoders of pictures with HunyuanVideo's channel numbers (Stable Diffusion, SDXL,
//! FLUX) have the same scale without time.

use crate::model::Convolution;

/// How a layer's sizes become those of the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// Pixels of the picture for one point of the layer.
    pub px: u32,
    /// Frames of the video for one of the layer; absent: no video, or a decoder that
    /// goes latent by latent by itself (WAN), so that there is nothing to choose.
    pub frames: Option<u32>,
}

/// The scale of the decoder's layer that this convolution is, where that is certain.
pub fn scale(conv: &Convolution) -> Option<Scale> {
    let keeps = conv.stride == [1; 3] && !conv.transposed && conv.groups == 1;
    let filter = match conv.dims {
        3 => [3; 3],
        _ => [1, 3, 3],
    };
    if !keeps || conv.kernel != filter {
        return None;
    }
    let (px, frames, wan) = match (conv.c, conv.k) {
        (128, 3) | (3 | 128 | 256, 128) => (1, 1, false),
        (256 | 512, 256) => (2, 2, false),
        (96, 3) | (3 | 96, 96) => (1, 1, true),
        (192, 192) => (2, 1, true),
        _ => return None,
    };
    let time = conv.dims == 3 && !wan;
    Some(Scale {
        px,
        frames: time.then_some(frames),
    })
}
