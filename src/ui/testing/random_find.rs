//! Finds of which anything can be expected but sense.

use super::Dice;
use crate::model::{Convolution, FindFigures, FindMark, FindState, MiopenRelease, Workspace};
use crate::run::snapshot::{Card, FindView};
use crate::ui::testing::find::convolution;

impl Dice {
    /// A Find of which anything can be expected but sense.
    pub(super) fn find(&mut self) -> FindView {
        let number = |d: &mut Self| u32::try_from(d.int() & 0xffff_ffff).unwrap_or(0);
        let mut axes = || [number(self), number(self), number(self)];
        let (input, kernel, stride) = (axes(), axes(), axes());
        let conv = Convolution {
            kernel,
            stride,
            c: input[0],
            k: stride[0],
            groups: kernel[1],
            dims: self.pick(&[0, 2, 3, 255]),
            transposed: self.below(2) == 0,
            ..convolution(input)
        };
        let mut open = None;
        let begin = FindMark::Opened { key: self.text() };
        let marks = [
            begin,
            FindMark::Convolution(conv),
            FindMark::Workspace(Workspace {
                solver: "Gemm".to_owned(),
                required: self.int(),
                provided: self.int(),
            }),
            FindMark::Solver { name: self.text() },
            FindMark::Figures(FindFigures {
                solver: self.some(Self::text),
                ms: self.some(Self::real),
                best_ms: self.some(Self::real),
                tried: self.some(Self::int),
                total: self.some(Self::int),
                left: self.some(Self::int),
                eta_s: self.some(Self::real),
            }),
            FindMark::Advance {
                detail: self.text(),
            },
        ];
        for mark in &marks {
            if self.below(4) > 0 || open.is_none() {
                FindState::fold(&mut open, self.mono(), mark);
            }
        }
        let key = self.text();
        if open.is_none() {
            FindState::fold(&mut open, self.mono(), &FindMark::Opened { key });
        }
        let card = Card {
            arch: self.some(Self::text),
            vram: self.some(Self::bytes),
        };
        let state = open.unwrap();
        FindView::of(state, MiopenRelease::default(), &card)
    }
}
