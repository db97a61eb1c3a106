//! What the sizes of buffers follow from, without a card: so that a plan of memory can be made, and tested, anywhere.

use candle_core::DType;

use crate::Options;

/// What a convolution or attention may use beside its input and output, where the cap leaves it.
const SCRATCH: usize = 2 << 30;

/// The least of it.
const LEAST_SCRATCH: usize = 64 << 20;

/// The share of the cap that it is.
const SCRATCH_SHARE: u64 = 16;

/// The most of folded weights that is kept: those of two convolutions of 256 channels.
const KEPT: usize = 16 << 20;

/// The share of the scratch that it is where that is less: a part of what a plan of memory leaves free.
const KEPT_SHARE: usize = 16;

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

    /// Bytes of folded weights that may be kept from one convolution to the next.
    pub(crate) fn kept(self) -> usize {
        if self.dnn {
            KEPT.min(self.scratch / KEPT_SHARE)
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Tensor};
    use framepack_engine::error::Result;
    use framepack_engine::ops::{
        AttentionMask, Axis, Backend, Conv3d, ConvInput, ConvSize, GroupSums, Prologue,
    };
    use framepack_engine::plan::{Job, MemoryBudget, choose, peak};
    use framepack_engine::vae::{Config, Direction, HunyuanConfig, Run, Strategy, Tiling};

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
            _: ConvInput<'_>,
            _: &Prologue<'_>,
            _: &Conv3d,
            _: Option<&Tensor>,
        ) -> Result<Tensor> {
            unreachable!("planned only")
        }

        fn conv_scratch(&self, _batch: usize, axes: &[Axis; 3], conv: ConvSize) -> u64 {
            crate::conv::scratch(self.0, axes, conv) as u64
        }

        fn linear_scratch(&self, _batch: usize, size: [usize; 3], channels: [usize; 2]) -> u64 {
            crate::conv::linear_scratch(self.0, size, channels) as u64
        }

        fn attention_scratch(&self, frames: usize, tokens: usize, _channels: usize) -> u64 {
            crate::attention::scratch(self.0, frames * tokens, tokens) as u64
        }

        fn group_sums(&self, _: &Tensor, _: usize) -> Result<GroupSums> {
            unreachable!("planned only")
        }

        fn attention(&self, _: &Tensor, _: AttentionMask) -> Result<Tensor> {
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
    fn what_is_kept_is_little_and_counted() {
        let sizing = |cap: u64, dnn| {
            let options = Options {
                cap: Some(cap),
                dnn,
                ..Options::default()
            };
            Sizing::of(&options, true)
        };
        assert_eq!(sizing(20 * GIB, true).kept(), 16 << 20);
        assert_eq!(sizing(20 * GIB, false).kept(), 0);
        let small = sizing(GIB, true).kept() as u64;
        assert!(small > 0 && small < GIB / 200, "{small}");
        // a piece of one frame of the last level, and its upsampling: 256 channels, two frames read, four parts
        let enlarged = |side| Axis::identity(side).doubled().replicate(1, 1);
        let axes = [
            Axis::identity(2).doubled().part(1..4, 0),
            enlarged(24),
            enlarged(640),
        ];
        let conv = ConvSize {
            kernel: [3; 3],
            stride: [1; 3],
            inputs: 256,
            outputs: 256,
        };
        let bytes = |conv| crate::conv::scratch(sizing(20 * GIB, true), &axes, conv);
        let slab = 2 * 256 * (2 * 26 * 642 + 25 * 641 * 4);
        assert_eq!(bytes(conv), slab + (16 << 20), "kept, and so counted once");
        let wide = ConvSize {
            inputs: 1024,
            outputs: 1024,
            ..conv
        };
        let weight = 2 * 2 * 16 * 1024 * 1024;
        assert_eq!(
            bytes(wide),
            4 * slab + (16 << 20) + weight,
            "too large to be kept: beside what is"
        );
    }

    #[test]
    fn a_product_on_the_clip_itself_takes_nothing_but_what_is_kept() {
        let sizing = Sizing::of(&Options::default(), true);
        let of = |channels| crate::conv::linear_scratch(sizing, [9, 64, 64], channels);
        assert_eq!(of([256, 128]), sizing.kept());
        // 12 channels are padded to 16, in a buffer
        let buffer = 9 * 64 * 64 * 16 * 2;
        assert_eq!(of([12, 128]), buffer + sizing.kept());
    }

    /// What `benches/peaks.sh` has measured on a card (docs/benchmarks): megabytes beside the weights.
    #[test]
    fn what_a_card_has_measured_is_predicted() {
        let config = Config::from(HunyuanConfig::default());
        let card = Paper(Sizing::of(&Options::default(), true));
        let run = |length, stride| Some(Run { length, stride });
        let tiled = |space, time| Strategy::Tiled(Tiling { space, time });
        let exact = |mib: u64| Strategy::Exact { budget: mib << 20 };
        for (size, way, measured) in [
            ([1, 32, 32], tiled(None, None), 163.1),
            ([3, 32, 32], tiled(None, None), 836.4),
            ([9, 40, 64], tiled(None, None), 5771.6),
            ([9, 68, 90], tiled(None, None), 13245.8),
            ([18, 32, 32], tiled(None, run(16, 12)), 1513.7),
            ([9, 68, 90], tiled(run(256, 192), None), 2978.4),
            ([9, 68, 90], exact(6144), 5981.1),
            ([18, 90, 160], exact(19456), 20526.4),
            ([18, 90, 160], tiled(None, run(16, 12)), 16082.0),
        ] {
            let job = Job {
                config: &config,
                direction: Direction::Decode,
                batch: 1,
                size,
            };
            #[expect(clippy::cast_precision_loss, reason = "megabytes")]
            let predicted = peak(&job, &card, &way).unwrap() as f64 / 1e6;
            let off = (predicted / measured - 1.0) * 100.0;
            assert!(off.abs() < 5.0, "{size:?} {way:?}: {off:.1} %");
        }
    }

    #[test]
    fn an_hd_clip_is_decoded_without_seams_under_20_gib() {
        let config = Config::from(HunyuanConfig::default());
        let cap = 20 * GIB;
        let options = Options {
            cap: Some(cap),
            ..Options::default()
        };
        let card = Paper(Sizing::of(&options, true));
        let job = Job {
            config: &config,
            direction: Direction::Decode,
            batch: 1,
            size: [18, 90, 160],
        };
        let room = MemoryBudget {
            cap: Some(cap),
            held: 300 << 20,
            ..MemoryBudget::default()
        };
        let choice = choose(&job, &card, &room);
        assert!(
            matches!(choice, Some(c) if matches!(c.strategy, Strategy::Exact { .. })),
            "{choice:?}"
        );
    }
}
