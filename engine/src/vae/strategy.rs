//! The directions and strategies of a run: what is computed, and in which pieces.

use crate::error::{Result, argument};
use crate::ops::Clip;

/// Which half of the autoencoder runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The decoder: latents to video.
    Decode,
    /// The encoder: video to latents.
    Encode,
}

/// How a run is cut into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Tiles and runs of frames; the default tiling cuts nothing.
    Tiled(Tiling),
    /// A decode without seams that keeps little more than one clip of each level, of the families that offer it
    /// ([`Vae::exact`](super::Vae::exact)).
    Exact {
        /// Bytes that it may take beside weights and result; it takes the least that it can do with if that is more.
        budget: u64,
    },
}

/// A length and the distance from one beginning to the next, in pixels or frames of the video.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Pixels or frames in one.
    pub length: usize,
    /// From the beginning of one to that of the next; the rest of the length overlaps.
    pub stride: usize,
}

impl Run {
    /// Refuses what would leave gaps, or cannot be counted in units of `unit`.
    fn check(self, unit: usize, what: &str) -> Result<()> {
        let Self { length, stride } = self;
        if stride == 0
            || stride > length
            || !length.is_multiple_of(unit)
            || !stride.is_multiple_of(unit)
        {
            return argument(format!(
                "{what} of {length} every {stride}: both must be multiples of {unit}, and the second not the larger"
            ));
        }
        Ok(())
    }
}

/// How a video is cut. Nothing set: not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tiling {
    /// Squares of pixels.
    pub space: Option<Run>,
    /// Runs of frames. HunyuanVideo cross-fades them; WAN's are exact, carry caches instead of
    /// overlapping, and take `length` alone.
    pub time: Option<Run>,
}

/// Pixels along a side and frames of the video for one of the latents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// Pixels of a side.
    pub space: usize,
    /// Frames; the first latent frame stands for one frame alone.
    pub time: usize,
}

impl Ratio {
    /// Refuses a video (B, T, H, W, C) that no latents stand for.
    pub(super) fn check(self, video: &Clip) -> Result<()> {
        let (_, t, h, w, _) = video.dims5()?;
        let Self { space, time } = self;
        if !(t - 1).is_multiple_of(time) || !h.is_multiple_of(space) || !w.is_multiple_of(space) {
            return argument(format!(
                "a video of {t} frames of {h} x {w}: frames must be a multiple of {time} plus 1, sides multiples of {space}"
            ));
        }
        Ok(())
    }
}

/// Sizes along one axis of what goes in (`from`) and comes out (`to`): one of them pixels, the other
/// latents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps {
    pub(crate) from: Run,
    pub(crate) to: Run,
}

impl Tiling {
    /// The tiles of a decoder whose own grid (before patches are taken apart) is `patch` times coarser than the video.
    pub(crate) fn decoder_space(&self, ratio: Ratio, patch: usize) -> Result<Option<Steps>> {
        self.space
            .map(|run| {
                run.check(ratio.space, "tiles")?;
                Ok(Steps {
                    from: run.over(ratio.space),
                    to: run.over(patch),
                })
            })
            .transpose()
    }

    /// The tiles of an encoder.
    pub(crate) fn encoder_space(&self, ratio: Ratio, patch: usize) -> Result<Option<Steps>> {
        let steps = self.decoder_space(ratio, patch)?;
        Ok(steps.map(|Steps { from, to }| Steps { from: to, to: from }))
    }

    /// The runs of frames that are cross-faded: (in latents, in frames).
    pub(crate) fn time(&self, ratio: Ratio) -> Result<Option<(Run, Run)>> {
        self.time
            .map(|run| {
                run.check(ratio.time, "runs of frames")?;
                Ok((run.over(ratio.time), run))
            })
            .transpose()
    }
}

impl Run {
    /// The nearest in whole `unit`s, nothing of it less than one: no shorter than this, and overlapping no less.
    pub(crate) fn whole(self, unit: usize) -> Self {
        let down = self.stride / unit * unit;
        Self {
            length: self.length.next_multiple_of(unit),
            stride: down.max(unit),
        }
    }

    fn over(self, unit: usize) -> Self {
        Self {
            length: self.length / unit,
            stride: self.stride / unit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_leave_gaps_are_refused() {
        let ratio = Ratio { space: 8, time: 4 };
        let say = |length, stride| {
            let tiling = Tiling {
                space: Some(Run { length, stride }),
                time: None,
            };
            tiling.decoder_space(ratio, 1).unwrap_err().to_string()
        };
        for (length, stride) in [(64, 0), (64, 72), (60, 48), (64, 50)] {
            assert_eq!(
                say(length, stride),
                format!(
                    "tiles of {length} every {stride}: both must be multiples of 8, and the second not the larger"
                )
            );
        }
    }
}
