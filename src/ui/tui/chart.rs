//! Small charts over the last minutes.
//!
//! Each dot column keeps the lowest and the highest value of its stretch of time,
//! so a dip of half a second stays visible. A stretch without readings is blank;
//! a measured zero is a dot on the floor.

use std::collections::VecDeque;

use crate::model::Mono;
use crate::run::snapshot::Point;

/// A reading holds until the next one, but no longer than this: a sampler that
/// has stopped leaves a gap.
const HOLD_MS: u64 = 2_500;

/// Spans that a chart may show, shortest first.
const SPANS: [(u64, &str); 4] = [
    (60_000, "1 min"),
    (120_000, "2 min"),
    (300_000, "5 min"),
    (600_000, "10 min"),
];

/// Spans that the user may choose, shortest first; absent: all that is kept.
pub(super) const RANGES: [Option<(u64, &str)>; 6] = [
    Some((30_000, "30 s")),
    Some(SPANS[0]),
    Some(SPANS[1]),
    Some(SPANS[2]),
    Some(SPANS[3]),
    None,
];

/// The shortest span that shows all of `history`, in ms, and its name. Steps, so
/// that the picture does not creep while a run is young.
pub(super) fn span(history: &VecDeque<Point>, now: Mono) -> (u64, &'static str) {
    let age = history.front().map_or(0, |p| now.0.saturating_sub(p.at.0));
    let [.., longest] = SPANS;
    SPANS
        .into_iter()
        .find(|(ms, _)| *ms >= age)
        .unwrap_or(longest)
}

/// The reading that holds at a moment.
pub(super) fn point_at(history: &VecDeque<Point>, t: Mono) -> Option<&Point> {
    let point = history.iter().rev().find(|p| p.at <= t);
    point.filter(|p| t.0 - p.at.0 <= HOLD_MS)
}

/// What a chart shows.
pub(super) struct Chart<'a> {
    /// Points, oldest first.
    pub(super) history: &'a VecDeque<Point>,
    /// Right edge.
    pub(super) now: Mono,
    /// Time from the left to the right edge, ms.
    pub(super) span_ms: u64,
    /// Value at the upper edge.
    pub(super) max: f64,
    /// A value that a line is drawn at where the chart is blank.
    pub(super) line: Option<f64>,
    /// A time that a line is drawn at where the chart is blank.
    pub(super) cursor: Option<Mono>,
    /// ASCII instead of braille.
    pub(super) ascii: bool,
}

/// Dots of one cell: braille has 2 x 4, ASCII 1 x 3.
const BRAILLE: (usize, usize) = (2, 4);
const ASCII: (usize, usize) = (1, 3);

/// Bits of the dots of a braille cell, by column, from the floor up
/// (Unicode block U+2800).
const DOTS: [[u32; 4]; 2] = [[0x40, 0x04, 0x02, 0x01], [0x80, 0x20, 0x10, 0x08]];

