//! How much WAN's autoencoder takes: the shadow of `vae::wan`, step by step. The frames that convolutions keep for
//! the next chunk are most of it.

use std::cmp::Ordering;

use super::shadow::{Clip, Shadow, size};
use crate::ops::{Axis, ConvSize};
use crate::vae::WanConfig;

/// The frames kept, one entry a convolution, in the order of the calls.
#[derive(Debug, Default)]
pub(super) struct Caches {
    frames: Vec<Option<Clip>>,
    next: usize,
    first: bool,
}

impl Caches {
    pub(super) fn new() -> Self {
        Self {
            first: true,
            ..Self::default()
        }
    }

    fn slot(&mut self) -> usize {
        self.next += 1;
        self.frames.resize(self.frames.len().max(self.next), None);
        self.next - 1
    }

    fn keep(&mut self, shadow: &Shadow<'_>, slot: usize, clip: &Clip, count: usize) {
        let [own, h, w] = clip.size;
        let kept = match (own.cmp(&count), &self.frames[slot]) {
            (Ordering::Greater, _) => shadow.clip([count, h, w], clip.channels),
            (Ordering::Less, Some(old)) => {
                let frames = (count - own).min(old.size[0]) + own;
                shadow.clip([frames, h, w], clip.channels)
            }
            _ => clip.clone(),
        };
        self.frames[slot] = Some(kept);
    }
}

/// A causal convolution with zeros at the edges and the kept frames in front.
fn causal(
    shadow: &Shadow<'_>,
    clip: &Clip,
    kernel: [usize; 3],
    outputs: usize,
    caches: &mut Caches,
) -> Clip {
    let [kt, kh, kw] = kernel;
    let slot = caches.slot();
    let front = caches.frames[slot].clone();
    let kept = front.as_ref().map_or(0, |front| front.size[0]);
    let [t, h, w] = clip.size;
    let axes = [
        Axis::identity(t + kept).zeros((kt - 1).saturating_sub(kept), 0),
        Axis::identity(h).zeros(kh / 2, kh / 2),
        Axis::identity(w).zeros(kw / 2, kw / 2),
    ];
    let out = shadow.conv(&axes, size(clip, outputs, kernel));
    caches.keep(shadow, slot, clip, kt - 1);
    out
}

fn resnet(shadow: &Shadow<'_>, clip: Clip, outputs: usize, caches: &mut Caches) -> Clip {
    let inner = causal(shadow, &clip, [3; 3], outputs, caches);
    let add = if clip.channels == outputs {
        clip.clone()
    } else {
        shadow.linear(&clip, outputs)
    };
    drop(clip);
    let out = causal(shadow, &inner, [3; 3], outputs, caches);
    drop((inner, add));
    out
}

fn middle(shadow: &Shadow<'_>, clip: Clip, caches: &mut Caches) -> Clip {
    let width = clip.channels;
    let clip = resnet(shadow, clip, width, caches);
    let out = shadow.attention(&clip);
    drop(clip);
    resnet(shadow, out, width, caches)
}

fn upsample(
    shadow: &Shadow<'_>,
    clip: Clip,
    (time, outputs): (bool, usize),
    caches: &mut Caches,
) -> Clip {
    let clip = match (time, caches.first) {
        (true, false) => {
            let both = causal(shadow, &clip, [3, 1, 1], 2 * clip.channels, caches);
            let [t, h, w] = clip.size;
            let channels = clip.channels;
            drop(clip);
            shadow.copy(&both);
            shadow.clip([2 * t, h, w], channels)
        }
        (true, true) => {
            caches.slot();
            clip
        }
        (false, _) => clip,
    };
    let [t, h, w] = clip.size;
    let axes = [
        Axis::identity(t),
        Axis::identity(h).doubled().zeros(1, 1),
        Axis::identity(w).doubled().zeros(1, 1),
    ];
    shadow.conv(&axes, size(&clip, outputs, [1, 3, 3]))
}

/// The 2.2 kind's shortcut around a level of the decoder.
fn spread(shadow: &Shadow<'_>, clip: &Clip, time: usize, outputs: usize, first: bool) -> Clip {
    let [t, h, w] = clip.size;
    let size = [time * t, 2 * h, 2 * w];
    let parts = shadow.clip(size, outputs);
    let all = shadow.copy(&parts);
    all.frames(time * t - if first { time - 1 } else { 0 })
}

/// One chunk of latents through the decoder.
fn decode_chunk(shadow: &Shadow<'_>, config: &WanConfig, clip: &Clip, caches: &mut Caches) -> Clip {
    caches.next = 0;
    let widths: Vec<usize> = config
        .dim_mult
        .iter()
        .rev()
        .map(|mult| mult * config.decoder_base())
        .collect();
    let clip = causal(shadow, clip, [3; 3], widths[0], caches);
    let mut clip = middle(shadow, clip, caches);
    for (at, &width) in widths.iter().enumerate() {
        let enlarges = at + 1 < widths.len();
        let time = enlarges && config.temperal_downsample[widths.len() - 2 - at];
        let around = (enlarges && config.is_residual).then(|| clip.clone());
        for _ in 0..=config.num_res_blocks {
            clip = resnet(shadow, clip, width, caches);
        }
        if enlarges {
            let narrow = if config.is_residual { width } else { width / 2 };
            clip = upsample(shadow, clip, (time, narrow), caches);
        }
        if let Some(around) = around {
            let factor = if time { 2 } else { 1 };
            let other = spread(shadow, &around, factor, width, caches.first);
            clip = add(shadow, &clip, &other);
        }
    }
    causal(shadow, &clip, [3; 3], config.out_channels, caches)
}

