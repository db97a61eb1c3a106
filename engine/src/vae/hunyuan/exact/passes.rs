//! The passes over a level: each makes a clip, or only its sums, piece by piece.

use std::ops::Range;

use super::super::super::Observer;
use super::super::super::layers::GroupNorm;
use super::super::super::precision::not_finite;
use super::super::super::tiles::{HEIGHT, TIME};
use super::super::blocks::{Causal, Resnet};
use super::super::decoder::Upsample;
use super::memory::Grids;
use super::region::{Conv, EDGE, FRONT, Grid, Part, Region, put, rows_of};
use crate::error::{Result, argument};
use crate::ops::{Affine, Axis, Clip, Executor, GroupSums, Pending};

/// What the first residual block of a level reads.
pub(super) enum Input<'a> {
    /// A clip in memory.
    Held(Clip),
    /// A clip that is made of a smaller one wherever it is wanted.
    Lazy(Box<Lazy<'a>>),
}

/// The smaller clip, and what makes the larger of it.
pub(super) struct Lazy<'a> {
    pub(super) below: Part,
    pub(super) below_size: [usize; 3],
    pub(super) upsample: &'a Upsample,
    /// Upsampling and the shortcut's convolution in one.
    pub(super) fused: Option<Causal>,
}

impl Lazy<'_> {
    /// The piece `to` of the larger clip, or of its shortcut, made by `conv`.
    fn piece(&self, conv: Conv<'_>, with: &Causal, to: &Region) -> Result<Clip> {
        let axes = self.upsample.enlarge(self.below_size.map(Axis::identity));
        conv.through(with, axes, &self.below, to, None, None)
    }

    fn clip(&self, conv: Conv<'_>, to: &Region) -> Result<Clip> {
        self.piece(conv, &self.upsample.conv, to)
    }
}

/// Adds the sums of pieces, in their order, when all have been begun.
#[derive(Default)]
struct Total(Vec<Pending>);

impl Total {
    fn add(&mut self, piece: Pending) {
        self.0.push(piece);
    }

    fn done(self) -> Result<GroupSums> {
        let mut total: Option<GroupSums> = None;
        for piece in self.0 {
            let piece = piece.wait()?;
            match &mut total {
                Some(total) => total.add(&piece)?,
                None => total = Some(piece),
            }
        }
        total.map_or_else(|| argument("a clip without frames has no sums"), Ok)
    }
}

/// The passes over clips of one level.
pub(super) struct Passes<'a> {
    pub(super) conv: Conv<'a>,
    pub(super) grids: Grids,
    pub(super) observer: &'a mut dyn Observer,
    /// The level's name.
    pub(super) module: String,
    /// Pieces that have gone through, and how many there are in all.
    pub(super) done: &'a mut (usize, usize),
}