impl Chart<'_> {
    /// The chart as `rows` strings of `columns` cells, from the top.
    pub(super) fn draw(
        &self,
        value: impl Fn(&Point) -> Option<f64>,
        columns: usize,
        rows: usize,
    ) -> Vec<String> {
        let (sx, sy) = if self.ascii { ASCII } else { BRAILLE };
        let bands = self.bands(value, columns * sx, rows * sy);
        let cursor = self.cursor.and_then(|t| self.cell(t, columns));
        let line_level = self.line.and_then(|v| self.level(v, rows * sy));
        let line = self.line_row(rows);
        let ground = |row: usize, column: usize| match (cursor, line) {
            (Some(at), _) if at == column => self.pick('┊', ':'),
            (_, Some(at)) if at == row => self.pick('┄', '.'),
            _ => ' ',
        };
        let cell = |row: usize, column: usize| {
            let floor = (rows - 1 - row) * sy;
            let stripe = bands
                .get(column * sx..(column + 1) * sx)
                .unwrap_or_default();
            let data = if self.ascii {
                ascii_cell(stripe, floor)
            } else {
                // The line stays in sight where data run beside it.
                let dot = line_level.and_then(|l| l.checked_sub(floor));
                braille_cell(stripe, floor, dot)
            };
            if data == ' ' {
                ground(row, column)
            } else {
                data
            }
        };
        (0..rows)
            .map(|row| (0..columns).map(|column| cell(row, column)).collect())
            .collect()
    }

    /// The row that the line stands in.
    pub(super) fn line_row(&self, rows: usize) -> Option<usize> {
        let (_, sy) = if self.ascii { ASCII } else { BRAILLE };
        let level = self.level(self.line?, rows * sy)?;
        rows.checked_sub(1 + level / sy)
    }

    const fn pick(&self, unicode: char, ascii: char) -> char {
        if self.ascii { ascii } else { unicode }
    }

    /// The cell that a time stands in, if it is in sight.
    pub(super) fn cell(&self, t: Mono, columns: usize) -> Option<usize> {
        let (sx, _) = if self.ascii { ASCII } else { BRAILLE };
        let dots = columns * sx;
        let step = self.span_ms.checked_div(u64::try_from(dots).ok()?)?.max(1);
        let back = (self.now.0 / step).checked_sub(t.0 / step)?;
        let dot = dots.checked_sub(usize::try_from(back).ok()?.checked_add(1)?)?;
        Some(dot / sx)
    }

    /// For each dot column the lowest and highest level in `0..levels`.
    fn bands(
        &self,
        value: impl Fn(&Point) -> Option<f64>,
        columns: usize,
        levels: usize,
    ) -> Vec<Option<(usize, usize)>> {
        let mut bands = vec![None; columns];
        let Some(step) = u64::try_from(columns)
            .ok()
            .and_then(|c| self.span_ms.checked_div(c))
        else {
            return bands;
        };
        let step = step.max(1);
        // Columns stand on whole steps of time, so that a value keeps its column
        // while the chart moves.
        let last = self.now.0 / step;
        let column = |t: u64| {
            let back = usize::try_from(last.saturating_sub(t / step)).ok()?;
            columns.checked_sub(back + 1)
        };
        for (at, point) in self.history.iter().enumerate() {
            let Some(level) = value(point).and_then(|v| self.level(v, levels)) else {
                continue;
            };
            let until = self
                .history
                .get(at + 1)
                .map_or(self.now.0, |next| next.at.0);
            let until = until
                .min(point.at.0.saturating_add(HOLD_MS))
                .min(self.now.0);
            let Some(to) = column(until.max(point.at.0)) else {
                continue;
            };
            if point.at.0 > self.now.0 {
                continue;
            }
            // The next reading has its own column: this one ends before it.
            let from = column(point.at.0).unwrap_or(0).min(to);
            let to = if until > point.at.0 && to > from {
                to - 1
            } else {
                to
            };
            for band in &mut bands[from..=to] {
                *band = Some(band.map_or((level, level), |(lo, hi): (usize, usize)| {
                    (lo.min(level), hi.max(level))
                }));
            }
        }
        bands
    }

    /// The level of a value: zero on the floor, `max` and more at the top.
    fn level(&self, value: f64, levels: usize) -> Option<usize> {
        let top = levels.checked_sub(1)?;
        if !value.is_finite() {
            return None;
        }
        let share = value / self.max;
        let share = if share.is_finite() {
            share.clamp(0.0, 1.0)
        } else {
            0.0
        };
        (0..=top)
            .rev()
            .find(|l| fraction(*l, top) <= share + fraction(1, top.max(1) * 2))
    }
}

/// `part` of `whole`; 0 of 0 is 0.
fn fraction(part: usize, whole: usize) -> f64 {
    let of = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    if whole == 0 {
        0.0
    } else {
        of(part) / of(whole)
    }
}

/// `line`: level above the floor that a dotted line runs at, beside data only.
fn braille_cell(stripe: &[Option<(usize, usize)>], floor: usize, line: Option<usize>) -> char {
    let mut bits = 0;
    for (band, dots) in stripe.iter().zip(DOTS) {
        let Some((lo, hi)) = band else { continue };
        for (level, dot) in dots.into_iter().enumerate() {
            if (*lo..=*hi).contains(&(floor + level)) {
                bits |= dot;
            }
        }
    }
    if bits == 0 {
        return ' ';
    }
    bits |= line.and_then(|l| DOTS[0].get(l)).copied().unwrap_or(0);
    char::from_u32(0x2800 + bits).unwrap_or(' ')
}

