//! A band: some padded rows of one frame, with the prologue done to them.

#![expect(
    clippy::inline_always,
    reason = "the loops become vector code only inside of the dispatch that calls them"
)]

use super::pixel::Pixel;
use crate::ops::Axis;

/// The frames of one batch entry: those kept from the chunk before, then the clip's own.
#[derive(Clone, Copy)]
pub(super) struct Frames<'a> {
    pub(super) front: &'a [f32],
    pub(super) body: &'a [f32],
    /// Numbers in a frame: H * W * C.
    pub(super) size: usize,
}

impl<'a> Frames<'a> {
    pub(super) fn get(&self, at: usize) -> &'a [f32] {
        let kept = self.front.len() / self.size;
        let (all, at) = if at < kept {
            (self.front, at)
        } else {
            (self.body, at - kept)
        };
        &all[at * self.size..][..self.size]
    }
}

/// How rows of padded pixels are made from a frame.
pub(super) struct Filler<'a> {
    pub(super) pixel: Pixel<'a>,
    pub(super) rows: &'a Axis,
    pub(super) columns: &'a Axis,
    /// Pixels in a row of the frame.
    pub(super) width: usize,
    pub(super) channels: usize,
}

impl Filler<'_> {
    /// Writes the padded rows `from..` of `frame` to `band`, as many as it has room for.
    pub(super) fn fill(&self, band: &mut [f32], frame: &[f32], from: usize) {
        // The widest vectors that this processor has: the crate itself is built for any.
        pulp::Arch::new().dispatch(|| self.fill_rows(band, frame, from));
    }

    #[inline(always)]
    fn fill_rows(&self, band: &mut [f32], frame: &[f32], from: usize) {
        let pitch = self.columns.len() * self.channels;
        let mut last = None;
        for (at, y) in (from..).enumerate().take(band.len() / pitch) {
            let source = self.rows.source(y);
            let (done, rest) = band.split_at_mut(at * pitch);
            let row = &mut rest[..pitch];
            match source {
                None => row.fill(0.0),
                Some(_) if last == Some(source) => row.copy_from_slice(&done[(at - 1) * pitch..]),
                Some(y) => self.fill_row(row, &frame[y * self.width * self.channels..]),
            }
            last = Some(source);
        }
    }

    #[inline(always)]
    fn fill_row(&self, row: &mut [f32], from: &[f32]) {
        let c = self.channels;
        let mut last = None;
        for x in 0..self.columns.len() {
            let source = self.columns.source(x);
            let (done, rest) = row.split_at_mut(x * c);
            let pixel = &mut rest[..c];
            match source {
                None => pixel.fill(0.0),
                Some(_) if last == Some(source) => pixel.copy_from_slice(&done[(x - 1) * c..]),
                Some(x) => self.pixel.apply(&from[x * c..][..c], pixel),
            }
            last = Some(source);
        }
    }
}

/// The bands of the last frames, so that each frame's prologue is done once though kt frames of
/// output read it.
pub(super) struct Ring {
    slots: Vec<(Option<usize>, Vec<f32>)>,
}

impl Ring {
    pub(super) fn new(slots: usize) -> Self {
        Self {
            slots: vec![(None, Vec::new()); slots],
        }
    }

    /// Forgets everything but the memory; every band has `len` numbers from now on.
    pub(super) fn reset(&mut self, len: usize) {
        for (held, band) in &mut self.slots {
            *held = None;
            band.resize(len, 0.0);
        }
    }

    /// The bands of the frames `wanted`, no more than there are slots; `fill` makes those that are
    /// not held.
    pub(super) fn hold(
        &mut self,
        wanted: &[usize],
        mut fill: impl FnMut(&mut [f32], usize),
    ) -> Vec<&[f32]> {
        let mut places = Vec::with_capacity(wanted.len());
        for &frame in wanted {
            let held = self.slots.iter().position(|(held, _)| *held == Some(frame));
            places.push(held.unwrap_or_else(|| {
                let stale = |held: &Option<usize>| held.is_none_or(|held| !wanted.contains(&held));
                let free = self
                    .slots
                    .iter()
                    .position(|(held, _)| stale(held))
                    .unwrap_or_default();
                let (held, band) = &mut self.slots[free];
                fill(band, frame);
                *held = Some(frame);
                free
            }));
        }
        places
            .into_iter()
            .map(|at| self.slots[at].1.as_slice())
            .collect()
    }
}