impl Passes<'_> {
    fn exec(&self) -> Executor<'_> {
        self.conv.exec
    }

    fn see(&mut self, module: std::fmt::Arguments<'_>, piece: &Clip) -> Result<()> {
        self.observer
            .see(&format!("{}.{module}", self.module), piece)?;
        self.count()
    }

    fn count(&mut self) -> Result<()> {
        self.done.0 += 1;
        self.observer.pieces(self.done.0, self.done.1)
    }

    /// How the passes of the residual block `at` are cut up.
    fn block(&self, at: usize) -> [Grid; 2] {
        if at == 0 {
            self.grids.first
        } else {
            self.grids.others
        }
    }

    /// The pieces, band by band and forward in time.
    fn regions(&self, grid: Grid) -> Vec<Region> {
        let [t, h, _] = self.conv.size;
        let mut all = Vec::new();
        for rows in grid.bands(h) {
            all.extend(grid.runs(t).map(|frames| Region {
                frames,
                rows: rows.clone(),
            }));
        }
        all
    }

    fn empty(&self, channels: usize) -> Result<Clip> {
        let [t, h, w] = self.conv.size;
        self.exec().compact()?;
        self.exec().zeros(&[1, t, h, w, channels])
    }

    /// The larger clip as a whole, and the sums of it for `norm`.
    pub(super) fn enlarge(
        &mut self,
        lazy: &Lazy<'_>,
        norm: &GroupNorm,
    ) -> Result<(Clip, GroupSums)> {
        let channels = lazy.upsample.conv.conv.size().outputs;
        let whole = self.empty(channels)?;
        let mut total = Total::default();
        for region in self.regions(self.grids.enlarging) {
            let piece = lazy.clip(self.conv, &region)?;
            total.add(norm.begin(self.exec(), &piece)?);
            put(self.exec(), &whole, &piece, &region)?;
            self.see(format_args!("upsample"), &piece)?;
        }
        Ok((whole, total.done()?))
    }

    /// The sums alone.
    pub(super) fn sums(&mut self, lazy: &Lazy<'_>, norm: &GroupNorm) -> Result<GroupSums> {
        let mut total = Total::default();
        for region in self.regions(self.grids.enlarging) {
            let piece = lazy.clip(self.conv, &region)?;
            total.add(norm.begin(self.exec(), &piece)?);
            self.see(format_args!("upsample"), &piece)?;
        }
        let sums = total.done()?;
        // before the norm made of these lies among what pieces have left, where the clip is to lie
        self.exec().compact()?;
        Ok(sums)
    }

    /// The first convolution of a residual block: its result as a whole if it is to be kept, and the sums of it.
    pub(super) fn first(
        &mut self,
        (at, resnet): (usize, &Resnet),
        input: &Input<'_>,
        norm: &Affine,
        keep: bool,
    ) -> Result<(Option<Clip>, GroupSums)> {
        let channels = resnet.conv1.conv.size().outputs;
        let whole = keep.then(|| self.empty(channels)).transpose()?;
        let mut total = Total::default();
        let mut kept: Option<Part> = None;
        for region in self.regions(self.block(at)[0]) {
            let from = match input {
                Input::Held(clip) => Part::whole(clip)?,
                Input::Lazy(lazy) => {
                    if region.frames.start == 0 {
                        kept = None;
                    }
                    self.follow(lazy, &region, kept.take())?
                }
            };
            let piece = self
                .conv
                .run(&resnet.conv1, &from, &region, Some(norm), None)?;
            total.add(resnet.norm2.begin(self.exec(), &piece)?);
            if let Some(whole) = &whole {
                put(self.exec(), whole, &piece, &region)?;
            }
            self.see(format_args!("resnets.{at}.conv1"), &piece)?;
            drop(piece);
            if matches!(input, Input::Lazy(_)) {
                kept = Some(last(self.exec(), &from)?);
            }
        }
        Ok((whole, total.done()?))
    }

    /// What a convolution reads to make `region`, the frames before it being those `kept`.
    fn follow(&self, lazy: &Lazy<'_>, region: &Region, kept: Option<Part>) -> Result<Part> {
        let mut new = region.read(self.conv.size[1]);
        new.frames = region.frames.clone();
        // from the first of two equal rows to the second: an upsampling's convolution is a smaller one then
        new.rows.start -= new.rows.start % 2;
        new.rows.end = new.rows.end.next_multiple_of(2).min(self.conv.size[1]);
        let part = Part::new(lazy.clip(self.conv, &new)?, new);
        Ok(match kept {
            Some(kept) => kept.before(part),
            None => part,
        })
    }

    /// The second convolution of a residual block, from the first's result `inner` and into it, plus the shortcut; and
    /// the sums of the result for `next`.
    pub(super) fn second(
        &mut self,
        (at, resnet): (usize, &Resnet),
        input: &Input<'_>,
        inner: &Clip,
        norm: &Affine,
        next: Option<&GroupNorm>,
    ) -> Result<Option<GroupSums>> {
        let mut total = Total::default();
        let mut above = Above::new(EDGE);
        let grid = self.block(at)[1];
        for rows in grid.bands(self.conv.size[1]) {
            above.turn(inner, &rows)?;
            for frames in grid.runs(self.conv.size[0]).rev() {
                let region = Region {
                    frames,
                    rows: rows.clone(),
                };
                let add = self.shortcut(resnet, input, &region)?;
                let from = above.window(self.exec(), inner, &region.read(self.conv.size[1]))?;
                let piece = self
                    .conv
                    .run(&resnet.conv2, &from, &region, Some(norm), Some(&add))?;
                drop((from, add));
                self.finish((at, &piece, &region), inner, next, &mut total)?;
            }
        }
        next.map(|_| total.done()).transpose()
    }

    /// What is added to the second convolution's result.
    fn shortcut(&self, resnet: &Resnet, input: &Input<'_>, region: &Region) -> Result<Clip> {
        match (input, &resnet.shortcut) {
            (Input::Held(clip), Some(shortcut)) => {
                let from = Part::whole(clip)?;
                self.conv.run(shortcut, &from, region, None, None)
            }
            (Input::Held(clip), None) => rows_of(clip, region.frames.clone(), region.rows.clone()),
            (Input::Lazy(lazy), Some(_)) => match &lazy.fused {
                Some(fused) => lazy.piece(self.conv, fused, region),
                None => argument("an upsampling without its shortcut"),
            },
            (Input::Lazy(lazy), None) => lazy.clip(self.conv, region),
        }
    }

    fn finish(
        &mut self,
        (at, piece, region): (usize, &Clip, &Region),
        whole: &Clip,
        next: Option<&GroupNorm>,
        total: &mut Total,
    ) -> Result<()> {
        if let Some(next) = next {
            total.add(next.begin(self.exec(), piece)?);
        }
        put(self.exec(), whole, piece, region)?;
        self.see(format_args!("resnets.{at}"), piece)
    }

    /// Both convolutions of a residual block over `clip` and into it: the first's result is made again instead of
    /// kept. The block must not change the width.
    pub(super) fn again(
        &mut self,
        (at, resnet): (usize, &Resnet),
        clip: &Clip,
        (norm1, norm2): (&Affine, &Affine),
        next: Option<&GroupNorm>,
    ) -> Result<Option<GroupSums>> {
        let [t, h, _] = self.conv.size;
        let mut total = Total::default();
        let mut above = Above::new(2 * EDGE);
        let grid = self.block(at)[1];
        for rows in grid.bands(h) {
            above.turn(clip, &rows)?;
            let mut kept: Option<Part> = None;
            for frames in grid.runs(t).rev() {
                let region = Region {
                    frames: frames.clone(),
                    rows: rows.clone(),
                };
                let mut inner = region.read(h);
                if let Some(kept) = &kept {
                    inner.frames.end = kept.region.frames.start;
                }
                let from = match (kept.take(), inner.frames.is_empty()) {
                    (Some(kept), true) => kept,
                    (kept, _) => {
                        let from = above.window(self.exec(), clip, &inner.read(h))?;
                        let new = self
                            .conv
                            .run(&resnet.conv1, &from, &inner, Some(norm1), None)?;
                        let new = Part::new(new, inner);
                        match kept {
                            Some(kept) => new.before(kept),
                            None => new,
                        }
                    }
                };
                let add = rows_of(clip, frames.clone(), rows.clone())?;
                let piece =
                    self.conv
                        .run(&resnet.conv2, &from, &region, Some(norm2), Some(&add))?;
                if frames.start > 0 {
                    let before = frames.start.saturating_sub(FRONT)..frames.start;
                    kept = Some(from.frames(self.exec(), before)?);
                }
                drop(from);
                self.finish((at, &piece, &region), clip, next, &mut total)?;
            }
        }
        next.map(|_| total.done()).transpose()
    }

    /// The last convolution, frames in order: `each` gets the number of the first and (1, t, H, W, C).
    pub(super) fn out(
        &mut self,
        conv: &Causal,
        norm: &Affine,
        clip: &Clip,
        mut each: impl FnMut(usize, &Clip) -> Result<()>,
    ) -> Result<()> {
        let from = Part::whole(clip)?;
        let [_, grid] = self.grids.others;
        for frames in grid.runs(self.conv.size[0]) {
            let mut bands = Vec::new();
            for rows in grid.bands(self.conv.size[1]) {
                let region = Region {
                    frames: frames.clone(),
                    rows,
                };
                bands.push(self.conv.run(conv, &from, &region, Some(norm), None)?);
            }
            let video = match bands.as_slice() {
                [one] => one.clone(),
                several => Clip::cat(several, HEIGHT)?,
            };
            self.observer.see("decoder.conv_out", &video)?;
            self.exec()
                .check_finite(&video, || not_finite("the decoder", video.dtype()))?;
            self.count()?;
            each(frames.start, &video)?;
        }
        Ok(())
    }
}