/// The sum of two clips.
fn add(shadow: &Shadow<'_>, clip: &Clip, _other: &Clip) -> Clip {
    shadow.copy(clip)
}

/// The 2.2 kind's shortcut around a level of the encoder.
fn gather(shadow: &Shadow<'_>, clip: &Clip, outputs: usize, time: usize, space: usize) -> Clip {
    let [t, h, w] = clip.size;
    let frames = t.next_multiple_of(time);
    let padded = if frames == t {
        clip.clone()
    } else {
        // the zeros, then both in one
        let zeros = shadow.clip([frames - t, h, w], clip.channels);
        let all = shadow.clip([frames, h, w], clip.channels);
        drop(zeros);
        all
    };
    let parts = shadow.copy(&padded);
    let out = shadow.clip([frames / time, h / space, w / space], outputs);
    // the sum before it is divided
    let mean = shadow.copy(&out);
    drop((padded, parts, out));
    mean
}

fn downsample(shadow: &Shadow<'_>, clip: &Clip, time: bool, caches: &mut Caches) -> Clip {
    let [t, h, w] = clip.size;
    let axes = [
        Axis::identity(t),
        Axis::identity(h).zeros(0, 1),
        Axis::identity(w).zeros(0, 1),
    ];
    let mut conv = size(clip, clip.channels, [1, 3, 3]);
    conv.stride = [1, 2, 2];
    let clip = shadow.conv(&axes, conv);
    if !time {
        return clip;
    }
    let slot = caches.slot();
    let front = caches.frames[slot].clone();
    caches.keep(shadow, slot, &clip, 1);
    let Some(front) = front else { return clip };
    let [t, h, w] = clip.size;
    let axes = [t + front.size[0], h, w].map(Axis::identity);
    let conv = ConvSize {
        kernel: [3, 1, 1],
        stride: [2, 1, 1],
        inputs: clip.channels,
        outputs: clip.channels,
    };
    shadow.conv(&axes, conv)
}

/// One chunk of video through the encoder.
fn encode_chunk(shadow: &Shadow<'_>, config: &WanConfig, clip: &Clip, caches: &mut Caches) -> Clip {
    caches.next = 0;
    let mut clip = causal(shadow, clip, [3; 3], config.base_dim, caches);
    let levels = config.dim_mult.len();
    for (at, mult) in config.dim_mult.iter().enumerate() {
        let width = mult * config.base_dim;
        let shrinks = at + 1 < levels;
        let time = shrinks && config.temperal_downsample[at];
        let factor = |yes: bool| if yes { 2 } else { 1 };
        let around = config
            .is_residual
            .then(|| gather(shadow, &clip, width, factor(time), factor(shrinks)));
        for _ in 0..config.num_res_blocks {
            clip = resnet(shadow, clip, width, caches);
        }
        if shrinks {
            clip = downsample(shadow, &clip, time, caches);
        }
        if let Some(around) = around {
            clip = add(shadow, &clip, &around);
        }
    }
    let clip = middle(shadow, clip, caches);
    causal(shadow, &clip, [3; 3], 2 * config.z_dim, caches)
}

/// Chunks after which nothing new happens.
const STEADY: usize = 3;

/// The frames of each chunk as far as they differ.
pub(super) fn chunks(frames: usize, step: usize) -> impl Iterator<Item = usize> {
    let steps = (1..frames).step_by(step.max(1));
    std::iter::once(1)
        .chain(steps.map(move |start| step.min(frames - start)))
        .take(STEADY)
}

/// One tile of one chunk through the decoder.
pub(super) fn decode(
    shadow: &Shadow<'_>,
    config: &WanConfig,
    latents: &Clip,
    caches: &mut Caches,
) -> Clip {
    let clip = shadow.linear(latents, config.z_dim);
    let video = decode_chunk(shadow, config, &clip, caches);
    caches.first = false;
    video
}

/// One tile through the encoder, all its frames, `step` at a time after the first.
pub(super) fn encode(shadow: &Shadow<'_>, config: &WanConfig, video: &Clip, step: usize) -> Clip {
    let [frames, h, w] = video.size;
    let mut caches = Caches::new();
    let mut moments: Vec<Clip> = Vec::new();
    for count in chunks(frames, step) {
        let chunk = if shadow.batch() > 1 {
            shadow.clip([count, h, w], video.channels)
        } else {
            video.frames(count)
        };
        moments.push(encode_chunk(shadow, config, &chunk, &mut caches));
        caches.first = false;
    }
    drop(caches);
    let [_, h, w] = moments.last().map_or([0; 3], |last| last.size);
    let size = [(frames - 1) / config.scale_factor_temporal + 1, h, w];
    // the chunks, and all of them as one
    let parts = shadow.clip(size, 2 * config.z_dim);
    drop(moments);
    let whole = shadow.copy(&parts);
    drop(parts);
    shadow.linear(&whole, 2 * config.z_dim)
}
