use proptest::prelude::*;

use super::*;
use crate::model::{
    ActionId, ConvDirection, ConvLayout, ConvType, FindMark, Mono, Workspace as Given,
};

fn conv(dtype: ConvType, [c, k]: [u32; 2], input: [u32; 3], pad: u32) -> Convolution {
    Convolution {
        dims: 3,
        dtype,
        direction: ConvDirection::Forward,
        layout: ConvLayout::ChannelsFirst,
        transposed: false,
        n: 1,
        c,
        k,
        groups: 1,
        input,
        kernel: [3; 3],
        pad: [pad; 3],
        stride: [1; 3],
        dilation: [1; 3],
    }
}

/// The shape of the public report rocm-libraries#1329.
fn reported() -> Convolution {
    conv(ConvType::Fp16, [96, 96], [6, 482, 834], 0)
}

/// HunyuanVideo's last layers at 17 frames of 256x256.
fn hunyuan() -> Convolution {
    conv(ConvType::Bf16, [128, 128], [17, 256, 256], 1)
}

fn rocm(major: u32, minor: u32) -> MiopenRelease {
    MiopenRelease {
        rocm: Some([major, minor]),
        miopen: None,
    }
}

fn card(arch: &str) -> Card {
    Card {
        arch: Some(arch.to_owned()),
        vram: Some(Bytes::gib(24)),
    }
}

fn find(conv: Option<Convolution>, solver: &str) -> FindState {
    let mut open = None;
    let marks = [
        Some(FindMark::Opened { key: "k".into() }),
        conv.map(FindMark::Convolution),
        Some(FindMark::Solver {
            name: solver.into(),
        }),
    ];
    for mark in marks.iter().flatten() {
        FindState::fold(&mut open, Mono::ZERO, mark);
    }
    open.unwrap()
}

#[test]
fn the_buffer_of_the_reported_shape() {
    // 96 · 27 · (4 · 480 · 832) · 2
    assert_eq!(workspace(&reported()), Some(8_281_128_960));
    let mut grouped = reported();
    grouped.groups = 4;
    assert_eq!(workspace(&grouped), Some(8_281_128_960));
    let mut turned = reported();
    turned.direction = ConvDirection::BackwardData;
    assert_eq!(workspace(&turned), None);
    let mut point = reported();
    (point.kernel, point.pad) = ([1; 3], [0; 3]);
    assert_eq!(workspace(&point), Some(0));
}

#[test]
fn what_is_left_by_version_and_card() {
    let only = |release, arch: &str| {
        let f = forecast(&reported(), release, &card(arch));
        f.outlooks.iter().map(|o| o.only_naive).collect::<Vec<_>>()
    };
    assert_eq!(only(rocm(6, 4), "gfx1100"), [Answer::Yes]);
    assert_eq!(only(rocm(7, 2), "gfx1201"), [Answer::Yes]);
    assert_eq!(only(rocm(6, 4), "gfx1030"), [Answer::Yes]);
    assert_eq!(only(rocm(7, 11), "gfx1100"), [Answer::No]);
    assert_eq!(only(rocm(6, 3), "gfx942"), [Answer::No]);
    assert_eq!(only(rocm(6, 3), "gfx90a:sramecc+:xnack-"), [Answer::No]);
    let unknown = MiopenRelease::default();
    assert_eq!(only(unknown, "gfx1151"), [Answer::Yes, Answer::No]);
    let f = forecast(&reported(), rocm(6, 4), &Card::default());
    assert_eq!(f.outlooks[0].only_naive, Answer::Unknown);
    let mut last = reported();
    last.layout = ConvLayout::ChannelsLast;
    last.input = [6, 82, 84];
    let f = forecast(&last, rocm(6, 4), &card("gfx1100"));
    assert_eq!(f.outlooks[0].only_naive, Answer::Yes, "NDHWC without CK");
}

#[test]
fn limits_by_type_version_and_memory() {
    let limit = |dtype, release, vram| {
        let c = conv(dtype, [96, 96], [6, 482, 834], 0);
        let card = Card { arch: None, vram };
        forecast(&c, release, &card).outlooks[0].limit
    };
    let half = ConvType::Bf16;
    assert_eq!(limit(half, rocm(6, 4), None), Some(Bytes(GEMM_LIMIT)));
    let full = ConvType::Fp32;
    assert_eq!(limit(full, rocm(6, 2), None), Some(Bytes(2 * GEMM_LIMIT)));
    assert_eq!(limit(full, rocm(6, 1), None), Some(Bytes(GEMM_LIMIT)));
    let small = Some(Bytes(8_000_000_000));
    let share = Some(Bytes(6_800_000_000));
    assert_eq!(limit(half, rocm(6, 4), small), share);
    assert_eq!(limit(half, rocm(7, 11), small), small);
    assert_eq!(limit(half, rocm(7, 11), None), None);
}

