//! Single operations against the processor's, at sizes that the fixtures do not have.

use candle_core::{DType, Device, Tensor};
use framepack_engine::ops::cpu::Cpu;
use framepack_engine::ops::{AttentionMask, Axis, Backend, Norm, Prologue};
use framepack_engine_cuda::{Cuda, Options};

use crate::{Result, difference};

/// The largest relative difference that is let pass.
const BOUND: f64 = 1e-5;

/// Random numbers that need no library.
pub(crate) fn random(shape: &[usize], seed: u32) -> Result<Tensor> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let numbers: Vec<f32> = (0..shape.iter().product::<usize>())
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect();
    Ok(Tensor::from_vec(numbers, shape, &Device::Cpu)?)
}

/// Whether `got` is near enough.
pub(crate) fn near(what: &str, got: &Tensor, want: &Tensor) -> Result<bool> {
    let (most, mean) = difference(&got.to_dtype(DType::F32)?, want)?;
    say!("{what}: largest {most:.1e}, relative {mean:.1e}");
    Ok(mean < BOUND)
}

/// Whether all are.
pub(crate) fn run() -> Result<bool> {
    let mut good = true;
    for dnn in [true, false] {
        let cuda = Cuda::new(Options {
            dtype: DType::F32,
            dnn,
            ..Options::default()
        })?;
        for (frames, side, channels) in [(2, 40, 16), (2, 67, 16), (5, 48, 16), (3, 56, 24)] {
            let qkv = (random(&[1, frames, side, side, 3 * channels], 1)? * 3.0)?;
            for mask in [AttentionMask::Causal, AttentionMask::Frame] {
                let got = cuda.attention(&qkv.to_device(cuda.device())?, mask)?;
                let what = format!("attention {frames}x{side}x{side} {mask:?}");
                good &= near(&what, &got, &Cpu.attention(&qkv, mask)?)?;
            }
        }
        for convolution in [
            Convolution(16, 24, [5, 33, 41], false),
            Convolution(24, 16, [5, 17, 23], true),
            Convolution(16, 3, [3, 40, 300], false),
            Convolution(3, 16, [3, 30, 50], false),
            Convolution(40, 12, [2, 20, 40], false),
        ] {
            for stride in [[1, 1, 1], [2, 2, 2], [1, 2, 2]] {
                let what = format!("{convolution:?} stride {stride:?}");
                let (got, want) = (
                    convolution.by(&cuda, stride)?,
                    convolution.by(&Cpu, stride)?,
                );
                good &= near(&what, &got, &want)?;
            }
        }
        good &= copies(&cuda)?;
        let clip = random(&[2, 9, 150, 170, 32], 6)?;
        good &= near("group sums", &sums(&cuda, &clip)?, &sums(&Cpu, &clip)?)?;
    }
    Ok(good)
}

/// Channels in and out, the clip's size, whether it is enlarged first.
#[derive(Debug)]
struct Convolution(usize, usize, [usize; 3], bool);

impl Convolution {
    fn by(&self, backend: &dyn Backend, stride: [usize; 3]) -> Result<Tensor> {
        let Self(inputs, outputs, [t, h, w], enlarged) = *self;
        let own = |shape: &[usize], seed| -> Result<Tensor> {
            Ok(random(shape, seed)?.to_device(backend.device())?)
        };
        let (clip, gamma) = (own(&[2, t, h, w, inputs], 2)?, own(&[inputs], 5)?);
        let weight = own(&[outputs, inputs, 3, 3, 3], 3)?;
        let conv = backend.load_conv(&weight, Some(&own(&[outputs], 4)?))?;
        let [t, h, w] = [t, h, w].map(Axis::identity);
        let [t, h, w] = if enlarged {
            [t.doubled_after_first(), h.doubled(), w.doubled()]
        } else {
            [t, h, w]
        };
        let prologue = Prologue {
            norm: Norm::Rms(&gamma),
            silu: true,
            axes: [t.replicate(2, 0), h.replicate(1, 1), w.zeros(1, 1)],
        };
        Ok(backend.conv3d((&clip).into(), &prologue, &conv.with_stride(stride), None)?)
    }
}

/// Parts of clips put together and into another, with gaps and without: as candle does it.
fn copies(cuda: &Cuda) -> Result<bool> {
    let mut good = true;
    let clip = random(&[1, 4, 9, 7, 16], 8)?;
    let images = clip.squeeze(0)?;
    let on_card = |tensor: &Tensor| tensor.to_device(cuda.device());
    let (clip_there, images_there) = (on_card(&clip)?, on_card(&images)?);
    let view = |images: &Tensor, first| images.narrow(0, 1, 3)?.narrow(1, first, 4);
    let same = |what: &str, got: &Tensor, want: &Tensor| -> Result<bool> {
        let all = |tensor: &Tensor| tensor.flatten_all()?.to_vec1::<f32>();
        let same = got.dims() == want.dims() && all(&on_card(got)?)? == all(want)?;
        if !same {
            say!("copies: {what} differs");
        }
        Ok(same)
    };
    let parts =
        |images: &Tensor| -> Result<[Tensor; 2]> { Ok([view(images, 0)?, view(images, 5)?]) };
    for axis in [0, 1] {
        let (got, want) = (parts(&images_there)?, parts(&images)?);
        let want = Tensor::cat(&want.map(|part| part.contiguous().unwrap_or(part)), axis)?;
        good &= same("joined views", &cuda.join(&got, axis)?, &want)?;
    }
    let frames = |clip: &Tensor| -> Result<[Tensor; 2]> {
        Ok([clip.narrow(1, 1, 1)?, clip.narrow(1, 2, 2)?])
    };
    let want = Tensor::cat(&frames(&clip)?, 1)?;
    good &= same(
        "joined frames",
        &cuda.join(&frames(&clip_there)?, 1)?,
        &want,
    )?;
    for (count, rows, at) in [(1, 4, 3), (2, 4, 5), (2, 9, 0)] {
        let part = random(&[1, count, rows, 7, 16], 9)?;
        clip.narrow(1, 1, count)?.slice_set(&part, 2, at)?;
        cuda.put(&clip_there.narrow(1, 1, count)?, &on_card(&part)?, 2, at)?;
        good &= same("a part put into a clip", &clip_there, &clip)?;
    }
    let wide = random(&[1, 1, 12, 7, 16], 9)?;
    let refused = cuda.put(&clip_there, &on_card(&wide)?, 2, 0).is_err();
    if !refused {
        say!("copies: a part that does not fit was taken");
    }
    Ok(good && refused)
}

fn sums(backend: &dyn Backend, clip: &Tensor) -> Result<Tensor> {
    let sums = backend.group_sums(&clip.to_device(backend.device())?, 8)?;
    let numbers: Vec<f32> = sums
        .sums
        .iter()
        .flat_map(|(a, b)| [*a as f32, *b as f32])
        .collect();
    let count = numbers.len();
    Ok(Tensor::from_vec(numbers, count, &Device::Cpu)?)
}
