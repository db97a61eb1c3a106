//! Rows of the view: pieces with ranks, of which the least important go first
//! when a row is too narrow, and rows with ranks for a screen that is too low.

use std::borrow::Cow;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::ui::text;
use crate::ui::words::Tone;

use super::theme::Theme;

/// A row with its rank; the highest rank is shed first, rank 0 last.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) line: Line<'static>,
    pub(super) rank: u8,
    /// This row goes on where the one before it ends; when it is shed, that one
    /// gets this mark, within so many columns.
    pub(super) goes_on: Option<(Cow<'static, str>, usize)>,
}

impl Row {
    /// A row that stands alone.
    pub(super) const fn alone(line: Line<'static>, rank: u8) -> Self {
        Self {
            line,
            rank,
            goes_on: None,
        }
    }

    /// Shows that something after this row was left out.
    fn mark(&mut self, mark: &str, columns: usize) {
        let Some(last) = self.line.spans.last_mut() else {
            return;
        };
        if last.content.ends_with(mark) {
            return;
        }
        let room = columns.saturating_sub(self.line.width());
        let Some(last) = self.line.spans.last_mut() else {
            return;
        };
        let keep =
            text::width(&last.content).saturating_sub(text::width(mark).saturating_sub(room));
        last.content = (text::fit(&last.content, keep, "") + mark).into();
    }
}

/// A piece of a row.
#[derive(Debug, Clone)]
struct Part {
    text: String,
    style: Style,
    rank: u8,
}

/// A row in the making.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    theme: Theme,
    list: Vec<Part>,
}

/// Columns of the label before a value.
pub(super) const LABEL: usize = 8;

impl Parts {
    pub(super) fn new(theme: Theme) -> Self {
        Self {
            theme,
            list: Vec::new(),
        }
    }

    /// A row that begins with a label in its own column.
    pub(super) fn labelled(theme: Theme, label: &str) -> Self {
        let mut parts = Self::new(theme);
        // The gap that follows every piece is a part of the column.
        let label = text::clean(label, theme.ascii);
        let text = text::pad(&label, LABEL - GAP, theme.ellipsis());
        parts.list.push(Part {
            text,
            style: theme.style(Tone::Dim),
            rank: 1,
        });
        parts
    }

    /// Adds a piece; an empty one adds nothing. Rank 0 is never left out.
    pub(super) fn put(mut self, rank: u8, tone: Tone, text: impl AsRef<str>) -> Self {
        let text = text::clean(text.as_ref(), self.theme.ascii);
        if !text.is_empty() {
            self.list.push(Part {
                text,
                style: self.theme.style(tone),
                rank,
            });
        }
        self
    }

    /// As [`put`](Self::put), for our own symbols, which are not ASCII.
    pub(super) fn symbol(mut self, rank: u8, tone: Tone, text: String) -> Self {
        self.list.push(Part {
            text,
            style: self.theme.style(tone),
            rank,
        });
        self
    }

    /// Fills the first pieces up to so many columns, so that they stand below each other
    /// in a list.
    pub(super) fn aligned(mut self, columns: &[usize]) -> Self {
        for (part, columns) in self.list.iter_mut().zip(columns) {
            let gap = columns.saturating_sub(text::width(&part.text));
            part.text.push_str(&" ".repeat(gap));
        }
        self
    }

    /// Columns that the row takes with every piece.
    pub(super) fn width(&self) -> usize {
        let texts: usize = self.list.iter().map(|p| text::width(&p.text)).sum();
        texts + GAP * self.list.len().saturating_sub(1)
    }

    /// The row in at most `columns`: pieces of the highest rank go, the last of
    /// them first; if rank 0 alone is too wide, it is cut.
    pub(super) fn line(mut self, columns: usize) -> Line<'static> {
        while self.width() > columns {
            let Some((at, worst)) = self.list.iter().enumerate().max_by_key(|(_, p)| p.rank) else {
                break;
            };
            if worst.rank == 0 {
                break;
            }
            self.list.remove(at);
        }
        let mut spans = Vec::with_capacity(self.list.len() * 2);
        let mut room = columns;
        for (at, part) in self.list.into_iter().enumerate() {
            if at > 0 && room > GAP {
                spans.push(Span::raw(" ".repeat(GAP)));
                room -= GAP;
            } else if at > 0 {
                break;
            }
            let cut = text::fit(&part.text, room, self.theme.ellipsis());
            room = room.saturating_sub(text::width(&cut));
            spans.push(Span::styled(cut, part.style));
        }
        Line::from(spans)
    }

    /// The row in at most `columns`, with its rank.
    pub(super) fn row(self, columns: usize, rank: u8) -> Row {
        Row::alone(self.line(columns), rank)
    }
}

/// Spaces between two pieces.
const GAP: usize = 2;