fn ascii_cell(stripe: &[Option<(usize, usize)>], floor: usize) -> char {
    let Some(Some((lo, hi))) = stripe.first() else {
        return ' ';
    };
    let inside = |level: usize| (*lo..=*hi).contains(&(floor + level));
    match (inside(0), inside(1), inside(2)) {
        (false, false, false) => ' ',
        (true, false, false) => '_',
        (false, true, false) => '-',
        (false, false, true) => '"',
        _ => '|',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[(u64, Option<f64>)]) -> VecDeque<Point> {
        let point = |&(t, busy): &(u64, Option<f64>)| Point {
            at: Mono(t),
            busy,
            power_w: None,
            mem_used: None,
            cpu: None,
            temp_c: None,
            sclk_mhz: None,
            io_bps: None,
        };
        values.iter().map(point).collect()
    }

    fn draw(history: &VecDeque<Point>, now: u64, columns: usize) -> String {
        let chart = Chart {
            history,
            now: Mono(now),
            span_ms: 60_000,
            max: 100.0,
            line: None,
            cursor: None,
            ascii: true,
        };
        chart.draw(|p| p.busy, columns, 1).join("\n")
    }

    #[test]
    fn a_short_dip_stays_and_a_gap_is_blank() {
        let steady = (0..120).map(|i| {
            let v = match i {
                30 | 100..120 => Some(0.0),
                60..80 => None,
                _ => Some(100.0),
            };
            (i * 500, v)
        });
        let history = points(&steady.collect::<Vec<_>>());
        assert_eq!(draw(&history, 59_999, 12), "\"\"\"|\"\"  \"\"__");
    }

    #[test]
    fn a_sampler_that_stopped_leaves_a_gap() {
        let history = points(&[(0, Some(50.0)), (500, Some(50.0))]);
        let line = draw(&history, 59_999, 12);
        assert_eq!(line, "-           ");
    }

    #[test]
    fn lines_stand_where_nothing_else_does() {
        let history = points(&[(30_000, Some(100.0))]);
        let chart = Chart {
            history: &history,
            now: Mono(59_999),
            span_ms: 60_000,
            max: 100.0,
            line: Some(50.0),
            cursor: Some(Mono(12_000)),
            ascii: true,
        };
        assert_eq!(chart.draw(|p| p.busy, 12, 1), ["..:...\"....."]);
        assert_eq!(chart.cell(Mono(59_998), 12), Some(11));
        assert_eq!(chart.cell(Mono(90_000), 12), None, "not yet");
        assert_eq!(chart.cell(Mono(59_999), 0), None);
    }

    #[test]
    fn braille_draws_zero_on_the_floor() {
        let history = points(&[(0, Some(0.0)), (1_000, Some(100.0)), (2_000, Some(0.0))]);
        let chart = Chart {
            history: &history,
            now: Mono(2_999),
            span_ms: 3_000,
            max: 100.0,
            line: None,
            cursor: None,
            ascii: false,
        };
        assert_eq!(chart.draw(|p| p.busy, 2, 1), ["⡈⡀"]);
    }

    #[test]
    fn a_line_stays_in_sight_beside_data() {
        let history = points(&[(0, Some(80.0)), (1_000, Some(80.0))]);
        let chart = Chart {
            history: &history,
            now: Mono(1_999),
            span_ms: 2_000,
            max: 100.0,
            line: Some(100.0),
            cursor: None,
            ascii: false,
        };
        assert_eq!(chart.draw(|p| p.busy, 1, 1), ["⠓"]);
        assert_eq!(chart.draw(|_| None, 1, 1), ["┄"]);
        assert_eq!(chart.line_row(3), Some(0));
    }

    #[test]
    fn the_span_goes_in_steps() {
        let history = points(&[(0, None)]);
        assert_eq!(span(&history, Mono(61_000)).1, "2 min");
        assert_eq!(span(&history, Mono(u64::MAX)).1, "10 min");
        assert_eq!(span(&VecDeque::new(), Mono(5)).1, "1 min");
    }
}
