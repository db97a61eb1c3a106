//! How a convolution is cut up, and how an enlarged axis is folded. Numbers only.

use std::ops::Range;

use framepack_engine::ops::Axis;

/// 0..`total` in as few pieces of at most `most` as it takes, of about the same length: a short last piece would have a
/// plan of its own.
pub(crate) fn pieces(total: usize, most: usize) -> Vec<Range<usize>> {
    let count = total.div_ceil(most.max(1)).max(1);
    (0..count)
        .map(|i| total * i / count..total * (i + 1) / count)
        .filter(|piece| !piece.is_empty())
        .collect()
}

/// Frames and rows of a result that are computed at once: many frames of all rows, or some rows of one frame, so that
/// they lie together in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slab {
    pub(crate) frames: Range<usize>,
    pub(crate) rows: Range<usize>,
}

/// What a slab costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Bytes of a row of the buffer that is read.
    pub(crate) read: usize,
    /// Bytes of a row that is written aside, if any.
    pub(crate) written: usize,
    /// Rows of a whole frame of the buffer.
    pub(crate) rows: usize,
    /// Taps and steps in time and height.
    pub(crate) taps: [usize; 2],
    pub(crate) stride: [usize; 2],
}

impl Cost {
    /// Bytes of this slab.
    pub(crate) fn of_slab(&self, slab: &Slab, rows: usize) -> usize {
        let read = if slab.rows.len() == rows {
            self.rows
        } else {
            (slab.rows.len() - 1) * self.stride[1] + self.taps[1]
        };
        self.of(slab.frames.len(), read, slab.rows.len())
    }

    fn of(&self, frames: usize, rows_read: usize, rows_written: usize) -> usize {
        let frames_read = (frames - 1) * self.stride[0] + self.taps[0];
        frames_read * rows_read * self.read + frames * rows_written * self.written
    }
}

/// The slabs of a result of `frames` by `rows`, each within `limit` bytes unless a single row is not.
pub(crate) fn slabs(frames: usize, rows: usize, cost: Cost, limit: usize) -> Vec<Slab> {
    let most = (1..=frames)
        .rev()
        .find(|&n| cost.of(n, cost.rows, rows) <= limit);
    if let Some(most) = most {
        let all = pieces(frames, most).into_iter();
        return all
            .map(|frames| Slab {
                frames,
                rows: 0..rows,
            })
            .collect();
    }
    let read = |n: usize| (n - 1) * cost.stride[1] + cost.taps[1];
    let most = (1..=rows)
        .rev()
        .find(|&n| cost.of(1, read(n), n) <= limit)
        .unwrap_or(1);
    (0..frames)
        .flat_map(|frame| {
            pieces(rows, most).into_iter().map(move |rows| Slab {
                frames: frame..frame + 1,
                rows,
            })
        })
        .collect()
}

/// How many threads of a warp share a pixel of so many times eight channels, and how many of these each has: a power of
/// two, with none idle where the widths are the models' (96, 192 and 384 are three times one).
pub(crate) fn lanes(vectors: usize) -> (usize, usize) {
    let third = vectors / 3;
    if vectors.is_multiple_of(3) && third.is_power_of_two() && third <= 32 {
        return (third, 3);
    }
    let lanes = vectors.next_power_of_two().min(32);
    (lanes, vectors.div_ceil(lanes))
}

/// The map of an axis for the kernels: where each index comes from, -1 for a zero.
pub(crate) fn map(axis: &Axis) -> Vec<i32> {
    (0..axis.len())
        .map(|at| {
            axis.source(at)
                .and_then(|at| i32::try_from(at).ok())
                .unwrap_or(-1)
        })
        .collect()
}

/// An axis that is read with three taps: as it is, or folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Folded {
    /// The map of the buffer.
    pub(crate) map: Vec<i32>,
    /// For each index of the result: twice the place of its window in the buffer, plus which of two parts it is.
    pub(crate) places: Vec<i32>,
    /// Taps on the buffer.
    pub(crate) taps: usize,
    /// 1, or 2: how many convolutions stand in for one.
    pub(crate) parts: usize,
    /// For each part, which of `taps` each tap of the weight is added to.
    pub(crate) reads: Reads,
}

/// [`Folded::reads`]: of two parts, three taps each.
pub(crate) type Reads = [[i32; 3]; 2];

/// [`Folded::form`]: taps, parts and which are read.
pub(crate) type Form = (usize, usize, Reads);

/// Taps as they are.
const PLAIN: Reads = [[0, 1, 2]; 2];

