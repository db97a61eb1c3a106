use candle_core::Tensor;

use super::super::cpu::Cpu;
use super::super::{Axis, Clip, ConvSize, Executor};
use super::*;

const MB: usize = 1_000_000;

/// Bytes of a clip in single precision, in megabytes.
fn mb(run: &DryRun<'_>) -> (u64, u64) {
    let mb = |bytes: u64| bytes.div_ceil(MB as u64);
    (mb(run.meter.now.get()), mb(run.peak()))
}

/// A clip of `mb` megabytes.
fn clip(run: &DryRun<'_>, mb: usize) -> Clip {
    run.allocate(&[1, mb, 250, 1000, 1])
}

#[test]
fn views_cost_nothing_and_the_last_of_them_gives_the_memory_back() {
    let run = DryRun::new(&Cpu);
    let whole = clip(&run, 4);
    let view = whole.narrow(1, 1, 2).unwrap();
    let other = view.clone().permute(&[0, 4, 1, 2, 3]).unwrap();
    assert_eq!(mb(&run), (4, 4));
    drop((whole, other));
    assert_eq!(mb(&run), (4, 4));
    let copy = view.force_contiguous().unwrap();
    assert_eq!(mb(&run), (6, 6));
    drop(view);
    assert_eq!(mb(&run), (2, 6));
    drop(copy);
    assert_eq!(mb(&run), (0, 6));
}

/// The same steps on numbers and in a dry run give the same shapes and layouts.
#[test]
fn layouts_are_those_of_real_tensors() {
    type Step = fn(&Clip) -> Result<Clip>;
    let steps: [(&str, Step); 14] = [
        ("contiguous", Clip::contiguous),
        ("forced", Clip::force_contiguous),
        ("narrowed", |clip| clip.narrow(2, 1, 3)),
        ("turned", |clip| clip.permute(&[0, 4, 1, 2, 3])),
        ("turned, narrowed", |clip| {
            clip.permute(&[0, 2, 1, 3, 4])?.narrow(1, 1, 2)
        }),
        ("reshaped view", |clip| {
            clip.narrow(3, 0, 2)?.reshape(&[2, 3, 4, 10])
        }),
        ("without an axis", |clip| {
            clip.narrow(1, 1, 1)?.squeeze(1)?.narrow(1, 1, 2)
        }),
        ("with an axis", |clip| clip.narrow(2, 0, 2)?.unsqueeze(1)),
        ("joined in time", |clip| {
            Clip::cat(&[clip.narrow(1, 0, 1)?, clip.clone()], 1)
        }),
        ("joined rows", |clip| {
            Clip::cat(&[clip.narrow(2, 0, 2)?, clip.narrow(2, 1, 1)?], 2)
        }),
        ("joined columns of views", |clip| {
            let view = clip.permute(&[0, 1, 3, 2, 4])?;
            Clip::cat(&[&view, &view], 3)
        }),
        ("zeros", |clip| clip.zeros_in_front(1, 2)),
        ("mean", |clip| clip.mean(3)),
        ("sum", |clip| {
            let view = clip.permute(&[0, 2, 1, 3, 4])?;
            view.add(&view)?.clamp(0.0, 1.0)
        }),
    ];
    let run = DryRun::new(&Cpu);
    let dims = [2, 3, 4, 6, 5];
    let real: Clip = Tensor::zeros(&dims, DType::F32, &Device::Cpu)
        .unwrap()
        .into();
    let traced = run.allocate(&dims);
    for (name, step) in steps {
        let (real, traced) = (step(&real).unwrap(), step(&traced).unwrap());
        let real = real.tensor().unwrap();
        assert_eq!(real.dims(), traced.dims(), "{name}");
        let layout = format!("{:?}", traced.outline().unwrap());
        let strides = format!("stride: {:?}", real.stride());
        assert!(layout.contains(&strides), "{name}: {layout}, {strides}");
    }
}

