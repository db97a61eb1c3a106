//! Taps that read the same input are one tap with the sum of their weights.
//!
//! A causal convolution reads the first frame three times for its first output; one behind a nearest
//! upsampling reads every frame, row and column twice. Adding up the weights once instead of computing with each
//! of them leaves 2 x 2 of 3 x 3 taps in space, and 2 of 3 in time, and changes nothing but the rounding.

use std::borrow::Cow;
use std::ops::Range;

/// Which taps of a side read which input: one entry for each distinct input, in order.
pub(super) type Sides = Vec<Range<usize>>;

/// Every tap by itself.
pub(super) fn single(taps: usize) -> Sides {
    (0..taps).map(|tap| tap..tap + 1).collect()
}

/// Three taps over a doubled axis, for outputs of even (0) or odd (1) index.
pub(super) fn doubled(parity: usize) -> Sides {
    if parity == 0 {
        vec![0..1, 1..3]
    } else {
        vec![0..2, 2..3]
    }
}

/// Consecutive taps of equal source as one; those of zeros left out. Gives the source and the taps.
pub(super) fn by_source(
    sources: impl Iterator<Item = Option<usize>>,
) -> Vec<(usize, Range<usize>)> {
    let mut groups: Vec<(usize, Range<usize>)> = Vec::new();
    for (tap, source) in sources.enumerate() {
        let Some(source) = source else { continue };
        match groups.last_mut() {
            Some((last, taps)) if *last == source && taps.end == tap => taps.end += 1,
            _ => groups.push((source, tap..tap + 1)),
        }
    }
    groups
}

/// A weight (kt, kh, kw, I, O) of which any taps can be had as one.
#[derive(Clone, Copy)]
pub(super) struct Taps<'a> {
    pub(super) weight: &'a [f32],
    pub(super) kernel: [usize; 3],
    /// I * O.
    pub(super) size: usize,
}

impl<'a> Taps<'a> {
    /// (rows, columns, I, O): the sums over the taps of `time`, of each of `rows`, of each of `columns`.
    pub(super) fn sum(self, time: &Range<usize>, rows: &Sides, columns: &Sides) -> Cow<'a, [f32]> {
        let [_, kh, kw] = self.kernel;
        if time.len() == 1 && rows.len() == kh && columns.len() == kw {
            return Cow::Borrowed(
                &self.weight[time.start * kh * kw * self.size..][..kh * kw * self.size],
            );
        }
        let mut all = Vec::with_capacity(rows.len() * columns.len() * self.size);
        for row in rows {
            for column in columns {
                let start = all.len();
                for dt in time.clone() {
                    for dy in row.clone() {
                        for dx in column.clone() {
                            let tap =
                                &self.weight[((dt * kh + dy) * kw + dx) * self.size..][..self.size];
                            if all.len() == start {
                                all.extend_from_slice(tap);
                            } else {
                                for (sum, x) in all[start..].iter_mut().zip(tap) {
                                    *sum += x;
                                }
                            }
                        }
                    }
                }
            }
        }
        Cow::Owned(all)
    }
}

/// A weight (O, I, taps) as (taps, I, O).
pub(super) fn by_tap(weight: &[f32], [outputs, inputs, taps]: [usize; 3]) -> Vec<f32> {
    /// Numbers in a line of the cache: each is written whole.
    const LINE: usize = 16;
    let mut out = vec![0f32; weight.len()];
    for first in (0..outputs).step_by(LINE) {
        let count = LINE.min(outputs - first);
        for input in 0..inputs {
            for tap in 0..taps {
                let to = &mut out[(tap * inputs + input) * outputs + first..][..count];
                for (output, to) in (first..).zip(to) {
                    *to = weight[(output * inputs + input) * taps + tap];
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_turned_round() {
        let (o, i, k) = (19, 3, 4);
        let weight: Vec<f32> = (0u8..228).map(f32::from).collect();
        let out = by_tap(&weight, [o, i, k]);
        let at = |tap: usize, input: usize, output: usize| out[(tap * i + input) * o + output];
        for (output, input, tap) in [(0, 0, 0), (0, 0, 3), (18, 2, 3), (16, 1, 2), (7, 2, 0)] {
            assert!(
                (at(tap, input, output) - weight[(output * i + input) * k + tap]).abs()
                    < f32::EPSILON
            );
        }
    }

    #[test]
    fn taps_of_one_source_are_one() {
        let groups = |sources: &[Option<usize>]| by_source(sources.iter().copied());
        assert_eq!(groups(&[Some(0), Some(0), Some(0)]), [(0, 0..3)]);
        assert_eq!(groups(&[Some(4), Some(5), Some(5)]), [(4, 0..1), (5, 1..3)]);
        assert_eq!(groups(&[None, None, Some(0)]), [(0, 2..3)]);
        assert_eq!(groups(&[Some(1), None, Some(1)]), [(1, 0..1), (1, 2..3)]);
        assert_eq!(groups(&[None]), []);
    }

    #[test]
    fn weights_add_up() {
        let weight: Vec<f32> = (0u8..27).map(f32::from).collect();
        let taps = Taps {
            weight: &weight,
            kernel: [3, 3, 3],
            size: 1,
        };
        assert_eq!(*taps.sum(&(1..2), &single(3), &single(3)), weight[9..18]);
        assert!(matches!(
            taps.sum(&(1..2), &single(3), &single(3)),
            Cow::Borrowed(_)
        ));
        assert_eq!(
            *taps.sum(&(1..3), &doubled(0), &doubled(0)),
            [27.0, 60.0, 72.0, 156.0]
        );
    }
}
