//! Convolutions of enlarged clips, piece by piece: the same with weights that were kept as with weights made anew, and what the
//! processor gives.

use candle_core::{DType, Tensor};
use framepack_engine::ops::cpu::Cpu;
use framepack_engine::ops::{Axis, Backend, Conv3d, Prologue};
use framepack_engine_cuda::{Cuda, Options};

use crate::Result;
use crate::operations::{near, random};

/// Frames, height and width of the clip, and channels in and out.
const SIZE: [usize; 3] = [3, 17, 23];
const CHANNELS: (usize, usize) = (24, 16);

/// Frames of the result that pieces are: one that reads one index, those that read two, several.
const PIECES: [(usize, usize); 6] = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)];

/// Whether all is as it should be.
pub(crate) fn run() -> Result<bool> {
    let mut good = true;
    for dtype in [DType::F32, DType::BF16] {
        let cuda = Cuda::new(Options {
            dtype,
            ..Options::default()
        })?;
        if !cuda.has_dnn() {
            say!("kept weights: nothing is folded without cuDNN");
            return Ok(true);
        }
        good &= kept(&cuda)?;
        // so little that none of these is kept
        let none = Cuda::new(Options {
            dtype,
            scratch: Some(100_000),
            ..Options::default()
        })?;
        let weights = weights(&none)?;
        pieces(&none, &weights[0])?;
        good &= is("kept beyond the bound", none.kept() <= 100_000 / 16)?;
    }
    Ok(good)
}

fn kept(cuda: &Cuda) -> Result<bool> {
    let mut good = true;
    let weights = weights(cuda)?;
    // first those of one, then of the other, so that each pass but the first finds some of both
    let pass = || -> Result<Vec<Tensor>> {
        let each = weights.iter().map(|conv| pieces(cuda, conv));
        Ok(each.collect::<Result<Vec<_>>>()?.concat())
    };
    let first = pass()?;
    let held = cuda.kept();
    good &= is("nothing is kept", held > 0)?;
    let again = pass()?;
    good &= is("a second pass makes weights again", cuda.kept() == held)?;
    cuda.compact()?;
    good &= is("kept where memory is put together", cuda.kept() == 0)?;
    let anew = pass()?;
    for ((first, again), anew) in first.iter().zip(&again).zip(&anew) {
        good &= is("other bits with what was kept", same(first, again)?)?;
        good &= is("other bits with what was made anew", same(first, anew)?)?;
    }
    let each = PIECES.len();
    good &= is("two weights are one", !same(&first[0], &first[each])?)?;
    // a third in the place of one that has gone
    drop(weights);
    let other = load(cuda, 9)?;
    let (got, want) = (pieces(cuda, &other)?, pieces(&Cpu, &load(&Cpu, 9)?)?);
    if cuda.dtype() == DType::F32 {
        for ((got, want), piece) in got.iter().zip(&want).zip(PIECES) {
            good &= near(&format!("enlarged, frames {piece:?}"), got, want)?;
        }
    }
    Ok(good)
}

fn weights(backend: &dyn Backend) -> Result<[Conv3d; 2]> {
    Ok([load(backend, 3)?, load(backend, 7)?])
}

fn load(backend: &dyn Backend, seed: u32) -> Result<Conv3d> {
    let (inputs, outputs) = CHANNELS;
    let weight = random(&[outputs, inputs, 3, 3, 3], seed)?.to_device(backend.device())?;
    let bias = random(&[outputs], seed + 1)?.to_device(backend.device())?;
    Ok(backend.load_conv(&weight, Some(&bias))?)
}

/// The pieces of the enlarged clip's convolution.
fn pieces(backend: &dyn Backend, conv: &Conv3d) -> Result<Vec<Tensor>> {
    let [t, h, w] = SIZE;
    let clip = random(&[1, t, h, w, CHANNELS.0], 2)?.to_device(backend.device())?;
    let clip = clip.to_dtype(backend.dtype())?;
    let [t, h, w] = SIZE.map(Axis::identity);
    let t = t.doubled_after_first().replicate(2, 0);
    let (h, w) = (h.doubled().replicate(1, 1), w.doubled().replicate(1, 1));
    let piece = |(start, end): (usize, usize)| {
        let prologue = Prologue {
            axes: [t.part(start..end + 2, 0), h.clone(), w.clone()],
            ..Prologue::none(0, 0, 0)
        };
        Ok(backend.conv3d((&clip).into(), &prologue, conv, None)?)
    };
    PIECES.into_iter().map(piece).collect()
}

fn same(a: &Tensor, b: &Tensor) -> Result<bool> {
    let bits = |tensor: &Tensor| -> Result<Vec<u32>> {
        let all = tensor
            .to_dtype(DType::F32)?
            .flatten_all()?
            .to_vec1::<f32>()?;
        Ok(all.into_iter().map(f32::to_bits).collect())
    };
    Ok(bits(a)? == bits(b)?)
}

/// Says what went wrong, if it did.
fn is(wrong: &str, good: bool) -> Result<bool> {
    if !good {
        say!("kept weights: {wrong}");
    }
    Ok(good)
}