#[test]
fn two_dimensions_have_winograd_in_the_usual_case() {
    let mut c = conv(ConvType::Fp16, [512, 512], [1, 2400, 2400], 1);
    (c.dims, c.kernel, c.pad) = (2, [1, 3, 3], [0, 1, 1]);
    let winograd = |c: &Convolution, release, arch: &str| {
        let f = forecast(c, release, &card(arch));
        let mut all = f.outlooks[0].families.iter();
        all.find(|f| f.name == "Winograd").unwrap().left
    };
    assert_eq!(winograd(&c, rocm(6, 4), "gfx1100"), Answer::Yes);
    assert_eq!(winograd(&c, rocm(6, 4), "gfx1201"), Answer::No);
    assert_eq!(winograd(&c, rocm(7, 2), "gfx1201"), Answer::Yes);
    assert_eq!(winograd(&c, rocm(6, 4), "gfx1010"), Answer::Unknown);
    c.dtype = ConvType::Bf16;
    assert_eq!(winograd(&c, rocm(6, 4), "gfx1100"), Answer::No);
    let f = forecast(&c, rocm(6, 4), &card("gfx1100"));
    // 512 · 9 · 2400² · 2 = 53 GB
    assert_eq!(f.outlooks[0].only_naive, Answer::Yes);
}

#[test]
fn what_makes_it_fit_again() {
    // 7 287 183 769 / (96 · 27 · 2 · 4) = 351 426, its root 592
    let s = smaller(&reported(), Bytes(GEMM_LIMIT)).unwrap();
    assert_eq!((s.side, s.tile_px, s.frames), (592, Some(576), None));
    // root of 351 426 / 399 360
    assert_eq!(s.percent, 93);
    // 7 287 183 769 / (128 · 27 · 2 · 17) = 62 016, its root 249;
    // / (128 · 27 · 2 · 256²) = 16 frames, of which 13 is 4 n + 1
    let s = smaller(&hunyuan(), Bytes(GEMM_LIMIT)).unwrap();
    assert_eq!((s.side, s.tile_px, s.frames), (249, Some(224), Some(13)));
    // the same decoder one level below: half the size, half the frames
    let below = conv(ConvType::Bf16, [256, 256], [33, 200, 200], 1);
    let s = smaller(&below, Bytes(GEMM_LIMIT)).unwrap();
    // / (256 · 27 · 2 · 33) = 15 977, its root 126, times 2 = 252;
    // / (256 · 27 · 2 · 200²) = 13 of the layer, 7 latents, 25 frames
    assert_eq!((s.side, s.tile_px, s.frames), (126, Some(224), Some(25)));
    let elsewhere = conv(ConvType::Bf16, [320, 320], [33, 200, 200], 1);
    let s = smaller(&elsewhere, Bytes(GEMM_LIMIT)).unwrap();
    assert_eq!((s.tile_px, s.frames), (None, None));
    let fits = conv(ConvType::Bf16, [128, 128], [9, 128, 128], 1);
    assert_eq!(smaller(&fits, Bytes(GEMM_LIMIT)), None);
}

#[test]
fn words_for_one_version_and_for_both() {
    let of = |release, arch: &str| forecast(&reported(), release, &card(arch)).words();
    assert_eq!(
        of(rocm(6, 4), "gfx1100"),
        "im2col 7.7 GiB, at most 6.8 GiB: only the naive kernel is left"
    );
    assert_eq!(
        of(MiopenRelease::default(), "gfx1100"),
        "im2col 7.7 GiB: before ROCm 7.11 (at most 6.8 GiB) only the naive kernel is left; from ROCm 7.11 on (at most 24.0 GiB) GEMM fits"
    );
    assert_eq!(
        of(rocm(6, 4), "gfx942"),
        "im2col 7.7 GiB, at most 6.8 GiB: no GEMM; left: CK implicit GEMM"
    );
}

#[test]
fn the_cure_is_the_one_that_follows() {
    let naive = "ConvDirectNaiveConvFwd";
    let gfx1100 = card("gfx1100");
    let c = cure(&find(Some(hunyuan()), naive), rocm(6, 4), &gfx1100);
    assert_eq!(c.action, ActionId::TiledVae);
    assert_eq!(
        c.sentence(),
        "a tile of at most 224x224 px or a chunk of at most 13 frames lets GEMM be used: now its im2col needs 7.2 GiB, MIOpen allows 6.8 GiB, and only the naive kernel is left, for fast find too"
    );
    let nameless = Card::default();
    let c = cure(
        &find(Some(hunyuan()), naive),
        MiopenRelease::default(),
        &nameless,
    );
    let words = "MIOpen allows 6.8 GiB before ROCm 7.11, and GEMM is left out";
    assert!(c.sentence().ends_with(words), "{}", c.sentence());
    let c = cure(&find(Some(hunyuan()), naive), rocm(7, 11), &gfx1100);
    assert_eq!(c.action, ActionId::FastFind);
    let fits = conv(ConvType::Bf16, [128, 128], [9, 128, 128], 1);
    let c = cure(&find(Some(fits), naive), rocm(6, 4), &gfx1100);
    assert_eq!(c.action, ActionId::FastFind);
    assert_eq!(
        c.env,
        Some(("MIOPEN_DEBUG_CONV_DIRECT_NAIVE_CONV_FWD", "0"))
    );
    let c = cure(&find(None, naive), rocm(6, 4), &gfx1100);
    assert_eq!((c.action, c.env), (ActionId::FastFind, None));
    let mut last = hunyuan();
    last.layout = ConvLayout::ChannelsLast;
    let c = cure(&find(Some(last), naive), rocm(6, 4), &gfx1100);
    assert_eq!(c.env, Some(("PYTORCH_MIOPEN_SUGGEST_NHWC", "0")));
    assert!(
        c.text.contains("with smaller tiles lets GEMM"),
        "{}",
        c.text
    );
    let wino = "ConvBinWinogradRxSf3x2";
    let c = cure(&find(None, wino), rocm(6, 4), &gfx1100);
    assert_eq!(c.env, Some(("MIOPEN_DEBUG_CONV_WINOGRAD", "0")));
    assert!(
        c.text
            .ends_with("leave Winograd out (MIOPEN_DEBUG_CONV_WINOGRAD=0)")
    );
    let mut given = find(None, "SearchImpl");
    given.workspace = Some(Given {
        solver: "GemmFwdRest".to_owned(),
        required: 3 << 30,
        provided: 0,
    });
    let c = cure(&given, rocm(6, 4), &gfx1100);
    assert!(
        c.sentence()
            .contains("3.0 GiB and the program gave it none"),
        "{}",
        c.sentence()
    );
}