#[test]
fn work_over_a_known_shape_takes_what_it_took_before() {
    let run = DryRun::new(&Cpu);
    let exec = Executor::DryRun(&run);
    let runs = Cell::new(0);
    let work = |clip: &Clip| {
        runs.set(runs.get() + 1);
        let beside = clip.force_contiguous()?;
        let out = beside.narrow(1, 0, 1)?.force_contiguous();
        drop(beside);
        out
    };
    let large = clip(&run, 4);
    let first = exec.repeat("work", &large, work).unwrap();
    assert_eq!(mb(&run), (5, 9));
    let more = clip(&run, 2);
    let second = exec.repeat("work", &large, work).unwrap();
    assert_eq!((runs.get(), second.dims()), (1, first.dims()));
    assert_eq!(mb(&run), (8, 12));
    // another shape, and other work over the same one
    exec.repeat("work", &more, work).unwrap();
    exec.repeat("other work", &large, work).unwrap();
    assert_eq!(runs.get(), 3);
}

#[test]
fn loops_are_cut_when_they_take_no_more() {
    let run = DryRun::new(&Cpu);
    assert_eq!(Executor::DryRun(&run).until_steady(0..100).count(), 3);
    assert_eq!(Executor::DryRun(&run).until_steady(0..2).count(), 2);
    assert_eq!(Executor::Backend(&Cpu).until_steady(0..100).count(), 100);
}

/// Each frame is given with the two before it, as far as there are any.
#[test]
fn work_that_keeps_clips_is_traced_until_they_stop_growing() {
    let run = DryRun::new(&Cpu);
    let exec = Executor::DryRun(&run);
    let mut kept: Vec<Option<Clip>> = vec![None, None];
    let runs = Cell::new(0);
    let mut taken = Vec::new();
    for _ in 0..10 {
        let frame = clip(&run, 1);
        let each = |clip: &Clip, kept: &mut Vec<Option<Clip>>| {
            runs.set(runs.get() + 1);
            let before = kept.iter().flatten().cloned();
            let all: Vec<Clip> = before.chain([clip.clone()]).collect();
            let out = Clip::cat(&all, 1)?.force_contiguous();
            kept.swap(0, 1);
            kept[1] = Some(clip.force_contiguous()?);
            out
        };
        let out = exec
            .repeat_keeping("frame", &frame, &mut kept, each)
            .unwrap();
        taken.push((out.dims()[1], mb(&run).0));
    }
    assert_eq!(runs.get(), 3);
    // the frame, the result, and what is kept
    assert_eq!(taken[..3], [(1, 3), (2, 5), (3, 6)]);
    assert!(taken[3..].iter().all(|taken| *taken == (3, 6)), "{taken:?}");
    drop(kept);
    assert_eq!(mb(&run).0, 0);
}

#[test]
fn a_convolution_takes_its_result_and_what_the_backend_says() {
    let run = DryRun::new(&Cpu);
    let exec = Executor::DryRun(&run);
    let size = ConvSize {
        kernel: [3, 3, 3],
        stride: [1, 2, 2],
        inputs: 8,
        outputs: 4,
    };
    let weights = || argument("weights are not asked for");
    let conv = exec.load_conv(size, weights).unwrap();
    let clip = run.allocate(&[1, 5, 40, 60, 8]);
    let axes = [
        Axis::identity(5).replicate(2, 0),
        Axis::identity(40).zeros(0, 1),
        Axis::identity(60).zeros(0, 1),
    ];
    let scratch = Cpu.conv_scratch(1, &axes, size);
    let prologue = Prologue {
        norm: Norm::None,
        silu: true,
        axes,
    };
    let input = clip.outline().unwrap();
    let out = exec.conv3d((&clip).into(), &prologue, &conv, None).unwrap();
    assert_eq!(out.dims(), [1, 5, 20, 30, 4]);
    let bytes = 4 * (5 * 40 * 60 * 8 + 5 * 20 * 30 * 4);
    assert_eq!(run.peak(), bytes + scratch, "{input:?}");
    // what does not fit is refused as a backend refuses it
    let wide = run.allocate(&[1, 5, 40, 60, 9]);
    let e = exec
        .conv3d((&wide).into(), &prologue, &conv, None)
        .unwrap_err();
    assert!(e.to_string().contains("a clip of 9 channels"), "{e}");
    let e = exec
        .conv3d((&clip).into(), &prologue, &conv, Some(&clip))
        .unwrap_err();
    assert!(e.to_string().contains("a shortcut"), "{e}");
}