/// (a, b, b) and (a, a, b).
const PAIRS: Reads = [[0, 1, 1], [0, 0, 1]];

impl Folded {
    /// Not folded.
    pub(crate) fn plain(map: Vec<i32>, taps: usize) -> Self {
        let count = (map.len() + 1).saturating_sub(taps);
        Self {
            places: (0..i32::try_from(count).unwrap_or(0))
                .map(|at| 2 * at)
                .collect(),
            map,
            taps,
            parts: 1,
            reads: PLAIN,
        }
    }

    /// Three taps over an axis that is read once, some of which read the same: as one tap for each index that is read.
    /// `None` where each reads another, or the axis is longer.
    pub(crate) fn single(map: &[i32]) -> Option<Self> {
        let [a, b, c] = *map else {
            return None;
        };
        let (second, third) = (i32::from(a != b), i32::from(b != c));
        let mut own = map.to_vec();
        own.dedup();
        (own.len() < map.len()).then(|| Self {
            places: vec![0],
            taps: own.len(),
            map: own,
            parts: 1,
            reads: [[0, second, second + third]; 2],
        })
    }

    /// Three taps over indices that come in pairs, as two taps over one of each pair: of the result's indices
    /// every other one reads (a, b, b), the rest (a, a, b). `None` where they do not come in pairs.
    pub(crate) fn pairs(map: &[i32]) -> Option<Self> {
        let count = map.len().checked_sub(2).filter(|&count| count >= 4)?;
        let paired = |from: usize| map[from..].chunks_exact(2).all(|pair| pair[0] == pair[1]);
        let from = [1, 0].into_iter().find(|&from| paired(from))?;
        let own: Vec<i32> = map[..from]
            .iter()
            .chain(map[from..].iter().step_by(2))
            .copied()
            .collect();
        // with a single index in front: 0 reads (0, 1, 1), 1 reads (1, 1, 2), 2 reads (1, 2, 2)
        let places = (0..count).map(|at| {
            if from == 1 {
                2 * at.div_ceil(2) + at % 2
            } else {
                2 * (at / 2) + 1 - at % 2
            }
        });
        Some(Self {
            map: own,
            places: places.filter_map(|at| i32::try_from(at).ok()).collect(),
            taps: 2,
            parts: 2,
            reads: PAIRS,
        })
    }

    /// What the weights for it depend on.
    pub(crate) fn form(&self) -> Form {
        (self.taps, self.parts, self.reads)
    }

    /// Windows over the buffer.
    pub(crate) fn windows(&self) -> usize {
        (self.map.len() + 1).saturating_sub(self.taps)
    }