#[test]
fn from_7_14_on_the_naive_kernel_is_timed_only_where_it_is_alone() {
    let of = |release, arch: &str| forecast(&reported(), release, &card(arch)).times_naive;
    assert_eq!(of(rocm(7, 13), "gfx1100"), Answer::Yes);
    assert_eq!(of(rocm(7, 14), "gfx1100"), Answer::No);
    assert_eq!(of(rocm(10, 0), "gfx1201"), Answer::No);
    assert_eq!(of(MiopenRelease::default(), "gfx1100"), Answer::Unknown);
    let mut last = reported();
    (last.layout, last.dtype) = (ConvLayout::ChannelsLast, ConvType::Fp32);
    let alone = forecast(&last, rocm(7, 14), &card("gfx1103"));
    assert_eq!(alone.times_naive, Answer::Yes, "no CK on gfx1103");
    let words = forecast(&reported(), rocm(7, 14), &card("gfx1100")).words();
    assert_eq!(
        words,
        "im2col 7.7 GiB, at most 24.0 GiB: GEMM fits; the naive kernel is not timed (ROCm 7.14 and later)"
    );
}

#[test]
fn fast_find_is_no_cure_of_a_naive_kernel_that_is_alone() {
    let naive = "ConvDirectNaiveConvFwd";
    let of = |release| cure(&find(Some(hunyuan()), naive), release, &card("gfx1100"));
    assert_eq!(of(rocm(7, 13)).action, ActionId::FastFind);
    let c = of(rocm(7, 14));
    assert_eq!((c.action, c.env), (ActionId::TiledVae, None));
    let why = c.why.unwrap();
    assert!(why.contains("MIOPEN_NAIVE_DISABLE_IF_ALT=0"), "{why}");
    let c = cure(
        &find(None, naive),
        MiopenRelease::default(),
        &card("gfx1100"),
    );
    assert_eq!(c.action, ActionId::FastFind);
    assert!(c.why.unwrap().contains("before ROCm 7.14"));
}

proptest! {
    #[test]
    fn no_figures_break_it(
        v in prop::array::uniform12(any::<u32>()), r in prop::option::of(prop::array::uniform2(any::<u32>())),
        limit in any::<u64>(), dims in 0u8..5, t in any::<bool>(), vram in any::<u64>(),
    ) {
        let c = Convolution {
            dims, transposed: t, n: v[0], c: v[1], k: v[2], groups: v[3],
            input: [v[4], v[5], v[6]], kernel: [v[7], v[8], v[9]], pad: [v[10]; 3],
            stride: [v[11]; 3], ..reported()
        };
        let release = MiopenRelease { rocm: r, miopen: None };
        let card = Card { arch: Some("gfx1100".into()), vram: Some(Bytes(vram)) };
        let _ = (forecast(&c, release, &card).words(), smaller(&c, Bytes(limit)));
        let _ = cure(&find(Some(c), "x"), release, &card);
    }

    /// What is named does fit, and the next step does not.
    #[test]
    fn the_named_size_fits_and_the_next_does_not(
        c in 16u32..600, d in 3u32..60, h in 64u32..1200, w in 64u32..1200,
    ) {
        let layer = conv(ConvType::Bf16, [c, c], [d, h, w], 1);
        let limit = Bytes(GEMM_LIMIT);
        if let Some(s) = smaller(&layer, limit) {
            let with = |input| workspace(&Convolution { input, ..layer }).unwrap();
            let side = u32::try_from(s.side).unwrap();
            prop_assert!(with([d, side, side]) <= limit.0.into());
            prop_assert!(with([d, side + 1, side + 1]) > limit.0.into());
            prop_assert!(s.percent < 100);
        } else {
            prop_assert!(workspace(&layer).unwrap() <= limit.0.into());
        }
    }
}
