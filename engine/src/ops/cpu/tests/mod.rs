//! Each operation against the plainest way to compute it.

mod convolution;

use candle_core::{DType, Device, Tensor};
use proptest::prelude::*;

use super::Cpu;
use crate::ops::{AttentionMask, Backend, Prologue};

/// Numbers around zero that repeat late.
fn numbers(dims: &[usize], seed: u64) -> Tensor {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let all: Vec<f32> = (0..dims.iter().product::<usize>())
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        })
        .collect();
    Tensor::from_vec(all, dims, &Device::Cpu).unwrap()
}

fn flat(tensor: &Tensor) -> Vec<f32> {
    tensor.flatten_all().unwrap().to_vec1().unwrap()
}

fn close(got: &Tensor, want: &[f64], bound: f64) -> Result<(), TestCaseError> {
    let got = flat(got);
    prop_assert_eq!(got.len(), want.len());
    for (at, (got, want)) in got.iter().zip(want).enumerate() {
        let error = (f64::from(*got) - want).abs();
        prop_assert!(
            error <= bound * want.abs().max(1.0),
            "at {at}: {got}, not {want}"
        );
    }
    Ok(())
}

proptest! {
    #[test]
    fn group_norm_normalises(
        batch in 1..3usize, size in [1..4usize, 1..30usize, 1..40usize], groups in 1..5usize, wide in 1..5usize, far in -3f64..3.0,
    ) {
        let c = groups * wide;
        let clip = numbers(&[batch, size[0], size[1], size[2], c], 1).affine(1.0, far).unwrap();
        let (gamma, beta) = (numbers(&[c], 2), numbers(&[c], 3));
        let sums = Cpu.group_sums(&clip, groups).unwrap();
        let affine = sums.affine(&gamma, &beta, 1e-6).unwrap();
        let (gamma, beta) = (flat(&gamma), flat(&beta));
        let (scale, shift) = (flat(&affine.scale), flat(&affine.shift));
        for b in 0..batch {
            let all = flat(&clip.get(b).unwrap());
            for g in 0..groups {
                let of: Vec<f64> = all
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| at % c / wide == g)
                    .map(|(_, x)| f64::from(*x))
                    .collect();
                let n = of.len() as f64;
                let mean = of.iter().sum::<f64>() / n;
                let deviation = (of.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n + 1e-6).sqrt();
                for channel in g * wide..(g + 1) * wide {
                    let want = f64::from(gamma[channel]) / deviation;
                    let got = f64::from(scale[b * c + channel]);
                    // one pixel of one channel has no variance: only eps and the rounding of squares are left
                    if deviation > 0.01 {
                        prop_assert!((got - want).abs() < 1e-3 * want.abs() + 1e-6, "scale {got}, not {want}");
                        let at = mean * got + f64::from(shift[b * c + channel]);
                        prop_assert!((at - f64::from(beta[channel])).abs() < 1e-4, "the mean goes to {at}");
                    }
                }
            }
        }
    }

    #[test]
    fn sums_of_pieces_are_the_sums_of_the_whole(cut in 1..6usize, size in [1..9usize, 1..12usize]) {
        let clip = numbers(&[2, 7, size[0], size[1], 6], 9);
        let whole = Cpu.group_sums(&clip, 3).unwrap();
        let mut sums = Cpu.group_sums(&clip.narrow(1, 0, cut).unwrap(), 3).unwrap();
        sums.add(&Cpu.group_sums(&clip.narrow(1, cut, 7 - cut).unwrap(), 3).unwrap()).unwrap();
        prop_assert_eq!(sums.count, whole.count);
        for (a, b) in sums.sums.iter().zip(&whole.sums) {
            prop_assert!((a.0 - b.0).abs() < 1e-4 && (a.1 - b.1).abs() < 1e-4);
        }
    }

    #[test]
    fn attention_is_softmax_over_what_is_seen(
        batch in 1..3usize, frames in 1..4usize, size in [1..9usize, 1..16usize], c in 1..20usize, causal in any::<bool>(), steep in 0.1f64..30.0,
    ) {
        let tokens = size[0] * size[1];
        let qkv = numbers(&[batch, frames, size[0], size[1], 3 * c], 4).affine(steep, 0.0).unwrap();
        let mask = if causal { AttentionMask::Causal } else { AttentionMask::Frame };
        let got = Cpu.attention(&qkv, mask).unwrap();
        let mut want = Vec::new();
        for b in 0..batch {
            let all: Vec<Vec<f64>> = flat(&qkv.get(b).unwrap())
                .chunks(3 * c)
                .map(|token| token.iter().map(|x| f64::from(*x)).collect())
                .collect();
            for query in 0..frames * tokens {
                let frame = query / tokens;
                let from = if causal { 0 } else { frame * tokens };
                let seen = &all[from..(frame + 1) * tokens];
                let score = |key: &Vec<f64>| {
                    (0..c).map(|i| all[query][i] * key[c + i]).sum::<f64>() / (c as f64).sqrt()
                };
                let largest = seen.iter().map(score).fold(f64::NEG_INFINITY, f64::max);
                let weights: Vec<f64> = seen.iter().map(|key| (score(key) - largest).exp()).collect();
                let total: f64 = weights.iter().sum();
                for i in 0..c {
                    let sum: f64 = weights.iter().zip(seen).map(|(weight, key)| weight * key[2 * c + i]).sum();
                    want.push(sum / total);
                }
            }
        }
        // the scores' own rounding grows with them
        close(&got, &want, 1e-6 * (1.0 + steep * steep * steep))?;
    }
}