    /// The result's indices whose window lies in `windows`.
    pub(crate) fn results(&self, windows: &Range<usize>) -> Range<usize> {
        let window = |place: i32| usize::try_from(place / 2).unwrap_or(0);
        let start = self
            .places
            .partition_point(|&at| window(at) < windows.start);
        let end = self.places.partition_point(|&at| window(at) < windows.end);
        start..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the taps of the weight read, by way of the folded ones.
    fn read(axis: &Folded, result: usize) -> Vec<i32> {
        let place = usize::try_from(axis.places[result]).unwrap();
        let tap = |tap: usize| usize::try_from(axis.reads[place % 2][tap]).unwrap();
        (0..3).map(|k| axis.map[place / 2 + tap(k)]).collect()
    }

    #[test]
    fn one_frame_has_a_tap_for_each_that_it_reads() {
        for (map, own) in [
            ([4, 4, 4], vec![4]),
            ([4, 4, 5], vec![4, 5]),
            ([4, 5, 5], vec![4, 5]),
            ([-1, -1, 0], vec![-1, 0]),
        ] {
            let axis = Folded::single(&map).unwrap();
            assert_eq!((axis.taps, axis.windows()), (own.len(), 1), "{map:?}");
            assert_eq!(axis.results(&(0..1)), 0..1);
            assert_eq!(read(&axis, 0), map);
            assert_eq!(axis.map, own);
        }
        assert_eq!(Folded::single(&[3, 4, 5]), None);
        assert_eq!(Folded::single(&[3, 4, 3]), None);
        assert_eq!(Folded::single(&[3, 3, 4, 4]), None);
    }

    #[test]
    fn folded_taps_read_what_the_plain_ones_do() {
        for map in [vec![0, 0, 1, 1, 2, 2, 3, 3], vec![0, 0, 0, 1, 1, 2, 2, 2]] {
            let axis = Folded::pairs(&map).unwrap();
            for at in 0..map.len() - 2 {
                assert_eq!(read(&axis, at), map[at..at + 3], "{map:?} {at}");
            }
        }
        let plain = Folded::plain(vec![5, 6, 7, 9], 3);
        assert_eq!(read(&plain, 1), [6, 7, 9]);
    }

    #[test]
    fn pieces_are_even_and_cover_all() {
        assert_eq!(pieces(33, 8), [0..6, 6..13, 13..19, 19..26, 26..33]);
        let one: Vec<Range<usize>> = std::iter::once(0..3).collect();
        assert_eq!(pieces(3, 8), one);
        assert_eq!(pieces(3, 0), [0..1, 1..2, 2..3]);
        assert_eq!(pieces(0, 4), Vec::<Range<usize>>::new());
    }

    #[test]
    fn slabs_keep_to_the_limit_in_frames_then_in_rows() {
        let cost = Cost {
            read: 10,
            written: 2,
            rows: 12,
            taps: [3, 3],
            stride: [1, 1],
        };
        let all = slabs(8, 10, cost, 10_000);
        assert_eq!(
            all,
            [Slab {
                frames: 0..8,
                rows: 0..10
            }]
        );
        // three frames read for one, and one written: 3 * 12 * 10 + 10 * 2
        let by_frame = slabs(2, 10, cost, 380);
        assert_eq!(by_frame.len(), 2);
        let by_row = slabs(2, 10, cost, 379);
        assert_eq!(by_row.len(), 4);
        assert_eq!(
            by_row[1],
            Slab {
                frames: 0..1,
                rows: 5..10
            }
        );
        // no room at all: a row at a time
        assert_eq!(slabs(1, 3, cost, 0).len(), 3);
    }

    #[test]
    fn threads_share_pixels_without_idling() {
        let widths = [96, 192, 384, 256, 512, 1024, 16, 40].map(|channels| lanes(channels / 8));
        assert_eq!(
            widths,
            [
                (4, 3),
                (8, 3),
                (16, 3),
                (32, 1),
                (32, 2),
                (32, 4),
                (2, 1),
                (8, 1)
            ]
        );
    }

    #[test]
    fn a_slab_costs_what_its_limit_was_for() {
        let cost = Cost {
            read: 10,
            written: 2,
            rows: 12,
            taps: [3, 3],
            stride: [1, 1],
        };
        for limit in [10_000, 400, 379, 150] {
            for slab in slabs(8, 10, cost, limit) {
                assert!(cost.of_slab(&slab, 10) <= limit, "{slab:?} for {limit}");
            }
        }
    }

    /// What the windows of a folded axis read, tap by tap of the three.
    fn reads(folded: &Folded) -> Vec<[i32; 3]> {
        let each = folded.places.iter().map(|place| {
            let at = usize::try_from(place / 2).unwrap();
            let (a, b) = (folded.map[at], folded.map[at + 1]);
            if place % 2 == 0 { [a, b, b] } else { [a, a, b] }
        });
        each.collect()
    }

    #[test]
    fn enlarged_axes_are_folded_and_read_the_same() {
        let cases = [
            Axis::identity(5).doubled().zeros(1, 1),
            Axis::identity(5).doubled().replicate(1, 1),
            Axis::identity(6).doubled_after_first().replicate(2, 0),
            Axis::identity(4).doubled(),
        ];
        for axis in cases {
            let map = map(&axis);
            let folded = Folded::pairs(&map).unwrap();
            let want: Vec<_> = map
                .windows(3)
                .map(|three| [three[0], three[1], three[2]])
                .collect();
            assert_eq!(reads(&folded), want);
            assert!(folded.map.len() <= map.len() / 2 + 1);
            assert_eq!(folded.results(&(0..folded.windows())), 0..want.len());
            let (a, b) = (
                folded.results(&(0..2)),
                folded.results(&(2..folded.windows())),
            );
            assert_eq!((a.start, a.end, b.end), (0, b.start, want.len()));
        }
    }

    #[test]
    fn other_axes_are_not_folded() {
        assert_eq!(Folded::pairs(&map(&Axis::identity(7))), None);
        assert_eq!(
            Folded::pairs(&map(&Axis::identity(7).replicate(1, 1))),
            None
        );
        // too short to be worth it
        assert_eq!(
            Folded::pairs(&map(&Axis::identity(1).replicate(2, 0))),
            None
        );
        let plain = Folded::plain(map(&Axis::identity(7)), 3);
        assert_eq!((plain.windows(), plain.results(&(1..3))), (5, 1..3));
    }
}