/// Rank of the rows after the first of a text: what must stay stays whole.
pub(super) const fn later(rank: u8) -> u8 {
    match rank {
        0 => 0,
        rank => rank.saturating_add(2),
    }
}

/// A sentence under a label: at most `lines` rows, the first of `rank`, the
/// others [`later`].
pub(super) fn paragraph(
    theme: Theme,
    label: &str,
    tone: Tone,
    sentence: &str,
    columns: usize,
    lines: usize,
    rank: u8,
) -> Vec<Row> {
    let clean = text::clean(sentence, theme.ascii);
    let room = columns.saturating_sub(LABEL);
    text::wrap(&clean, room, lines, theme.ellipsis())
        .into_iter()
        .enumerate()
        .map(|(at, piece)| {
            let label = if at == 0 { label } else { "" };
            let label = text::pad(label, LABEL, theme.ellipsis());
            Row {
                line: Line::from(vec![
                    Span::styled(label, theme.style(Tone::Dim)),
                    Span::styled(piece, theme.style(tone)),
                ]),
                rank: if at > 0 { later(rank) } else { rank },
                goes_on: (at > 0).then(|| (theme.ellipsis().into(), columns)),
            }
        })
        .collect()
}

/// Gives the rows after the first of a [`paragraph`] another rank.
pub(super) fn shortened(mut rows: Vec<Row>, rank: u8) -> Vec<Row> {
    for row in rows.iter_mut().skip(1) {
        row.rank = rank;
    }
    rows
}

/// Sheds rows until `height` holds them: the highest rank first, the lower one
/// of two equals first.
pub(super) fn shed(mut rows: Vec<Row>, height: usize) -> Vec<Line<'static>> {
    while rows.len() > height {
        let Some((at, _)) = rows.iter().enumerate().max_by_key(|(_, r)| r.rank) else {
            break;
        };
        let gone = rows.remove(at);
        let before = at.checked_sub(1).and_then(|before| rows.get_mut(before));
        if let (Some((mark, columns)), Some(before)) = (gone.goes_on, before) {
            before.mark(&mark, columns);
        }
    }
    rows.into_iter().map(|r| r.line).collect()
}

/// A bar of `columns`: `share` in percent of it full.
pub(super) fn gauge(theme: Theme, share: f64, columns: usize) -> String {
    let full = share.clamp(0.0, 100.0) / 100.0;
    let filled = (0..columns)
        .filter(|at| {
            let at = u32::try_from(*at).unwrap_or(u32::MAX);
            let columns = u32::try_from(columns).unwrap_or(u32::MAX);
            f64::from(at) + 0.5 <= full * f64::from(columns)
        })
        .count();
    theme.pick("█", "#").repeat(filled) + &theme.pick("░", ".").repeat(columns - filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNICODE: Theme = Theme {
        ascii: false,
        color: true,
    };

    fn parts() -> Parts {
        Parts::new(UNICODE)
            .put(0, Tone::Bad, "HUNG")
            .put(2, Tone::Plain, "for 51 s")
            .put(1, Tone::Plain, "silent_hang")
    }

    #[test]
    fn the_least_important_piece_goes_first() {
        assert_eq!(parts().line(40).to_string(), "HUNG  for 51 s  silent_hang");
        assert_eq!(parts().line(26).to_string(), "HUNG  silent_hang");
        assert_eq!(parts().line(16).to_string(), "HUNG");
        assert_eq!(parts().line(3).to_string(), "HU…");
        assert_eq!(parts().line(0).to_string(), "");
    }

    #[test]
    fn rows_are_shed_by_rank_from_below() {
        let row = |text: &'static str, rank| Row::alone(Line::raw(text), rank);
        let rows = vec![
            row("health", 0),
            row("host", 5),
            row("ladder", 3),
            row("temp", 5),
        ];
        let text = |h| {
            let lines = shed(rows.clone(), h);
            lines
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(text(3), "health host ladder");
        assert_eq!(text(2), "health ladder");
        assert_eq!(text(0), "");
    }

    #[test]
    fn a_text_that_was_shed_in_part_says_so() {
        let sentence = "one two three four five six";
        let rows = paragraph(UNICODE, "why", Tone::Plain, sentence, LABEL + 9, 5, 1);
        let lines = |h| {
            let lines = shed(rows.clone(), h);
            lines.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            lines(3),
            ["why     one two", "        three", "        four fiv…"]
        );
        assert_eq!(lines(1), ["why     one two…"]);
    }

    #[test]
    fn a_gauge_is_never_wider_than_asked() {
        assert_eq!(gauge(UNICODE, 50.0, 4), "██░░");
        assert_eq!(gauge(UNICODE, 1e9, 3), "███");
        assert_eq!(gauge(UNICODE, f64::NAN, 3), "░░░");
        assert_eq!(gauge(UNICODE, 0.0, 0), "");
    }
}
