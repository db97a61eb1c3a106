//! Convolution, with all that it swallows, against the sum over its taps in double precision.

use candle_core::Tensor;
use proptest::prelude::*;

use super::super::conv::{Way, output_size};
use super::super::{Cpu, convolve};
use super::{close, flat, numbers};
use crate::ops::{Affine, Axis, Backend, ConvInput, Norm, Prologue};

#[derive(Clone, Copy, Debug)]
enum Kind {
    None,
    Affine,
    Rms,
}

#[derive(Clone, Copy, Debug)]
enum Edge {
    Nothing,
    Zeros,
    Replicate,
    Double,
    DoubleReplicate,
    DoubleAfterFirst,
}

#[derive(Clone, Debug)]
struct Case {
    batch: usize,
    front: usize,
    size: [usize; 3],
    channels: (usize, usize),
    kernel: [usize; 3],
    stride: [usize; 3],
    kind: Kind,
    silu: bool,
    edges: [Edge; 3],
    add: bool,
    bias: bool,
    way: Way,
}

fn case() -> impl Strategy<Value = Case> {
    let edge = || {
        prop_oneof![
            Just(Edge::Nothing),
            Just(Edge::Zeros),
            Just(Edge::Replicate),
            Just(Edge::Double),
            Just(Edge::DoubleAfterFirst)
        ]
    };
    let kind = prop_oneof![Just(Kind::None), Just(Kind::Affine), Just(Kind::Rms)];
    let shape = (
        1..3usize,
        0..3usize,
        [1..4usize, 1..8usize, 1..11usize],
        (1..19usize, 1..18usize),
    );
    let taps = (
        [1..4usize, 1..4usize, 1..4usize],
        [1..3usize, 1..3usize, 1..3usize],
    );
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (shape, taps, kind, [edge(), edge(), edge()], flags).prop_map(
        |(
            (batch, front, size, channels),
            (kernel, stride),
            kind,
            edges,
            (silu, add, bias, shift),
        )| {
            let way = if shift && stride[1..] == [1, 1] {
                Way::Shift
            } else {
                Way::Tile
            };
            Case {
                batch,
                front,
                size,
                channels,
                kernel,
                stride,
                kind,
                silu,
                edges,
                add,
                bias,
                way,
            }
        },
    )
}

/// What stands between the levels of a decoder: all of it on paths of its own.
fn upsampling() -> impl Strategy<Value = Case> {
    let space = prop_oneof![Just(Edge::Double), Just(Edge::DoubleReplicate)];
    let time = prop_oneof![
        Just(Edge::Nothing),
        Just(Edge::Replicate),
        Just(Edge::DoubleAfterFirst)
    ];
    (
        case(),
        space,
        time,
        prop_oneof![Just(1usize), Just(3)],
        any::<bool>(),
    )
        .prop_map(|(case, space, time, kt, shift)| {
            let way = if shift { Way::Shift } else { Way::Tile };
            Case {
                kernel: [kt, 3, 3],
                stride: [1; 3],
                edges: [time, space, space],
                way,
                ..case
            }
        })
}

/// An axis that is at least as long as the kernel.
fn axis(len: usize, edge: Edge, kernel: usize) -> Axis {
    let axis = Axis::identity(len);
    let axis = match edge {
        Edge::Nothing => axis,
        Edge::Zeros => axis.zeros(kernel / 2, kernel / 2),
        Edge::Replicate => axis.replicate(kernel - 1, 0),
        Edge::Double => axis.doubled().zeros(1, 1),
        Edge::DoubleReplicate => axis.doubled().replicate(1, 1),
        Edge::DoubleAfterFirst => axis.doubled_after_first().replicate(1, 1),
    };
    let missing = kernel.saturating_sub(axis.len());
    axis.zeros(missing, 0)
}

/// The input pixel after the norm and the activation, in double precision.
fn prepared(pixel: &[f32], case: &Case, affine: (&[f32], &[f32]), gamma: &[f32]) -> Vec<f64> {
    let wide: Vec<f64> = pixel.iter().map(|x| f64::from(*x)).collect();
    let norm = wide.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-12);
    wide.iter()
        .enumerate()
        .map(|(c, x)| match case.kind {
            Kind::None => *x,
            Kind::Affine => x * f64::from(affine.0[c]) + f64::from(affine.1[c]),
            Kind::Rms => x / norm * (wide.len() as f64).sqrt() * f64::from(gamma[c]),
        })
        .map(|x| if case.silu { x / (1.0 + (-x).exp()) } else { x })
        .collect()
}