/// The last frames of a piece that the next one reads.
fn last(exec: Executor<'_>, part: &Part) -> Result<Part> {
    let Range { start, end } = part.region.frames.clone();
    part.frames(exec, start.max(end.saturating_sub(FRONT))..end)
}

/// Rows of a clip above a band, as they were before the band above was written over.
struct Above {
    /// How many are wanted.
    count: usize,
    /// Those above this band, and those above the next, each with the number of its first.
    now: Option<(usize, Clip)>,
    next: Option<(usize, Clip)>,
}

impl Above {
    fn new(count: usize) -> Self {
        Self {
            count,
            now: None,
            next: None,
        }
    }

    /// Goes on to the band `rows`, of which nothing has been written yet.
    fn turn(&mut self, clip: &Clip, rows: &Range<usize>) -> Result<()> {
        self.now = self.next.take();
        let (t, h) = (clip.dim(TIME)?, clip.dim(HEIGHT)?);
        if rows.end < h {
            let first = rows.end.saturating_sub(self.count).max(rows.start);
            let kept = rows_of(clip, 0..t, first..rows.end)?.force_contiguous()?;
            self.next = Some((first, kept));
        }
        Ok(())
    }

    /// The region of the clip as it was.
    fn window(&self, exec: Executor<'_>, clip: &Clip, region: &Region) -> Result<Part> {
        let Region { frames, rows } = region;
        let Some((first, above)) = &self.now else {
            // nothing has been written but later frames and rows below: read where it lies
            return Part::whole(clip);
        };
        let split = first + above.dim(HEIGHT)?;
        if rows.start < *first || rows.start >= split || rows.end < split {
            return argument(format!("rows {rows:?} where {first}..{split} were kept"));
        }
        // as images: views of those are put together in one go, views of clips only after a copy of each
        let images = |clip: &Clip, rows: Range<usize>| {
            let images = clip.squeeze(0)?.narrow(0, frames.start, frames.len())?;
            images.narrow(1, rows.start, rows.len())
        };
        let upper = images(above, rows.start - first..split - first)?;
        let lower = images(clip, split..rows.end)?;
        let body = exec.join(&[upper, lower], 1)?.unsqueeze(0)?;
        Ok(Part::new(body, region.clone()))
    }
}
