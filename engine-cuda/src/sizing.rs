//! What the sizes of buffers follow from, without a card: so that a plan of memory can be made, and tested, anywhere.

use candle_core::DType;

use crate::Options;

/// What a convolution or attention may use beside its input and output, where the cap leaves it.
const SCRATCH: usize = 2 << 30;

/// The least of it.
const LEAST_SCRATCH: usize = 64 << 20;

/// The share of the cap that it is.
const SCRATCH_SHARE: u64 = 16;

/// What [`crate::conv::scratch`] and [`crate::attention::scratch`] depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizing {
    /// The precision of clips.
    pub(crate) dtype: DType,
    /// Bytes that an operation may use beside its input and output.
    pub(crate) scratch: usize,
    /// Whether convolutions may be cuDNN's.
    pub(crate) dnn: bool,
}

impl Sizing {
    /// As the options say; `found`: cuDNN is there.
    pub(crate) fn of(options: &Options, found: bool) -> Self {
        let share = options
            .cap
            .map(|cap| usize::try_from(cap / SCRATCH_SHARE).unwrap_or(usize::MAX));
        Self {
            dtype: options.dtype,
            scratch: options
                .scratch
                .unwrap_or_else(|| share.unwrap_or(SCRATCH).clamp(LEAST_SCRATCH, SCRATCH)),
            dnn: found && options.dnn,
        }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Tensor};
    use framepack_engine::error::Result;
    use framepack_engine::ops::{
        Axis, Backend, Clip, Conv3d, ConvSize, GroupSums, Prologue, Sight,
    };
    use framepack_engine::plan::{Half, Job, Room, Way, choose};
    use framepack_engine::vae::{Config, HunyuanConfig};

    use super::*;

    /// A card that is only planned for.
    #[derive(Debug)]
    struct Paper(Sizing);

    impl Backend for Paper {
        fn device(&self) -> &Device {
            &Device::Cpu
        }

        fn dtype(&self) -> DType {
            self.0.dtype
        }

        fn load_conv(&self, _: &Tensor, _: Option<&Tensor>) -> Result<Conv3d> {
            unreachable!("planned only")
        }

        fn conv3d(
            &self,
            _: Clip<'_>,
            _: &Prologue<'_>,
            _: &Conv3d,
            _: Option<&Tensor>,
        ) -> Result<Tensor> {
            unreachable!("planned only")
        }

        fn conv_scratch(&self, _batch: usize, axes: &[Axis; 3], conv: ConvSize) -> u64 {
            crate::conv::scratch(self.0, axes, conv) as u64
        }

        fn attention_scratch(&self, frames: usize, tokens: usize, _channels: usize) -> u64 {
            crate::attention::scratch(self.0, frames * tokens, tokens) as u64
        }

        fn group_sums(&self, _: &Tensor, _: usize) -> Result<GroupSums> {
            unreachable!("planned only")
        }

        fn attention(&self, _: &Tensor, _: Sight) -> Result<Tensor> {
            unreachable!("planned only")
        }
    }

    const GIB: u64 = 1 << 30;

    #[test]
    fn scratch_is_a_share_of_the_cap_within_bounds() {
        let scratch = |cap: Option<u64>| {
            let options = Options {
                cap,
                ..Options::default()
            };
            Sizing::of(&options, true).scratch as u64
        };
        assert_eq!(scratch(Some(16 * GIB)), GIB);
        assert_eq!(scratch(Some(GIB / 2)), 64 << 20);
        assert_eq!(scratch(Some(100 * GIB)), 2 * GIB);
        assert_eq!(scratch(None), 2 * GIB);
    }

    #[test]
    fn an_hd_clip_is_decoded_without_seams_under_20_gib() {
        let config = Config::Hunyuan(HunyuanConfig::default());
        let cap = 20 * GIB;
        let options = Options {
            cap: Some(cap),
            ..Options::default()
        };
        let card = Paper(Sizing::of(&options, true));
        let job = Job {
            config: &config,
            half: Half::Decoder,
            batch: 1,
            size: [18, 90, 160],
        };
        let room = Room {
            cap: Some(cap),
            held: 300 << 20,
            ..Room::default()
        };
        let choice = choose(&job, &card, &room);
        assert!(
            matches!(choice, Some(c) if matches!(c.way, Way::Exact { .. })),
            "{choice:?}"
        );
    }
}
