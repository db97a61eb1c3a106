//! Index maps: padding and nearest upsampling without a copy of the data.

/// Where each index of a padded or enlarged axis comes from.
///
/// A convolution reads its input through three of these, so that neither padding nor upsampling
/// ever makes a tensor of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis(Vec<Option<u32>>);

impl Axis {
    /// Every index from itself.
    ///
    /// # Panics
    /// Never: an axis longer than `u32::MAX` is cut to that length, and no tensor has one.
    pub fn identity(len: usize) -> Self {
        Self(
            (0..u32::try_from(len).unwrap_or(u32::MAX))
                .map(Some)
                .collect(),
        )
    }

    /// Each index twice.
    #[must_use]
    pub fn doubled(self) -> Self {
        Self(self.0.into_iter().flat_map(|at| [at, at]).collect())
    }

    /// Each index twice but the first, which stays single: n become 2n-1. The rule of causal
    /// video autoencoders for time.
    #[must_use]
    pub fn doubled_after_first(self) -> Self {
        let mut all = self.doubled().0;
        if !all.is_empty() {
            all.remove(0);
        }
        Self(all)
    }

    /// The first index `before` times more in front, the last `after` times more behind.
    #[must_use]
    pub fn replicate(self, before: usize, after: usize) -> Self {
        let first = self.0.first().copied().flatten();
        let last = self.0.last().copied().flatten();
        self.extend(before, first, after, last)
    }

    /// Zeros in front and behind.
    #[must_use]
    pub fn zeros(self, before: usize, after: usize) -> Self {
        self.extend(before, None, after, None)
    }

    fn extend(self, before: usize, first: Option<u32>, after: usize, last: Option<u32>) -> Self {
        Self(
            std::iter::repeat_n(first, before)
                .chain(self.0)
                .chain(std::iter::repeat_n(last, after))
                .collect(),
        )
    }

    /// The indices `range` of this map over the same axis without its first `base` entries: how a piece of a
    /// result reads a piece of a clip. The range must lie within the map, and what it reads at `base` or behind.
    #[must_use]
    pub fn part(&self, range: std::ops::Range<usize>, base: usize) -> Self {
        let base = u32::try_from(base).unwrap_or(u32::MAX);
        let part = self.0.get(range).unwrap_or_default();
        Self(
            part.iter()
                .map(|at| at.map(|at| at.saturating_sub(base)))
                .collect(),
        )
    }

    /// The length after padding and enlarging.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where index `at` comes from; `None`: a zero.
    pub fn source(&self, at: usize) -> Option<usize> {
        self.0.get(at).copied().flatten().map(|at| at as usize)
    }

    /// Whether this is the identity over `len` indices.
    pub fn is_identity(&self, len: usize) -> bool {
        self.0.len() == len && (0..len).all(|at| self.source(at) == Some(at))
    }

    /// The axis of half the length whose inner indices this one has twice each, if it is such a one:
    /// the inverse of doubling and padding by one.
    pub fn halved(&self) -> Option<Self> {
        let (ends, inner) = match self.0.as_slice() {
            [first, inner @ .., last] => ((*first, *last), inner),
            _ => return None,
        };
        let pairs = inner.chunks(2);
        if inner.is_empty() || !pairs.clone().all(|pair| matches!(pair, [a, b] if a == b)) {
            return None;
        }
        let middle = pairs.map(|pair| pair[0]);
        Some(Self(
            std::iter::once(ends.0)
                .chain(middle)
                .chain(std::iter::once(ends.1))
                .collect(),
        ))
    }

    /// One past the largest source index: the shortest axis that this map can read.
    pub fn needs(&self) -> usize {
        self.0
            .iter()
            .flatten()
            .max()
            .map_or(0, |&at| at as usize + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(axis: &Axis) -> Vec<i64> {
        (0..axis.len())
            .map(|at| axis.source(at).map_or(-1, |at| i64::try_from(at).unwrap()))
            .collect()
    }

    #[test]
    fn padding_and_enlarging_compose() {
        assert_eq!(
            sources(&Axis::identity(3).replicate(2, 1)),
            [0, 0, 0, 1, 2, 2]
        );
        assert_eq!(
            sources(&Axis::identity(2).doubled().zeros(1, 1)),
            [-1, 0, 0, 1, 1, -1]
        );
        assert_eq!(
            sources(&Axis::identity(3).doubled_after_first()),
            [0, 1, 1, 2, 2]
        );
        assert_eq!(
            sources(&Axis::identity(1).doubled_after_first().replicate(2, 0)),
            [0, 0, 0]
        );
    }

    #[test]
    fn only_what_was_doubled_is_halved() {
        let axis = Axis::identity(3);
        assert_eq!(
            axis.clone().doubled().zeros(1, 1).halved(),
            Some(axis.clone().zeros(1, 1))
        );
        assert_eq!(
            axis.clone().doubled().replicate(1, 1).halved(),
            Some(axis.clone().replicate(1, 1))
        );
        assert_eq!(axis.clone().doubled().halved(), None);
        assert_eq!(axis.clone().zeros(1, 1).halved(), None);
        assert_eq!(axis.zeros(1, 0).halved(), None);
        assert_eq!(Axis::identity(2).halved(), None);
    }

    #[test]
    fn a_part_reads_a_part() {
        let axis = Axis::identity(3).doubled().replicate(2, 0);
        assert_eq!(sources(&axis), [0, 0, 0, 0, 1, 1, 2, 2]);
        assert_eq!(sources(&axis.part(4..7, 1)), [0, 0, 1]);
        assert_eq!(sources(&axis.part(0..8, 0)), sources(&axis));
    }

    #[test]
    fn identity_is_told_from_what_looks_like_it() {
        assert!(Axis::identity(4).is_identity(4));
        assert!(!Axis::identity(4).is_identity(5));
        assert!(!Axis::identity(4).zeros(0, 1).is_identity(5));
        assert_eq!(Axis::identity(4).zeros(3, 0).needs(), 4);
    }
}
