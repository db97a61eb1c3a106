//! Decodes the missing frames, piece by piece.

use std::ops::Range;
use std::sync::Arc;

use candle_core::{DType, Device, Tensor};
use serde_json::json;

use super::Plan;
use crate::error::{Error, Result, argument};
use crate::plan;
use crate::vae::precision::word;
use crate::vae::{Chunk, Decoder, Direction, Start, Strategy};
use crate::worker::checkpoint::{CheckpointDir, Stop, frames_in};
use crate::worker::watch::Watch;
use crate::worker::{Ready, Work, say, sizes};

/// What is the same for all pieces.
struct Decode<'a> {
    plan: &'a Plan,
    work: &'a Work<'a>,
    strategy: &'a Strategy,
    device: &'a Device,
    /// What the frames were computed in.
    dtype: DType,
    /// Peak memory of the decode in bytes: no state is larger.
    most: u64,
}

impl Plan {
    /// Decodes the missing frames, each piece from the nearest start that gives the same bits as a whole decode. `again`:
    /// this attempt has already made all frames once.
    pub(super) fn decode(
        &self,
        work: &Work<'_>,
        ready: Ready,
        strategy: &Strategy,
        checkpoint: &mut CheckpointDir,
        again: bool,
    ) -> Result<()> {
        let reporter = work.reporter;
        let Ready { backend, name, .. } = ready;
        let decode = Decode {
            plan: self,
            work,
            strategy,
            device: backend.device(),
            dtype: backend.dtype(),
            most: plan::peak(&self.job(), &*backend, strategy)?,
        };
        let mut gaps = checkpoint.gaps()?;
        let (mut start, unfit) = decode.start(checkpoint, &gaps)?;
        decode.say(checkpoint, (&gaps, &start), unfit, again)?;
        say(&format!("decoding on {name}, {}", sizes::words(strategy)));
        reporter.send(
            "fix",
            json!({ "what": "plan", "way": sizes::words(strategy) }),
        );
        let decoder = self.model.decoder(Arc::clone(&backend))?;
        if let Some(text) = self
            .model
            .unused(Direction::Decode)
            .filter(|_| !self.unused.replace(true))
        {
            work.problem(&text);
        }
        let mut latents = self.latents.clone();
        if !self.scaling_applied {
            latents = decoder.unscale(&latents)?;
        }
        reporter.phase(
            "vae_decode",
            json!({ "model": self.model.config().class(), "shape": latents.dims() }),
        );
        let mut watch = Watch::new(reporter, work.settings.piece_limit());
        loop {
            decode.piece((&decoder, &latents), &start, &gaps, checkpoint, &mut watch)?;
            let left = checkpoint.gaps()?;
            let Some(gap) = left.first() else {
                return Ok(());
            };
            if frames_in(&left) >= frames_in(&gaps) {
                return Err(Error::Lost {
                    path: work.job.output.clone(),
                    reason: format!(
                        "frame {} is gone from beside it, though it was just written",
                        gap.start
                    ),
                });
            }
            gaps = left;
            let unfit;
            (start, unfit) = decode.start(checkpoint, &gaps)?;
            for text in unfit {
                work.problem(&format!("{text}: the decode goes on without it"));
            }
        }
    }
}

