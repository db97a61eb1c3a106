//! What stands around the panels: header, footer, titles, questions.

use ratatui::Frame;
use ratatui::layout::{Margin, Rect};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Borders, Clear, Paragraph};

use crate::run::Snapshot;
use crate::ui::text;
use crate::ui::words::Tone;

use super::keymap::{self, Overlay};
use super::panel;
use super::parts::Parts;
use super::theme::Theme;
use super::view::ViewOptions;

/// Program, run, attempt, profile; at the right the time and whether it is live.
pub(super) fn header(s: &Snapshot, o: &ViewOptions, columns: usize) -> Line<'static> {
    let theme = o.theme;
    let state = match (&s.outcome, panel::silence(o.silent_for)) {
        (Some((_, code, _)), _) => (format!("ENDED {code}"), Tone::Strong),
        (None, Some(silence)) => (silence, Tone::Bad),
        (None, None) => ("LIVE".to_owned(), Tone::Good),
    };
    let right = Parts::new(theme)
        .put(1, Tone::Plain, s.now.clock())
        .put(0, state.1, state.0);
    let right_width = right.width().min(columns);
    let attempt = s.attempt.as_ref().map_or_else(String::new, |a| {
        format!("attempt {} on {}", a.number, a.rung)
    });
    let left = Parts::new(theme)
        .put(1, Tone::Strong, "framepack-tui")
        .put(2, Tone::Plain, attempt)
        .put(3, Tone::Plain, format!("profile {}", s.profile))
        .put(4, Tone::Dim, format!("run {}", s.run))
        .put(5, Tone::Dim, &s.adapter);
    let mut line = left.line(columns.saturating_sub(right_width + 2));
    let gap = columns.saturating_sub(right_width + line.width());
    line.push_span(" ".repeat(gap));
    line.extend(right.line(right_width));
    line
}

/// The keys that do something now, or the answer to the last one.
pub(super) fn footer(frame: &mut Frame<'_>, s: Option<&Snapshot>, o: &ViewOptions) {
    let area = frame.area();
    let Some(y) = area.height.checked_sub(1) else {
        return;
    };
    let at = Rect {
        y: area.y + y,
        height: 1,
        ..area
    }
    .inner(Margin::new(1, 0));
    let mut row = Parts::new(o.theme);
    if let Some(toast) = &o.toast {
        row = row.put(0, Tone::Strong, toast);
    } else {
        let live = keymap::of(o.overlay).filter(|b| keymap::enabled(b.action, s).is_ok());
        for (at, b) in live.enumerate() {
            let key = b.keys.first().map_or_else(String::new, |k| k.name());
            let rank = u8::try_from(at).unwrap_or(u8::MAX);
            row = row.put(rank, Tone::Plain, format!("{key} {}", keymap::name(b, s)));
        }
    }
    frame.render_widget(Clear, at);
    frame.render_widget(Paragraph::new(row.line(at.width.into())), at);
}

/// A rule with a title over the part below it.
pub(super) fn titled(
    frame: &mut Frame<'_>,
    theme: Theme,
    area: Rect,
    title: &str,
    boxed: bool,
) -> Rect {
    let title = text::clean(title, theme.ascii);
    let room = usize::from(area.width).saturating_sub(6);
    let title = Line::styled(
        format!(" {} ", text::fit(&title, room, theme.ellipsis())),
        theme.style(Tone::Strong),
    );
    let block = Block::new()
        .borders(if boxed { Borders::ALL } else { Borders::TOP })
        .border_set(theme.border())
        .border_style(theme.style(Tone::Dim))
        .title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner.inner(Margin::new(1, 0))
}

pub(super) fn put(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'static>>) {
    frame.render_widget(Paragraph::new(Text::from(lines)), area);
}

/// What lies over the view.
pub(super) fn overlay(frame: &mut Frame<'_>, s: &Snapshot, o: &ViewOptions) {
    let theme = o.theme;
    let (title, text): (&str, &[&str]) = match o.overlay {
        Overlay::None => return,
        Overlay::Help => ("Keys", &[]),
        Overlay::Quit => ("Quit: what becomes of the run?", &[]),
        Overlay::Kill => (
            "Kill the run?",
            &[
                "Every process of the run is ended by SIGKILL, and the run",
                "with it. What is on disk stays there.",
                "",
            ],
        ),
    };
    let mut lines: Vec<_> = text.iter().map(|t| Line::raw(*t)).collect();
    // The help is about the keys of the view, not about its own.
    let keys_of = match o.overlay {
        Overlay::Help => Overlay::None,
        overlay => overlay,
    };
    for b in keymap::of(keys_of) {
        let keys: Vec<_> = b.keys.iter().map(|k| k.name()).collect();
        let keys = text::pad(&keys.join(" "), 14, theme.ellipsis());
        let row = Parts::new(theme).put(0, Tone::Strong, keys);
        let row = match keymap::enabled(b.action, Some(s)) {
            Ok(()) => row.put(0, Tone::Plain, b.help),
            Err(why) => row.put(0, Tone::Dim, format!("{} (not now: {why})", b.name)),
        };
        lines.push(row.line(66));
    }
    let area = frame.area();
    let wanted = u16::try_from(lines.len())
        .unwrap_or(u16::MAX)
        .saturating_add(2);
    let (width, height) = (area.width.min(72), area.height.min(wanted));
    let at = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, at);
    let inner = titled(frame, theme, at, title, true);
    put(frame, inner, lines);
}
