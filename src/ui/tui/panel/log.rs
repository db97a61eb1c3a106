//! The log: the child's lines and our own words in one order.

use std::collections::VecDeque;

use ratatui::text::{Line, Span};

use crate::run::Snapshot;
use crate::run::snapshot::{LogKind, LogLine};
use crate::ui::text;
use crate::ui::tui::state::{LogView, newer};
use crate::ui::tui::theme::Theme;
use crate::ui::words::Tone;

/// From this width on a line has its time and its stream.
const WITH_TIME: usize = 60;

/// What the title says: following or not, what was folded away.
pub(in crate::ui::tui) fn title(s: &Snapshot, view: &LogView) -> String {
    let title = match view {
        LogView::Follow => "Log  follow".to_owned(),
        LogView::Frozen { log, back } => {
            format!(
                "Log  PAUSED {back} lines back, {} new (End follows)",
                newer(log, &s.log)
            )
        }
    };
    match s.chatter {
        0 => title,
        n => format!("{title}  {n} library lines folded away"),
    }
}

/// The lines that fit, the newest below.
pub(in crate::ui::tui) fn rows(
    s: &Snapshot,
    view: &LogView,
    theme: Theme,
    columns: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let (log, back): (&VecDeque<LogLine>, usize) = match view {
        LogView::Follow => (&s.log, 0),
        LogView::Frozen { log, back } => (log, *back),
    };
    let end = log.len().saturating_sub(back).max(height.min(log.len()));
    let begin = end.saturating_sub(height);
    log.range(begin..end)
        .map(|l| line(l, theme, columns))
        .collect()
}

fn line(l: &LogLine, theme: Theme, columns: usize) -> Line<'static> {
    let (mark, tone) = match l.kind {
        LogKind::Stdout => ("O", Tone::Plain),
        LogKind::Stderr => ("E", Tone::Plain),
        LogKind::Own => (theme.pick("•", "*"), Tone::Info),
    };
    let tail = match l.folded {
        0 => String::new(),
        n => format!("  ({n} folded)"),
    };
    let mut spans = Vec::new();
    let mut room = columns;
    if columns >= WITH_TIME {
        let head = format!("{} {mark} ", l.at.clock());
        room = room.saturating_sub(text::width(&head));
        spans.push(Span::styled(head, theme.style(Tone::Dim)));
    }
    let body_room = room.saturating_sub(text::width(&tail));
    // Only what can be seen is looked at: a line may be 8 KiB long.
    let seen: String = l.text.chars().take(columns.saturating_mul(4)).collect();
    let body = text::fit(
        &text::clean(&seen, theme.ascii),
        body_room,
        theme.ellipsis(),
    );
    spans.push(Span::styled(body, theme.style(tone)));
    if !tail.is_empty() && room > text::width(&tail) {
        spans.push(Span::styled(tail, theme.style(Tone::Dim)));
    }
    Line::from(spans)
}