impl Decode<'_> {
    /// The start for the first gap: the newest state before it, or the strategy's own if that is nearer. The second value
    /// has sentences about states that cannot be used.
    fn start(
        &self,
        checkpoint: &mut CheckpointDir,
        gaps: &[Range<usize>],
    ) -> Result<(Start, Vec<String>)> {
        let Some(gap) = gaps.first() else {
            return argument("nothing is missing");
        };
        let start = self.arithmetic(gap.start)?;
        let range = start.first.max(1)..=gap.start;
        let Stop { carry, unfit } = checkpoint.resume(self.device, self.most, &range)?;
        Ok((carry.map_or(start, Start::after), unfit))
    }

    fn arithmetic(&self, frame: usize) -> Result<Start> {
        let [latents, _, _] = self.plan.grid;
        Start::of(self.plan.model.config(), self.strategy, latents, frame)
    }

    /// Prints which frames are kept and which are decoded again.
    fn say(
        &self,
        checkpoint: &mut CheckpointDir,
        (gaps, start): (&[Range<usize>], &Start),
        unfit: Vec<String>,
        again: bool,
    ) -> Result<()> {
        let total = self.plan.frames;
        if self.arithmetic(total.saturating_sub(1))?.first > 0 {
            checkpoint.need_no_state();
        }
        let from = gaps.first().map_or(0, |gap| gap.start);
        let stay = total - frames_in(gaps);
        // from there on what is there is gone through once more; what comes out the same stays as it is
        let goes_on = matches!(gaps, [gap] if gap.end == total) && start.first == from;
        let (these, stays) = match stay {
            1 => ("the first frame".to_owned(), "one frame stays".to_owned()),
            _ => (format!("{stay} frames"), format!("{stay} frames stay")),
        };
        let instead = if stay == 0 {
            "the decode begins anew".to_owned()
        } else if start.first == 0 && from > 0 {
            format!("the decode begins anew, and {stays}")
        } else if goes_on {
            format!("the decode goes on after {these}")
        } else {
            format!("what is missing is decoded again, and {stays}")
        };
        for text in checkpoint.unfit()?.into_iter().chain(unfit) {
            self.work.problem(&format!("{text}: {instead}"));
        }
        if stay > 0 {
            let whence = if again {
                ""
            } else {
                " from an earlier attempt"
            };
            say(&format!("{stay} of {total} frames are there{whence}"));
        }
        Ok(())
    }

    /// Decodes from `start` on until another start is nearer to the next gap.
    fn piece(
        &self,
        (decoder, latents): (&Decoder, &Tensor),
        start: &Start,
        gaps: &[Range<usize>],
        checkpoint: &mut CheckpointDir,
        watch: &mut Watch<'_>,
    ) -> Result<()> {
        let reporter = self.work.reporter;
        let total = self.plan.frames;
        let mut enough = false;
        let mut sink = |chunk: Chunk| {
            if chunk.first < start.first {
                return reporter.check_cancelled_between_pieces();
            }
            let bytes = eight_bit(&chunk.video, self.dtype)?;
            if let Some(text) = checkpoint.keep(chunk.first, &bytes, &chunk.carry)? {
                self.work.problem(&text);
            }
            let at = chunk.carry.frames();
            say(&format!("{at} of {total} frames"));
            reporter.check_cancelled_between_pieces()?;
            enough = self.is_enough(checkpoint, gaps, at)?;
            if enough {
                // to end the decode: it is asked for no more
                return Err(Error::Stopped);
            }
            Ok(())
        };
        let from = start.carry.as_ref();
        match decoder.decode_stream(latents, self.strategy, from, watch, &mut sink) {
            Err(Error::Stopped) if enough => Ok(()),
            ended => ended,
        }
    }

    /// Whether after `at` frames nothing is missing, or only what is reached sooner from elsewhere.
    fn is_enough(
        &self,
        checkpoint: &CheckpointDir,
        gaps: &[Range<usize>],
        at: usize,
    ) -> Result<bool> {
        let Some(next) = gaps.iter().find(|gap| gap.end > at) else {
            return Ok(true);
        };
        if next.start <= at {
            return Ok(false);
        }
        let start = self.arithmetic(next.start)?;
        Ok(start.work > at || checkpoint.state_before(next.start)? > at)
    }
}

/// (1, 3, T, H, W) of -1 to 1 as frames of 8-bit RGB.
fn eight_bit(video: &Tensor, dtype: DType) -> Result<Vec<u8>> {
    let (_, channels, _, _, _) = video.dims5()?;
    if channels != 3 {
        return argument(format!(
            "the model gives {channels} channels, a video has 3"
        ));
    }
    let frames = video
        .to_device(&Device::Cpu)?
        .to_dtype(candle_core::DType::F32)?
        .permute((0, 2, 3, 4, 1))?;
    let numbers: Vec<f32> = frames.flatten_all()?.to_vec1()?;
    if numbers.iter().any(|x| !x.is_finite()) {
        return Err(Error::NotFinite {
            half: "the decoder",
            dtype: word(dtype),
        });
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to 0..=255"
    )]
    let byte = |x: f32| ((x.clamp(-1.0, 1.0) / 2.0 + 0.5) * 255.0).round() as u8;
    Ok(numbers.into_iter().map(byte).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_bytes_and_what_is_none_is_refused() {
        let video = |numbers: [f32; 3]| {
            Tensor::new(&numbers, &Device::Cpu)
                .unwrap()
                .reshape((1, 3, 1, 1, 1))
                .unwrap()
        };
        assert_eq!(
            eight_bit(&video([-1.5, 0.0, 1.0]), DType::F32).unwrap(),
            [0, 128, 255]
        );
        let e = eight_bit(&video([0.0, f32::NAN, 0.0]), DType::F32).unwrap_err();
        assert!(
            matches!(
                e,
                Error::NotFinite {
                    dtype: "float32",
                    ..
                }
            ),
            "{e}"
        );
    }
}