#[test]
fn more_keys_than_a_step_has_go_through_the_running_softmax() {
    let (frames, h, w, c) = (2, 20, 40, 8);
    let qkv = numbers(&[1, frames, h, w, 3 * c], 5)
        .affine(4.0, 0.0)
        .unwrap();
    let got = Cpu.attention(&qkv, AttentionMask::Causal).unwrap();
    let rows = qkv.reshape((frames * h * w, 3 * c)).unwrap();
    let part = |i: usize| rows.narrow(1, i * c, c).unwrap().contiguous().unwrap();
    let scores = (part(0).matmul(&part(1).t().unwrap()).unwrap() / (c as f64).sqrt()).unwrap();
    for frame in 0..frames {
        let seen = (frame + 1) * h * w;
        let own = scores
            .narrow(0, frame * h * w, h * w)
            .unwrap()
            .narrow(1, 0, seen)
            .unwrap();
        let own = own
            .broadcast_sub(&own.max_keepdim(1).unwrap())
            .unwrap()
            .exp()
            .unwrap();
        let weights = own.broadcast_div(&own.sum_keepdim(1).unwrap()).unwrap();
        let want = weights
            .matmul(&part(2).narrow(0, 0, seen).unwrap())
            .unwrap();
        let got = got
            .get(0)
            .unwrap()
            .get(frame)
            .unwrap()
            .reshape((h * w, c))
            .unwrap();
        let error = (got - want)
            .unwrap()
            .abs()
            .unwrap()
            .flatten_all()
            .unwrap()
            .max(0)
            .unwrap();
        assert!(error.to_scalar::<f32>().unwrap() < 1e-5);
    }
}

#[test]
fn what_does_not_fit_is_said() {
    let conv = Cpu.load_conv(&numbers(&[2, 3, 3, 3, 3], 1), None).unwrap();
    let clip = numbers(&[1, 2, 4, 4, 3], 2);
    let say = |clip: &Tensor, prologue: &Prologue<'_>, add: Option<&Tensor>| {
        Cpu.conv3d(clip.into(), prologue, &conv, add)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        say(&clip, &Prologue::none(2, 4, 4), None),
        "a clip of [2, 4, 4] is smaller than the kernel [3, 3, 3]"
    );
    assert_eq!(
        say(
            &numbers(&[1, 3, 4, 4, 2], 2),
            &Prologue::none(3, 4, 4),
            None
        ),
        "a clip of 2 channels for a convolution of 3"
    );
    assert_eq!(
        say(&clip, &Prologue::none(3, 4, 4), None),
        "padding for another size than that of the clip [1, 2, 4, 4, 3]"
    );
    let wrong = numbers(&[1, 1, 1, 1, 2], 1);
    assert_eq!(
        say(
            &numbers(&[1, 3, 4, 4, 3], 2),
            &Prologue::none(3, 4, 4),
            Some(&wrong)
        ),
        "a shortcut [1, 1, 1, 1, 2] for a result (1, 1, 2, 2, 2)"
    );
    let half = clip.to_dtype(DType::F16).unwrap();
    assert!(
        Cpu.group_sums(&half, 3)
            .unwrap_err()
            .to_string()
            .contains("not F16 on Cpu")
    );
}