struct Inputs {
    front: Option<Tensor>,
    body: Tensor,
    affine: Affine,
    gamma: Tensor,
    weight: Tensor,
    bias: Option<Tensor>,
    axes: [Axis; 3],
}

impl Inputs {
    fn of(case: &Case) -> Self {
        let Case {
            batch,
            front,
            size: [t, h, w],
            channels: (c, o),
            kernel: [kt, kh, kw],
            ..
        } = *case;
        let affine = Affine {
            scale: numbers(&[batch, c], 3),
            shift: numbers(&[batch, c], 4),
        };
        Self {
            front: (front > 0).then(|| numbers(&[batch, front, h, w, c], 1)),
            body: numbers(&[batch, t, h, w, c], 2),
            affine,
            gamma: numbers(&[c], 5),
            weight: numbers(&[o, c, kt, kh, kw], 6),
            bias: case.bias.then(|| numbers(&[o], 7)),
            axes: [
                axis(front + t, case.edges[0], kt),
                axis(h, case.edges[1], kh),
                axis(w, case.edges[2], kw),
            ],
        }
    }

    fn norm(&self, kind: Kind) -> Norm<'_> {
        match kind {
            Kind::None => Norm::None,
            Kind::Affine => Norm::Affine(&self.affine),
            Kind::Rms => Norm::Rms(&self.gamma),
        }
    }

    /// Every pixel of the input after its prologue.
    fn pixels(&self, case: &Case) -> Vec<Vec<Vec<f64>>> {
        let c = case.channels.0;
        let all = match &self.front {
            Some(front) => Tensor::cat(&[front, &self.body], 1).unwrap(),
            None => self.body.clone(),
        };
        let gamma = flat(&self.gamma);
        (0..case.batch)
            .map(|b| {
                let row = |tensor: &Tensor| flat(&tensor.get(b).unwrap());
                let (scale, shift) = (row(&self.affine.scale), row(&self.affine.shift));
                row(&all)
                    .chunks(c)
                    .map(|pixel| prepared(pixel, case, (&scale, &shift), &gamma))
                    .collect()
            })
            .collect()
    }

    fn expected(&self, case: &Case, size: [usize; 3], add: Option<&Tensor>) -> Vec<f64> {
        let Case {
            size: [_, h, w],
            channels: (c, o),
            kernel: [kt, kh, kw],
            stride,
            ..
        } = *case;
        let (pixels, weight) = (self.pixels(case), flat(&self.weight));
        let bias = self.bias.as_ref().map(flat);
        let mut out = Vec::new();
        for pixels in &pixels {
            for at in 0..size.iter().product() {
                let place = [at / size[2] / size[1], at / size[2] % size[1], at % size[2]];
                for channel in 0..o {
                    let mut sum = bias.as_ref().map_or(0.0, |bias| f64::from(bias[channel]));
                    for tap in 0..kt * kh * kw {
                        let taps = [tap / kw / kh, tap / kw % kh, tap % kw];
                        let from =
                            [0, 1, 2].map(|i| self.axes[i].source(place[i] * stride[i] + taps[i]));
                        let [Some(t), Some(y), Some(x)] = from else {
                            continue;
                        };
                        for (i, value) in pixels[(t * h + y) * w + x].iter().enumerate() {
                            sum +=
                                value * f64::from(weight[(channel * c + i) * kt * kh * kw + tap]);
                        }
                    }
                    out.push(sum);
                }
            }
        }
        if let Some(add) = add {
            for (out, add) in out.iter_mut().zip(flat(add)) {
                *out += f64::from(add);
            }
        }
        out
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn convolution_is_the_sum_over_taps(case in prop_oneof![case(), upsampling()]) {
        let inputs = Inputs::of(&case);
        let conv = Cpu.load_conv(&inputs.weight, inputs.bias.as_ref()).unwrap().with_stride(case.stride);
        let prologue = Prologue { norm: inputs.norm(case.kind), silu: case.silu, axes: inputs.axes.clone() };
        let size = output_size(&inputs.axes, case.kernel, case.stride).unwrap();
        let add = case.add.then(|| numbers(&[case.batch, size[0], size[1], size[2], case.channels.1], 8));
        let clip = ConvInput { front: inputs.front.as_ref(), body: &inputs.body };
        let got = convolve(clip, &prologue, &conv, add.as_ref(), Some(case.way)).unwrap();
        close(&got, &inputs.expected(&case, size, add.as_ref()), 1e-5)?;
        let chosen = Cpu.conv3d(clip, &prologue, &conv, add.as_ref()).unwrap();
        let chosen: Vec<f64> = flat(&chosen).into_iter().map(f64::from).collect();
        close(&got, &chosen, 1e-5)?;
    }
}
